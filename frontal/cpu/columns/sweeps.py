"""Substitution by L and U by columns, for one vector or four together, with the same bits.

Blocks are solved from the last to the first: the entries of a column in earlier blocks are those of
A, and are subtracted when its unknown is known. For the transposed matrix blocks are solved from
the first to the last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating, inner

WIDTH = 4  # right-hand sides that are swept together, if there are several


class ColumnTriangles(NamedTuple):
    """L and U by columns, as substitutions read them.

    Attributes
    ----------
    first : (blocks + 1,) int32 array
        See `ColumnPlan`.
    lower_start, lower_row, upper_start, upper_row : arrays
        See `ColumnPattern`.
    lower, upper, diagonal : arrays
        See `ColumnValues`.
    row_place, row_scale, column_place, column_scale : arrays
        For rows, after the interchanges, and columns of A: positions in elimination order, and
        scaling, empty for none.
    """

    first: np.ndarray
    lower_start: np.ndarray
    lower_row: np.ndarray
    upper_start: np.ndarray
    upper_row: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    row_place: np.ndarray
    row_scale: np.ndarray
    column_place: np.ndarray
    column_scale: np.ndarray


@inner
def _solve(f, x):
    """Solve L U X = B in place, for a vector."""
    lower_start, lower_row, lower = f.lower_start, f.lower_row, f.lower
    upper_start, upper_row, upper = f.upper_start, f.upper_row, f.upper
    for b in range(f.first.size - 2, -1, -1):
        low, high = f.first[b], f.first[b + 1]
        for j in range(np.uint64(low), np.uint64(high - 1)):
            known = x[j]
            for q in range(np.uint64(lower_start[j]), np.uint64(lower_start[j + np.uint64(1)])):
                x[np.uint32(lower_row[q])] -= lower[q] * known
        for j in range(high - 1, low - 1, -1):
            known = x[j] / f.diagonal[j]
            x[j] = known
            for q in range(np.uint64(upper_start[j]), np.uint64(upper_start[j + 1])):
                x[np.uint32(upper_row[q])] -= upper[q] * known


@inner
def _solve_transposed(f, x):
    """Solve (L U)^T X = B in place, for a vector."""
    lower_start, lower_row, lower = f.lower_start, f.lower_row, f.lower
    upper_start, upper_row, upper = f.upper_start, f.upper_row, f.upper
    for b in range(f.first.size - 1):
        low, high = f.first[b], f.first[b + 1]
        for j in range(np.uint64(low), np.uint64(high)):
            rest = x[j]
            for q in range(np.uint64(upper_start[j]), np.uint64(upper_start[j + np.uint64(1)])):
                rest -= upper[q] * x[np.uint32(upper_row[q])]
            x[j] = rest / f.diagonal[j]
        for j in range(high - 2, low - 1, -1):
            rest = x[j]
            for q in range(np.uint64(lower_start[j]), np.uint64(lower_start[j + 1])):
                rest -= lower[q] * x[np.uint32(lower_row[q])]
            x[j] = rest


@inner
def _subtract_four(x, row, value, begin, end, a, b, c, d):
    """Subtract a column of L or U times four unknowns from four right-hand sides."""
    for q in range(np.uint64(begin), np.uint64(end)):
        i, factor = np.uint64(WIDTH) * np.uint64(row[q]), value[q]
        x[i] -= factor * a
        x[i + np.uint64(1)] -= factor * b
        x[i + np.uint64(2)] -= factor * c
        x[i + np.uint64(3)] -= factor * d


@inner
def _remove_four(x, row, value, begin, end, at):
    """Subtract from the four entries at `at` the product of a column of L or U and known ones."""
    a, b, c, d = x[at], x[at + 1], x[at + 2], x[at + 3]
    for q in range(np.uint64(begin), np.uint64(end)):
        i, factor = np.uint64(WIDTH) * np.uint64(row[q]), value[q]
        a -= factor * x[i]
        b -= factor * x[i + np.uint64(1)]
        c -= factor * x[i + np.uint64(2)]
        d -= factor * x[i + np.uint64(3)]
    x[at], x[at + 1], x[at + 2], x[at + 3] = a, b, c, d


@inner
def _divide_four(x, at, pivot):
    for t in range(WIDTH):
        x[at + t] /= pivot


@inner
def _solve_four(f, x):
    """Solve L U X = B in place, for four vectors, row-major."""
    for b in range(f.first.size - 2, -1, -1):
        low, high = np.int64(f.first[b]), np.int64(f.first[b + 1])
        for j in range(low, high - 1):
            at, begin, end = WIDTH * j, f.lower_start[j], f.lower_start[j + 1]
            known = x[at], x[at + 1], x[at + 2], x[at + 3]
            _subtract_four(x, f.lower_row, f.lower, begin, end, *known)
        for j in range(high - 1, low - 1, -1):
            at, begin, end = WIDTH * j, f.upper_start[j], f.upper_start[j + 1]
            _divide_four(x, at, f.diagonal[j])
            known = x[at], x[at + 1], x[at + 2], x[at + 3]
            _subtract_four(x, f.upper_row, f.upper, begin, end, *known)


@inner
def _solve_four_transposed(f, x):
    """Solve (L U)^T X = B in place, for four vectors, row-major."""
    for b in range(f.first.size - 1):
        low, high = np.int64(f.first[b]), np.int64(f.first[b + 1])
        for j in range(low, high):
            begin, end = f.upper_start[j], f.upper_start[j + 1]
            _remove_four(x, f.upper_row, f.upper, begin, end, WIDTH * j)
            _divide_four(x, WIDTH * j, f.diagonal[j])
        for j in range(high - 2, low - 1, -1):
            begin, end = f.lower_start[j], f.lower_start[j + 1]
            _remove_four(x, f.lower_row, f.lower, begin, end, WIDTH * j)


@inner
def _enter(place, scale, conjugated, B, width, x):
    """Copy the rows of B to x, `width` to a row, in elimination order and scaled; then zeros."""
    for c in range(width):
        for k in range(place.size):
            if c >= B.shape[0]:
                x[k * width + c] = 0
                continue
            p = np.uint32(place[k])
            value = B[c, p] * scale[p] if scale.size else B[c, p]
            x[k * width + c] = np.conj(value) if conjugated else value


@inner
def _leave(place, scale, conjugated, x, stride, X):
    """Copy the columns of x to the rows of X, in the order of A and scaled."""
    for c in range(X.shape[0]):
        for k in range(place.size):
            p, value = np.uint32(place[k]), x[k * stride + c]
            value = np.conj(value) if conjugated else value
            X[c, p] = value * scale[p] if scale.size else value


@allocating
def substitute_by_columns(factors, transposed, conjugated, B, X):
    """Solve op(A) X = B by the factors: permute, scale, substitute; see `sweeps.substitute`.

    Parameters
    ----------
    factors : ColumnTriangles
        By reference.
    transposed, conjugated : bool
    B, X : (k, n) arrays
        A right-hand side, or a solution, in each row.
    """
    into, by = factors.row_place, factors.row_scale
    out, back = factors.column_place, factors.column_scale
    if transposed:
        into, by, out, back = out, back, into, by
    count, n = B.shape
    x = np.empty(n * (1 if count == 1 else WIDTH), factors.diagonal.dtype)
    for low in range(0, count, WIDTH):
        rhs, solution = B[low : low + WIDTH], X[low : low + WIDTH]
        width = 1 if rhs.shape[0] == 1 else WIDTH
        _enter(into, by, conjugated, rhs, width, x)
        if width == 1 and transposed:
            _solve_transposed(factors, x[:n])
        elif width == 1:
            _solve(factors, x[:n])
        elif transposed:
            _solve_four_transposed(factors, x)
        else:
            _solve_four(factors, x)
        _leave(out, back, conjugated, x, width, solution)
