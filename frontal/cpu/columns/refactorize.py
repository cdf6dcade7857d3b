"""LU by columns of new values, with the pattern and the pivots of earlier ones, in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner, jit
from ...matrix.norms import norms
from ...numeric.method import NULL
from ...symbolic.scaling import scale_values
from ..pivots import MAX_MULTIPLIER, size_of
from ..small.one_system import is_even, is_finite

MAX_UNSTABLE_PIVOTS = (
    40  # columns with entries of L above MAX_MULTIPLIER, which refinement corrects
)
MAX_STATIC_MULTIPLIER = 1e4  # largest entry of L with static pivots


class StartScaling(NamedTuple):
    """The initial scaling of all matrices of a pattern.

    Attributes
    ----------
    row, column : (n,) float64 arrays
        Of the matching, or ones.
    matched : bool
        Whether there is a matching. If not, an uneven scaling is not accepted.
    diagonal : (n,) int64 array
        Position of the diagonal entry of each column of A among the values, or -1.
    """

    row: np.ndarray
    column: np.ndarray
    matched: bool
    diagonal: np.ndarray


@inner
def _eliminate_all(matrix, pattern, values, x, null):
    """Compute L and U; return the largest entry of L, infinite if pivots must be chosen anew.

    They must be for a pivot up to `null`, or for too many unstable ones. x is zero.
    """
    start, place, row = matrix.start, matrix.place, matrix.row
    lower_start, lower_row, lower = pattern.lower_start, pattern.lower_row, values.lower
    upper_start, upper_row, upper = pattern.upper_start, pattern.upper_row, values.upper
    growth, unstable = 0.0, 0
    for j in range(np.uint64(values.diagonal.size)):
        for p in range(np.uint64(start[j]), np.uint64(start[j + np.uint64(1)])):
            x[np.uint32(row[p])] = matrix.values[np.uint32(place[p])]
        for q in range(np.uint64(upper_start[j]), np.uint64(pattern.between[j])):
            k = np.uint32(upper_row[q])
            factor = x[k]
            x[k] = 0
            upper[q] = factor
            for s in range(np.uint64(lower_start[k]), np.uint64(lower_start[k + np.uint32(1)])):
                x[np.uint32(lower_row[s])] -= lower[s] * factor
        for q in range(np.uint64(pattern.between[j]), np.uint64(upper_start[j + np.uint64(1)])):
            k = np.uint32(upper_row[q])
            upper[q] = x[k]
            x[k] = 0
        pivot = x[j]
        x[j] = 0
        values.diagonal[j] = pivot
        if not null < size_of(pivot) < np.inf:
            return np.float64(np.inf)
        inverse, largest = 1 / pivot, size_of(x[0]) * 0
        for s in range(np.uint64(lower_start[j]), np.uint64(lower_start[j + np.uint64(1)])):
            k = np.uint32(lower_row[s])
            factor = x[k] * inverse
            x[k] = 0
            lower[s] = factor
            size = size_of(factor)
            largest = size if size > largest or size != size else largest
        unstable += not largest <= MAX_MULTIPLIER
        growth = max(growth, np.float64(largest)) if largest == largest else np.inf
        if unstable > MAX_UNSTABLE_PIVOTS:
            return np.float64(np.inf)
    return np.float64(growth)


@inner
def _pivot_ratio(diagonal):
    """Return the smallest modulus of a diagonal over the largest; 1 if it is empty."""
    smallest, largest = np.float64(np.inf), np.float64(0)
    for j in range(diagonal.size):
        size = np.float64(np.abs(diagonal[j]))
        smallest, largest = min(smallest, size), max(largest, size)
    return smallest / largest if largest > 0 else np.float64(1)


@jit
def refactorize(indptr, indices, data, begin, matrix, pattern, values, scaling, eps):
    """Scale and factorize new values; return whether that succeeded, pivot ratio and two norms.

    Parameters
    ----------
    indptr, indices, data : arrays
        A by columns.
    begin : StartScaling
    matrix : ColumnInput
        Its `values` are overwritten by the scaled ones.
    pattern : ColumnPattern
    values : ColumnValues
        Overwritten.
    scaling : (2, n) float64 array
        On return, the scaling of rows and of columns.
    eps : float
        Precision of the scalar type.

    Returns
    -------
    bool
        Whether the matrix is finite and as even as the initial scaling supposes, with pivots at
        least 1/MAX_MULTIPLIER of their columns, except for few that are little smaller.
    float, float, float
        See `Health.pivot_ratio`; infinity norm and 1-norm of A.
    """
    infinity, one = norms(indptr, indices, data)
    if not (is_finite(data) and np.isfinite(infinity + one)):
        return False, 0.0, infinity, one
    row, column = scaling[0], scaling[1]
    row[:], column[:] = begin.row, begin.column
    scaled = matrix.values
    if not scale_values(indptr, indices, data, row, column, False, scaled):
        return False, 0.0, infinity, one
    if not (begin.matched or is_even(begin.diagonal, scaled, eps)):
        return False, 0.0, infinity, one
    x = np.zeros(max(row.size, 1), scaled.dtype)
    growth = _eliminate_all(matrix, pattern, values, x, NULL * eps)
    return (
        growth <= min(MAX_STATIC_MULTIPLIER, eps**-0.5),
        _pivot_ratio(values.diagonal),
        infinity,
        one,
    )
