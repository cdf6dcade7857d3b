"""Lists of the tiles that the blocks of a launch compute, on the device."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..runtime.array import NULL, Array, Value
from ..runtime.device import Device
from .launch.lu import RowsPlan

Work = tuple[Value, np.int32]  # arguments of a kernel: a list on the device, and its length


def work_list(
    device: Device,
    rows: np.ndarray,
    cols: np.ndarray,
    depth: np.ndarray,
    tile: tuple[int, int],
    uplo: str | None,
    group: int,
) -> tuple[Work, int]:
    """List the tiles of all matrices, and count them.

    Matrices of one size share the list of one matrix, which kernels repeat. Lists are cached on the
    device by sizes.
    """
    if len(rows) == 0:
        return (NULL, np.int32(0)), 0
    uniform = all(x[0] == x.min() == x.max() for x in (rows, cols))
    r, c, d = (x[: 1 if uniform else None].astype(np.int32).tobytes() for x in (rows, cols, depth))
    work, period = _uploaded_items(device, r, c, d, tile, uplo, group)
    return (work, np.int32(period)), period * (len(rows) if uniform else 1)


def strip_list(
    device: Device, columns: np.ndarray, rows: np.ndarray, width: int
) -> tuple[Work, int]:
    """List strips of ``width`` columns of all matrices, and count them; see `work_list`."""
    return work_list(device, columns, np.ones_like(columns), rows, (width, 1), None, 1 << 30)


def ranks(counts: np.ndarray) -> np.ndarray:
    """Return 0 … c-1 for each count c, concatenated."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def register_blocks(sides: np.ndarray) -> np.ndarray:
    """List the blocks of a kernel for matrices in registers, whose sides descend.

    Returns
    -------
    blocks : int32 array (blocks, 3)
        Width of the matrices, first matrix, number of matrices.

    Examples
    --------
    >>> register_blocks(np.array([30, 20, 20, 19, 18, 5]))
    array([[32,  0,  1],
           [24,  1,  4],
           [ 8,  5,  1]], dtype=int32)
    """
    widths = np.maximum(-(-sides // 8) * 8, 8)
    blocks = []
    for width in (32, 24, 16, 8):
        first, last = np.searchsorted(-widths, [-width, -width + 1])
        per_block = RowsPlan(width).per_block
        blocks += [(width, k, min(per_block, last - k)) for k in range(first, last, per_block)]
    return np.array(blocks, np.int32).reshape(-1, 3)


@lru_cache(maxsize=512)
def _uploaded_items(
    device: Device,
    rows: bytes,
    cols: bytes,
    depth: bytes,
    tile: tuple[int, int],
    uplo: str | None,
    group: int,
) -> tuple[Value, int]:
    r, c, d = (np.frombuffer(x, np.int32).astype(np.int64) for x in (rows, cols, depth))
    items = work_items(r, c, d, tile, uplo, group)
    return (device.upload(items) if len(items) else NULL), len(items)


def work_items(
    rows: np.ndarray,
    cols: np.ndarray,
    depth: np.ndarray,
    tile: tuple[int, int],
    uplo: str | None = None,
    group: int = 1024,
) -> np.ndarray:
    """List the tiles of matrices, most work first.

    Parameters
    ----------
    rows, cols, depth : int arrays (count,)
        Sizes of C, and length of the sums.
    tile : (int, int)
        Rows and columns of a tile.
    uplo : {"L", "U"}, optional
        Omit tiles that lie entirely in the other triangle.
    group : int
        Tiles of the same ``group`` rows and columns are consecutive, for the second-level cache.

    Returns
    -------
    items : int32 array (tiles, 4)
        Matrix, first row, first column, 0.
    """
    down, across = -(-rows // tile[0]), -(-cols // tile[1])
    tiles = down * across
    order = np.argsort(-(rows * cols * depth), kind="stable")
    matrix = np.repeat(order, tiles[order])
    local = ranks(tiles[order])
    i, j = local % down[matrix] * tile[0], local // down[matrix] * tile[1]
    keep = np.ones(len(matrix), bool)
    if uplo:
        keep = i + tile[0] > j if uplo == "L" else i < j + tile[1]
    items = np.stack([matrix, i, j, np.zeros_like(i)], axis=1)[keep]
    if len(rows) and max(rows.max(), cols.max()) > group:
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        _, i, j, _ = items.T
        items = items[np.lexsort((i, j, i // group, j // group, rank[items[:, 0]]))]
    return np.ascontiguousarray(items, dtype=np.int32)


def uploaded(device: Device, array: np.ndarray) -> Array:
    """Return a host array as a persistent device array, cached by its content."""
    return _uploaded(device, array.tobytes(), array.dtype)


@lru_cache(maxsize=512)
def _uploaded(device: Device, array: bytes, dtype: np.dtype) -> Array:
    return device.upload(np.frombuffer(array, dtype))
