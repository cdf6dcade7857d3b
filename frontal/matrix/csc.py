"""Compressed columns: checks of index arrays and rows, and the pattern by rows."""

from __future__ import annotations

import numpy as np

from ..compile.jit import brief, inner, jit
from ..machine.threads import parallel_for

SORTED, UNSORTED, CORRUPT = 0, 1, 2


def inspect(indptr: np.ndarray, indices: np.ndarray) -> int:
    """Return `SORTED`, `UNSORTED` or, for invalid arrays, `CORRUPT`; rows must ascend strictly."""
    if indptr[0] != 0:
        return CORRUPT
    return max(parallel_for(lambda *bounds: _inspect_columns(indptr, indices, *bounds), indptr))


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


@jit
def _inspect_columns(indptr, indices, first, last):
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
