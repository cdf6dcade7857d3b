"""Triangular inverses and solves with the pivot block of a front, in loops if it is small."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner
from ..axpy import clear, multiply, subtract
from ..blas import (
    LOWER,
    NO_TRANS,
    NON_UNIT,
    RIGHT,
    TRANS,
    UNIT,
    UPPER,
    address,
    trsm,
    trtri,
)

MAX_LOOP_COLUMNS = 16  # largest k for which loops are faster than trsm and trtri


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
    return Triangle(place.k, place.panel, np.int64(1), place.k + place.m, unit)


@inner
def upper_triangle(place):
    """Return the transpose of the triangle of U in the first panel of a front."""
    return Triangle(place.k, place.panel, place.k + place.m, np.int64(1), False)


@inner
def solve_right(work, triangle, rows, out):
    """Compute X T^-1 in place, for X in the scratch at `out`, `rows` by k."""
    a, x, k = work.panels, work.scratch, triangle.k
    if k > MAX_LOOP_COLUMNS:
        is_lower = triangle.down == 1
        trsm(
            work.routines, RIGHT, LOWER if is_lower else UPPER, NO_TRANS if is_lower else TRANS,
            UNIT if triangle.unit else NON_UNIT, rows, k,
            address(a) + triangle.origin * a.itemsize, max(triangle.down, triangle.across),
            address(x) + out * x.itemsize, rows,
        )  # fmt: skip
        return
    for j in range(k - 1, -1, -1):
        row = triangle.origin + j * triangle.down
        if not triangle.unit:
            multiply(x, out + j * rows, rows, 1 / a[row + j * triangle.across])
        for p in range(j):
            subtract(x, out + p * rows, x, out + j * rows, rows, a[row + p * triangle.across])


@inner
def invert_lower(work, triangle, out, at, ld):
    """Write T^-1, with zeros above its diagonal, to out[at:]; T is by columns (`down` is 1)."""
    a, k = work.panels, triangle.k
    for j in range(k):
        column, source = at + j * ld, triangle.origin + j * triangle.across
        clear(out, column, j)
        if k > MAX_LOOP_COLUMNS:
            _copy(out, column + j, a, source + j, k - j)
            out[column + j] = 1 if triangle.unit else a[source + j]
            continue
        clear(out, column + j, k - j)
        out[column + j] = 1
        for p in range(j, k):
            pivot = triangle.origin + p * (triangle.across + 1)
            if not triangle.unit:
                out[column + p] /= a[pivot]
            subtract(out, column + p + 1, a, pivot + 1, k - p - 1, out[column + p])
    if k > MAX_LOOP_COLUMNS:
        diag, corner = UNIT if triangle.unit else NON_UNIT, address(out) + at * out.itemsize
        trtri(work.routines, diag, k, corner, ld, work.info)


@inner
def copy_block(out, at, a, source, rows, columns, ld):
    """Copy a block of leading dimension `ld` in `a` to a contiguous one in `out`."""
    for j in range(columns):
        _copy(out, at + j * rows, a, source + j * ld, rows)


@inner
def _copy(out, at, a, source, count):
    at, source = np.uint64(at), np.uint64(source)
    for i in range(np.uint64(count)):
        out[at + i] = a[source + i]
