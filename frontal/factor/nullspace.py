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
from .condition import Product
from .exponent import Scaled

_ROUNDINGS = 3
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
    if trans == "T":
        found = null_space(factor, "H")
        return None if found is None else found._replace(basis=found.basis.conj())
    of = Scaled.of(factor)
    system, (_, column) = of.system(factor, trans), of.sides(trans)
    adjoint = of.solver(factor, "H" if trans == "N" else "N")
    # long double where there is one: rounding in A' V would count as a part of it
    precise = system.A.astype(np.result_type(system.A.dtype, np.longdouble))
    norm = _two_norm(system)
    width = min(n, max(2, factor.nulls.size + 1))
    while True:
        V, size = _small_vectors(system, adjoint, precise, width, norm, eps)
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
    system: HostSystem,
    adjoint: Product,
    precise: sp.sparray,
    width: int,
    norm: float,
    eps: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal vectors V, and the norms of A' V; those that A' makes smallest come first.

    They are Ã^-1 B for the factorized Ã = A' + E, whose null vectors differ from those of A' by E,
    which may be a replaced pivot. Corrections by Ã^-1 A' V lead to those of A'. They leave out what
    Ã^-1 makes large, in V and in the U = Ã^-H B that it comes from: so would rounding be.
    """
    n, small = system.A.shape[0], eps**0.375 * norm
    B = np.random.default_rng(0).standard_normal((n, width)).astype(system.A.dtype)
    left, found = _ordered(precise.conj().T, adjoint(B)), _ordered(precise, system.solve(B))
    V, size = np.empty((n, 0)), np.empty(0)
    for _ in range(_CORRECTIONS + 1):
        if left is None or found is None or (size.size and not (found[1] < size / 2).any()):
            break
        V, size = found
        k = int((size <= small).sum())
        if k == 0:
            break
        W, U = V[:, :k], left[0][:, :k]
        R = (precise @ W).astype(V.dtype)
        D = system.solve(R - U @ (U.conj().T @ R))
        found = _ordered(precise, np.hstack([W - (D - W @ (W.conj().T @ D)), V[:, k:]]))
    return V, size


def _orthonormal(X: np.ndarray) -> np.ndarray | None:
    """A basis of the columns; None of what is not finite."""
    X = X / np.abs(X).max(axis=0, initial=0.0)
    return np.linalg.qr(X)[0] if np.isfinite(X).all() else None


def _ordered(precise: sp.sparray, trial: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """An orthonormal basis, singular vectors of A' in its span; None of what is not finite."""
    V = _orthonormal(trial)
    if V is None:
        return None
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
