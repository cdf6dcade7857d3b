"""L and U of the whole matrix from those of the diagonal blocks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ...compile.jit import inner, jit
from .arrays import ColumnPattern, ColumnValues, grown


def triangles(
    first: np.ndarray, pattern: ColumnPattern, values: ColumnValues
) -> tuple[sp.csc_array, sp.csc_array]:
    """Return L with its diagonal and U, in elimination order, without zeros.

    The entries of U outside of the diagonal blocks are those of A, multiplied by the inverse of L:
    factorizations and solves do not need them.
    """
    n = values.diagonal.size
    below = values.lower, pattern.lower_row, pattern.lower_start
    L = sp.csc_array(below, shape=(n, n)) + sp.eye_array(n, dtype=values.diagonal.dtype)
    U = sp.csc_array(_whole_upper(first, pattern, values)[::-1], shape=(n, n))
    L = sp.csc_array(L)
    for triangle in (L, U):
        triangle.eliminate_zeros()
        triangle.sort_indices()
    return L, U


@jit
def _whole_upper(first, pattern, values):
    """Return pointers, rows and values of the columns of U."""
    n = values.diagonal.size
    start, block = np.zeros(n + 1, np.int64), np.empty(n, np.int32)
    x = np.zeros(n, values.upper.dtype)
    for b in range(first.size - 1):
        block[first[b] : first[b + 1]] = b
    row, value = np.empty(values.upper.size + n, np.int32), np.empty(values.upper.size + n, x.dtype)
    size = np.int64(0)
    for j in range(n):
        if size + j + 1 > row.size:
            row, value = grown(row, 2 * row.size + n), grown(value, 2 * row.size + n)
        for q in range(pattern.between[j], pattern.upper_start[j + 1]):
            x[pattern.upper_row[q]] = values.upper[q]
        q = pattern.between[j]
        while q < pattern.upper_start[j + 1]:
            i = pattern.upper_row[q]
            end = first[block[i] + 1]
            size = _apply_inverse(pattern, values, i, end, x, row, value, size)
            while q < pattern.upper_start[j + 1] and pattern.upper_row[q] < end:
                q += 1
        for q in range(pattern.upper_start[j], pattern.between[j]):
            row[size], value[size] = pattern.upper_row[q], values.upper[q]
            size += 1
        row[size], value[size] = j, values.diagonal[j]
        size += 1
        start[j + 1] = size
    return start, row[:size].copy(), value[:size].copy()


@inner
def _apply_inverse(pattern, values, begin, end, x, row, value, size):
    """Append the nonzeros of L^-1 x from `begin` to `end`, in a block, and clear them."""
    for i in range(begin, end):
        known = x[i]
        x[i] = 0
        if known != 0:
            row[size], value[size] = i, known
            size += 1
            for q in range(pattern.lower_start[i], pattern.lower_start[i + 1]):
                x[pattern.lower_row[q]] -= values.lower[q] * known
    return size
