"""Products and triangular solves on batches of matrices: gemm, herk, syrk, trsm.

An operand is a ``MatrixBatch``, or a ``Submatrix`` of one: one window for all its matrices, trimmed
to the size of each. Operands of one call may be of different kinds: one matrix can be an operand
for all matrices of a batch. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..runtime.array import NULL, Array, Value
from ..runtime.device import Device
from . import launch
from .launch.products import Tile, TrsmPlan
from .operands import (
    ALL_ROWS,
    UPLO,
    MatrixBatch,
    Operand,
    SourceBatch,
    Submatrix,
    op_sizes,
    operands,
    require,
    trans_code,
    without_depth,
)
from .structs import INVERSES, TRIANGLE
from .trsm_tiny import Solve, is_tiny, trsm_tiny
from .vendor import Product, vendor_of
from .worklists import ranks, strip_list, work_list

_NO_INVERSES = np.zeros((), INVERSES.dtype)


def gemm(
    trans_a: str,
    trans_b: str,
    alpha: complex,
    a: Operand,
    b: Operand,
    beta: complex,
    c: Operand,
    *,
    tile: int | None = None,
    stacked: bool = False,
) -> None:
    """Compute C = alpha op(A) op(B) + beta C for each matrix; C must not overlap A or B.

    The tile of the kernel, from 0 (tiny) to 4 (large), is chosen by size by default. ``stacked``
    permits cuBLAS for stacks of large matrices, as for a single one.
    """
    a, b, c = operands(a, b, c)
    rows, inner = op_sizes(a, trans_a)
    depth, cols = op_sizes(b, trans_b)
    require("op(A), op(B) and C", (rows, c.rows), (inner, depth), (cols, c.cols))
    device, dtype = c.batch.device, c.batch.dtype
    vendor, numbers = vendor_of(device), launch.tuning("gemm", device.name)
    product = Product((trans_a, trans_b), alpha, a, b, beta, c)
    if vendor and tile is None and vendor.gemm(product, numbers.vendor):
        return
    chosen = _product_tile("gemm", c, 1.0, tile)
    if vendor and stacked and vendor.gemm_of_stacks(product, numbers, chosen):
        return
    if alpha == 0:
        a, b = without_depth(a, trans_a, 1), without_depth(b, trans_b, 0)
        inner = np.zeros_like(inner)
    if beta == 1:
        rows = np.where(inner > 0, rows, 0)
    sides = chosen.rows, chosen.cols
    work, count = work_list(device, rows, cols, inner, sides, None, numbers.group)
    if count == 0:
        return
    constants = {"TRANS_A": trans_code(trans_a, dtype), "TRANS_B": trans_code(trans_b, dtype)}
    scalars = dtype.type(alpha), dtype.type(beta)
    arguments = (scalars[0], *a.arguments, *b.arguments, scalars[1], *c.arguments)
    _launch("gemm", c.batch, chosen, count, (*arguments, *work), constants)


def herk(
    uplo: str,
    trans: str,
    alpha: complex,
    a: Operand,
    beta: complex,
    c: Operand,
    tile: int | None = None,
    conjugate: bool = True,
) -> None:
    """Compute a triangle of C = alpha A Aᴴ + beta C (trans "N") or alpha Aᴴ A + beta C.

    Only the triangle ``uplo`` of C is read and written. alpha and beta are real, unless
    ``conjugate`` is False: then the product is A Aᵀ or Aᵀ A (SYRK). See `gemm` for ``tile``.
    """
    a, c = operands(a, c)
    rows, inner = op_sizes(a, trans)
    require("op(A) and C", (rows, c.rows), (rows, c.cols))
    device, dtype = c.batch.device, c.batch.dtype
    vendor, numbers = vendor_of(device), launch.tuning("herk", device.name)
    plain = dtype.kind != "c" or (not conjugate and trans != "C")
    product = Product((trans, "T" if trans == "N" else "N"), alpha, a, a, beta, c)
    if vendor and tile is None and plain and vendor.syrk(uplo, product, numbers.vendor):
        return
    if alpha == 0:
        a, inner = without_depth(a, trans, 1), np.zeros_like(inner)
    if beta == 1:
        rows = np.where(inner > 0, rows, 0)
    chosen = _product_tile("herk", c, 0.5, tile)
    sides = chosen.rows, chosen.cols
    work, count = work_list(device, rows, rows, inner, sides, uplo, numbers.group)
    if count == 0:
        return
    constants = {
        "TRANS": int(trans != "N"),
        "CONJUGATE": int(conjugate or dtype.kind != "c"),
    }
    scalars = dtype.type(alpha), dtype.type(beta)
    arguments = (scalars[0], *a.arguments, scalars[1], *c.arguments, np.int32(UPLO[uplo]))
    _launch("herk", c.batch, chosen, count, (*arguments, *work), constants)


def syrk(uplo: str, trans: str, alpha: complex, a: Operand, beta: complex, c: Operand) -> None:
    """Compute a triangle of C = alpha A Aᵀ + beta C (trans "N") or alpha Aᵀ A + beta C."""
    herk(uplo, trans, alpha, a, beta, c, conjugate=False)


def trsm(
    side: str,
    uplo: str,
    trans: str,
    diag: str,
    alpha: complex,
    a: Operand,
    b: Operand,
    *,
    width: int | None = None,
    inverses: Inverses | None = None,
    source: SourceBatch | None = None,
) -> None:
    """Solve op(A) X = alpha B (side "L") or X op(A) = alpha B (side "R"); X overwrites B.

    Small A are solved in registers. A larger than a tuned order is processed in steps: block
    substitution for the unknowns of a step, then subtraction of their product from the rest of B.

    Only the triangle ``uplo`` of A is read, without its diagonal if ``diag`` is "U" (ones).

    Parameters
    ----------
    width : {16, 32, 64}, optional
        Right-hand sides of a block; default: chosen by their number.
    inverses : Inverses, optional
        Result of ``trtri`` for A, for more than one solve.
    source : SourceBatch, optional
        B, if `is_tiny` of A; X is written to ``b``.
    """
    a, b = operands(a, b)
    solve, left = Solve(side, uplo, trans, diag), side == "L"
    require("A and B", (a.rows, a.cols), (a.rows, b.rows if left else b.cols))
    if width is None and inverses is None and is_tiny(a):
        return trsm_tiny(solve, alpha, a, b, source)
    device, dtype = b.batch.device, b.batch.dtype
    numbers = launch.tuning("trsm", device.name)
    rights, n = b.cols if left else b.rows, int(a.rows.max(initial=0))
    has_inverses = inverses is not None
    plan = launch.products.trsm(n, rights, left, dtype, device.limits, numbers, width, has_inverses)
    if plan.separate_inverses and not has_inverses and rights.any():
        inverses = trtri(uplo, diag, a)
    forward = left == ((uplo == "L") == (trans == "N"))
    starts = range(0, n, plan.fused)
    if alpha != 1 and not forward and len(starts) > 1 and a.rows.min() < n:
        _scale(alpha, b)  # matrices start at different steps
        alpha = 1.0
    for i in starts if forward else reversed(starts):
        step = plan.fused
        _solve_step(solve, alpha, a.at(i, i, step, step), b, i, plan, inverses)
        remaining, size = (i + step, ALL_ROWS) if forward else (0, i)
        if remaining < n and size > 0:
            e = (
                a.at(remaining, i, size, step)
                if left == (trans == "N")
                else a.at(i, remaining, step, size)
            )
            if left:
                gemm(trans, "N", -1.0, e, b.at(i, 0, step), alpha, b.at(remaining, 0, size))
            else:
                x = b.at(0, i, n=step)
                gemm("N", trans, -1.0, x, e, alpha, b.at(0, remaining, n=size))
        alpha = 1.0
    return None


def _solve_step(
    solve: Solve,
    alpha: complex,
    a: Submatrix,
    b: Submatrix,
    i: int,
    plan: TrsmPlan,
    inverses: Inverses | None,
) -> None:
    """Solve with the diagonal block ``a`` of A, which starts at row i, by one launch."""
    device, dtype, left = b.batch.device, b.batch.dtype, solve.left
    rights = np.where(a.rows > 0, b.cols if left else b.rows, 0).astype(np.int32)
    x = b.at(i, 0, plan.fused) if left else b.at(0, i, n=plan.fused)
    strips, count = strip_list(device, rights, a.rows, plan.width)
    if count == 0:
        return
    codes = UPLO[solve.uplo], trans_code(solve.trans, dtype)
    constants = {"SIDE": int(not left), "UPLO": codes[0], "TRANS": codes[1]}
    constants |= {"WIDTH": plan.width, "GIVEN_INVERSES": int(plan.separate_inverses)}
    inverse_struct = inverses.struct(device, i // TRIANGLE) if inverses else _NO_INVERSES
    operands = (*a.arguments, inverse_struct, *x.arguments)
    scalars = dtype.type(alpha), np.int32(solve.diag == "U")
    arguments = (*scalars, *operands, *strips)
    b.batch.run("trsm", (count,), (plan.threads,), arguments, plan.shared, **constants)


@dataclass(frozen=True)
class Inverses:
    """Inverses of the 32×32 diagonal blocks of triangular matrices, for ``trsm``.

    ``values[w, j, i]`` is entry (i, j) of the inverse for lower triangles, (j, i) for upper ones.
    """

    values: Array  # (blocks, 32, 32)
    starts: Array | None  # index of each matrix's first block, int32
    per_matrix: int  # blocks of each matrix, if `starts` is None

    def struct(self, device: Device, skip: int) -> np.ndarray:
        """Return the struct ``Inverses`` of trsm.cu, for windows that start at block ``skip``."""
        pointers = device.pointer(self.values), device.pointer(self.starts)
        return np.array((*pointers, self.per_matrix, skip), dtype=INVERSES.dtype)


def trtri(uplo: str, diag: str, a: Operand) -> Inverses:
    """Invert the 32×32 diagonal blocks of triangular matrices; A is not modified."""
    (a,) = operands(a)
    device, dtype = a.batch.device, a.batch.dtype
    rows = a.rows.astype(np.int32)
    work, period, count, starts = _triangles(device, rows.tobytes())
    values = device.xp.empty((max(count, 1), TRIANGLE, TRIANGLE), dtype)
    if count:
        about = np.int32(UPLO[uplo]), np.int32(diag == "U")
        arguments = (*about, *a.arguments, values, work, np.int32(period), np.int32(count))
        blocks, threads, shared = launch.products.trtri(count, dtype, device.limits)
        a.batch.run("trtri", (blocks,), (threads,), arguments, shared)
    return Inverses(values, None if starts is None else device.stays(starts), period)


@lru_cache(maxsize=512)
def _triangles(device: Device, rows: bytes) -> tuple[Value, int, int, Array | None]:
    """List the diagonal blocks, matrix by matrix.

    Returns
    -------
    list on the device, its length, number of blocks, first block of each matrix (None if uniform)
    """
    blocks = -(-np.frombuffer(rows, np.int32) // TRIANGLE)
    if not blocks.any():
        return NULL, 0, 0, None
    uniform = bool((blocks == blocks[0]).all())
    used = blocks[:1] if uniform else blocks
    matrix = np.repeat(np.arange(len(used)), used)
    row = TRIANGLE * ranks(used)
    zero = np.zeros_like(row)
    work = device.upload(np.stack([matrix, row, zero, zero], axis=1).astype(np.int32))
    starts = (np.cumsum(blocks) - blocks).astype(np.int32)
    first = None if uniform else device.upload(starts)
    return work, len(work), int(blocks.sum()), first


def _scale(beta: complex, c: Submatrix) -> None:
    """Compute C = beta C, as a product of depth 0."""
    none = c.at(0, 0, n=0)
    gemm("N", "N", 0.0, none, Submatrix(c.batch, c.i, c.j, 0, c.n), beta, c)


# --- launches ------------------------------------------------------------------------------------


def _launch(
    entry: str,
    c: MatrixBatch,
    tile: Tile,
    count: int,
    arguments: tuple[Value, ...],
    constants: dict[str, int],
) -> None:
    """Launch a kernel over ``count`` tiles of C."""
    arguments, grid = (*arguments, np.int32(count)), (-(-count // tile.per_block),)
    constants |= {"TILE": tile.index}
    c.run(entry, grid, (tile.threads,), arguments, tile.shared(c.dtype), **constants)


def _product_tile(routine: str, c: Submatrix, share: float, tile: int | None) -> Tile:
    device, dtype, rows, cols = c.batch.device, c.batch.dtype, c.rows, c.cols
    if tile is not None:
        return launch.products.tiles(dtype)[tile]
    numbers = launch.tuning(routine, device.name)
    entries = int(share * (rows.astype(np.int64) * cols).sum())
    m, n = int(rows.max(initial=0)), int(cols.max(initial=0))
    return launch.products.product_tile(m, n, entries, dtype, device.limits, numbers)
