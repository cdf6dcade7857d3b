"""Null vectors: the evidence that A is singular, and a basis of its null space.

A matrix counts as singular if A', which is A scaled to rows and columns of moderate size, maps a
vector of norm 1 to a few eps of the norm of A' at most, and if this holds in all other scalings: an
effect of one scaling is no property of A. The factors serve only to compute the vectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..backend.protocol import NumericFactor
from ..numeric.one_norm import Product
from ..symbolic.scaling import shifted
from .extreme_scales import Scaled
from .null_proof import (
    MAX_NULL_ROUNDINGS,
    are_null,
    cancellation,
    extended,
    largest_null_error,
    tiny_pivots,
)
from .other_scalings import other_scalings

_MAX_COUNTED_ROUNDINGS = 8  # largest |A' v| of further null vectors
_MAX_CORRECTIONS = 4  # of a set of null vectors
_MAX_SMALL_CORRECTION = 0.01  # norm; unit vectors stay nearly orthonormal
_MAX_NULL_VECTORS = 64  # sought vectors, unless more pivots are small


class NullSpace(NamedTuple):
    """A basis of the null space of A.

    Attributes
    ----------
    columns : (p,) int array
        Columns that depend on the others: with these unknowns fixed, x is unique.
    basis : (n, p) array
        Null vectors, with the unit matrix in the rows `columns`.
    """

    columns: np.ndarray
    basis: np.ndarray

    def fixed(self, X: np.ndarray) -> np.ndarray:
        """Return X minus a combination of the basis, so that it is zero in `columns`."""
        X = X - (self.basis @ X[self.columns]).astype(X.dtype, copy=False)
        X[self.columns] = 0
        return X


def null_space(factor: NumericFactor, trans: str = "N") -> NullSpace | None:
    """Return the null space of op(A) if solves with the factor find null vectors; else None.

    It is empty if another scaling shows that A is regular although the factor's does not.
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
    if not _is_proved(null, factor, scaled, trans):
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
    """Return the number of singular values of A' that rounding of a factorization may change."""
    scaled = Scaled.from_factor(factor)
    norm, _ = _norm_of_moduli(scaled.magnitude)
    V, _ = _near_null(*_NullOperator.both(factor, scaled, "N"), norm, factor)
    n, p = V.shape
    return p if 0 < p < min(n, _max_vectors(factor)) else n


class _NullOperator(NamedTuple):
    """op(A') or its adjoint, in long double if available, and solves by its factors.

    In working precision, the rounding errors of A' V would be as large as A' V.
    """

    A: sp.sparray
    solve: Product

    @classmethod
    def both(
        cls, factor: NumericFactor, scaled: Scaled, trans: str
    ) -> tuple[_NullOperator, _NullOperator]:
        """Create the operators of op(A') and of its adjoint."""
        A = extended(scaled.op(trans)[0])
        solves = (scaled.solver(factor, one) for one in (trans, "H" if trans == "N" else "N"))
        solve, solve_adjoint = solves
        return cls(A, solve), cls(A.conj().T, solve_adjoint)


class _Null(NamedTuple):
    """Null vectors of op(A') for one scaling: orthonormal, (n, p).

    Attributes
    ----------
    V, U : (n, p) arrays
        Null vectors of op(A') and of its adjoint.
    """

    V: np.ndarray
    U: np.ndarray

    @classmethod
    def from_factor(cls, factor: NumericFactor, scaled: Scaled, trans: str) -> _Null:
        """Compute the null vectors by solves with the factor."""
        sides = _NullOperator.both(factor, scaled, trans)
        norm, cancelled = _norm_of_moduli(scaled.op(trans)[1])
        small = float(np.finfo(factor.dtype).eps) * norm / cancelled
        return cls(*_near_null(*sides, norm, factor)).corrected(*sides, small)

    def corrected(self, operator: _NullOperator, adjoint: _NullOperator, small: float) -> _Null:
        """Correct the vectors by solves, and return the null vectors among them."""
        V, U = self
        (V, sizes), (U, adjoint_sizes) = _corrected(operator, V, U), _corrected(adjoint, U, V)
        p = min(_count(size, small) for size in (sizes, adjoint_sizes))
        return _Null(V[:, :p], U[:, :p])

    @np.errstate(all="ignore")
    def in_scaling(
        self, factor: NumericFactor, scaled: Scaled, target: Scaled, trans: str
    ) -> _Null:
        """Return these null vectors in another scaling, where solves may find none."""
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
        """Number of null vectors."""
        return self.V.shape[1]


def _count(size: np.ndarray, small: float) -> int:
    """Return the number of null vectors, by the ascending norms of their images."""
    certain = size.size > 0 and size[0] <= MAX_NULL_ROUNDINGS * small
    return int((size <= _MAX_COUNTED_ROUNDINGS * small).sum()) if certain else 0


def _is_proved(null: _Null, factor: NumericFactor, scaled: Scaled, trans: str) -> bool:
    """Return whether roundings of single entries of A make one of the vectors a null vector."""
    A, moduli = scaled.op(trans)
    limit = largest_null_error(factor, scaled.A)
    return bool(are_null(extended(A) @ null.V, moduli, null.V, limit).any())


def _in_all_scalings(null: _Null, factor: NumericFactor, scaled: Scaled, trans: str) -> bool:
    """Return whether A is also singular in the scaling in which it is farthest from singular.

    Vectors that are null in one scaling only are removed, as they distort the scaling of the rest.
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
    """Return whether there are null vectors in each of the other common scalings, too.

    The first-order distance by moduli may underestimate the distance to a singular matrix. The null
    vectors come from solves, or from those of the first scaling: after a perturbed pivot of a
    column that is not null, solves contain large vectors that are not null, with their rounding.
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
    """Return combinations of null vectors, and the relative entrywise changes that make them exact.

    For one vector v, and u of the adjoint, the change is |u^H A v| / |u|^T |A| |v| to first order:
    the smallest singular value in the scaling in which |A| of norm 1 maps |v| to |u|. No scaling
    makes it larger (Bauer 1963). Zeros of A, v and u count as `floor`, due to rounding.
    """
    V, U = null
    v, u = (np.linalg.norm(X, axis=1) for X in null)
    right_factor, left_factor = (
        np.linalg.qr(X * np.sqrt((image + floor) / (x + floor))[:, None])[1]
        for X, x, image in ((V, v, moduli.T @ u), (U, u, moduli @ v))
    )
    inner = (U.conj().T @ (extended(A) @ V)).astype(V.dtype)
    inner = np.linalg.solve(left_factor.conj().T, np.linalg.solve(right_factor.T, inner.T).T)
    left_rotation, size, right_rotation = np.linalg.svd(inner)
    V = V @ np.linalg.solve(right_factor, right_rotation[::-1].conj().T)
    return _Null(V, U @ np.linalg.solve(left_factor, left_rotation[:, ::-1])), size[::-1]


def _norm_of_moduli(A: sp.sparray) -> tuple[float, float]:
    """Return the 2-norm of |A|, and an upper bound of its ratio to the 2-norm of A."""
    z = np.ones((A.shape[0], 1))
    norm = float(np.sqrt(np.asarray(A.power(2).sum(axis=0)).max(initial=0.0)))
    with np.errstate(all="ignore"):
        for _ in range(4):
            image = A @ z
            size = float(np.linalg.norm(image) / np.linalg.norm(z))
            norm = max(norm, size) if np.isfinite(size) else norm
            z = A.T @ image
            z = z / (z.max() or 1.0)
    return norm, cancellation(A)


@np.errstate(all="ignore")
def _near_null(
    operator: _NullOperator, adjoint: _NullOperator, norm: float, factor: NumericFactor
) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal near null vectors V of the factorized matrix Ã, and U of its adjoint.

    A vector may hide others: if its pivot is smaller by far, the rest of Ã^-1 B is mostly rounding.
    Each round projects the vectors of earlier rounds out of right-hand sides and solutions.
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
    """Return the limit of sought vectors, at least the number of tiny and perturbed pivots."""
    return max(_MAX_NULL_VECTORS, tiny_pivots(factor))


def _deflated(solve: Product, B: np.ndarray, U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Solve for B minus its projection on U, and remove the projection on V from the solution."""
    X = solve(B - U @ (U.conj().T @ B))
    return X - V @ (V.conj().T @ X)


@np.errstate(all="ignore")
def _corrected(
    operator: _NullOperator, V: np.ndarray, U: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return null vectors of A' = Ã - E from those of Ã, and the ascending norms of A' V.

    E may be a perturbed pivot. V - Ã^-1 A' V = Ã^-1 E V is no larger than V, if the vectors that
    Ã^-1 makes large are projected out.
    """
    best, norms = V, np.full(V.shape[1], np.inf)
    for _ in range(_MAX_CORRECTIONS + 1):
        trial, trial_norms = _ordered(operator.A, V)
        if trial_norms.size < U.shape[1] or not (trial_norms < norms / 2).any():
            break
        best, norms = trial, trial_norms
        V = best - _correction(operator, best, U)
    return _polished(operator, best, norms, U)


@np.errstate(all="ignore")
def _polished(
    operator: _NullOperator, V: np.ndarray, size: np.ndarray, U: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Remove from V the rounding errors of an orthonormalization and a rotation.

    They grow with rows and columns. Corrections are normal to V: small ones keep it orthonormal.
    """
    change = _correction(operator, V, U)
    trial = V - change
    after = np.linalg.norm((operator.A @ trial).astype(V.dtype), axis=0)
    better = (after < size) & (np.linalg.norm(change, axis=0) <= _MAX_SMALL_CORRECTION)
    size = np.where(better, after, size)
    order = np.argsort(size)
    return np.where(better, trial, V)[:, order], size[order]


def _correction(operator: _NullOperator, V: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Return Ã^-1 A' V with its projection on V removed."""
    return _deflated(operator.solve, (operator.A @ V).astype(V.dtype), U, V)


def _ordered(A: sp.sparray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return right singular vectors of A in the span of X, and the ascending norms of A V."""
    X = X / np.abs(X).max(axis=0, initial=0.0)
    V = np.linalg.qr(X[:, np.isfinite(X).all(axis=0)])[0]
    image = A @ V
    peak = float(np.abs(image).max(initial=0.0)) or 1.0
    if not np.isfinite(peak):
        return V, np.full(V.shape[1], np.inf)
    turned = np.linalg.svd((image / peak).astype(V.dtype), full_matrices=False)[2]
    V = V @ turned[::-1].conj().T
    return V, np.linalg.norm((A @ V).astype(V.dtype), axis=0)
