"""The plan of a numeric factorization: what goes where, computed once per pattern.

Front s has pivot columns ``start[s]:start[s+1]`` (k of them) and update rows
``rows[pointer[s]:pointer[s+1]]`` (m of them, ascending). Rows and columns of a front are numbered
from 0, pivots before updates. Where its numbers lie in memory is the backend's layout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import brief, jit
from ..machine.threads import bounds_of, parallel_for
from .postorder import children_of


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
def _relative_rows(start, parent, pointer, rows, relative, first, last):
    """Merge the rows of some fronts with their parents', both ascending."""
    for s in range(first, last):
        above = parent[s]
        if above < 0:
            continue
        begin, end = start[above], start[above + 1]
        base = pointer[above]
        q = base
        for p in range(pointer[s], pointer[s + 1]):
            row = rows[p]
            if row < end:
                relative[p] = row - begin
            else:
                while rows[q] < row:
                    q += 1
                relative[p] = end - begin + (q - base)


@jit
def _count_below(indptr, indices, perm, row_rank, count, first, last):
    """Entries of each of some columns on and below the diagonal of the permuted matrix."""
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            count[j + 1] += row_rank[indices[p]] >= j


@jit
def _map_below(
    indptr, indices, perm, row_rank, start, pointer, rows, count, source, row, column, local,
    first, last,
):  # fmt: skip
    """Front, row and column there of the entries of some fronts on and below the diagonal.

    The columns of a front have all of them; `local` is room for a number for each row. Where the
    entries of fronts begin is told by `count` of the first one, and then of the others.
    """
    q = count[first]
    for s in range(first, last):
        begin, end = start[s], start[s + 1]
        for r in range(pointer[s], pointer[s + 1]):
            local[rows[r]] = end - begin + r - pointer[s]
        for j in range(begin, end):
            for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
                i = row_rank[indices[p]]
                if i >= j:
                    source[q], column[q] = p, j - begin
                    row[q] = i - begin if i < end else local[i]
                    q += 1
        count[s + 1] = q


def _entries_below(indptr, indices, perm, row_rank, start, pointer, rows):
    """As `_entry_maps` of one triangle, that below the diagonal."""
    n, alone = perm.size, bounds_of(indptr).size == 2
    args = indptr, indices, perm, row_rank
    if alone:  # nobody has to know where the entries of others end
        count, total = np.zeros(start.size, np.int64), int(indptr[-1])
    else:
        below = np.zeros(n + 1, np.int64)
        parallel_for(lambda *bounds: _count_below(*args, below, *bounds), indptr)
        count = np.cumsum(below)[start]
        total = int(count[-1])
    source, (row, column) = np.empty(total, np.int64), np.empty((2, total), np.int32)
    to = source, row, column

    def work(first: int, last: int) -> None:
        local = np.empty(n, np.int32)
        _map_below(*args, start, pointer, rows, count, *to, local, first, last)

    if alone:
        work(0, start.size - 1)
    else:
        parallel_for(work, count)
    end = int(count[-1])  # no page behind is ever touched
    return count, source[:end], row[:end], column[:end]


@jit
def _count_fronts(indptr, indices, perm, row_rank, front_of, count, first, last):
    """Entries of some columns that belong to each front."""
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            count[front_of[min(row_rank[indices[p]], j)]] += 1


@jit
def _send(indptr, indices, perm, row_rank, front_of, cursor, source, row, column, first, last):
    """Send the entries of some columns to where those of their fronts are to be."""
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            s = front_of[min(i, j)]
            q = cursor[s]
            source[q], row[q], column[q] = p, i, j
            cursor[s] = q + 1


@jit
def _number(start, pointer, rows, count, row, column, local, first, last):
    """Change rows and columns of entries into those of their fronts; `local` as in `_map_below`."""
    for s in range(first, last):
        begin, end = start[s], start[s + 1]
        for r in range(pointer[s], pointer[s + 1]):
            local[rows[r]] = end - begin + r - pointer[s]
        for q in range(count[s], count[s + 1]):
            i, j = row[q], column[q]
            row[q] = i - begin if i < end else local[i]
            column[q] = j - begin if j < end else local[j]


def _entry_maps(indptr, indices, perm, row_rank, start, pointer, rows):
    """Send each stored entry of A to its front, row and column there.

    Entry (i, j) belongs to the front that eliminates the earlier of its row and column; there
    entries are in the order of elimination of their columns, however many parts these have.
    """
    n, fronts, bounds = perm.size, start.size - 1, bounds_of(indptr)
    front_of = np.repeat(np.arange(fronts, dtype=np.int32), np.diff(start))
    args = indptr, indices, perm, row_rank, front_of
    cursor = np.zeros((bounds.size - 1, fronts), np.int64)

    def range_cursor(first: int) -> np.ndarray:
        return cursor[np.searchsorted(bounds, first)]

    parallel_for(lambda *bounds: _count_fronts(*args, range_cursor(bounds[0]), *bounds), indptr)
    count = np.append(0, np.cumsum(cursor.sum(axis=0)))
    cursor[:] = np.cumsum(cursor, axis=0) - cursor + count[:-1]
    source, (row, column) = np.empty(count[-1], np.int64), np.empty((2, count[-1]), np.int32)
    parallel_for(
        lambda *bounds: _send(*args, range_cursor(bounds[0]), source, row, column, *bounds), indptr
    )

    def number(first: int, last: int) -> None:
        local = np.empty(n, np.int32)
        _number(start, pointer, rows, count, row, column, local, first, last)

    parallel_for(number, count)
    return count, source, row, column


def _relative(start, parent, pointer, rows):
    """Position of each update row among the rows of the parent front."""
    relative = np.empty(rows.size, np.int32)
    args = start, parent, pointer, rows, relative
    parallel_for(lambda *bounds: _relative_rows(*args, *bounds), pointer)
    return relative


def make_plan(
    indptr, indices, perm, row_rank, method, start, parent, pointer, rows, relative=None
) -> Plan:
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
    start, parent, pointer, rows, relative
        Fronts, as in `Plan`; the last is found if it is not given.
    """
    child_pointer, children = children_of(parent)
    if relative is None:
        relative = _relative(start, parent, pointer, rows)
    maps = _entries_below if method.one_triangle else _entry_maps
    entries = maps(indptr, indices, perm, row_rank, start, pointer, rows)
    return Plan(start, parent, pointer, rows, relative, child_pointer, children, *entries)


@brief
def front_flops(start, pointer):
    """Multiplications and additions of a Cholesky factorization of each front (LU: twice)."""
    out = np.empty(start.size - 1)
    for s in range(out.size):
        k, m = np.float64(start[s + 1] - start[s]), np.float64(pointer[s + 1] - pointer[s])
        out[s] = k * (k + 1) * (2 * k + 1) / 6 + k * k * m + k * m * (m + 1)
    return out
