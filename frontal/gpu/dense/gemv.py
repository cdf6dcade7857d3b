"""Matrix-vector products of a batch: y = alpha op(A) x + beta y.

The variants are those of Dong, Haidar, Tomov, Dongarra, "Accelerating the SVD bi-diagonalization of
a batch of small matrices using GPUs" (J. Comput. Sci. 26, 2018): one team of threads a matrix
("big-tile"), or several tiles a matrix ("classic"), with columns read from aligned addresses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..runtime.array import NULL, Value
from ..runtime.device import Device
from . import launch
from .operands import MatrixBatch
from .worklists import ranks


@dataclass(frozen=True)
class _TileList:
    """Tiles on the device: a list of ``period`` tiles for ``count`` of them, and sums over tiles.

    ``items`` is null if each matrix is one tile.
    """

    items: Value
    period: int
    count: int
    sums: Value = NULL  # if tiles split sums
    sum_count: int = 0
    partials: int = 0  # entries of workspace


def gemv(
    trans: str,
    alpha: complex,
    a: MatrixBatch,
    x: MatrixBatch,
    beta: complex,
    y: MatrixBatch,
    variant: str | None = None,
) -> None:
    """Compute y = alpha op(A) x + beta y for every matrix of a batch.

    Parameters
    ----------
    x, y : MatrixBatch of matrices of one column, with the same wrapper
        With n and m rows; m and n if op transposes. y must not overlap a or x. y is not read
        for beta = 0, and a is not read for alpha = 0.
    variant : {"big-tile", "classic"}, optional
        One team of threads a matrix, or several tiles a matrix; default: chosen by size.
    """
    _check(trans, a, x, y)
    plan = _plan(trans, a, variant)
    work = _work(a.device, trans == "N", a.wrapper, *_sizes(a), plan)
    if work.count == 0:
        return
    scalars = a.dtype.type(alpha), a.dtype.type(beta)
    partial = a.device.xp.empty(work.partials, a.dtype) if work.partials else NULL
    arguments: list[Value] = [
        *(scalars[0], a.locator, x.locator, scalars[1], y.locator),
        *(np.int32(plan.tile_m), np.int32(plan.tile_n)),
        *(work.items, np.int32(work.period), np.int32(work.count), partial),
    ]
    if trans != "N":
        arguments.append(np.int32(trans == "C"))
    entry, block = "gemv_n" if trans == "N" else "gemv_t", (plan.x, plan.y, plan.z)
    grid, unroll = (-(-work.count // plan.z),), plan.unroll
    a.run(entry, grid, block, arguments, plan.shared, "gemv.cu", UNROLL=unroll)
    if work.partials:
        tile = np.int32(plan.tile_m if trans == "N" else plan.tile_n)
        arguments = [*scalars, y.locator, tile, work.sums, partial]
        grid, block = (work.sum_count,), (plan.sum_threads,)
        a.run("gemv_sum", grid, block, arguments, 0, "gemv.cu", UNROLL=unroll)


def _check(trans: str, a: MatrixBatch, x: MatrixBatch, y: MatrixBatch) -> None:
    if trans not in ("N", "T", "C"):
        raise ValueError(f"trans must be 'N', 'T' or 'C', not {trans!r}")
    m, n = (a.m, a.n) if trans == "N" else (a.n, a.m)
    for name, vector, rows in (("x", x, n), ("y", y, m)):
        if vector.wrapper != a.wrapper or vector.dtype != a.dtype:
            raise ValueError(
                f"{name} is {vector.wrapper} {vector.dtype}, the matrices are {a.wrapper} {a.dtype}"
            )
        if not np.array_equal(vector.m, rows) or not (vector.n == 1).all():
            raise ValueError(f"{name} must have one column, and as many rows as op(A) requires")


def _sizes(a: MatrixBatch) -> tuple[bytes, bytes, int]:
    """Return the sizes that identify a work list; one pair for matrices of one size."""
    uniform = a.wrapper != "vbatched"
    return (a.m[:1] if uniform else a.m).tobytes(), (a.n[:1] if uniform else a.n).tobytes(), a.count


def _plan(trans: str, a: MatrixBatch, variant: str | None) -> launch.vectors.GemvPlan:
    """Choose the launch by the mean sizes, weighted by the number of entries."""
    m, n = a.m.astype(np.int64), a.n.astype(np.int64)
    entries = max(int(m @ n), 1)
    rows, columns = (int(m * m @ n) // entries, int(m @ (n * n)) // entries)
    numbers = launch.tuning("gemv", a.device.name)
    limits, item = a.device.limits, a.dtype.itemsize
    return launch.vectors.gemv(trans != "N", rows, columns, item, a.count, limits, numbers, variant)


@lru_cache(maxsize=256)
def _work(
    device: Device,
    by_rows: bool,
    wrapper: str,
    m: bytes,
    n: bytes,
    count: int,
    plan: launch.vectors.GemvPlan,
) -> _TileList:
    """Make the work lists: largest matrices first, the parts of a sum consecutive."""
    rows, columns = (np.frombuffer(size, np.int32).astype(np.int64) for size in (m, n))
    outputs, terms = (rows, columns) if by_rows else (columns, rows)
    tile, sum_tile = (plan.tile_m, plan.tile_n) if by_rows else (plan.tile_n, plan.tile_m)
    tiles, splits = -(-outputs // tile), np.maximum(-(-terms // sum_tile), 1)
    split = bool((splits > 1).any())
    if wrapper != "vbatched" and split:  # sums need an item for each matrix
        tiles, splits, rows = (np.repeat(v, count) for v in (tiles, splits, rows))
        columns = np.repeat(columns, count)
    order = np.argsort(-rows * columns, kind="stable")
    matrix = np.repeat(order, tiles[order])
    first = tile * ranks(tiles[order])
    repeats = splits[matrix]
    items = np.zeros((int(repeats.sum()), 4), np.int32)
    items[:, 0], items[:, 1 if by_rows else 2] = (
        np.repeat(matrix, repeats),
        np.repeat(first, repeats),
    )
    items[:, 2 if by_rows else 1] = sum_tile * ranks(repeats)
    total = len(items) if split or wrapper == "vbatched" else len(items) * count
    if wrapper != "vbatched" and total == count:
        return _TileList(NULL, 1, count)
    if not split or not total:
        return _TileList(device.upload(items), max(len(items), 1), total)
    start = np.cumsum(repeats) - repeats
    sums = np.stack([matrix, first, start, repeats], axis=1).astype(np.int32)
    return _TileList(
        device.upload(items), total, total, device.upload(sums), len(sums), total * tile
    )
