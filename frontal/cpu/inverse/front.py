"""The inverse of one front from that of its parent: one step of Takahashi's recurrence.

With L21, U12 and the pivot block L11 U11 of a front, and with the inverse Z22 of the rows and
columns of its ancestors:

    Y = L21 L11^-1,  V = U11^-1 U12,
    Z21 = -Z22 Y,  Z12 = -V Z22,  Z11 = U11^-1 L11^-1 - V Z21.

With one triangle U is L^H, D L^H or D L^T, so V is the adjoint or the transpose of Y, and Z12 that
of Z21. V^T is computed as U12^T U11^-T, since U12 is stored transposed. A front is three phases of
tiles that threads may share: `SOLVE` gathers columns of Z22 and computes rows of Y and V^T,
`UPDATE` computes rows of Z21 and columns of Z12, and `BLOCK` computes strips of Z11.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..axpy import clear, is_small_product, subtract
from ..blas import MINUS, NO_TRANS, TRANS, ZERO, address, gemm
from ..shared_state import SOLVE, UPDATE
from .entries import GATHERED
from .pivot_block import (
    STRIP,
    cuts_pair,
    invert_small_block,
    invert_strip,
    subtract_product,
)
from .triangles import copy_rows, lower_triangle, solve_right, upper_triangle
from .workspace import MAX_LOOP_COLUMNS, inverse_offset, place_of


@inner
def run_tile(work, kind, s, tile, size, rank):
    """Run one tile of a phase of front s, of `size` rows, or of `size` columns of Z11."""
    place = place_of(work, s, rank)
    low = tile * size
    if kind == SOLVE:
        high = min(low + size, place.m)
        _gather(work, s, place, low, high, rank)
        _solve_rows(work, place, low, high)
    elif kind == UPDATE:
        _multiply_rows(work, place, low, min(low + size, place.m))
        if work.states[s] == GATHERED and not work.two_panels:
            _mirror_rows(work, place, low, min(low + size, place.m))
    else:
        high = min(low + size, place.k)
        _invert_columns(
            work, s, place, low + cuts_pair(work, place, low), high + cuts_pair(work, place, high)
        )


@inner
def _gather(work, s, place, low, high, rank):
    """Copy columns [low, high) of Z22 of front s from the inverse of its parent."""
    plan, z, m = work.plan, work.arena, np.uint64(place.m)
    above = np.int64(plan.parent[s])
    k = plan.start[above + 1] - plan.start[above]
    parent_ld = np.uint64(k + plan.pointer[above + 1] - plan.pointer[above])
    origin, ld = np.uint64(inverse_offset(work, above, rank)), np.uint64(place.ld)
    corner = np.uint64(place.inverse + place.k * (place.ld + 1))
    relative = plan.relative[plan.pointer[s] : plan.pointer[s + 1]]
    first = np.uint64(relative[0])
    consecutive = relative[m - 1] - relative[0] == m - 1
    for j in range(np.uint64(low), np.uint64(high)):
        source, column = origin + np.uint64(relative[j]) * parent_ld, corner + j * ld
        if consecutive:
            for i in range(m):
                z[column + i] = z[source + first + i]
        else:
            for i in range(m):
                z[column + i] = z[source + np.uint64(relative[i])]


@inner
def _solve_rows(work, place, low, high):
    """Compute rows [low, high) of Y, and of V^T for LU."""
    k, m, rows, source = place.k, place.m, high - low, place.panel + place.k + low
    shape = rows, k, m
    copy_rows(work.scratch, place.y + low, work.panels, source, shape, place.ld)
    solve_right(work, lower_triangle(place, work.unit), place.y + low, rows, m)
    if work.two_panels:
        v, source = place.y + k * m + low, place.panel + k * place.ld + low
        copy_rows(work.scratch, v, work.panels, source, shape, m)
        solve_right(work, upper_triangle(place), v, rows, m)


@inner
def _multiply_rows(work, place, low, high):
    """Compute rows [low, high) of Z21 = -Z22 Y, and for LU these columns of Z12 = -V Z22."""
    k, m, ld, z, rows = place.k, place.m, place.ld, work.arena, high - low
    z21, z22 = place.inverse + k + low, place.inverse + k * (ld + 1)
    if is_small_product(m, m, k):
        for j in range(k):
            clear(z, z21 + j * ld, rows)
            for p in range(m):
                factor = work.scratch[place.y + j * m + p]
                subtract(z, z21 + j * ld, z, z22 + low + p * ld, rows, factor)
        if not work.two_panels:
            return
    begin, item = address(z), z.itemsize
    y = address(work.scratch) + place.y * item
    if not is_small_product(m, m, k):
        gemm(
            work.routines, NO_TRANS, NO_TRANS, rows, k, m, MINUS, begin + (z22 + low) * item, ld,
            y, m, ZERO, begin + z21 * item, ld,
        )  # fmt: skip
    if work.two_panels:
        out = place.inverse + (k + low) * ld
        gemm(
            work.routines, TRANS, NO_TRANS, k, rows, m, MINUS, y + k * m * item, m,
            begin + (z22 + low * ld) * item, ld, ZERO, begin + out * item, ld,
        )  # fmt: skip


@inner
def _mirror_rows(work, place, low, high):
    """Write columns [low, high) of Z12 from the rows of Z21."""
    z, k, ld = work.arena, np.uint64(place.k), np.uint64(place.ld)
    z21, z12 = np.uint64(place.inverse + place.k), np.uint64(place.inverse + place.k * place.ld)
    for i in range(np.uint64(low), np.uint64(high)):
        for j in range(k):
            x = z[z21 + i + j * ld]
            z[z12 + j + i * ld] = np.conj(x) if work.conjugate else x


@inner
def _invert_columns(work, s, place, low, high):
    """Compute columns [low, high) of Z11, and the rows of its upper triangle that mirror them."""
    if place.k <= MAX_LOOP_COLUMNS:
        invert_small_block(work, place)
        if place.m > 0:
            subtract_product(work, place, np.int64(0), place.k)
    else:
        for j in range(low, high, STRIP):
            width = min(np.int64(STRIP), high - j)
            invert_strip(work, place, j, width)
            if place.m > 0:
                subtract_product(work, place, j, width)
    if not work.two_panels and (work.unit or work.states[s] == GATHERED):
        _mirror_triangle(work, place, low, high)


@inner
def _mirror_triangle(work, place, low, high):
    """Write rows [low, high) of the upper triangle of Z11 from columns of its lower triangle."""
    z, ld = work.arena, place.ld
    for j in range(low, high):
        for i in range(j + 1, place.k):
            x = z[place.inverse + i + j * ld]
            z[place.inverse + j + i * ld] = np.conj(x) if work.conjugate else x


@inner
def interchange(work, s, place):
    """Apply a front's interchanges to columns of its inverse, with one triangle to rows too."""
    z, k, ld, origin = work.arena, place.k, place.ld, place.inverse
    width = ld if work.states[s] == GATHERED else k
    for step in range(k if work.pivots.size > 0 else 0):
        j = k - 1 - step
        p = np.int64(work.pivots[place.first + j])
        if p == j:
            continue
        for i in range(ld):
            x, y = origin + j * ld + i, origin + p * ld + i
            z[x], z[y] = z[y], z[x]
        if not work.two_panels:
            for i in range(width):
                x, y = origin + j + i * ld, origin + p + i * ld
                z[x], z[y] = z[y], z[x]
