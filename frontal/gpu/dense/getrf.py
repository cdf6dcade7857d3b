"""LU with partial pivoting of batches of matrices, their inverses, and solves with the factors.

Matrices up to 32×32 are factored in registers. Those that fit in shared memory are factored by one
block each, and so, left-looking, are those of which a panel fits. Larger ones are factored by
panels in many launches. Pivots and ``info`` are LAPACK's, counted from 1; a pivot whose reciprocal
is not a normal number is a failure. Nothing here waits for the device.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..runtime.array import NULL, Array, Value
from ..runtime.device import Device
from ..runtime.limits import Limits
from . import blas3, launch
from .getrf_panels import LuFactorization, by_panels
from .getrs import interchange, solve_in_registers
from .launch.lu import GetrfTuning, RowsPlan
from .operands import (
    MatrixBatch,
    SourceBatch,
    operands,
    order_list,
    read_and_written,
    subset,
    upload_table,
)
from .vendor import vendor_of
from .worklists import register_blocks
from .workspace import workspace


def getrf(
    a: MatrixBatch,
    pivots: MatrixBatch,
    info: Array,
    variant: str | None = None,
    tiny: float = 0.0,
    source: SourceBatch | None = None,
    first: int = 1,
) -> None:
    """Factor P·A = L·U in place, for matrices of any shapes.

    Parameters
    ----------
    pivots : MatrixBatch of int32
        A column of min(m, n) entries for each matrix: row i was interchanged with row pivots[i].
    info : (count,) int32 device array
        Set to 0, or to the first column without a pivot, counted from 1; with `tiny`, to the number
        of perturbed pivots.
    variant : {"tiny", "block", "left", "panel"}, optional
        In registers, in shared memory, by panels in one launch or in many; default: chosen by size.
        Matrices too large for the variant are factored by "panel".
    tiny : float
        Pivots with abs(re) + abs(im) below it are perturbed to this size; 0 perturbs none.
    source : SourceBatch, optional
        Where the matrices are read from, if ``reads_elsewhere``; factors are written to ``a``.
    first : {1, 0}
        Number of the first row in interchanges: 1 in LAPACK, 0 in SciPy.
    """
    a, pivots = (part.batch for part in operands(a, pivots))
    numbers = launch.tuning("getrf", a.device.name)
    vendor = vendor_of(a.device) if variant is None and not tiny and source is None else None
    if vendor and vendor.getrf(a, pivots, info, numbers.vendor):
        if not first:
            pivot_array = pivots.keep[0]
            pivot_array -= 1
        return a.run("getrf_info", (1,), (launch.lu.getrf_info(),), (a.locator, info))
    lu, sizes = (
        LuFactorization(a, pivots, info, tiny, first, source),
        (a.m.tobytes(), a.n.tobytes()),
    )
    for kind, members in _kinds(*sizes, a.dtype, a.device.limits, numbers, variant):
        _FACTOR[kind](lu, members)
    return None


def reads_elsewhere(a: MatrixBatch) -> bool:
    """Return whether `getrf` can read such matrices, or their transposes, from a `source`."""
    side, numbers = max(a.max_m, a.max_n), launch.tuning("getrf", a.device.name)
    if a.wrapper == "native" and side >= numbers.vendor:
        return False
    return launch.lu.getrf_left(side, a.dtype, a.device.limits, numbers) is not None


def inverse(
    a: MatrixBatch, info: Array, variant: str | None = None, source: SourceBatch | None = None
) -> None:
    """Invert square matrices in place; a singular matrix is destroyed.

    Parameters
    ----------
    info : (count,) int32 device array
        Set to 0, or to the first column without a pivot, counted from 1.
    variant : {"tiny", "solve"}, optional
        In registers up to 32×32, or by solving for the identity; default: chosen by size.
    source : SourceBatch, optional
        Where the matrices are read from, if ``inverts_elsewhere``; inverses are written to ``a``.
    """
    small = a.n <= (-1 if variant == "solve" else RowsPlan.max_side)
    if small.any():
        members = np.flatnonzero(small)
        members = members[np.argsort(-a.n[members], kind="stable")]
        locators, into = read_and_written(a, source)
        _in_registers("inverse", a, members, locators, (info,), into)
    if small.all():
        return
    if source is not None:
        return _invert_elsewhere(a, info, source)
    sizes = np.where(small, 0, a.n).astype(np.int32)
    remaining = a if not small.any() else subset(a, np.flatnonzero(~small))
    remaining_info = info if not small.any() else a.device.xp.zeros(remaining.count, np.int32)
    _invert_by_solving(remaining, remaining_info)
    if remaining_info is not info:
        upload_table(a.device, remaining_info, np.flatnonzero(sizes), info)
    return None


def inverts_elsewhere(a: MatrixBatch) -> bool:
    """Return whether `inverse` can read such matrices, or their transposes, from a `source`."""
    if a.max_n <= RowsPlan.max_side:
        return True
    return a.wrapper == "batched" and reads_elsewhere(a)


def _invert_elsewhere(a: MatrixBatch, info: Array, source: SourceBatch) -> None:
    """Factor in a workspace, then solve for the identity in the memory of the inverses."""
    grid, threads = launch.lu.inverse_copies(a.count, a.max_n)
    pivots, factors = workspace(a, a.m, 1, np.int32), workspace(a, a.m, a.n)
    getrf(factors, pivots, info, source=source)
    a.run("inverse_identity", grid, (threads,), (a.locator,), 0, "inverse.cu")
    getrs(factors, pivots, a)


def _invert_by_solving(a: MatrixBatch, info: Array) -> None:
    grid, threads = launch.lu.inverse_copies(a.count, a.max_n)
    pivots, x = workspace(a, a.m, 1, np.int32), workspace(a, a.m, a.n)
    getrf(a, pivots, info)
    a.run("inverse_identity", grid, (threads,), (x.locator,), 0, "inverse.cu")
    getrs(a, pivots, x)
    a.run("inverse_copy", grid, (threads,), (x.locator, a.locator, info), 0, "inverse.cu")


def getrs(
    a: MatrixBatch,
    pivots: MatrixBatch,
    b: MatrixBatch,
    trans: str = "N",
    variant: str | None = None,
    first: int = 1,
) -> None:
    """Solve op(A)·X = B with the factors of ``getrf``; X overwrites B.

    Parameters
    ----------
    a, pivots : MatrixBatch
        Results of ``getrf`` for square matrices.
    variant : {"tiny", "blocked"}, optional
        One launch, in registers, up to 32×32; or triangular solves. Default: chosen by size.
    first : {1, 0}
        Number of the first row in interchanges, as passed to ``getrf``.
    """
    a, pivots, b = (part.batch for part in operands(a, pivots, b))
    if variant != "blocked" and a.max_n <= RowsPlan.max_side:
        solve_in_registers(a, pivots, b, trans, first)
    elif trans == "N":
        interchange(pivots, b, False, first)
        blas3.trsm("L", "L", "N", "U", 1.0, a, b)
        blas3.trsm("L", "U", "N", "N", 1.0, a, b)
    else:
        blas3.trsm("L", "U", trans, "N", 1.0, a, b)
        blas3.trsm("L", "L", trans, "U", 1.0, a, b)
        interchange(pivots, b, True, first)


# --- kernels by size of the matrices -------------------------------------------------------------


@lru_cache(maxsize=256)
def _kinds(
    rows: bytes,
    cols: bytes,
    dtype: np.dtype,
    limits: Limits,
    numbers: GetrfTuning,
    variant: str | None,
) -> list[tuple[str, np.ndarray]]:
    """Group matrices by their kernel; return the indices of each group, most work first.

    Groups in shared memory round sizes up to multiples of 32. Left-looking groups share the number
    of matrices a multiprocessor holds; panel groups are within a factor of two in rows. So no
    matrix reserves the shared memory of a much larger one.
    """
    m, n = np.frombuffer(rows, np.int32), np.frombuffer(cols, np.int32)
    steps = np.stack([-(-m // 32), -(-n // 32)], axis=1)
    shapes, shape_index = np.unique(steps, axis=0, return_inverse=True)
    groups: dict[tuple[str, object], list[np.ndarray]] = {}
    for k, shape in enumerate((32 * shapes).tolist()):
        group = _group(shape[0], shape[1], dtype, limits, numbers, variant)
        groups.setdefault(group, []).append(np.flatnonzero(shape_index.ravel() == k))
    work = np.minimum(m, n).astype(np.int64) ** 2 * np.maximum(m, n)
    kinds = []
    for (kind, _), indices in groups.items():
        members = np.sort(np.concatenate(indices))
        kinds.append((kind, members[np.argsort(-work[members], kind="stable")]))
    return kinds


def _group(
    m: int, n: int, dtype: np.dtype, limits: Limits, numbers: GetrfTuning, variant: str | None
) -> tuple[str, object]:
    """Return the kernel for matrices of at most m×n, and a key shared by matrices of one launch."""
    tiny = RowsPlan.max_side if variant == "tiny" else numbers.tiny if variant is None else 0
    if max(m, n) <= tiny or min(m, n) == 0:
        return "tiny", 0
    if variant in (None, "block") and launch.lu.getrf_block(m, n, dtype, limits, numbers):
        return "block", (m, n)
    if variant in (None, "left") and (plan := launch.lu.getrf_left(m, dtype, limits, numbers)):
        return "left", plan.residents
    return "panel", (m - 1).bit_length()


# --- in registers --------------------------------------------------------------------------------


def _tiny(lu: LuFactorization, members: np.ndarray) -> None:
    _in_registers("getrf_tiny", lu.a, members, lu.locators, lu.results, lu.constants)


def _in_registers(
    name: str,
    a: MatrixBatch,
    members: np.ndarray,
    locators: tuple[np.ndarray, ...],
    results: tuple[Value, ...],
    constants: dict[str, int],
) -> None:
    """Launch a kernel for matrices up to 32×32; each block takes matrices of one width."""
    side = np.where(np.minimum(a.m, a.n) > 0, np.maximum(a.m, a.n), 0)[members]
    widest = RowsPlan.for_side(int(side.max(initial=0)))
    if a.wrapper == "vbatched":
        members = members[np.argsort(-side, kind="stable")]
        work, blocks, shared = _register_blocks(a.device, np.sort(side)[::-1].tobytes(), a.dtype)
    else:
        per_block = widest.per_block
        work, blocks = NULL, -(-a.count // per_block)
        shared = widest.shared(a.dtype, per_block)
    if blocks:
        arguments = (*locators, order_list(a, members), work, np.int32(len(members)), *results)
        constants = {"WIDTH": widest.width, **constants}
        a.run(name, (blocks,), (widest.threads,), arguments, shared, **constants)


@lru_cache(maxsize=256)
def _register_blocks(device: Device, sides: bytes, dtype: np.dtype) -> tuple[Value, int, int]:
    """Return `register_blocks` on the device, their number and bytes of shared memory."""
    work = register_blocks(np.frombuffer(sides, np.int32))
    plans = map(RowsPlan, set(work[:, 0].tolist()))
    shared = max((plan.shared(dtype, plan.per_block) for plan in plans), default=0)
    return (device.upload(work) if len(work) else NULL), len(work), shared


# --- in shared memory ----------------------------------------------------------------------------


def _block(lu: LuFactorization, members: np.ndarray) -> None:
    a, device = lu.a, lu.a.device
    m, n = int(a.m[members].max()), int(a.n[members].max())
    plan = launch.lu.getrf_block(m, n, a.dtype, device.limits, launch.tuning("getrf", device.name))
    assert plan is not None
    sizes = np.int32(plan.ld), np.int32(n)
    arguments = (*lu.locators, order_list(a, members), *sizes, *lu.results)
    grid, threads = (len(members),), (plan.threads,)
    a.run("getrf_block", grid, threads, arguments, plan.shared, **lu.constants)


def _left_looking(lu: LuFactorization, members: np.ndarray) -> None:
    a, device, m = lu.a, lu.a.device, int(lu.a.m[members].max())
    plan = launch.lu.getrf_left(m, a.dtype, device.limits, launch.tuning("getrf", device.name))
    assert plan is not None
    panels = -(-int(np.minimum(a.m, a.n)[members].max()) // plan.columns)
    inverses = device.xp.empty((len(members), panels, 32, 32), a.dtype)
    sizes = np.int32(plan.ld), np.int32(panels)
    arguments = (*lu.locators, order_list(a, members), *sizes, inverses, *lu.results)
    grid, threads = (len(members),), (plan.threads,)
    a.run("getrf_left", grid, threads, arguments, plan.shared, **lu.constants)


_FACTOR = {"tiny": _tiny, "block": _block, "left": _left_looking, "panel": by_panels}
