"""Vectors that A takes to rounding: the evidence that it is singular, and what is free in x.

A matrix is called singular if A', which is A in rows and columns of moderate size, takes a vector
of norm 1 to a few precisions of its norm at most, and if the same holds in all other scalings: what
a scaling does is no property of A. The factors only help to find the vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..backend.protocol import NumericFactor
from ..numeric.one_norm import Product
from ..symbolic.relative_pivots import relative_pivots
from ..symbolic.scaling import shifted
from .extreme_scales import Scaled
from .other_scalings import other_scalings

NOISE = 100  # roundings up to which a pivot may be what rounding has left of another
_MAX_NULL_ROUNDINGS = 4  # a vector that is less than so many makes A singular
_MAX_COUNTED_ROUNDINGS = 8  # others are counted then, if they are less than so many
_MAX_CORRECTIONS = 4
_MAX_SMALL_CORRECTION = 0.01  # corrections to which vectors of norm 1 need no orthonormalization
_MAX_NULL_VECTORS = 64  # vectors that are sought, unless as many pivots are small


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
    """The null space of op(A), where solutions with the factor find one; else None.

    It has no columns where a scaling shows that A is regular, though the factor's does not.
    """
    n = factor.symbolic.n
    if n == 0:
        return None
    if trans == "T":
        null = null_space(factor, "H")
        return None if null is None else null._replace(basis=null.basis.conj())
    scaled = Scaled.from_factor(factor)
    null = _Null.from_factor(factor, scaled, trans)
    if not null.size:
        return None
    V, column = null.V, scaled.sides(trans)[1]
    singular = _in_all_scalings(null, factor, scaled, trans)
    if not singular or not _in_other_scalings(null, factor, scaled, trans):
        V = V[:, :0]
    p = V.shape[1]
    order = scipy.linalg.qr(V.conj().T, mode="r", pivoting=True)[1]
    columns = np.sort(order[:p])
    basis = np.linalg.solve(V[columns].T, V.T).T
    basis[columns] = np.eye(p)
    basis = shifted(basis, column[:, None] - column[columns])
    return NullSpace(columns, basis.astype(factor.dtype))


def nearly_null(factor: NumericFactor) -> int:
    """How many singular values of A' are so small that rounding of a factorization may matter."""
    scaled = Scaled.from_factor(factor)
    norm, _ = _norm_of_moduli(scaled.magnitude)
    V, _ = _near_null(*_NullOperator.both(factor, scaled, "N"), norm, factor)
    n, p = V.shape
    return p if 0 < p < min(n, _max_vectors(factor)) else n


class _NullOperator(NamedTuple):
    """op(A') or its adjoint, in long double where there is one, and solutions by its factors.

    In working precision rounding in A' V would count as a part of it.
    """

    A: sp.sparray
    solve: Product

    @classmethod
    def both(
        cls, factor: NumericFactor, scaled: Scaled, trans: str
    ) -> tuple[_NullOperator, _NullOperator]:
        """That of op(A') and that of its adjoint."""
        A = scaled.op(trans)[0]
        A = A.astype(np.result_type(A.dtype, np.longdouble))
        solves = (scaled.solver(factor, one) for one in (trans, "H" if trans == "N" else "N"))
        solve, solve_adjoint = solves
        return cls(A, solve), cls(A.conj().T, solve_adjoint)


class _Null(NamedTuple):
    """Null vectors of op(A') for one scaling: orthonormal, (n, p).

    Attributes
    ----------
    V, U : (n, p) arrays
        Of op(A') and of its adjoint.
    """

    V: np.ndarray
    U: np.ndarray

    @classmethod
    def from_factor(cls, factor: NumericFactor, scaled: Scaled, trans: str) -> _Null:
        """Those that solutions with the factor lead to."""
        sides = _NullOperator.both(factor, scaled, trans)
        norm, cancelled = _norm_of_moduli(scaled.op(trans)[1])
        small = float(np.finfo(factor.dtype).eps) * norm / cancelled
        return cls(*_near_null(*sides, norm, factor)).corrected(*sides, small)

    def corrected(self, operator: _NullOperator, adjoint: _NullOperator, small: float) -> _Null:
        """Those among these that are null, corrected by solutions."""
        V, U = self
        (V, sizes), (U, adjoint_sizes) = _corrected(operator, V, U), _corrected(adjoint, U, V)
        p = min(_count(size, small) for size in (sizes, adjoint_sizes))
        return _Null(V[:, :p], U[:, :p])

    @np.errstate(all="ignore")
    def in_scaling(
        self, factor: NumericFactor, scaled: Scaled, target: Scaled, trans: str
    ) -> _Null:
        """Those that these are in another scaling, where solutions may find none any more."""
        sides = _NullOperator.both(factor, target, trans)
        norm, cancelled = _norm_of_moduli(target.op(trans)[1])
        row, column = (a - b for a, b in zip(scaled.sides(trans), target.sides(trans), strict=True))
        V, U = shifted(self.V, column[:, None]), shifted(self.U, row[:, None])
        moved = _Null(_ordered(sides[0].A, V)[0], _ordered(sides[1].A, U)[0])
        if moved.V.shape != self.V.shape or moved.U.shape != self.U.shape:
            return _Null(V[:, :0], U[:, :0])
        return moved.corrected(*sides, float(np.finfo(factor.dtype).eps) * norm / cancelled)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.V.shape[1]


def _count(size: np.ndarray, small: float) -> int:
    """How many vectors are null, by the norms of their images in ascending order."""
    certain = size.size > 0 and size[0] <= _MAX_NULL_ROUNDINGS * small
    return int((size <= _MAX_COUNTED_ROUNDINGS * small).sum()) if certain else 0


def _in_all_scalings(null: _Null, factor: NumericFactor, scaled: Scaled, trans: str) -> bool:
    """Whether A is singular in the scaling, too, in which that is least likely.

    Vectors that are null in their own scaling only spoil that of the others.
    """
    A, moduli = scaled.op(trans)
    eps, tried = float(np.finfo(factor.dtype).eps), 0
    small = eps / _norm_of_moduli(moduli)[1]
    while null.size and null.size != tried:
        tried = null.size
        null, distance = _by_distance(A, moduli, null, eps**2)
        p = _count(distance, small)
        null = _Null(null.V[:, :p], null.U[:, :p])
    return null.size > 0


def _in_other_scalings(null: _Null, factor: NumericFactor, scaled: Scaled, trans: str) -> bool:
    """Whether there are null vectors in each of the scalings that are in use, too.

    To first order, and by moduli, a matrix may be nearer to singular ones than it is. Solutions
    lead to them, or the vectors that are known do: after a replaced pivot that was none of a null
    column solutions have more in them that is large than null vectors, and rounding with it.
    """
    others = other_scalings(factor.matrix, scaled.row, scaled.column)
    rescaled = (scaled.rescaled(*exponents) for exponents in others)
    return all(
        _Null.from_factor(factor, one, trans).size
        or null.in_scaling(factor, scaled, one, trans).size
        for one in rescaled
        if one.holds
    )


@np.errstate(all="ignore")
def _by_distance(
    A: sp.sparray, moduli: sp.sparray, null: _Null, floor: float
) -> tuple[_Null, np.ndarray]:
    """Combinations of null vectors, and the relative changes of all entries that make them so.

    For one vector v, and u of the adjoint, that is |u^H A v| / |u|^T |A| |v|, to first order: the
    smallest singular value in the scaling in which |A| of norm 1 takes |v| to |u|, and no scaling
    makes it larger (Bauer 1963). Zeros of A, v and u count as `floor`, since these have rounding.
    """
    V, U = null
    v, u = (np.linalg.norm(X, axis=1) for X in null)
    right_factor, left_factor = (
        np.linalg.qr(X * np.sqrt((image + floor) / (x + floor))[:, None])[1]
        for X, x, image in ((V, v, moduli.T @ u), (U, u, moduli @ v))
    )
    inner = (U.conj().T @ (A.astype(np.result_type(A.dtype, np.longdouble)) @ V)).astype(V.dtype)
    inner = np.linalg.solve(left_factor.conj().T, np.linalg.solve(right_factor.T, inner.T).T)
    left_rotation, size, right_rotation = np.linalg.svd(inner)
    V = V @ np.linalg.solve(right_factor, right_rotation[::-1].conj().T)
    return _Null(V, U @ np.linalg.solve(left_factor, left_rotation[:, ::-1])), size[::-1]


def _norm_of_moduli(A: sp.sparray) -> tuple[float, float]:
    """2-norm of |A|, and by how much it may exceed that of any A of the pattern."""
    z = np.ones((A.shape[0], 1))
    norm = float(np.sqrt(np.asarray(A.power(2).sum(axis=0)).max(initial=0.0)))
    with np.errstate(all="ignore"):
        for _ in range(4):
            image = A @ z
            size = float(np.linalg.norm(image) / np.linalg.norm(z))
            norm = max(norm, size) if np.isfinite(size) else norm
            z = A.T @ image
            z = z / (z.max() or 1.0)
    most = [np.diff(M.tocsc().indptr).max() for M in (A, A.T)]
    return norm, float(min(A.shape[0] ** 0.5, (most[0] * most[1]) ** 0.25))


@np.errstate(all="ignore")
def _near_null(
    operator: _NullOperator, adjoint: _NullOperator, norm: float, factor: NumericFactor
) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal vectors V that the factorized matrix Ã makes small, and U that its adjoint does.

    A vector may hide others: if its pivot is smaller by far, there is little else in Ã^-1 B but
    rounding. Each round takes those of the rounds before off right-hand sides and solutions.
    """
    n, expected, rng = operator.A.shape[0], factor.nulls.size, np.random.default_rng(0)
    small = norm * float(np.finfo(factor.dtype).eps) ** 0.375
    dtype = np.result_type(factor.dtype, np.float64)
    V = U = np.empty((n, 0), dtype)
    most = _max_vectors(factor)
    while V.shape[1] < min(n, most):
        k = V.shape[1]
        B = rng.standard_normal((n, max(2, k, expected + 1 - k))).astype(dtype)
        right_vectors = _ordered(operator.A, np.hstack([V, _deflated(operator.solve, B, U, V)]))
        left_vectors = _ordered(adjoint.A, np.hstack([U, _deflated(adjoint.solve, B, V, U)]))
        count = min(int((size <= small).sum()) for _, size in (right_vectors, left_vectors))
        if count <= k:
            break
        V, U = right_vectors[0][:, :count], left_vectors[0][:, :count]
    return V, U


def _max_vectors(factor: NumericFactor) -> int:
    """Vectors that are sought: a few, or as many as pivots are rounding or were replaced."""
    args = factor.matrix, factor.symbolic, factor.scaling, factor.subdiagonal()
    size = relative_pivots(factor.diagonal(), *args)
    small = int((size <= NOISE * np.finfo(factor.dtype).eps).sum())
    return max(_MAX_NULL_VECTORS, small + factor.perturbed)


def _deflated(solve: Product, B: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Solutions for right-hand sides without U, and without V."""
    X = solve(B - U @ (U.conj().T @ B))
    return X - V @ (V.conj().T @ X)


@np.errstate(all="ignore")
def _corrected(
    operator: _NullOperator, V: np.ndarray, U: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Null vectors of A' = Ã - E from those of Ã, and the norms of A' V, in ascending order.

    E may be a replaced pivot. V - Ã^-1 A' V = Ã^-1 E V is no larger than V, where neither holds
    what Ã^-1 makes large.
    """
    best = V, np.full(V.shape[1], np.inf)
    for _ in range(_MAX_CORRECTIONS + 1):
        trial = _ordered(operator.A, V)
        if trial[1].size < U.shape[1] or not (trial[1] < best[1] / 2).any():
            break
        best = trial
        V = best[0] - _correction(operator, best[0], U)
    return _polished(operator, *best, U)


@np.errstate(all="ignore")
def _polished(
    operator: _NullOperator, V: np.ndarray, size: np.ndarray, U: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same without what rounding in an orthonormalization and a rotation has left in V.

    That grows with rows and columns. Corrections are normal to V: small ones keep it orthonormal.
    """
    change = _correction(operator, V, U)
    trial = V - change
    after = np.linalg.norm((operator.A @ trial).astype(V.dtype), axis=0)
    better = (after < size) & (np.linalg.norm(change, axis=0) <= _MAX_SMALL_CORRECTION)
    size = np.where(better, after, size)
    order = np.argsort(size)
    return np.where(better, trial, V)[:, order], size[order]


def _correction(operator: _NullOperator, V: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Ã^-1 A' V, without V."""
    return _deflated(operator.solve, (operator.A @ V).astype(V.dtype), U, V)


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
