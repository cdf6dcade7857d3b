"""Triangular inverses and solves with the pivot block of a front, in loops if it is small."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner
from ..axpy import clear, multiply, subtract
from ..blas import LOWER, NO_TRANS, NON_UNIT, RIGHT, TRANS, UNIT, UPPER, address, trsm
from .workspace import MAX_LOOP_COLUMNS


class Triangle(NamedTuple):
    """A lower triangle of order k: entry (i, j) is at origin + i * down + j * across."""

    k: np.int64
    origin: np.int64
    down: np.int64
    across: np.int64
    unit: bool


@inner
def lower_triangle(place, unit):
    """Return the triangle of L in the first panel of a front."""
    return Triangle(place.k, place.panel, np.int64(1), place.ld, unit)


@inner
def upper_triangle(place):
    """Return the transpose of the triangle of U in the first panel of a front."""
    return Triangle(place.k, place.panel, place.ld, np.int64(1), False)


@inner
def solve_right(work, triangle, out, rows, ld):
    """Compute X T^-1 in place, for X in the scratch at `out`, `rows` by k."""
    a, x, k = work.panels, work.scratch, triangle.k
    if k > MAX_LOOP_COLUMNS:
        is_lower = triangle.down == 1
        trsm(
            work.routines, RIGHT, LOWER if is_lower else UPPER, NO_TRANS if is_lower else TRANS,
            UNIT if triangle.unit else NON_UNIT, rows, k,
            address(a) + triangle.origin * a.itemsize, max(triangle.down, triangle.across),
            address(x) + out * x.itemsize, ld,
        )  # fmt: skip
        return
    for j in range(k - 1, -1, -1):
        row = triangle.origin + j * triangle.down
        if not triangle.unit:
            multiply(x, out + j * ld, rows, 1 / a[row + j * triangle.across])
        for p in range(j):
            subtract(x, out + p * ld, x, out + j * ld, rows, a[row + p * triangle.across])


@inner
def invert_small(work, triangle, out, at, ld):
    """Write T^-1, with zeros above its diagonal, to out[at:]; T is by columns (`down` is 1)."""
    a, k = work.panels, triangle.k
    for j in range(k):
        column = at + j * ld
        clear(out, column, k)
        out[column + j] = 1
        for p in range(j, k):
            pivot = triangle.origin + p * (triangle.across + 1)
            if not triangle.unit:
                out[column + p] /= a[pivot]
            subtract(out, column + p + 1, a, pivot + 1, k - p - 1, out[column + p])


@inner
def copy_rows(out, at, a, source, shape, ld):
    """Copy rows of a matrix of leading dimension `ld` in `a` to those of another in `out`.

    The shape is that of the rows, and the leading dimension of `out`.
    """
    rows, columns, out_ld = shape
    for j in range(columns):
        to, first = np.uint64(at + j * out_ld), np.uint64(source + j * ld)
        for i in range(np.uint64(rows)):
            out[to + i] = a[first + i]
