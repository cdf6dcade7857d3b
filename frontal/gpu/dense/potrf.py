"""Cholesky of batches of matrices: potrf and potrs.

Small matrices are factored in registers or in shared memory, larger ones by tiles that are tasks of
one launch; ``launch.cholesky.potrf`` chooses the kernel. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..runtime.array import NULL, Array, Value
from ..runtime.device import Device
from . import blas3, launch
from .launch.cholesky import PotrfLaunch, PotrfTuning
from .launch.lu import RowsPlan
from .operands import UPLO, MatrixBatch, SourceBatch, read_and_written
from .worklists import ranks, register_blocks


def potrf(
    a: MatrixBatch,
    info: Array,
    uplo: str = "L",
    variant: str | None = None,
    source: SourceBatch | None = None,
) -> None:
    """Factor Hermitian matrices, A = L·Lᴴ or A = Uᴴ·U; in place, the other triangle is unchanged.

    Parameters
    ----------
    info : (count,) int32 device array
        Set to 0, or to the first column without a positive pivot, counted from 1.
    variant : {"tiny", "shared", "tiles", "tasks"}, optional
        One kernel for all matrices; default: chosen by size.
    source : SourceBatch, optional
        Where the matrices are read from; factors are written to ``a``, with zeros in the other
        triangle. May be ``a`` itself, not turned.
    """
    if variant is not None and variant not in _LISTS:
        raise ValueError(f"variant must be one of {sorted(_LISTS)}, not {variant!r}")
    numbers = launch.tuning("potrf", a.device.name)
    for plan, lists in _plans(a.device, a.n.tobytes(), a.dtype, numbers, variant):
        locators, constants = read_and_written(a, source)
        constants |= {"UPLO": UPLO[uplo], **dict(plan.constants)}
        arguments = (*locators, *_arguments(a, info, plan, lists))
        grid, threads = (lists.blocks,), (plan.threads,)
        a.run(f"potrf_{plan.kind}", grid, threads, arguments, plan.shared, **constants)


def potrs(a: MatrixBatch, b: MatrixBatch, uplo: str = "L") -> None:
    """Solve A·X = B with the factor that ``potrf`` stored in A; X overwrites B."""
    first, second = ("N", "C") if uplo == "L" else ("C", "N")
    blas3.trsm("L", uplo, first, "N", 1.0, a, b)
    blas3.trsm("L", uplo, second, "N", 1.0, a, b)


class _Lists(NamedTuple):
    """Device arrays of a launch, int32, and their sizes."""

    blocks: int
    work: Value = NULL  # matrices of each block of potrf_tiny.cu; else the tiles that are tasks
    order: Value = NULL  # matrix of each block; null for the order of the batch
    tasks: int = 0
    rows: int = 0  # rows of tiles of all matrices


@lru_cache(maxsize=64)
def _plans(
    device: Device, sizes: bytes, dtype: np.dtype, numbers: PotrfTuning, variant: str | None
) -> list[tuple[PotrfLaunch, _Lists]]:
    """Return launches for matrices of these orders, and their lists on the device."""
    n = np.frombuffer(sizes, np.int32)
    if variant is not None:
        orders = {"tiny": (32, 32, 1 << 30), "shared": (0, 1 << 14, 1 << 30)}
        tiny, shared, large = orders.get(variant, (0, 0, 0 if variant == "tasks" else 1 << 30))
        numbers = replace(numbers, tiny=tiny, shared=shared, large=large)
    plans = launch.cholesky.potrf(n, dtype, device.limits, numbers)
    return [(part, _LISTS[part.kind](device, n, part, numbers)) for part in plans]


# --- matrices in registers -----------------------------------------------------------------------


def _tiny_lists(device: Device, n: np.ndarray, plan: PotrfLaunch, _: PotrfTuning) -> _Lists:
    sizes = n[plan.matrices]
    if len(plan.matrices) == len(n) and sizes[0] == sizes[-1]:
        return _Lists(-(-len(sizes) // RowsPlan.for_side(int(sizes[0])).per_block))
    work = register_blocks(sizes)
    table = device.upload(np.concatenate([plan.matrices, work.ravel()]).astype(np.int32))
    return _Lists(len(work), table[len(sizes) :], table[: len(sizes)])


# --- matrices in shared memory -------------------------------------------------------------------


def _shared_lists(device: Device, n: np.ndarray, plan: PotrfLaunch, _: PotrfTuning) -> _Lists:
    uniform = len(plan.matrices) == len(n) and n.min() == n.max()
    order = NULL if uniform else device.upload(plan.matrices.astype(np.int32))
    return _Lists(len(plan.matrices), order=order)


# --- tiles that are tasks ------------------------------------------------------------------------


def _task_lists(device: Device, n: np.ndarray, plan: PotrfLaunch, numbers: PotrfTuning) -> _Lists:
    resident = plan.residents * device.limits.multiprocessors
    tasks, rows = task_list(n[plan.matrices], plan.tile, numbers.group * resident)
    tasks[:, 0] = plan.matrices[tasks[:, 0]]
    return _Lists(min(len(tasks), resident), device.upload(tasks), tasks=len(tasks), rows=rows)


def task_list(sizes: np.ndarray, tile: int, group: int) -> tuple[np.ndarray, int]:
    """Order the tiles of lower triangles so that each follows the tiles it depends on.

    Matrices are processed in groups of about ``group`` block rows: enough to keep all blocks busy,
    and few enough that a group's matrices are still in the cache for their next columns. Within a
    group the order is by block column, then diagonal tiles first, then by matrix.

    Returns
    -------
    tasks : (t, 4) int32 array
        Matrix, row and column of the tile, first block row of the matrix among those of all.
    rows : int
        Block rows of all matrices.
    """
    down = -(-sizes.astype(np.int64) // tile)
    base = np.cumsum(down) - down
    count = down * (down + 1) // 2
    matrix = np.repeat(np.arange(len(sizes)), count)
    within = ranks(count)
    row = ((np.sqrt(8 * within + 1) - 1) // 2).astype(np.int64)
    column = within - row * (row + 1) // 2
    order = np.lexsort((row, matrix, row != column, column, base[matrix] // group))
    tasks = np.column_stack((matrix, row, column, base[matrix]))[order].astype(np.int32)
    return np.ascontiguousarray(tasks), int(down.sum())


# --- launches ------------------------------------------------------------------------------------


def _arguments(a: MatrixBatch, info: Array, plan: PotrfLaunch, lists: _Lists) -> tuple[Value, ...]:
    """Return the arguments of potrf_<kind>.cu after the locators."""
    if plan.kind == "tiny":
        return lists.order, lists.work, np.int32(a.count), info
    if plan.kind == "shared":
        return lists.order, info
    xp, rows = a.device.xp, lists.rows
    state, inverses = xp.zeros(rows + 1, np.int32), xp.empty(rows * plan.inverse_entries, a.dtype)
    arguments = (lists.work, np.int32(lists.tasks), state, inverses, info)
    if plan.kind == "tasks":
        return arguments
    outside = lists.blocks * plan.outside
    return (*arguments, xp.empty(outside, a.dtype) if outside else NULL)


_LISTS = {"tiny": _tiny_lists, "shared": _shared_lists, "tiles": _task_lists, "tasks": _task_lists}
