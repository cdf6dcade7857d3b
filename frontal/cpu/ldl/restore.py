"""Columns of a block of LDL^H as they were before it was eliminated, from what came of it."""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import shape
from ..blas import NO_TRANS, ONE, ZERO, address, gemm
from .block import other_of, times_pivots

_ROWS = 64  # at a time, and columns of a block
_PART = _ROWS * _ROWS  # of the scratch


@inner
def restore_below(work, s, done, found, width, good, shared, tile, size, rank):
    """Tile of rows below a block: its columns from `good` on, as `restore_diagonal` has them."""
    a, room = work.panels, work.scratch[rank * work.room :]
    k, m = shape(work, s)
    ld, row = k + m, done + width + tile * size
    corner = work.panel[s] + done * (ld + 1)
    _scale_rows(work, corner, ld, good, found, room)
    for first in range(row, min(row + size, ld), _ROWS):
        rows = min(_ROWS, min(row + size, ld) - first)
        left = work.panel[s] + done * ld + first
        _multiply(work, address(a) + left * a.itemsize, ld, rows, good, found, room)
        for j in range(found - good):
            for i in range(rows):
                a[left + (good + j) * ld + i] = room[_PART + j * rows + i]


@inner
def restore_diagonal(work, s, done, found, width, good, rank):
    """What the block was, as it is permuted now, from column `good` of its eliminated ones on."""
    a, room = work.panels, work.scratch[rank * work.room :]
    k, m = shape(work, s)
    ld, rows = k + m, width - good
    corner = work.panel[s] + done * (ld + 1)
    _scale_rows(work, corner, ld, good, found, room)
    lower = room[3 * _PART :]
    _explicit_rows(a, corner, ld, good, width, found, lower)
    _multiply(work, address(lower), rows, rows, good, found, room)
    for j in range(found - good):
        for i in range(j, rows):
            a[corner + (good + j) * ld + good + i] = room[_PART + j * rows + i]
    for j in range(good, found):
        if done + j + 1 < k:
            a[corner + (j + 1) * ld + j] = 0


@inner
def _explicit_rows(a, corner, ld, first, last, columns, out):
    """Rows [first, last) of L of a block with its ones and zeros."""
    rows = last - first
    for j in range(columns):
        for i in range(rows):
            x = a[corner + j * ld + first + i] if first + i > j else 0 * a[corner]
            out[j * rows + i] = 1 if first + i == j else x


@inner
def _scale_rows(work, corner, ld, good, found, room):
    """L D of rows `good` to `found` of a block, into the first part of the scratch."""
    a, lower = work.panels, room[2 * _PART :]
    _explicit_rows(a, corner, ld, good, found, found, lower)
    rows, begin = found - good, np.int64(0)
    times_pivots(work.method, lower, begin, rows, rows, found, a, corner, ld, room)


@inner
def _multiply(work, left, left_ld, rows, good, found, room):
    """Rows of L times the adjoint of that, into the second part."""
    count, scaled, item = found - good, address(room), room.itemsize
    gemm(
        work.routines, NO_TRANS, other_of(work), rows, count, found, ONE, left, left_ld, scaled,
        count, ZERO, scaled + _PART * item, rows,
    )  # fmt: skip
