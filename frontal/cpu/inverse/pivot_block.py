"""The pivot block Z11 of a front's inverse, by strips of columns that threads may share.

Z11 = U11^-1 L11^-1 - V Z21; with one triangle only its lower triangle is computed.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..axpy import clear, is_small_product, subtract
from ..blas import (
    LEFT,
    LOWER,
    MINUS,
    NO_TRANS,
    NON_UNIT,
    ONE,
    TRANS,
    UNIT,
    UPPER,
    address,
    gemm,
    trsm,
)
from .triangles import invert_small, lower_triangle

STRIP = 64  # columns of Z11 computed together


@inner
def invert_small_block(work, place):
    """Compute the inverse of the pivot block of at most `MAX_LOOP_COLUMNS` columns, in loops."""
    k, ld, z, w, origin = place.k, place.ld, work.arena, work.scratch, place.inverse
    if work.two_panels:
        invert_small(work, lower_triangle(place, True), z, origin, ld)
        for c in range(k):
            column = origin + c * ld
            for j in range(k - 1, -1, -1):
                upper = place.panel + j * ld
                z[column + j] /= work.panels[upper + j]
                subtract(z, column, work.panels, upper, j, z[column + j])
        return
    left = right = place.scratch
    invert_small(work, lower_triangle(place, work.unit), w, left, k)
    if work.indefinite:
        right = left + k * k
        copy_square(w, right, left, k)
        divide(work, place, np.int64(0), w, right, k, k)
    for j in range(k):
        for i in range(j, k):
            t = w.dtype.type(0)
            for p in range(i, k):
                x = w[left + i * k + p]
                t += (np.conj(x) if work.conjugate else x) * w[right + j * k + p]
            z[origin + j * ld + i] = t


@inner
def copy_square(w, out, at, k):
    """Copy a k by k block inside the scratch."""
    for i in range(k * k):
        w[out + i] = w[at + i]


@inner
def divide(work, place, begin, x, at, ld, columns):
    """Compute D^-1 X in place for rows of X from row `begin` of D on, pivots of order 1 and 2.

    X begins at x[at], and has k - begin rows.
    """
    a, j, k = work.panels, begin, place.k
    while j < k:
        d, row = a[place.panel + j * (place.ld + 1)], at + j - begin
        b = work.subdiagonal[place.first + j]
        if b == 0:
            for c in range(columns):
                x[row + c * ld] /= d
            j += 1
            continue
        upper = np.conj(b) if work.conjugate else b
        a0, a1 = d / upper, a[place.panel + (j + 1) * (place.ld + 1)] / b
        determinant = a0 * a1 - 1
        for c in range(columns):
            y, z = x[row + c * ld] / upper, x[row + c * ld + 1] / b
            x[row + c * ld] = (a1 * y - z) / determinant
            x[row + c * ld + 1] = (a0 * z - y) / determinant
        j += 2


@inner
def cuts_pair(work, place, j):
    """Return 1 if rows j - 1 and j of a front are a 2x2 pivot, else 0."""
    if not work.indefinite or j == 0 or j == place.k:
        return np.int64(0)
    return np.int64(work.subdiagonal[place.first + j - 1] != 0)


@inner
def invert_strip(work, place, j, width):
    """Compute columns [j, j + width) of the inverse of the pivot block, by solves.

    With one triangle no row above j is computed, but row j - 1 is overwritten if it shares a 2x2
    pivot with row j.
    """
    k, ld, z, item = place.k, place.ld, work.arena, work.arena.itemsize
    begin = j - cuts_pair(work, place, j)
    corner, top = place.inverse + j * ld + begin, np.int64(0) if work.two_panels else begin
    for c in range(width):
        clear(z, place.inverse + (j + c) * ld + top, k - top)
        z[place.inverse + (j + c) * (ld + 1)] = 1
    x, routines = address(z) + corner * item, work.routines
    lower = address(work.panels) + (place.panel + begin * (ld + 1)) * item
    diag = UNIT if work.unit else NON_UNIT
    trsm(routines, LEFT, LOWER, NO_TRANS, diag, k - begin, width, lower, ld, x, ld)
    if work.two_panels:
        panel = address(work.panels) + place.panel * item
        x -= begin * item
        trsm(routines, LEFT, UPPER, NO_TRANS, NON_UNIT, k, width, panel, ld, x, ld)
        return
    if work.indefinite:
        divide(work, place, begin, z, corner, ld, width)
    adjoint = work.routines.adjoint if work.conjugate else TRANS
    trsm(routines, LEFT, LOWER, adjoint, diag, k - begin, width, lower, ld, x, ld)


@inner
def subtract_product(work, place, j, width):
    """Compute columns [j, j + width) of Z11 -= V Z21, from row j on with one triangle."""
    k, m, ld, z, x = place.k, place.m, place.ld, work.arena, work.scratch
    first, v = (np.int64(0), place.y + k * m) if work.two_panels else (j, place.y)
    if is_small_product(k, width, m):
        for c in range(j, j + width):
            for i in range(np.int64(0) if work.two_panels else c, k):
                t, left, right = z.dtype.type(0), v + i * m, place.inverse + k + c * ld
                for p in range(m):
                    factor = x[left + p]
                    t += (np.conj(factor) if work.conjugate else factor) * z[right + p]
                z[place.inverse + i + c * ld] -= t
        return
    adjoint = work.routines.adjoint if work.conjugate else TRANS
    begin, item = address(z) + place.inverse * z.itemsize, z.itemsize
    gemm(
        work.routines, adjoint, NO_TRANS, k - first, width, m, MINUS,
        address(x) + (v + first * m) * item, m, begin + (k + j * ld) * item, ld, ONE,
        begin + (first + j * ld) * item, ld,
    )  # fmt: skip
