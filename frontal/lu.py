"""LU factorization of one front, as tiles that threads may share.

With the front [F11 F12; F21 F22] assembled: P F11 = L11 U11 with rows interchanged inside F11 only,
L21 = F21 U11^-1, U12 = L11^-1 P F12 (kept transposed), and the contribution block is
F22 - L21 U12. A pivot that is tiny after the search is replaced and counted; refinement of
the solution answers for it.
"""

from __future__ import annotations

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
    trsm,
)

BLOCK = 128  # columns of the diagonal block between two updates
_INNER = 16  # columns eliminated one by one between two updates of a block
_THRESHOLD = 0.5  # the diagonal entry is kept when it has this share of the column's largest


@inner
def _modulus(value):
    return abs(value.real) + abs(value.imag)


@inner
def _choose_pivot(a, column, j, rows):
    """Row of the pivot of column j: the diagonal if it is large enough, else the largest."""
    best, largest = j, _modulus(a[column + j])
    diagonal = largest
    for i in range(j + 1, rows):
        size = _modulus(a[column + i])
        if size > largest:
            best, largest = i, size
    return j if diagonal >= _THRESHOLD * largest else best


@inner
def _swap_rows(a, origin, ld, first, last, r, s):
    for j in range(first, last):
        p = origin + j * ld
        a[p + r], a[p + s] = a[p + s], a[p + r]


@inner
def _eliminate(a, origin, ld, rows, first, last, width, pivots, tiny):
    """Columns [first, last) one by one; rows swapped over `width` columns. Counts tiny pivots."""
    perturbed = 0
    for j in range(first, last):
        column = origin + j * ld
        p = _choose_pivot(a, column, j, rows)
        pivots[j] = p
        if p != j:
            _swap_rows(a, origin, ld, 0, width, j, p)
        size = abs(a[column + j])
        if not size >= tiny:  # also NaN, which then fails every later check
            a[column + j] = tiny if size == 0 else a[column + j] / size * tiny
            perturbed += 1
        inverse = 1 / a[column + j]
        for i in range(j + 1, rows):
            a[column + i] *= inverse
        for c in range(j + 1, last):
            out = origin + c * ld
            factor = a[out + j]
            if factor != 0:
                for i in range(j + 1, rows):
                    a[out + i] -= a[column + i] * factor
    return perturbed


@inner
def factor_diagonal_block(routines, a, origin, ld, step, k, item, pivots, tiny):
    """Factor columns [step, step + BLOCK) of the k by k block at `origin`, rows to k.

    Rows are interchanged over all k columns. ``pivots[j]`` is the row, counted from the first
    of the front, that came to row j. Returns the number of pivots replaced.
    """
    width = min(BLOCK, k - step)
    rows = k - step
    corner = origin + step * (ld + 1)
    local = pivots[step:]
    base = address(a) + corner * item
    perturbed = 0
    for j in range(0, width, _INNER):
        last = min(j + _INNER, width)
        perturbed += _eliminate(a, corner, ld, rows, j, last, width, local, tiny)
        rest = width - last
        if rest > 0:
            diagonal = base + j * (ld + 1) * item
            right = base + (j + last * ld) * item
            below = base + (last + j * ld) * item
            out = base + last * (ld + 1) * item
            n = last - j
            trsm(routines, LEFT, LOWER, NO_TRANS, UNIT, n, rest, diagonal, ld, right, ld)
            gemm(
                routines, NO_TRANS, NO_TRANS, rows - last, rest, n, MINUS, below, ld, right, ld,
                ONE, out, ld,
            )  # fmt: skip
    for j in range(step, step + width):
        pivots[j] += step
        if pivots[j] != j:
            _swap_rows(a, origin, ld, 0, step, j, pivots[j])
            _swap_rows(a, origin, ld, step + width, k, j, pivots[j])
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
