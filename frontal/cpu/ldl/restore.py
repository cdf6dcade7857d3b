"""Restore columns of an eliminated block of LDL^H to their previous values, from its factors."""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import shape
from ..blas import NO_TRANS, ONE, ZERO, address, gemm
from .block import times_pivots, transpose_letter

_ROWS = 64  # rows restored at a time; a block has no more columns
_SCRATCH_BLOCK = _ROWS * _ROWS  # entries of each of the four parts of the scratch


@inner
def restore_below(work, s, done, eliminated, width, good, shared, tile, size, rank):
    """Restore the columns of `restore_diagonal` in a tile of the rows below the block."""
    a, scratch = work.panels, work.scratch[rank * work.scratch_size :]
    k, m = shape(work, s)
    ld, row = k + m, done + width + tile * size
    corner = work.panel[s] + done * (ld + 1)
    _scale_rows(work, corner, ld, good, eliminated, scratch)
    for first in range(row, min(row + size, ld), _ROWS):
        rows = min(_ROWS, min(row + size, ld) - first)
        origin = work.panel[s] + done * ld + first
        _multiply(work, address(a) + origin * a.itemsize, ld, rows, good, eliminated, scratch)
        for j in range(eliminated - good):
            for i in range(rows):
                a[origin + (good + j) * ld + i] = scratch[_SCRATCH_BLOCK + j * rows + i]


@inner
def restore_diagonal(work, s, done, eliminated, width, good, rank):
    """Restore the eliminated columns of a diagonal block from `good` on, in their new order."""
    a, scratch = work.panels, work.scratch[rank * work.scratch_size :]
    k, m = shape(work, s)
    ld, rows = k + m, width - good
    corner = work.panel[s] + done * (ld + 1)
    _scale_rows(work, corner, ld, good, eliminated, scratch)
    lower = scratch[3 * _SCRATCH_BLOCK :]
    _explicit_rows(a, corner, ld, good, width, eliminated, lower)
    _multiply(work, address(lower), rows, rows, good, eliminated, scratch)
    for j in range(eliminated - good):
        for i in range(j, rows):
            a[corner + (good + j) * ld + good + i] = scratch[_SCRATCH_BLOCK + j * rows + i]
    for j in range(good, eliminated):
        if done + j + 1 < k:
            a[corner + (j + 1) * ld + j] = 0


@inner
def _explicit_rows(a, corner, ld, first, last, columns, out):
    """Write rows [first, last) of a block's L to `out`, with explicit ones and zeros."""
    rows = last - first
    for j in range(columns):
        for i in range(rows):
            x = a[corner + j * ld + first + i] if first + i > j else 0 * a[corner]
            out[j * rows + i] = 1 if first + i == j else x


@inner
def _scale_rows(work, corner, ld, good, eliminated, scratch):
    """Write L D of rows `good` to `eliminated` of a block to the first part of the scratch."""
    a, lower = work.panels, scratch[2 * _SCRATCH_BLOCK :]
    _explicit_rows(a, corner, ld, good, eliminated, eliminated, lower)
    rows, begin = eliminated - good, np.int64(0)
    times_pivots(work.method, lower, begin, rows, rows, eliminated, a, corner, ld, scratch)


@inner
def _multiply(work, factor, factor_ld, rows, good, eliminated, scratch):
    """Write rows of L times the adjoint of the first part of the scratch to the second part."""
    count, scaled, item = eliminated - good, address(scratch), scratch.itemsize
    gemm(
        work.routines, NO_TRANS, transpose_letter(work), rows, count, eliminated, ONE, factor,
        factor_ld, scaled, count, ZERO, scaled + _SCRATCH_BLOCK * item, rows,
    )  # fmt: skip
