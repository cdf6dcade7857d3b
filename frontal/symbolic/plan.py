"""The plan of a numeric factorization: what goes where, computed once per pattern.

Front s has pivot columns ``start[s]:start[s+1]`` (k of them) and update rows
``rows[pointer[s]:pointer[s+1]]`` (m of them, ascending). Rows and columns of a front are numbered
from 0, pivots before updates. Where its numbers lie in memory is the backend's layout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import brief, jit
from .supernodes import children_of


class Plan(NamedTuple):
    """Index arrays of a factorization, f fronts, n columns.

    Attributes
    ----------
    start : (f + 1,) int32
        First pivot column of each front.
    parent : (f,) int32
        Assembly tree, -1 at roots; fronts are in postorder.
    pointer : (f + 1,) int64
        Extent of each front's update rows in `rows` and `relative`.
    rows : int32
        Update rows, ascending inside a front.
    relative : int32
        Position of each update row among the rows of the parent front (pivots, then updates).
    child_pointer : (f + 1,) int64
        Extent of each front's children in `children`.
    children : int32
        Children of each front, ascending: the order in which they are added.
    entry_pointer : (f + 1,) int64
        Extent of each front's entries of A in `source`, `row` and `column`.
    source : int64
        Position of an entry among the values of A.
    row, column : int32
        Row and column of that entry in its front; one of them is a pivot's.
    """

    start: np.ndarray
    parent: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    relative: np.ndarray
    child_pointer: np.ndarray
    children: np.ndarray
    entry_pointer: np.ndarray
    source: np.ndarray
    row: np.ndarray
    column: np.ndarray


@jit
def _relative_rows(start, parent, pointer, rows):
    """Merge each front's rows with its parent's, both ascending."""
    relative = np.empty(rows.size, np.int32)
    for s in range(parent.size):
        above = parent[s]
        if above < 0:
            continue
        first, end = start[above], start[above + 1]
        base = pointer[above]
        q = base
        for p in range(pointer[s], pointer[s + 1]):
            row = rows[p]
            if row < end:
                relative[p] = row - first
            else:
                while rows[q] < row:
                    q += 1
                relative[p] = end - first + (q - base)
    return relative


@jit
def _entry_maps(indptr, indices, perm, row_rank, one_triangle, start, pointer, rows):
    """Send each stored entry of A to its front, row and column there.

    Entry (i, j) belongs to the front that eliminates the earlier of its row and column. With
    `one_triangle` the upper triangle of the permuted matrix is left out.
    """
    n = perm.size
    fronts = start.size - 1
    front_of = np.empty(n, np.int32)
    for s in range(fronts):
        front_of[start[s] : start[s + 1]] = s
    count = np.zeros(fronts + 1, np.int64)
    for j in range(n):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            if i >= j or not one_triangle:
                count[front_of[min(i, j)] + 1] += 1
    for s in range(fronts):
        count[s + 1] += count[s]
    cursor = count[:-1].copy()
    source = np.empty(count[fronts], np.int64)
    row = np.empty(count[fronts], np.int32)
    column = np.empty(count[fronts], np.int32)
    for j in range(n):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            if i >= j or not one_triangle:
                s = front_of[min(i, j)]
                q = cursor[s]
                source[q], row[q], column[q] = p, i, j
                cursor[s] = q + 1
    local = np.empty(n, np.int32)
    for s in range(fronts):
        first, end = start[s], start[s + 1]
        k = end - first
        for r in range(pointer[s + 1] - pointer[s]):
            local[rows[pointer[s] + r]] = k + r
        for q in range(count[s], count[s + 1]):
            i, j = row[q], column[q]
            row[q] = i - first if i < end else local[i]
            column[q] = j - first if j < end else local[j]
    return count, source, row, column


def make_plan(indptr, indices, perm, row_rank, method, start, parent, pointer, rows) -> Plan:
    """Gather every index array that a factorization of this pattern needs.

    Parameters
    ----------
    indptr, indices : int64 and int32 arrays
        A by columns.
    perm : (n,) int32 array
        ``perm[k]`` is the column of A eliminated k-th.
    row_rank : (n,) int32 array
        Elimination position of each row of A.
    method : Method
        With one triangle, that below the diagonal of the permuted matrix is read alone.
    start, parent, pointer, rows
        Fronts, as `supernodes` returns them.
    """
    fronts = start, parent, pointer, rows
    return Plan(*fronts, *_maps(indptr, indices, perm, row_rank, method.one_triangle, *fronts))


@jit
def _maps(indptr, indices, perm, row_rank, one_triangle, start, parent, pointer, rows):
    """What else is in a `Plan`."""
    child_pointer, children = children_of(parent)
    relative = _relative_rows(start, parent, pointer, rows)
    entry_pointer, source, row, column = _entry_maps(
        indptr, indices, perm, row_rank, one_triangle, start, pointer, rows
    )
    return relative, child_pointer, children, entry_pointer, source, row, column


@brief
def front_flops(start, pointer):
    """Multiplications and additions of a Cholesky factorization of each front (LU: twice)."""
    out = np.empty(start.size - 1)
    for s in range(out.size):
        k, m = np.float64(start[s + 1] - start[s]), np.float64(pointer[s + 1] - pointer[s])
        out[s] = k * (k + 1) * (2 * k + 1) / 6 + k * k * m + k * m * (m + 1)
    return out
