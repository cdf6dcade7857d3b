"""Vectors that A takes to rounding: the evidence that it is singular, and what is free in x.

A matrix is called singular if A', which is A in rows and columns of size 1, takes a vector of norm
1 to less than `_ROUNDINGS` precisions of its norm: the relative distance to a singular matrix is
less than that, whatever the factors are. They only help to find the vector, by subspace iteration.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..cpu.system import HostSystem
from ..protocol import NumericFactor
from ..symbolic.scaling import shifted
from .exponent import Scaled

_ROUNDINGS = 4
_CORRECTIONS = 4
_WIDEST = 64  # vectors in a block, unless the factor knows of more


class NullSpace(NamedTuple):
    """A basis of what A takes to zero.

    Attributes
    ----------
    columns : (p,) int array
        Columns that depend on the others: with these unknowns fixed, x is unique.
    basis : (n, p) array
        The unit matrix in the rows `columns`.
    """

    columns: np.ndarray
    basis: np.ndarray

    def fixed(self, X: np.ndarray) -> np.ndarray:
        """X with multiples of the basis taken off, so that it is zero in `columns`."""
        X = X - (self.basis @ X[self.columns]).astype(X.dtype, copy=False)
        X[self.columns] = 0
        return X


def null_space(factor: NumericFactor, trans: str = "N") -> NullSpace | None:
    """The null space of op(A), where solutions with the factors find one; None for a regular A."""
    n, eps = factor.symbolic.n, float(np.finfo(factor.dtype).eps)
    if n == 0:
        return None
    of = Scaled.of(factor)
    system, (_, column) = of.system(factor, trans), of.sides(trans)
    # long double where there is one: rounding in A' V would count as a part of it
    precise = system.A.astype(np.result_type(system.A.dtype, np.longdouble))
    norm = _two_norm(system)
    width = min(n, max(2, factor.nulls.size + 1))
    while True:
        V, size = _small_vectors(system, precise, width)
        p = int((size <= _ROUNDINGS * eps * norm).sum())
        if p < width or width in (n, max(_WIDEST, factor.nulls.size + 1)):
            break
        width = min(n, 2 * width, max(_WIDEST, factor.nulls.size + 1))
    if p == 0:
        return None
    V = V[:, :p]
    order = scipy.linalg.qr(V.conj().T, mode="r", pivoting=True)[1]
    columns = np.sort(order[:p])
    basis = np.linalg.solve(V[columns].T, V.T).T
    basis[columns] = np.eye(p)
    basis = shifted(basis, column[:, None] - column[columns])
    return NullSpace(columns, basis.astype(factor.dtype))


@np.errstate(all="ignore")
def _small_vectors(
    system: HostSystem, precise: sp.sparray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal vectors V, and the norms of A' V; those that A' makes smallest come first.

    From V = Ã^-1 B for the factorized Ã = A' + E, the corrections V - Ã^-1 A' V = Ã^-1 E V lead to
    the vectors of A' itself, also where E has replaced pivots.
    """
    n = system.A.shape[0]
    B = np.random.default_rng(0).standard_normal((n, width)).astype(system.A.dtype)
    V, size = np.empty((n, 0)), np.empty(0)
    trial = system.solve(B)
    for _ in range(_CORRECTIONS + 1):
        found = _ordered(precise, trial)
        if found is None or (size.size and not (found[1] < size / 2).any()):
            break
        V, size = found
        trial = V - system.solve((precise @ V).astype(V.dtype))
        # what is corrected away belongs to no null space: its rounding must not be blown up
        lost = ~(np.linalg.norm(trial, axis=0) > 0.1)
        trial[:, lost] = V[:, lost]
    return V, size


def _ordered(precise: sp.sparray, trial: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """An orthonormal basis, singular vectors of A' in its span; None of what is not finite."""
    trial = trial / np.abs(trial).max(axis=0, initial=0.0)
    if not np.isfinite(trial).all():
        return None
    V = np.linalg.qr(trial)[0]
    image = precise @ V
    if not np.isfinite(image).all():
        return None
    peak = float(np.abs(image).max()) or 1.0
    turned = np.linalg.svd((image / peak).astype(V.dtype), full_matrices=False)[2]
    V = V @ turned[::-1].conj().T
    return V, np.linalg.norm((precise @ V).astype(V.dtype), axis=0)


def _two_norm(system: HostSystem) -> float:
    """2-norm, from below."""
    A, z = system.A, np.ones((system.A.shape[0], 1))
    norm = float(np.sqrt(np.asarray(abs(A).power(2).sum(axis=0)).max(initial=0.0)))
    with np.errstate(all="ignore"):
        for _ in range(4):
            image = A @ z
            size = float(np.linalg.norm(image) / np.linalg.norm(z))
            norm = max(norm, size) if np.isfinite(size) else norm
            z = A.conj().T @ image
            z = z / (np.abs(z).max() or 1.0)
    return norm
