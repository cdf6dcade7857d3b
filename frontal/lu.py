"""LU factorization of one front, as tiles that threads may share.

With the front [F11 F12; F21 F22] assembled: P F11 = L11 U11 with rows interchanged inside F11 only,
L21 = F21 U11^-1, U12 = L11^-1 P F12 (kept transposed), and the contribution block is
F22 - L21 U12. A pivot that is tiny after the search is replaced and counted; refinement of
the solution answers for it.
"""

from __future__ import annotations

import numpy as np

from ._jit import inner
from .blas import (
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
    address,
    gemm,
    getrf,
    laswp,
    trsm,
)

BLOCK = 128  # columns of the diagonal block between two updates


@inner
def _swap_rows(a, origin, ld, count, r, s):
    for j in range(count):
        p = origin + j * ld
        a[p + r], a[p + s] = a[p + s], a[p + r]


@inner
def _eliminate(a, origin, ld, rows, width, pivots, tiny):
    """The first columns of a block one by one, tiny pivots replaced; returns how many were."""
    perturbed = 0
    for j in range(width):
        column = origin + j * ld
        p = j
        for i in range(j + 1, rows):
            if abs(a[column + i]) > abs(a[column + p]):
                p = i
        pivots[j] = p + 1
        if p != j:
            _swap_rows(a, origin, ld, width, j, p)
        size = abs(a[column + j])
        if not size >= tiny:  # also NaN, which then fails every later check
            a[column + j] = tiny if size == 0 else a[column + j] / size * tiny
            perturbed += 1
        inverse = 1 / a[column + j]
        for i in range(j + 1, rows):
            a[column + i] *= inverse
        for c in range(j + 1, width):
            out = origin + c * ld
            factor = a[out + j]
            if factor != 0:
                for i in range(j + 1, rows):
                    a[out + i] -= a[column + i] * factor
    return perturbed


@inner
def _has_tiny_pivot(a, origin, ld, width, tiny):
    for j in range(width):  # noqa: SIM110 - Numba has no generators here
        if not abs(a[origin + j * (ld + 1)]) >= tiny:
            return True
    return False


@inner
def _copy_columns(source, origin, ld, rows, width, target, start, target_ld):
    for j in range(width):
        for i in range(rows):
            target[start + j * target_ld + i] = source[origin + j * ld + i]


@inner
def factor_diagonal_block(routines, a, origin, ld, step, k, item, pivots, tiny, scratch):
    """Factor columns [step, step + BLOCK) of the k by k block at `origin`, rows to k.

    Rows are interchanged over all k columns. ``pivots[j]`` is the row, counted from the first
    of the front, that came to row j. LAPACK does it; where it leaves a tiny pivot the columns are
    taken back from `scratch`, of BLOCK * k entries, and eliminated one by one. Returns the
    number of pivots replaced.
    """
    copied, info = scratch
    width = min(BLOCK, k - step)
    rows = k - step
    corner = origin + step * (ld + 1)
    local = pivots[step : step + width]
    begin = address(a) + corner * item
    _copy_columns(a, corner, ld, rows, width, copied, np.int64(0), rows)
    getrf(routines, rows, width, begin, ld, local, info)
    perturbed = 0
    if _has_tiny_pivot(a, corner, ld, width, tiny):
        _copy_columns(copied, np.int64(0), rows, rows, width, a, corner, ld)
        perturbed = _eliminate(a, corner, ld, rows, width, local, tiny)
    laswp(routines, step, begin - step * ld * item, ld, width, local)
    laswp(routines, k - step - width, begin + width * ld * item, ld, width, local)
    for j in range(width):
        local[j] += step - 1
    return perturbed


@inner
def solve_right(routines, panel, ld, step, k, tile, size, item):
    """Tile of U11's rows at `step`, right of the diagonal block."""
    width = min(BLOCK, k - step)
    column = step + width + tile * size
    diagonal = panel + step * (ld + 1) * item
    right = panel + (step + column * ld) * item
    columns = min(size, k - column)
    trsm(routines, LEFT, LOWER, NO_TRANS, UNIT, width, columns, diagonal, ld, right, ld)


@inner
def update_below(routines, panel, ld, step, k, tile, size, item):
    """Tile of F11 behind the block column at `step`, less the product of its L and U."""
    width = min(BLOCK, k - step)
    first = step + width
    order = k - first
    tiles = (order + size - 1) // size
    i, j = (tile % tiles) * size, (tile // tiles) * size
    left = panel + (first + i + step * ld) * item
    right = panel + (step + (first + j) * ld) * item
    out = panel + (first + i + (first + j) * ld) * item
    rows, columns = min(size, order - i), min(size, order - j)
    gemm(
        routines, NO_TRANS, NO_TRANS, rows, columns, width, MINUS, left, ld, right, ld,
        ONE, out, ld,
    )  # fmt: skip


@inner
def solve_panel(routines, a, origin, k, m, tile, size, item, pivots):
    """Tile of L21 (the first half of the tiles) or of U12 transposed (the second half)."""
    tiles = (m + size - 1) // size
    ld = k + m
    panel = address(a) + origin * item
    lower = tile < tiles
    row = (tile if lower else tile - tiles) * size
    rows = min(size, m - row)
    if lower:
        below = panel + (k + row) * item
        trsm(routines, RIGHT, UPPER, NO_TRANS, NON_UNIT, rows, k, panel, ld, below, ld)
        return
    upper = origin + k * ld + row
    for j in range(k):
        p = pivots[j]
        if p != j:
            for i in range(rows):
                x, y = upper + j * m + i, upper + p * m + i
                a[x], a[y] = a[y], a[x]
    right = panel + (k * ld + row) * item
    trsm(routines, RIGHT, LOWER, TRANS, UNIT, rows, k, panel, ld, right, m)


@inner
def update_block(routines, panel, k, m, tile, size, item, beta, block):
    """Tile of the contribution block F22 - L21 U12."""
    tiles = (m + size - 1) // size
    i, j = (tile % tiles) * size, (tile // tiles) * size
    ld = k + m
    left = panel + (k + i) * item
    right = panel + (k * ld + j) * item
    out = block + (i + j * m) * item
    rows, columns = min(size, m - i), min(size, m - j)
    gemm(
        routines, NO_TRANS, TRANS, rows, columns, k, MINUS, left, ld, right, m, beta, out, m
    )  # fmt: skip
