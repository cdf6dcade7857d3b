"""Vectors that A takes to rounding: the evidence that it is singular, and what is free in x.

A matrix is called singular if A', which is A in rows and columns of moderate size, takes a vector
of norm 1 to less than 2 precisions of its norm: the relative distance to a singular
matrix is less than that, whatever the factors are. They only help to find the vector.
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

_ROUNDINGS = 2  # a vector that is less than so many makes A singular
_MORE = 8  # others are counted then, if they are less than so many
_CORRECTIONS = 4
_MOST = 64  # vectors that are sought, unless the factor knows of more


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
    """The null space of op(A), where solutions with the factors find one; None for a regular A.

    What is null must be so in the scaling of the factor and when balanced: each may be bad.
    """
    n = factor.symbolic.n
    if n == 0:
        return None
    if trans == "T":
        found = null_space(factor, "H")
        return None if found is None else found._replace(basis=found.basis.conj())
    scaled = Scaled.of(factor)
    sides = [_Sought.of(factor, one, trans) for one in (scaled, scaled.balanced())]
    found = [
        (one.confirmed(other), one.column) for one, other in zip(sides, sides[::-1], strict=True)
    ]
    V, column = max(found, key=lambda pair: pair[0].shape[1])
    p = V.shape[1]
    if p == 0:
        return None
    order = scipy.linalg.qr(V.conj().T, mode="r", pivoting=True)[1]
    columns = np.sort(order[:p])
    basis = np.linalg.solve(V[columns].T, V.T).T
    basis[columns] = np.eye(p)
    basis = shifted(basis, column[:, None] - column[columns])
    return NullSpace(columns, basis.astype(factor.dtype))


class _Sought(NamedTuple):
    """Null vectors of op(A') for one scaling.

    Attributes
    ----------
    column : (n,) int64 array
        Exponents of the scaling of columns.
    precise : (n, n) sparse array
        op(A') in long double, where there is one: rounding in A' V would count as a part of it.
    small : float
        One rounding of A' v for a null vector v.
    V : (n, p) array
        Orthonormal.
    """

    column: np.ndarray
    precise: sp.sparray
    small: float
    V: np.ndarray

    @classmethod
    def of(cls, factor: NumericFactor, scaled: Scaled, trans: str) -> _Sought:
        """Those that solutions with the factor lead to."""
        system, eps = scaled.system(factor, trans), float(np.finfo(factor.dtype).eps)
        adjoint = scaled.solver(factor, "H" if trans == "N" else "N")
        precise = system.A.astype(np.result_type(system.A.dtype, np.longdouble))
        small = eps * _two_norm(system)
        V, U = _near_null(system, adjoint, precise, factor.nulls.size, small / eps**0.625)
        V, size = _corrected(system, precise, V, U)
        return cls(scaled.sides(trans)[1], precise, small, _null(V, size, small))

    def confirmed(self, other: _Sought) -> np.ndarray:
        """Null vectors here among those of another scaling."""
        with np.errstate(all="ignore"):
            shift = (other.column - self.column)[:, None]
            V, size = _ordered(self.precise, shifted(other.V, shift))
        return _null(V, size, self.small)


def _null(V: np.ndarray, size: np.ndarray, small: float) -> np.ndarray:
    """The first vectors, if they are null."""
    certain = size.size > 0 and size[0] <= _ROUNDINGS * small
    return V[:, size <= _MORE * small] if certain else V[:, :0]


@np.errstate(all="ignore")
def _near_null(
    system: HostSystem, adjoint: Product, precise: sp.sparray, expected: int, small: float
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal vectors V that the factorized matrix Ã makes small, and U that its adjoint does.

    A vector may hide others: if its pivot is smaller by far, there is little else in Ã^-1 B but
    rounding. Each round takes those of the rounds before off right-hand sides and solutions.
    """
    n, rng = system.A.shape[0], np.random.default_rng(0)
    V = U = np.empty((n, 0), system.A.dtype)
    while V.shape[1] < min(n, max(_MOST, expected)):
        k = V.shape[1]
        B = rng.standard_normal((n, max(2, k, expected + 1 - k))).astype(V.dtype)
        right = _ordered(precise, np.hstack([V, _deflated(system.solve, B, U, V)]))
        left = _ordered(precise.conj().T, np.hstack([U, _deflated(adjoint, B, V, U)]))
        found = min(int((size <= small).sum()) for _, size in (right, left))
        if found <= k:
            break
        V, U = right[0][:, :found], left[0][:, :found]
    return V, U


def _deflated(solve: Product, B: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Solutions for right-hand sides without U, and without V."""
    X = solve(B - U @ (U.conj().T @ B))
    return X - V @ (V.conj().T @ X)


@np.errstate(all="ignore")
def _corrected(
    system: HostSystem, precise: sp.sparray, V: np.ndarray, U: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Null vectors of A' = Ã - E from those of Ã, and the norms of A' V, in ascending order.

    E may be a replaced pivot. V - Ã^-1 A' V = Ã^-1 E V is no larger than V, where neither holds
    what Ã^-1 makes large.
    """
    found = V, np.full(V.shape[1], np.inf)
    for _ in range(_CORRECTIONS + 1):
        trial = _ordered(precise, V)
        if trial[1].size < U.shape[1] or not (trial[1] < found[1] / 2).any():
            break
        found = trial
        V = found[0] - _deflated(system.solve, (precise @ found[0]).astype(V.dtype), U, found[0])
    return found


def _ordered(A: sp.sparray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An orthonormal basis of X, and what A makes of it: singular vectors there, ascending."""
    X = X / np.abs(X).max(axis=0, initial=0.0)
    V = np.linalg.qr(X[:, np.isfinite(X).all(axis=0)])[0]
    image = A @ V
    peak = float(np.abs(image).max(initial=0.0)) or 1.0
    if not np.isfinite(peak):
        return V, np.full(V.shape[1], np.inf)
    turned = np.linalg.svd((image / peak).astype(V.dtype), full_matrices=False)[2]
    V = V @ turned[::-1].conj().T
    return V, np.linalg.norm((A @ V).astype(V.dtype), axis=0)


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
