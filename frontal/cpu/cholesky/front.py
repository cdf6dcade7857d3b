"""Cholesky factorization of one front, as tiles that threads may share.

With the front [F11; F21 F22] assembled: L11 = chol(F11), L21 = F21 L11^-H, and the contribution
block is F22 - L21 L21^H. Only lower triangles are read and written.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import assemble, block_offset, shape
from ..axpy import MAX_LOOP_PRODUCT, clear, is_small_product, multiply, subtract, subtract_product
from ..blas import (
    LOWER,
    MINUS,
    NO_TRANS,
    NON_UNIT,
    ONE,
    RIGHT,
    ZERO,
    address,
    gemm,
    herk,
    potrf,
    trsm,
)
from ..shared_state import ASSEMBLE, NO_UNSTABLE_PIVOT, PANEL, SOLVE, UPDATE

BLOCK = 256  # columns of a diagonal block factorized by one potrf
MAX_LOOP_ROWS = 128  # largest k + m of a front whose columns are eliminated one by one
_WINDOW = 16  # columns of such a front between two updates
_STRIP = 24  # columns of one gemm in a product whose upper triangle is not needed


@inner
def triangle(tile):
    """Return the row and the column of a tile of the lower triangle, counted row by row."""
    i = 0
    while (i + 1) * (i + 2) // 2 <= tile:
        i += 1
    return i, tile - i * (i + 1) // 2


@inner
def _update_tile(routines, i, j, size, order, k, a, lda, beta, c, ldc, item):
    """Compute tile (i, j) of C = beta C - A A^H; A is order by k."""
    rows = min(size, order - i * size)
    row_tile = a + i * size * item
    out = c + (i + j * ldc) * size * item
    if i == j:
        herk(routines, rows, k, row_tile, lda, beta, out, ldc)
    else:
        column_tile = a + j * size * item
        adjoint = routines.adjoint
        gemm(
            routines,
            NO_TRANS,
            adjoint,
            rows,
            size,
            k,
            MINUS,
            row_tile,
            lda,
            column_tile,
            lda,
            beta,
            out,
            ldc,
        )


@inner
def run_tile(work, kind, s, step, tile, size, rank):
    """Run one tile of a phase of front s; return `NO_UNSTABLE_PIVOT`."""
    if kind == ASSEMBLE:
        assemble(work, s, tile, size, rank)
        return NO_UNSTABLE_PIVOT
    k, m = shape(work, s)
    item = work.panels.itemsize
    panel = address(work.panels) + work.panel[s] * item
    if kind == SOLVE:
        _solve_below(work.routines, panel, k + m, step, k, tile, size, item)
    elif kind == UPDATE:
        _update_below(work.routines, panel, k + m, step, k, tile, size, item)
    elif kind == PANEL:
        _solve_panel(work.routines, panel, k, m, tile, size, item)
    else:
        block = address(work.arena) + block_offset(work, s, rank) * item
        beta = ONE if work.plan.child_pointer[s + 1] > work.plan.child_pointer[s] else ZERO
        _update_block(work.routines, panel, k, m, tile, size, item, beta, block)
    return NO_UNSTABLE_PIVOT


@inner
def factor_diagonal_block(work, s, step, info):
    """Factor the diagonal block of front s at column `step`.

    Return False if a pivot is not positive; info[0] is then its column in the front, from 1.
    """
    k, m = shape(work, s)
    item, origin, ld = work.panels.itemsize, work.panel[s], k + m
    diagonal = address(work.panels) + (origin + step * (ld + 1)) * item
    potrf(work.routines, min(BLOCK, k - step), diagonal, ld, info)
    _refuse_nan(work.panels, origin, ld, step, k, info)
    info[0] += step * (info[0] != 0)
    return info[0] == 0


@inner
def _refuse_nan(a, origin, ld, step, k, info):
    """Set info[0] if a pivot of the block is NaN, as are all later ones: some LAPACKs do not."""
    corner = origin + step * (ld + 1)
    last = min(BLOCK, k - step) - 1
    if info[0] == 0 and not a[corner + last * (ld + 1)].real > 0:
        j = 0
        while a[corner + j * (ld + 1)].real > 0:
            j += 1
        info[0] = j + 1


@inner
def _solve_below(routines, panel, ld, step, k, tile, size, item):
    """Multiply a tile of F11 below the diagonal block at `step` by the block's inverse adjoint."""
    width = min(BLOCK, k - step)
    row = step + width + tile * size
    diagonal = panel + step * (ld + 1) * item
    below = panel + (row + step * ld) * item
    rows = min(size, k - row)
    trsm(
        routines,
        RIGHT,
        LOWER,
        routines.adjoint,
        NON_UNIT,
        rows,
        width,
        diagonal,
        ld,
        below,
        ld,
    )


@inner
def _update_below(routines, panel, ld, step, k, tile, size, item):
    """Subtract the product of the block column at `step` from a tile of F11 behind it."""
    width = min(BLOCK, k - step)
    first = step + width
    i, j = triangle(tile)
    a = panel + (first + step * ld) * item
    c = panel + first * (ld + 1) * item
    _update_tile(routines, i, j, size, k - first, width, a, ld, ONE, c, ld, item)


@inner
def _solve_panel(routines, panel, k, m, tile, size, item):
    """Compute a tile of L21 = F21 L11^-H."""
    rows = min(size, m - tile * size)
    ld = k + m
    below = panel + (k + tile * size) * item
    trsm(routines, RIGHT, LOWER, routines.adjoint, NON_UNIT, rows, k, panel, ld, below, ld)


@inner
def _update_block(routines, panel, k, m, tile, size, item, beta, block):
    """Compute a tile of the contribution block F22 - L21 L21^H."""
    i, j = triangle(tile)
    _update_tile(routines, i, j, size, m, k, panel + k * item, k + m, beta, block, m, item)


@inner
def factor_small(work, s, rank):
    """Factor a front of at most `MAX_LOOP_ROWS` rows; return 0, or the failed column from 1."""
    a, panel, routines = work.panels, work.panel[s], work.routines
    k, m = shape(work, s)
    ld = k + m
    for first in range(0, k, _WINDOW):
        last = min(first + _WINDOW, k)
        for j in range(first, last):
            if not _eliminate_column(a, panel, ld, j, last):
                return j + 1
        below, out = panel + last + first * ld, panel + last * (ld + 1)
        _subtract(routines, ld - last, k - last, last - first, a, below, ld, ONE, a, out, ld)
    block = block_offset(work, s, rank)
    beta = ONE if work.plan.child_pointer[s + 1] > work.plan.child_pointer[s] else ZERO
    _subtract(routines, m, m, k, a, panel + k, ld, beta, work.arena, block, m)
    return np.int64(0)


@inner
def eliminate_leaf(work, s, info):
    """Eliminate the columns of a leaf; return False for a pivot that is not > 0.

    info[0] is then its column in the front, from 1.
    """
    k, m = shape(work, s)
    for j in range(k):
        if not _eliminate_column(work.panels, work.panel[s], k + m, j, k):
            info[0] = j + 1
            return False
    return True


@inner
def _eliminate_column(a, panel, ld, j, last):
    """Eliminate column j and update those up to `last`; return False if its pivot is not > 0."""
    column = panel + j * ld
    clear(a, column, j)  # products were written above the diagonal
    pivot = a[column + j].real
    if not pivot > 0:
        return False
    root = np.sqrt(pivot)
    a[column + j] = root
    multiply(a, column + j + 1, ld - j - 1, 1 / root)
    for c in range(j + 1, last):
        subtract(a, panel + c * ld + c, a, column + c, ld - c, np.conj(a[column + c]))
    return True


@inner
def _subtract(routines, rows, columns, k, a, a_offset, lda, beta, c, out, ldc):
    """Compute the lower part of C = beta C - A B^H, rows by columns; B is the first rows of A.

    A begins at a[a_offset], C at c[out].
    """
    if is_small_product(rows, columns, k):
        if beta == ZERO:
            clear(c, out, ldc * columns)
        subtract_product(c, out, ldc, rows, columns, a, a_offset, lda, a_offset, 1, lda, k, True)
        return
    item = a.itemsize
    for j in range(0, columns, _STRIP):
        begin, width = address(a) + (a_offset + j) * item, min(_STRIP, columns - j)
        gemm(
            routines, NO_TRANS, routines.adjoint, rows - j, width, k, MINUS, begin, lda, begin, lda,
            beta, address(c) + (out + j * (ldc + 1)) * item, ldc,
        )  # fmt: skip


def calls_blas(k: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return which fronts of k pivot columns and m update rows call BLAS."""
    remainder = np.maximum(k - _WINDOW, 0)
    largest = np.maximum((remainder + m) * remainder * _WINDOW, m * m * k)
    return (largest > MAX_LOOP_PRODUCT) | (k + m > MAX_LOOP_ROWS)
