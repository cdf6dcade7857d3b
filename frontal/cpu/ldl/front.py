"""LDL^H factorization of one front, as tiles that threads may share.

With the lower part of the front [F11; F21 F22] assembled, columns are eliminated in blocks. The
diagonal block is factorized first, with pivots of order 1 and 2 from it; then the rows below,
L21 = F21 L11^-H D^-1, show from which column on an entry of L is larger than `MAX_MULTIPLIER`:
from there on the elimination is undone, the failed column moves behind the others, and the
elimination continues (a posteriori pivoting: Duff, Hogg and Lopez, "A new sparse LDL^T solver using
a posteriori threshold pivoting", SIAM J. Sci. Comput. 42, 2020). Failed columns are tried once more
by `ldl.threshold`. The contribution block is F22 - L21 D L21^H.

D(j, j) is stored on the diagonal of L, whose ones are not stored. D(j + 1, j) is stored above the
diagonal, at (j, j + 1), until the factorization ends; L has a zero at (j + 1, j).
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner, view
from ..assembly import assemble, block_offset, shape
from ..axpy import clear, multiply, subtract, within
from ..blas import LOWER, MINUS, NO_TRANS, ONE, RIGHT, UNIT, ZERO, address, gemm, trsm
from ..cholesky.front import triangle
from ..delays import order_of
from ..pivots import MAX_MULTIPLIER, null_bound
from ..shared_state import ASSEMBLE, NO_UNSTABLE_PIVOT, RESTORE, SOLVE, UPDATE
from .block import (
    conj_of,
    coupled_below,
    divide_two,
    factor_block,
    factor_in_order,
    times_pivots,
    transpose_letter,
)
from .restore import restore_below

BLOCK = 64  # columns factorized at once
_STRIP = 64  # columns of one gemm in a product whose upper triangle is not needed
_NARROW_STRIP, _MAX_NARROW_COLUMNS = 24, 128  # the same in products of at most 128 columns
_DEPTH = 256  # columns of L in one product
_MAX_LOOP_BLOCK = 512  # m m k of a contribution block in loops; a BLAS call takes as long
SCRATCH_ENTRIES = _STRIP * _DEPTH  # entries of `HostWorkspace.scratch` for each thread


@inner
def packed(done, eliminated, width, good, shared):
    """Return the description of a block for a phase, as one number; see `unpacked`."""
    return done + (eliminated << 32) + (width << 40) + (good << 48) + (np.int64(shared) << 56)


@inner
def unpacked(step):
    """Return the columns before a block, its eliminated, all, and good columns, and `shared`."""
    return (
        step & 0xFFFFFFFF, (step >> 32) & 0xFF, (step >> 40) & 0xFF, (step >> 48) & 0xFF, step >> 56
    )  # fmt: skip


@inner
def run_tile(work, kind, s, step, tile, size, rank):
    """Run one tile of a phase of front s; return the number of good columns of its block after
    SOLVE, else `NO_UNSTABLE_PIVOT`."""
    if kind == ASSEMBLE:
        assemble(work, s, tile, size, rank)
    elif kind == SOLVE:
        return _solve_below(work, s, step, tile, size, rank)
    elif kind == RESTORE:
        restore_below(work, s, *unpacked(step), tile, size, rank)
    elif kind == UPDATE:
        _update_below(work, s, step, tile, size, rank)
    else:
        _update_block(work, s, step, tile, size, rank)
    return NO_UNSTABLE_PIVOT


@view
def _turn(work, rank):
    return work.turn[2 * rank * BLOCK : (2 * rank + 1) * BLOCK]


@inner
def factor_diagonal_block(work, s, done, width, rank):
    """Factor the diagonal block of `width` columns behind `done`; return how many are eliminated.

    Eliminated columns come first, in that order; the others follow with their previous values.
    """
    a, method, null = work.panels, work.method, null_bound(work.routines)
    k, m = shape(work, s)
    ld, area, scratch = k + m, width * width, work.scratch[rank * work.scratch_size :]
    corner = work.panel[s] + done * (ld + 1)
    block, original, turn = scratch[:area], scratch[area : 2 * area], _turn(work, rank)
    for j in range(width):
        turn[j] = j
        for i in range(j, width):
            block[j * width + i] = a[corner + j * ld + i]
    eliminated = width
    if not factor_in_order(work, block, width, null, scratch[2 * area :]):
        for j in range(width):
            for i in range(j, width):
                x = a[corner + j * ld + i]
                block[j * width + i] = original[j * width + i] = x
                block[i * width + j] = original[i * width + j] = conj_of(method, x)
        eliminated = factor_block(method, block, width, width, turn, null)
        _permute_before(work, s, done, width, turn, rank)
    for j in range(width):
        for i in range(j, width):
            if j < eliminated:
                a[corner + j * ld + i] = block[j * width + i]
            else:
                a[corner + j * ld + i] = original[turn[j] * width + turn[i]]
        if done + j + 1 < k:
            mark = corner + (j + 1) * ld + j
            a[mark] = block[(j + 1) * width + j] if j < eliminated and j + 1 < width else 0
    return eliminated


@inner
def _permute_before(work, s, done, width, turn, rank):
    """Permute rows of L left of a block, and the names of its columns, as the block."""
    a, before = work.panels, work.scratch[rank * work.scratch_size + 2 * BLOCK * BLOCK :]
    k, m = shape(work, s)
    for j in range(done):
        begin = work.panel[s] + j * (k + m) + done
        for i in range(width):
            before[i] = a[begin + i]
        for i in range(width):
            a[begin + i] = before[turn[i]]
    order, names = order_of(work, s)[done:], work.turn[(2 * rank + 1) * BLOCK :]
    for i in range(width):
        names[i] = order[i]
    for i in range(width):
        order[i] = names[turn[i]]


@inner
def _turns(turn, width):
    moved = False
    for i in range(width):
        moved |= turn[i] != i
    return moved


@inner
def _solve_below(work, s, step, tile, size, rank):
    """Compute a tile of L below a diagonal block; return the number of good columns."""
    done, eliminated, width, _, shared = unpacked(step)
    a = work.panels
    k, m = shape(work, s)
    ld, row = k + m, done + width + tile * size
    rows = min(size, ld - row)
    begin = work.panel[s] + done * ld + row
    corner = work.panel[s] + done * (ld + 1)
    if not work.method.signed:  # else columns keep their order
        turn = _turn(work, 0 if shared else rank)
        if _turns(turn, width):
            scratch = work.scratch[rank * work.scratch_size :]
            _permute_columns(a, begin, ld, rows, width, turn, scratch)
    block, below = address(a) + corner * a.itemsize, address(a) + begin * a.itemsize
    trsm(
        work.routines,
        RIGHT,
        LOWER,
        transpose_letter(work),
        UNIT,
        rows,
        eliminated,
        block,
        ld,
        below,
        ld,
    )
    return _divide(work.method, a, begin, ld, rows, corner, eliminated)


@inner
def _permute_columns(a, begin, ld, rows, width, turn, before):
    for first in range(0, rows, BLOCK):
        count = min(BLOCK, rows - first)
        for j in range(width):
            column = begin + j * ld + first
            for i in range(count):
                before[j * BLOCK + i] = a[column + i]
        for j in range(width):
            column = begin + j * ld + first
            for i in range(count):
                a[column + i] = before[turn[j] * BLOCK + i]


@inner
def _divide(method, a, begin, ld, rows, corner, eliminated):
    """Write X D^-1 over X; return the first column with an entry above `MAX_MULTIPLIER`."""
    good, j = eliminated, np.int64(0)
    while j < eliminated:
        d, b = a[corner + j * (ld + 1)], coupled_below(a, corner, ld, j, eliminated)
        first = begin + j * ld
        if b == 0:
            multiply(a, first, rows, 1 / d)
        else:
            divide_two(method, a, first, first + ld, rows, d, a[corner + (j + 1) * (ld + 1)], b)
        if not (
            within(a, first, rows, MAX_MULTIPLIER)
            and (b == 0 or within(a, first + ld, rows, MAX_MULTIPLIER))
        ):
            good = min(good, j)
        j += 1 if b == 0 else 2
    return good


@inner
def _update_below(work, s, step, tile, size, rank):
    """Subtract the product of a block's good columns from a tile of the columns behind them."""
    done, _, _, good, _ = unpacked(step)
    k, m = shape(work, s)
    ld, first = k + m, done + good
    tiles, j = (ld - first + size - 1) // size, np.int64(0)
    while tile >= tiles - j:
        tile -= tiles - j
        j += 1
    row, column = first + (j + tile) * size, first + j * size
    a = work.panels
    target = address(a) + (work.panel[s] + row + column * ld) * a.itemsize
    rows, columns = min(size, ld - row), min(size, k - column)
    subtract_product(work, s, rank, row, rows, column, columns, done, first, target, ONE, ld)


@inner
def columns_of_pivot(work, s, done, good, eliminated):
    """Return the order of the pivot behind the good columns of a block; 0 if all are good."""
    k, m = shape(work, s)
    if good == eliminated:
        return 0
    mark = work.panel[s] + (done + good + 1) * (k + m) + done + good
    return 2 if good + 1 < eliminated and work.panels[mark] != 0 else 1


@inner
def tiles_below(work, s, first, size):
    """Return the number of tiles of `_update_below`."""
    k, m = shape(work, s)
    rows, columns = (k + m - first + size - 1) // size, (k - first + size - 1) // size
    return columns * rows - columns * (columns - 1) // 2


@inner
def _update_block(work, s, step, tile, size, rank):
    """Compute a tile of the contribution block F22 - L21 D L21^H."""
    k, m = shape(work, s)
    i, j = triangle(tile)
    row, column = i * size, j * size
    item = work.arena.itemsize
    target = address(work.arena) + (block_offset(work, s, rank) + row + column * m) * item
    beta = ONE if work.plan.child_pointer[s + 1] > work.plan.child_pointer[s] else ZERO
    rows, columns = min(size, m - row), min(size, m - column)
    last = np.int64(work.delays.eliminated[s]) if work.method.pivots else k
    if m <= size and m * m * last <= _MAX_LOOP_BLOCK:
        _subtract_in_loops(work, s, last, beta == ZERO, rank)
        return
    row, column, none = row + k, column + k, np.int64(0)
    subtract_product(work, s, rank, row, rows, column, columns, none, last, target, beta, m)


@inner
def _subtract_in_loops(work, s, last, clears, rank):
    """Subtract L21 D L21^H, by `last` columns, from a small contribution block, cleared before."""
    a, arena, scaled = work.panels, work.arena, work.scratch[rank * work.scratch_size :]
    k, m = shape(work, s)
    ld, panel, block = k + m, work.panel[s], block_offset(work, s, rank)
    times_pivots(work.method, a, panel + k, ld, m, last, a, panel, ld, scaled)
    for j in range(m):
        target = block + j * (m + 1)
        if clears:
            clear(arena, target, m - j)
        for p in range(last):
            factor = conj_of(work.method, scaled[p * m + j])
            subtract(arena, target, a, panel + k + j + p * ld, m - j, factor)


@inner
def subtract_product(work, s, rank, row, rows, column, columns, first, last, target, beta, ldc):
    """Compute C = beta C - L_i D L_j^H by columns [first, last) of L; C is at address `target`.

    L_i and L_j are rows of L from `row` and `column` on; if both begin at the same row, only the
    lower triangle of C is needed.
    """
    a, scaled = work.panels, work.scratch[rank * work.scratch_size :]
    k, m = shape(work, s)
    ld, item, panel, p = k + m, a.itemsize, work.panel[s], first
    strips = _NARROW_STRIP if row == column and columns <= _MAX_NARROW_COLUMNS else _STRIP
    while True:
        end = min(p + _DEPTH, last)
        if end < last and a[panel + end * ld + end - 1] != 0:  # a pivot of order 2 is not cut
            end -= 1
        for strip in range(0, columns, strips):
            width = min(strips, columns - strip)
            right = panel + column + strip + p * ld
            times_pivots(
                work.method, a, right, ld, width, end - p, a, panel + p * (ld + 1), ld, scaled
            )
            top = strip if row == column else 0
            row_address = address(a) + (panel + row + top + p * ld) * item
            gemm(
                work.routines, NO_TRANS, transpose_letter(work), rows - top, width, end - p, MINUS,
                row_address, ld, address(scaled), width, beta, target + (top + strip * ldc) * item,
                ldc,
            )  # fmt: skip
        p, beta = end, ONE
        if p >= last:
            break
