"""The plan of a numeric factorization: its index arrays, computed once per pattern.

Front s has k pivot columns ``start[s]:start[s+1]`` and m ascending update rows
``rows[pointer[s]:pointer[s+1]]``. Rows and columns of a front are numbered
from 0, pivots before updates. The backend's layout assigns addresses in memory.
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
        Children of each front, ascending: the order of their extend-adds.
    entry_pointer : (f + 1,) int64
        Extent of each front's entries of A in `source`, `row` and `column`.
    source : int64
        Position of an entry among the values of A.
    row, column : int32
        Row and column of the entry in its front; at least one of them is a pivot.
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
    """Set the relative indices of a range of fronts by merging ascending rows with the parents'."""
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
    """Count entries on and below the diagonal of the permuted matrix in a range of columns."""
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            count[j + 1] += row_rank[indices[p]] >= j


@jit
def _map_below(
    indptr, indices, perm, row_rank, start, pointer, rows, count, source, row, column, local,
    first, last,
):  # fmt: skip
    """Map the entries of a range of fronts on and below the diagonal to rows and columns there.

    All entries of a front lie in its columns; `local` is a workspace of one number per row.
    ``count[first]`` is the start of the entries of the first front; on return `count` holds the
    ends of all fronts of the range.
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
    """Return `_entry_maps` of the entries on and below the diagonal."""
    n, alone = perm.size, bounds_of(indptr).size == 2
    if alone:  # one range needs no starts of other ranges
        count, total = np.zeros(start.size, np.int64), int(indptr[-1])
    else:
        below = np.zeros(n + 1, np.int64)
        parallel_for(
            lambda *bounds: _count_below(indptr, indices, perm, row_rank, below, *bounds), indptr
        )
        count = np.cumsum(below)[start]
        total = int(count[-1])
    source, (row, column) = np.empty(total, np.int64), np.empty((2, total), np.int32)

    def work(first: int, last: int) -> None:
        local = np.empty(n, np.int32)
        _map_below(
            indptr,
            indices,
            perm,
            row_rank,
            start,
            pointer,
            rows,
            count,
            source,
            row,
            column,
            local,
            first,
            last,
        )

    if alone:
        work(0, start.size - 1)
    else:
        parallel_for(work, count)
    end = int(count[-1])  # pages after the end are never touched
    return count, source[:end], row[:end], column[:end]


@jit
def _count_fronts(indptr, indices, perm, row_rank, front_of, count, first, last):
    """Count the entries of a range of columns that belong to each front."""
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            count[front_of[min(row_rank[indices[p]], j)]] += 1


@jit
def _send(indptr, indices, perm, row_rank, front_of, cursor, source, row, column, first, last):
    """Write the entries of a range of columns to the positions of their fronts."""
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            s = front_of[min(i, j)]
            q = cursor[s]
            source[q], row[q], column[q] = p, i, j
            cursor[s] = q + 1


@jit
def _number(start, pointer, rows, count, row, column, local, first, last):
    """Convert rows and columns of entries to numbers in the front; `local` as in `_map_below`."""
    for s in range(first, last):
        begin, end = start[s], start[s + 1]
        for r in range(pointer[s], pointer[s + 1]):
            local[rows[r]] = end - begin + r - pointer[s]
        for q in range(count[s], count[s + 1]):
            i, j = row[q], column[q]
            row[q] = i - begin if i < end else local[i]
            column[q] = j - begin if j < end else local[j]


def _entry_maps(indptr, indices, perm, row_rank, start, pointer, rows):
    """Map each stored entry of A to its front, and to row and column in the front.

    Entry (i, j) belongs to the front that eliminates the earlier of its row and column. The entries
    of a front are in the elimination order of their columns, for any number of ranges.
    """
    n, fronts, bounds = perm.size, start.size - 1, bounds_of(indptr)
    front_of = np.repeat(np.arange(fronts, dtype=np.int32), np.diff(start))
    cursor = np.zeros((bounds.size - 1, fronts), np.int64)

    def range_cursor(first: int) -> np.ndarray:
        return cursor[np.searchsorted(bounds, first)]

    parallel_for(
        lambda *bounds: _count_fronts(
            indptr, indices, perm, row_rank, front_of, range_cursor(bounds[0]), *bounds
        ),
        indptr,
    )
    count = np.append(0, np.cumsum(cursor.sum(axis=0)))
    cursor[:] = np.cumsum(cursor, axis=0) - cursor + count[:-1]
    source, (row, column) = np.empty(count[-1], np.int64), np.empty((2, count[-1]), np.int32)
    parallel_for(
        lambda *bounds: _send(
            indptr,
            indices,
            perm,
            row_rank,
            front_of,
            range_cursor(bounds[0]),
            source,
            row,
            column,
            *bounds,
        ),
        indptr,
    )

    def number(first: int, last: int) -> None:
        local = np.empty(n, np.int32)
        _number(start, pointer, rows, count, row, column, local, first, last)

    parallel_for(number, count)
    return count, source, row, column


def _relative(start, parent, pointer, rows):
    """Return the position of each update row among the rows of the parent front."""
    relative = np.empty(rows.size, np.int32)
    parallel_for(
        lambda *bounds: _relative_rows(start, parent, pointer, rows, relative, *bounds), pointer
    )
    return relative


def make_plan(
    indptr, indices, perm, row_rank, method, start, parent, pointer, rows, relative=None
) -> Plan:
    """Compute every index array that a factorization of this pattern needs.

    Parameters
    ----------
    indptr, indices : int64 and int32 arrays
        A by columns.
    perm : (n,) int32 array
        ``perm[k]`` is the column of A eliminated k-th.
    row_rank : (n,) int32 array
        Elimination position of each row of A.
    method : Method
        For a method of one triangle only entries on and below the permuted diagonal are mapped.
    start, parent, pointer, rows, relative
        Fronts, as in `Plan`; `relative` is computed if it is None.
    """
    child_pointer, children = children_of(parent)
    if relative is None:
        relative = _relative(start, parent, pointer, rows)
    maps = _entries_below if method.one_triangle else _entry_maps
    entries = maps(indptr, indices, perm, row_rank, start, pointer, rows)
    return Plan(start, parent, pointer, rows, relative, child_pointer, children, *entries)


@brief
def front_flops(start, pointer):
    """Return multiplications plus additions of Cholesky for each front (LU: twice as many)."""
    out = np.empty(start.size - 1)
    for s in range(out.size):
        k, m = np.float64(start[s + 1] - start[s]), np.float64(pointer[s + 1] - pointer[s])
        out[s] = k * (k + 1) * (2 * k + 1) / 6 + k * k * m + k * m * (m + 1)
    return out
