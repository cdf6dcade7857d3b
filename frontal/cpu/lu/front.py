"""LU factorization of one front, as tiles that threads may share.

With the front [F11 F12; F21 F22] assembled: P F11 = L11 U11 with rows interchanged inside F11 only,
L21 = F21 U11^-1, U12 = L11^-1 P F12 (stored transposed), and the contribution block is
F22 - L21 U12.

Pivots come from F11 but must be stable for the full column: if a pivot is null, or an entry of L21
is larger than `MAX_MULTIPLIER`, the front is assembled again and factorized by `threshold`.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import assemble, block_offset, shape
from ..axpy import MAX_LOOP_PRODUCT, clear, is_small_product, subtract, subtract_product, within
from ..blas import (
    LEFT,
    LOWER,
    MINUS,
    NO_TRANS,
    NON_UNIT,
    ONE,
    RIGHT,
    TRANS,
    UNIT,
    UPPER,
    ZERO,
    address,
    gemm,
    getrf,
    trsm,
)
from ..delays import interchanges_of
from ..pivots import MAX_MULTIPLIER, null_bound, size_of
from ..shared_state import ASSEMBLE, NO_UNSTABLE_PIVOT, PANEL, SOLVE, UPDATE, UPPER_PANEL
from . import threshold as lu_threshold

BLOCK = 128  # columns of the diagonal block between two updates
_MAX_LOOP_COLUMNS = 16  # largest k for which loops compute U12 faster than trsm


@inner
def run_tile(work, kind, s, step, tile, size, rank):
    """Run one tile of a phase of front s; return 0 if L21 is too large.

    Otherwise return `NO_UNSTABLE_PIVOT`.
    """
    if kind == ASSEMBLE:
        assemble(work, s, tile, size, rank)
        return NO_UNSTABLE_PIVOT
    routines, a = work.routines, work.panels
    k, m = shape(work, s)
    item, origin = a.itemsize, work.panel[s]
    panel = address(a) + origin * item
    if kind == SOLVE:
        _solve_right(routines, panel, k + m, step, k, tile, size, item)
    elif kind == UPDATE:
        _update_below(routines, panel, k + m, step, k, tile, size, item)
    elif kind == PANEL:
        return _solve_lower(routines, a, origin, k, m, tile, size, item)
    elif kind == UPPER_PANEL:
        _solve_upper(work, s, tile, size)
    else:
        _update_block(work, s, tile, size, rank)
    return NO_UNSTABLE_PIVOT


@inner
def factor_diagonal_block(work, s, step, info):
    """Factor columns [step, step + BLOCK) of F11 of front s.

    Rows are interchanged over all k columns. ``interchanges_of(work, s)[j]`` is the row, counted
    from the first of the front, exchanged with row j. Return False if a pivot is null or NaN.
    """
    routines, a, null = work.routines, work.panels, null_bound(work.routines)
    k, m = shape(work, s)
    item, ld = a.itemsize, k + m
    width = min(BLOCK, k - step)
    corner = work.panel[s] + step * (ld + 1)
    local = interchanges_of(work, s)[step : step + width]
    begin = address(a) + corner * item
    getrf(routines, k - step, width, begin, ld, local, info)
    for j in range(width):
        if not size_of(a[corner + j * (ld + 1)]) > null:
            return False
    lu_threshold.interchange(routines, begin, ld, step, k, width, width, local, item)
    return True


@inner
def _solve_right(routines, panel, ld, step, k, tile, size, item):
    """Compute a tile of U11 right of the diagonal block at `step`."""
    width = min(BLOCK, k - step)
    column = step + width + tile * size
    diagonal = panel + step * (ld + 1) * item
    right = panel + (step + column * ld) * item
    columns = min(size, k - column)
    trsm(routines, LEFT, LOWER, NO_TRANS, UNIT, width, columns, diagonal, ld, right, ld)


@inner
def _update_below(routines, panel, ld, step, k, tile, size, item):
    """Subtract the product of L and U at block column `step` from a tile of F11 behind it."""
    width = min(BLOCK, k - step)
    first = step + width
    order = k - first
    tiles = (order + size - 1) // size
    i, j = (tile % tiles) * size, (tile // tiles) * size
    l_tile = panel + (first + i + step * ld) * item
    u_tile = panel + (step + (first + j) * ld) * item
    out = panel + (first + i + (first + j) * ld) * item
    rows, columns = min(size, order - i), min(size, order - j)
    gemm(
        routines, NO_TRANS, NO_TRANS, rows, columns, width, MINUS, l_tile, ld, u_tile, ld,
        ONE, out, ld,
    )  # fmt: skip


@inner
def _solve_lower(routines, a, origin, k, m, tile, size, item):
    """Compute a tile of L21; return 0 if an entry exceeds `MAX_MULTIPLIER`.

    Otherwise return `NO_UNSTABLE_PIVOT`.
    """
    ld = k + m
    row = k + tile * size
    rows = min(size, k + m - row)
    panel = address(a) + origin * item
    trsm(routines, RIGHT, UPPER, NO_TRANS, NON_UNIT, rows, k, panel, ld, panel + row * item, ld)
    good = True
    for j in range(k):
        good &= within(a, origin + j * ld + row, rows, MAX_MULTIPLIER)
    return NO_UNSTABLE_PIVOT if good else np.int64(0)


@inner
def _solve_upper(work, s, tile, size):
    """Compute a tile of U12 transposed, and update its rows without a pivot."""
    routines, a, pivots = work.routines, work.panels, interchanges_of(work, s)
    k, m = shape(work, s)
    ld, row, origin, item = k + m, tile * size, work.panel[s], a.itemsize
    done, rows = np.int64(work.delays.eliminated[s]), min(size, m - row)
    upper = origin + k * ld + row
    for j in range(done):
        p = pivots[j]
        if p != j:
            for i in range(rows):
                x, y = upper + j * m + i, upper + p * m + i
                a[x], a[y] = a[y], a[x]
    panel, right = address(a) + origin * item, address(a) + upper * item
    if done <= _MAX_LOOP_COLUMNS:
        for j in range(done):
            for p in range(j + 1, done):
                factor = a[origin + j * ld + p]
                subtract(a, upper + p * m, a, upper + j * m, rows, factor)
    else:
        trsm(routines, RIGHT, LOWER, TRANS, UNIT, rows, done, panel, ld, right, m)
    if done < k:
        gemm(
            routines, NO_TRANS, TRANS, rows, k - done, done, MINUS, right, m, panel + done * item,
            ld, ONE, right + done * m * item, m,
        )  # fmt: skip


@inner
def _update_block(work, s, tile, size, rank):
    """Compute a tile of the contribution block F22 - L21 U12 from the eliminated columns."""
    plan, a, c = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    done = np.int64(work.delays.eliminated[s])
    empty = plan.child_pointer[s + 1] == plan.child_pointer[s]
    tiles, ld, item = (m + size - 1) // size, k + m, a.itemsize
    i, j = (tile % tiles) * size, (tile // tiles) * size
    l_offset, u_offset = work.panel[s] + k + i, work.panel[s] + k * ld + j
    out = block_offset(work, s, rank) + i + j * m
    rows, columns = min(size, m - i), min(size, m - j)
    if is_small_product(m, m, done):
        if empty:
            clear(c, out, m * m)
        subtract_product(c, out, m, m, m, a, l_offset, ld, u_offset, 1, m, done, False)
        return
    panels, target = address(a), address(c) + out * item
    gemm(
        work.routines, NO_TRANS, TRANS, rows, columns, done, MINUS, panels + l_offset * item, ld,
        panels + u_offset * item, m, ZERO if empty else ONE, target, m,
    )  # fmt: skip


def calls_blas(k: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return which fronts of k pivot columns and m update rows call BLAS."""
    few = min(_MAX_LOOP_COLUMNS, lu_threshold.COLUMNS_PER_UPDATE)
    return (m * m * k > MAX_LOOP_PRODUCT) | (k > few) | (k + m > lu_threshold.MAX_THRESHOLD_ROWS)
