"""Lists of the tiles that the blocks of a launch compute, on the device."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..runtime.array import NULL, Array, Value
from ..runtime.device import Device

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
    ends = np.cumsum(tiles[order])
    local = np.arange(len(matrix)) - np.repeat(ends - tiles[order], tiles[order])
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
