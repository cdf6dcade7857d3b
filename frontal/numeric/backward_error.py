"""Componentwise and rowwise backward errors.

The componentwise error of a row is |r| / (|A||x| + |b|), the size of the smallest change of each
entry of A and b for which the row is exact (Oettli and Prager 1964). If x is nearly zero in all
columns of a row, that denominator is itself rounding error. There the rowwise error adds
|A| |x|_max to it: Arioli, Demmel and Duff, "Solving sparse linear systems with sparse backward
error" (SIAM J. Matrix Anal. Appl. 10, 1989). The rowwise error decides whether a solution is
accepted: unlike a normwise error, it does not let a huge entry hide errors in other rows.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import allocating, forced, inner, jit
from .acceptance import unpacked
from .thresholds import THRESHOLDS

_LEAST_SQUARE, _LARGEST_SQUARE = np.float32(1e-30), np.float32(1e30)  # in single precision, too
_LONG_ROW = THRESHOLDS.long_row
_TINY_ROW, _TINY_ROW_LIMIT = THRESHOLDS.tiny_row, THRESHOLDS.tiny_row_limit


@forced
def modulus(z):
    """Return |z|; for a complex z far from the limits of the exponent in a third of hypot's time.

    The square root of the sum of squares has an error of 1 rounding, as hypot.
    """
    if z.imag == 0:
        return abs(z.real)
    square = z.real * z.real + z.imag * z.imag
    return np.sqrt(square) if _LEAST_SQUARE < square < _LARGEST_SQUARE else abs(z)


@inner
def componentwise(r, scale, largest, limits):
    """Return the largest |r| / scale over the rows, and its relation to the rowwise error.

    Parameters
    ----------
    r, scale : (n,) arrays
        Residual, and |A||x| + |b|.
    largest : float
        Upper bound of |A| |x|_max over all rows.
    limits : ErrorLimits

    Returns
    -------
    error : float
        Componentwise error; infinite if a residual is not finite.
    certain : bool
        The rowwise error equals it, or both are below the limit.
    row : int
        The row of the error. If not `certain`, the rowwise error equals it unless this row is
        long. -1 if the denominator of this row may be tiny.
    """
    floor = 2 * min(_TINY_ROW * r.size * limits.eps, _TINY_ROW_LIMIT) * largest
    floor = max(floor, np.sqrt(limits.tiny))
    error, row = 0.0, -1
    for i in range(r.size):
        size, denominator = np.float64(np.abs(r[i])), np.float64(scale[i])
        if not np.isfinite(size):
            return np.inf, True, -1
        if size > 0 and not size <= error * denominator:
            row = i if denominator > floor else -1
            error = size / denominator
            if error != error:
                return np.inf, False, -1
    return error, error <= limits.rowwise and row >= 0, row


@inner
def is_long(indptr, indices, flipped, i):
    """Return whether row i of A, stored by columns or by rows if `flipped`, is a long one."""
    if flipped:
        return indptr[i + 1] - indptr[i] > _LONG_ROW
    if indptr.size - 1 <= _LONG_ROW:
        return False
    count = 0
    for p in range(indptr[-1]):
        count += indices[p] == i
    return count > _LONG_ROW


@jit
def row_sums(indptr, indices, data, flipped):
    """Return the row sums of |A|, stored by columns, or by rows if `flipped`."""
    sums = np.zeros(indptr.size - 1)
    for j in range(sums.size):
        for p in range(indptr[j], indptr[j + 1]):
            sums[j if flipped else indices[p]] += np.float64(modulus(data[p]))
    return sums


@allocating
def _row_counts(indptr, indices, flipped):
    counts = np.zeros(indptr.size - 1, np.int64)
    for j in range(counts.size):
        for p in range(indptr[j], indptr[j + 1]):
            counts[j if flipped else indices[p]] += 1
    return counts


@allocating
def rowwise(matrix, b, r, scale, largest):
    """Return the largest rowwise backward error, from the sums and the lengths of rows.

    Parameters
    ----------
    matrix : tuple
        See `residual.measure`.
    b, r, scale
        See `componentwise`.
    largest : float
        Largest modulus of x.
    """
    indptr, indices, data, flipped, _, _, packed = matrix
    limits = unpacked(packed)
    sums, counts = row_sums(indptr, indices, data, flipped), _row_counts(indptr, indices, flipped)
    tiny = min(_TINY_ROW * r.size * limits.eps, _TINY_ROW_LIMIT)
    error = 0.0
    for i in range(r.size):
        size, denominator = np.float64(np.abs(r[i])), np.float64(scale[i])
        row_bound = sums[i] * largest
        if not np.isfinite(size):
            return np.inf
        if denominator <= np.sqrt(limits.tiny):
            # each product and sum may have lost the smallest positive number
            size -= limits.tiny * (counts[i] + 1 + sums[i])
        if not size > 0:
            continue
        if denominator <= tiny * (row_bound + np.float64(np.abs(b[i]))):
            denominator += row_bound
        if counts[i] > _LONG_ROW:
            size /= np.sqrt(counts[i] / _LONG_ROW)
        if not size <= error * denominator:
            error = size / denominator if denominator > 0 else np.inf
    return error if error == error else np.inf
