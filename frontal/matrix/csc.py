"""Compressed columns: checks of index arrays and rows, and the pattern by rows."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..compile.jit import brief, inner, jit
from ..machine.threads import parallel_for

SORTED, UNSORTED, CORRUPT = 0, 1, 2
CSC_TYPES = sp.csc_array, sp.csc_matrix
INT32 = np.dtype(np.int32)


def is_plain(array: object, dtype: np.dtype | None = None) -> bool:
    """Return whether `array` is a vector that compiled code accepts, of type `dtype`."""
    return (
        type(array) is np.ndarray
        and (dtype is None or array.dtype == dtype)
        and array.ndim == 1
        and array.flags.carray
    )


def inspect(indptr: np.ndarray, indices: np.ndarray) -> int:
    """Return `SORTED`, `UNSORTED` or, for invalid arrays, `CORRUPT`; rows must ascend strictly."""
    if indptr[0] != 0:
        return CORRUPT
    return max(parallel_for(lambda *bounds: inspect_columns(indptr, indices, *bounds), indptr))


@inner
def first_from(indices, begin, end, row):
    """Return the first position in ``[begin, end)`` whose row is at least `row`; else `end`."""
    while begin < end:
        middle = (begin + end) // 2
        if indices[middle] < row:
            begin = middle + 1
        else:
            end = middle
    return begin


@inner
def place_of(indptr, indices, i, j):
    """Return the position of entry (i, j) of a matrix by columns; -1 if it is not stored."""
    end = indptr[j + 1]
    p = first_from(indices, indptr[j], end, i)
    return p if p < end and indices[p] == i else np.int64(-1)


@jit
def diagonal_places(indptr, indices, columns):
    """Return the positions of the diagonal entries in some columns; -1 if it is not stored."""
    out = np.empty(columns.size, np.int64)
    for k in range(columns.size):
        out[k] = place_of(indptr, indices, np.int64(columns[k]), np.int64(columns[k]))
    return out


@brief
def by_rows(indptr, indices):
    """Return a square pattern by rows: extents, ascending columns, and positions by columns."""
    n = indptr.size - 1
    pointer = np.zeros(n + 1, np.int64)
    for i in indices:
        pointer[i + 1] += 1
    for i in range(n):
        pointer[i + 1] += pointer[i]
    cursor, columns = pointer[:-1].copy(), np.empty(indices.size, np.int32)
    place = np.empty(indices.size, np.int64)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            q = cursor[indices[p]]
            columns[q], place[q] = j, p
            cursor[indices[p]] = q + 1
    return pointer, columns, place


@brief
def has_pattern(indptr, indices, candidate_indptr, candidate_indices):
    """Return whether columns of as many extents and rows have the pattern."""
    same = True
    for j in range(indptr.size):
        same &= indptr[j] == candidate_indptr[j]
    for p in range(indices.size):
        same &= indices[p] == candidate_indices[p]
    return same


@jit
def inspect_columns(indptr, indices, first, last):
    """Return the result of `inspect` for a range of columns."""
    n = indptr.size - 1
    order = SORTED
    for j in range(first, last):
        if indptr[j] < 0 or indptr[j + 1] < indptr[j] or indptr[j + 1] > indices.size:
            return CORRUPT
        before = -1
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i < 0 or i >= n:
                return CORRUPT
            if i <= before:
                order = UNSORTED
            before = i
    return order
