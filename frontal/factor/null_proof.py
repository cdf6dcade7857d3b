"""A proof in few solves that A is singular: null vectors up to roundings of single entries of A.

If |A v| <= c eps |A| |v| holds in each component, changes of A by at most c eps of each entry make
v a null vector (Oettli and Prager 1964). Scalings of rows and columns do not affect it: A is then
singular to working precision in all of them.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ..backend.protocol import NumericFactor
from ..symbolic.relative_pivots import relative_pivots
from .extreme_scales import Scaled

NOISE = 100  # roundings of the scaled matrix: smaller pivots may be rounding errors
MAX_NULL_ROUNDINGS = 4  # largest |A' v| of a unit vector v that proves A singular
_MAX_VECTORS = 8  # more null vectors are left to `null_space`
_MAX_CORRECTIONS = 3  # of null vectors, by solves with their residuals
_MIN_COMPONENT = 64  # roundings of the largest component; smaller ones are set to zero


def tiny_pivots(factor: NumericFactor) -> int:
    """Return the number of pivots that may be rounding errors, or were replaced."""
    least = factor.health().pivot_ratio
    if not factor.perturbed and least > 2 * NOISE * np.finfo(factor.dtype).eps:  # 2: rounding
        return 0
    coupling, symbolic = factor.subdiagonal(), factor.symbolic
    size = relative_pivots(factor.diagonal(), factor.matrix, symbolic, factor.scaling, coupling)
    return int((size <= NOISE * np.finfo(factor.dtype).eps).sum()) + factor.perturbed


def cancellation(A: sp.sparray) -> float:
    """Return an upper bound of the ratio of the 2-norms of |A| and A; 1 for zeros."""
    rows = np.bincount(A.indices, minlength=A.shape[0]).max(initial=0)
    columns = np.diff(A.indptr).max(initial=0)
    return float(max(1, min(A.shape[0] ** 0.5, (rows * columns) ** 0.25)))


def largest_null_error(factor: NumericFactor, A: sp.sparray) -> float:
    """Return the largest ratio of |A v| to |A| |v| in a component of a null vector v."""
    return MAX_NULL_ROUNDINGS * float(np.finfo(factor.dtype).eps) / cancellation(A)


@np.errstate(all="ignore")
def proved_null_columns(factor: NumericFactor) -> np.ndarray | None:
    """Return columns of A that are linear combinations of the others, one for each tiny pivot.

    The result is None if a few solves give no proof: A may still be singular.
    """
    count = tiny_pivots(factor)
    if not 0 < count <= min(_MAX_VECTORS, factor.symbolic.n):
        return None
    scaled = Scaled.from_factor(factor)
    A, solve = extended(scaled.A), scaled.solver(factor, "N")
    limit = largest_null_error(factor, scaled.A)
    dtype = np.result_type(factor.dtype, np.float64)
    X = solve(np.random.default_rng(0).standard_normal((A.shape[0], count)).astype(dtype))
    if not np.isfinite(X).all():
        return None
    V = np.linalg.qr(X / np.abs(X).max(axis=0))[0]
    for _ in range(_MAX_CORRECTIONS + 1):  # small ones: V stays nearly orthonormal
        V[np.abs(V) <= _MIN_COMPONENT * np.finfo(dtype).eps * np.abs(V).max(axis=0)] = 0
        image = A @ V
        if are_null(image, scaled.magnitude, V, limit).all():
            return np.sort(scipy.linalg.qr(V.conj().T, mode="r", pivoting=True)[1][:count])
        change = solve(image.astype(dtype))
        V = V - (change - V @ (V.conj().T @ change))
    return None


def extended(A: sp.sparray) -> sp.sparray:
    """Return A in long double, if the platform has it."""
    return A.astype(np.result_type(A.dtype, np.longdouble))


def are_null(image: np.ndarray, moduli: sp.sparray, V: np.ndarray, limit: float) -> np.ndarray:
    """Return a mask of the columns v of V with |A v| <= limit |A| |v| in each component.

    Parameters
    ----------
    image, V : (n, p) arrays
        A V, in extended precision, and V.
    moduli : sparse array
        |A|.
    """
    return (np.abs(image) <= limit * (moduli @ np.abs(V))).all(axis=0)
