"""LU of a matrix in block triangular form by columns, with pivots.

Column j of L and U is the solution of a triangular system with the columns of L before it. Depth
first searches find the columns that it depends on, in time proportional to the operations
(Gilbert and Peierls 1988). A search stops in a column of L at the rows that a later column, which
contains the others, has too: symmetric pruning (Eisenstat and Liu 1992).

A pivot is the diagonal entry if it is at least `THRESHOLD` times the largest entry of its column,
else that entry. Rows stay in their diagonal block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating, forced, inner, jit
from ..pivots import size_of
from .arrays import ColumnPattern, ColumnValues, grown

THRESHOLD = 0.1  # least diagonal pivot over the largest entry of its column
MAX_FILL_RATIO = 4  # of the entries of L and U to the predicted ones, before LU has failed
# Outcomes
FACTORIZED, NULL_PIVOT, FILLED = 0, 1, 2


class _PivotSearch(NamedTuple):
    """The state of the searches and of the choice of pivots.

    Attributes
    ----------
    position : (n,) int32 array
        The pivot position of each row, -1 before its elimination.
    row_at : (n,) int32 array
        The row of each pivot.
    end : (n,) int64 array
        End of the rows in each column of L that searches visit.
    stamp : (n,) int32 array
        The last column whose search has reached each row.
    stack, cursor : (n,) int32, int64 arrays
        Columns of a search and their next rows.
    reached : (n,) int32 array
        Columns that the current one depends on, in topological order, at the end of its block.
    preferred, holder : (n,) int32 arrays
        The row that would be the diagonal pivot of each later column, and its inverse.
    """

    position: np.ndarray
    row_at: np.ndarray
    end: np.ndarray
    stamp: np.ndarray
    stack: np.ndarray
    cursor: np.ndarray
    reached: np.ndarray
    preferred: np.ndarray
    holder: np.ndarray


@inner
def _visit(search, lower_start, lower_row, j, row, top, size):
    """Search from an eliminated row; return the new `top` of `reached` and `size` of L."""
    position, end, stamp, cursor = search.position, search.end, search.stamp, search.cursor
    depth = 0
    search.stack[0] = position[row]
    cursor[0] = lower_start[position[row]]
    while depth >= 0:
        k, q, deeper = search.stack[depth], cursor[depth], -1
        while q < end[k]:
            i = lower_row[q]
            q += 1
            if stamp[i] != j:
                stamp[i] = j
                if position[i] >= 0:
                    deeper = position[i]
                    break
                lower_row[size] = i
                size += 1
        cursor[depth] = q
        if deeper >= 0:
            depth += 1
            search.stack[depth] = deeper
            cursor[depth] = lower_start[deeper]
        else:
            depth -= 1
            top -= 1
            search.reached[top] = k
    return top, size


@inner
def _scatter(matrix, search, lower_start, lower_row, j, block, size, x):
    """Scatter column j into x, and find its pattern.

    Return the first of the columns in `reached`, and the `size` of L, to which rows without a
    pivot are appended. `block` is the range of columns of the diagonal block.
    """
    stamp, top = search.stamp, block[1]
    for p in range(matrix.start[j], matrix.start[j + 1]):
        i = matrix.row[p]
        if i < block[0]:
            continue
        x[i] = matrix.values[matrix.place[p]]
        if stamp[i] == j:
            continue
        stamp[i] = j
        if search.position[i] >= 0:
            top, size = _visit(search, lower_start, lower_row, j, i, top, size)
        else:
            lower_row[size] = i
            size += 1
    return top, size


@inner
def _eliminate(search, lower_start, lower_row, lower, upper_row, upper, top, last, size, x):
    """Subtract earlier columns of L from x, in topological order; append a column of U."""
    for t in range(top, last):
        k = search.reached[t]
        i = search.row_at[k]
        factor = x[i]
        x[i] = 0
        upper_row[size], upper[size] = k, factor
        size += 1
        for q in range(np.uint64(lower_start[k]), np.uint64(lower_start[k + 1])):
            x[np.uint32(lower_row[q])] -= lower[q] * factor
    return size


@inner
def _pivot_row(search, lower_row, j, begin, end, x, null):
    """Return the pivot row of column j among the rows of L from `begin` to `end`; -1 if null."""
    largest, best = 0.0, np.int32(-1)
    for q in range(begin, end):
        size = size_of(x[lower_row[q]])
        if size > largest:
            largest, best = size, lower_row[q]
        elif size != size:
            return np.int32(-1)
    if not null < largest < np.inf:
        return np.int32(-1)
    diagonal = search.preferred[j]
    if search.stamp[diagonal] == j and size_of(x[diagonal]) >= THRESHOLD * largest:
        return diagonal
    return best


@inner
def _take_row(search, j, row):
    """Make a row the pivot row of column j; the row preferred until now replaces it."""
    diagonal = search.preferred[j]
    if row != diagonal:
        column = search.holder[row]
        search.preferred[column] = diagonal
        search.holder[diagonal] = column
    search.position[row], search.row_at[j] = j, row


@inner
def _divide(lower_row, lower, begin, end, row, x):
    """Append column of L, without its pivot row, to `lower`, and clear x; return its end."""
    inverse = 1 / x[row]
    out = begin
    for q in range(begin, end):
        i = lower_row[q]
        if i != row:
            lower_row[out], lower[out] = i, x[i] * inverse
            out += 1
        x[i] = 0
    return out


@inner
def _prune(search, lower_start, lower_row, lower, upper_row, begin, end, row):
    """Shorten the searches in columns of L, used by a column of U, that have its pivot row."""
    for t in range(begin, end):
        k = upper_row[t]
        if search.end[k] < lower_start[k + 1]:
            continue
        low, high, has = lower_start[k], lower_start[k + 1] - 1, False
        for q in range(low, high + 1):
            has |= lower_row[q] == row
        if not has:
            continue
        while low <= high:
            if search.position[lower_row[low]] >= 0:
                low += 1
            else:
                lower_row[low], lower_row[high] = lower_row[high], lower_row[low]
                lower[low], lower[high] = lower[high], lower[low]
                high -= 1
        search.end[k] = low


@forced
def _copy_between(matrix, j, low, upper_row, upper, size):
    """Append the entries of column j in earlier blocks to U; return its size."""
    for p in range(matrix.start[j], matrix.start[j + 1]):
        if matrix.row[p] < low:
            upper_row[size], upper[size] = matrix.row[p], matrix.values[matrix.place[p]]
            size += 1
    return size


@allocating
def _new_search(n):
    number = np.arange(n).astype(np.int32)
    return _PivotSearch(
        np.full(n, np.int32(-1)), np.empty(n, np.int32), np.zeros(n, np.int64),
        np.full(n, np.int32(-1)), np.empty(n, np.int32), np.empty(n, np.int64),
        np.empty(n, np.int32), number, number.copy(),
    )  # fmt: skip


@jit
def factorize(matrix, null, room, limit):
    """Factorize a matrix with pivots.

    Parameters
    ----------
    matrix : ColumnInput
        With rows before the interchanges.
    null : float
        Size up to which all entries of a column are zero.
    room : int
        Entries of L and of U for which memory is allocated first.
    limit : int
        Entries of L and U from which the outcome is `FILLED`.

    Returns
    -------
    outcome, column : int
        An outcome, and its column in elimination order.
    pattern : ColumnPattern
        Complete if the outcome is `FACTORIZED`.
    values : ColumnValues
    """
    first, start, n = matrix.first, matrix.start, matrix.start.size - 1
    search, x = _new_search(n), np.zeros(max(n, 1), matrix.values.dtype)
    lower_start, upper_start = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    between, diagonal = np.zeros(n, np.int64), np.empty(n, x.dtype)
    lower_row, lower = np.empty(room, np.int32), np.empty(room, x.dtype)
    upper_row, upper = np.empty(room, np.int32), np.empty(room, x.dtype)
    lower_size, upper_size, outcome, j = np.int64(0), np.int64(0), FACTORIZED, np.int64(0)
    for b in range(first.size - 1):
        low, high = np.int64(first[b]), np.int64(first[b + 1])
        while j < high and outcome == FACTORIZED:
            if lower_size + high - j > lower.size:
                size = 2 * lower.size + high - j
                lower_row, lower = grown(lower_row, size), grown(lower, size)
            if upper_size + (j - low) + start[j + 1] - start[j] > upper.size:
                size = 2 * upper.size + (j - low) + start[j + 1] - start[j]
                upper_row, upper = grown(upper_row, size), grown(upper, size)
            begin, above = lower_size, upper_size
            top, lower_size = _scatter(
                matrix, search, lower_start, lower_row, j, (low, high), lower_size, x
            )
            upper_size = _eliminate(
                search, lower_start, lower_row, lower, upper_row, upper, top, high, upper_size, x
            )
            row = _pivot_row(search, lower_row, j, begin, lower_size, x, null)
            if row < 0:
                outcome = NULL_PIVOT
                break
            _take_row(search, j, row)
            diagonal[j] = x[row]
            lower_size = _divide(lower_row, lower, begin, lower_size, row, x)
            between[j] = upper_size
            upper_size = _copy_between(matrix, j, low, upper_row, upper, upper_size)
            lower_start[j + 1] = search.end[j] = lower_size
            upper_start[j + 1] = upper_size
            _prune(search, lower_start, lower_row, lower, upper_row, above, between[j], row)
            j += 1
            if lower_size + upper_size > limit:
                outcome = FILLED
        if outcome != FACTORIZED:
            break
    pattern = ColumnPattern(
        lower_start, lower_row[:lower_size].copy(), upper_start, upper_row[:upper_size].copy(),
        between, matrix.row.copy(), search.position,
    )  # fmt: skip
    values = ColumnValues(lower[:lower_size].copy(), upper[:upper_size].copy(), diagonal)
    if outcome == FACTORIZED:
        _sort(pattern, values)
    return outcome, j, pattern, values


@allocating
def _sort(pattern, values):
    """Name all rows by their positions after the interchanges; sort L and the rest of U.

    Rows of U in a diagonal block stay in the order of their elimination: refactorizations then
    have the bits of this factorization.
    """
    position, n = pattern.position, pattern.position.size
    for p in range(pattern.row.size):
        pattern.row[p] = position[pattern.row[p]]
    for q in range(pattern.lower_row.size):
        pattern.lower_row[q] = position[pattern.lower_row[q]]
    for j in range(n):
        for q in range(pattern.between[j], pattern.upper_start[j + 1]):
            pattern.upper_row[q] = position[pattern.upper_row[q]]
    _sort_rows(pattern.lower_start[:-1], pattern.lower_start[1:], pattern.lower_row, values.lower)
    _sort_rows(pattern.between, pattern.upper_start[1:], pattern.upper_row, values.upper)


@allocating
def _sort_rows(start, end, row, value):
    """Sort the rows of each column from `start` to `end`, by way of a transposed copy."""
    n = start.size
    begin = np.zeros(n + 1, np.int64)
    for j in range(n):
        for q in range(start[j], end[j]):
            begin[row[q] + 1] += 1
    begin = np.cumsum(begin)
    column, copy = np.empty(begin[n], np.int32), np.empty(begin[n], value.dtype)
    for j in range(n):
        for q in range(start[j], end[j]):
            t = begin[row[q]]
            begin[row[q]] = t + 1
            column[t], copy[t] = j, value[q]
    fill, t = start.copy(), np.int64(0)
    for i in range(n):
        while t < begin[i]:
            q = fill[column[t]]
            fill[column[t]] = q + 1
            row[q], value[q] = i, copy[t]
            t += 1
