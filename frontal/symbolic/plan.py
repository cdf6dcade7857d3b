"""The plan of a numeric factorization: its index arrays, computed once per pattern.

Front s has k pivot columns ``start[s]:start[s+1]`` and m ascending update rows
``rows[pointer[s]:pointer[s+1]]``. Rows and columns of a front are numbered
from 0, pivots before updates. The backend's layout assigns addresses in memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import allocating, brief, inner, jit
from ..machine.threads import bounds_of, is_short, parallel_for
from ..numeric.method import Method
from ..ordering.groups import members_of


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


_NO_INDICES, _NO_LIST = np.empty(0, np.int32), np.zeros(1, np.int64)
NO_FRONTS = Plan(  # of a matrix that is factorized by columns
    np.zeros(1, np.int32), _NO_INDICES, _NO_LIST, _NO_INDICES, _NO_INDICES, _NO_LIST, _NO_INDICES,
    _NO_LIST, np.empty(0, np.int64), _NO_INDICES, _NO_INDICES,
)  # fmt: skip


class FrontArrays(NamedTuple):
    """The arrays of a `Plan` that define the fronts; all other arrays follow from them."""

    start: np.ndarray
    parent: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray


class Permuted(NamedTuple):
    """The pattern of A by columns, its elimination order, and the position of each row in it."""

    indptr: np.ndarray
    indices: np.ndarray
    perm: np.ndarray
    row_rank: np.ndarray


class _Entries(NamedTuple):
    """The entries of A in the fronts, as in `Plan`."""

    source: np.ndarray
    row: np.ndarray
    column: np.ndarray


def _empty_entries(count: int) -> _Entries:
    return _Entries(np.empty(count, np.int64), *np.empty((2, count), np.int32))


@allocating
def _new_entries(count):
    """Return `_empty_entries`, for compiled code."""
    return _Entries(np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count, np.int32))


@jit
def _relative_rows(fronts, relative, first, last):
    """Set the relative indices of a range of fronts by merging ascending rows with the parents'."""
    start, parent, pointer, rows = fronts
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


def relative_rows(fronts: FrontArrays) -> np.ndarray:
    """Return the relative indices of all fronts, as in `Plan`."""
    relative = np.empty(fronts.rows.size, np.int32)
    parallel_for(lambda *bounds: _relative_rows(fronts, relative, *bounds), fronts.pointer)
    return relative


@jit
def _count_below(matrix, count, first, last):
    """Count entries on and below the diagonal of the permuted matrix in a range of columns."""
    indptr, indices, perm, row_rank = matrix
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            count[j + 1] += row_rank[indices[p]] >= j


@inner
def _number_updates(fronts, s, local):
    """Set `local` of each update row of a front to its number in the front."""
    k, base = fronts.start[s + 1] - fronts.start[s], fronts.pointer[s]
    for r in range(base, fronts.pointer[s + 1]):
        local[fronts.rows[r]] = k + r - base


@jit
def _map_below(matrix, fronts, entries, count, first, last):
    """Map the entries of a range of fronts on and below the diagonal to rows and columns there.

    All entries of a front lie in its columns. ``count[first]`` is the start of the entries of the
    first front; on return `count` holds the ends of all fronts of the range.
    """
    indptr, indices, perm, row_rank = matrix
    source, row, column = entries
    local, q = np.empty(perm.size, np.int32), count[first]
    for s in range(first, last):
        begin, end = fronts.start[s], fronts.start[s + 1]
        _number_updates(fronts, s, local)
        for j in range(begin, end):
            for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
                i = row_rank[indices[p]]
                if i >= j:
                    source[q], column[q] = p, j - begin
                    row[q] = i - begin if i < end else local[i]
                    q += 1
        count[s + 1] = q


def _entries_below(matrix: Permuted, fronts: FrontArrays) -> tuple[np.ndarray, ...]:
    """Return `_entry_maps` of the entries on and below the diagonal."""
    if bounds_of(matrix.indptr).size == 2:
        return _one_range_below(matrix, fronts)
    below = np.zeros(matrix.indptr.size, np.int64)
    parallel_for(lambda *bounds: _count_below(matrix, below, *bounds), matrix.indptr)
    count = np.cumsum(below)[fronts.start]
    entries = _empty_entries(int(count[-1]))
    parallel_for(lambda *bounds: _map_below(matrix, fronts, entries, count, *bounds), count)
    return count, *entries


@jit
def _one_range_below(matrix, fronts):
    """Compute `_entries_below` in one range, which needs no starts of other ranges."""
    count, total = np.zeros(fronts.start.size, np.int64), matrix.indptr[-1]
    entries = _new_entries(total)
    _map_below(matrix, fronts, entries, count, 0, fronts.parent.size)
    end = count[-1]  # pages after the end are never touched
    return count, entries.source[:end], entries.row[:end], entries.column[:end]


@jit
def _count_fronts(matrix, front_of, count, first, last):
    """Count the entries of a range of columns that belong to each front."""
    indptr, indices, perm, row_rank = matrix
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            count[front_of[min(row_rank[indices[p]], j)]] += 1


@jit
def _send(matrix, front_of, cursor, entries, first, last):
    """Write the entries of a range of columns to the positions of their fronts."""
    indptr, indices, perm, row_rank = matrix
    source, row, column = entries
    for j in range(first, last):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            s = front_of[min(i, j)]
            q = cursor[s]
            source[q], row[q], column[q] = p, i, j
            cursor[s] = q + 1


@jit
def _number(fronts, entries, count, n, first, last):
    """Convert rows and columns of entries to numbers in the front."""
    row, column, local = entries.row, entries.column, np.empty(n, np.int32)
    for s in range(first, last):
        begin, end = fronts.start[s], fronts.start[s + 1]
        _number_updates(fronts, s, local)
        for q in range(count[s], count[s + 1]):
            i, j = row[q], column[q]
            row[q] = i - begin if i < end else local[i]
            column[q] = j - begin if j < end else local[j]


@brief
def _short_entry_maps(matrix, fronts):
    """Compute `_entry_maps` in one compiled call."""
    n, size, total = matrix.perm.size, fronts.parent.size, matrix.indptr[-1]
    front_of, count = np.empty(n, np.int32), np.zeros(size + 1, np.int64)
    for s in range(size):
        front_of[fronts.start[s] : fronts.start[s + 1]] = s
    _count_fronts(matrix, front_of, count[1:], 0, n)
    for s in range(size):
        count[s + 1] += count[s]
    entries = _new_entries(total)
    _send(matrix, front_of, count[:-1].copy(), entries, 0, n)
    _number(fronts, entries, count, n, 0, size)
    return count, entries.source, entries.row, entries.column


def _entry_maps(matrix: Permuted, fronts: FrontArrays) -> tuple[np.ndarray, ...]:
    """Map each stored entry of A to its front, and to row and column in the front.

    Entry (i, j) belongs to the front that eliminates the earlier of its row and column. The entries
    of a front are in the elimination order of their columns, for any number of ranges.
    """
    n, size, bounds = matrix.perm.size, fronts.parent.size, bounds_of(matrix.indptr)
    front_of = np.repeat(np.arange(size, dtype=np.int32), np.diff(fronts.start))
    cursor = np.zeros((bounds.size - 1, size), np.int64)

    def range_cursor(first: int) -> np.ndarray:
        return cursor[np.searchsorted(bounds, first)]

    parallel_for(
        lambda *span: _count_fronts(matrix, front_of, range_cursor(span[0]), *span), matrix.indptr
    )
    count = np.append(0, np.cumsum(cursor.sum(axis=0)))
    cursor[:] = np.cumsum(cursor, axis=0) - cursor + count[:-1]
    entries = _empty_entries(int(count[-1]))
    parallel_for(
        lambda *span: _send(matrix, front_of, range_cursor(span[0]), entries, *span), matrix.indptr
    )
    parallel_for(lambda *span: _number(fronts, entries, count, n, *span), count)
    return count, *entries


@brief
def _short_maps(matrix, fronts, one_triangle):
    """Return the arrays of a `Plan` from `child_pointer` on in one compiled call."""
    child_pointer, children = members_of(fronts.parent)
    if one_triangle:
        count, source, row, column = _one_range_below(matrix, fronts)
    else:
        count, source, row, column = _short_entry_maps(matrix, fronts)
    return child_pointer, children, count, source, row, column


def make_plan(
    matrix: Permuted, method: Method, fronts: FrontArrays, relative: np.ndarray | None = None
) -> Plan:
    """Compute every index array that a factorization of this pattern needs.

    Parameters
    ----------
    matrix : Permuted
    method : Method
        For a method of one triangle only entries on and below the permuted diagonal are mapped.
    fronts : FrontArrays
    relative : int32 array, optional
        As in `Plan`; computed if it is None.
    """
    if relative is None:
        relative = relative_rows(fronts)
    if is_short(matrix.indptr):
        return Plan(*fronts, relative, *_short_maps(matrix, fronts, method.one_triangle))
    child_pointer, children = members_of(fronts.parent)
    maps = _entries_below if method.one_triangle else _entry_maps
    return Plan(*fronts, relative, child_pointer, children, *maps(matrix, fronts))


@brief
def largest_extent(pointer):
    """Return the largest number of items of a list, 0 if there is none."""
    largest = np.int64(0)
    for s in range(pointer.size - 1):
        largest = max(largest, np.int64(pointer[s + 1] - pointer[s]))
    return largest


@brief
def largest_front(start, pointer):
    """Return the largest number of update rows of a front, and largest k (k + m) of a panel."""
    widest, largest = np.int64(0), np.int64(0)
    for s in range(start.size - 1):
        k, m = np.int64(start[s + 1] - start[s]), pointer[s + 1] - pointer[s]
        widest, largest = max(widest, m), max(largest, k * (k + m))
    return widest, largest


@brief
def front_flops(start, pointer):
    """Return multiplications plus additions of Cholesky for each front (LU: twice as many)."""
    out = np.empty(start.size - 1)
    for s in range(out.size):
        k, m = np.float64(start[s + 1] - start[s]), np.float64(pointer[s + 1] - pointer[s])
        out[s] = k * (k + 1) * (2 * k + 1) / 6 + k * k * m + k * m * (m + 1)
    return out
