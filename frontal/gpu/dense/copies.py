"""Copies of a user's arrays, with contiguous columns."""

from __future__ import annotations

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from ..runtime.jit import SCALARS
from . import launch
from .lists import Arrays, Form, described
from .lists import Batch as Listed
from .worklists import ranks, uploaded


def copied(arrays: Arrays, device: Device) -> Arrays:
    """Return copies with contiguous columns."""
    if isinstance(arrays, Listed):
        return _copied_list(arrays, device)
    *outer, m, n = arrays.shape
    target = device.xp.empty((*outer, n, m), arrays.dtype).swapaxes(-1, -2)
    single = arrays.ndim == 2
    _copy_stack(arrays[None] if single else arrays, target[None] if single else target, device)
    return target


def _copy_stack(arrays: Array, target: Array, device: Device) -> None:
    """Copy a stack with any strides to one with contiguous columns, by one launch."""
    if not arrays.size:
        return
    if any(s % arrays.itemsize for s in arrays.strides):
        device.copy(arrays, target)
        return
    count, m, n = arrays.shape
    down, across = -(-m // launch.copies.COPY_TILE), -(-n // launch.copies.COPY_TILE)
    strides = (np.int64(s // arrays.itemsize) for s in arrays.strides)
    arguments = (arrays, *strides, described(target, device).locator)
    kernel = device.kernel("copy.cu", "copy_stack", arrays.dtype)
    tiles_each = np.int32(down), np.int32(down * across)
    kernel((count * down * across,), launch.copies.copy_strided(), (*arguments, *tiles_each))


def _copied_list(arrays: Listed, device: Device) -> Listed:
    """Copy a list with any strides, by one launch."""
    form, dtype = arrays.form, arrays.dtype
    target = Listed.new(Form.dense(dtype, form.m, form.n, form.vectors), device)
    work = tiles(form.m, form.n, launch.copies.COPY_TILE, launch.copies.COPY_TILE)
    if len(work):
        row, column, tile_list = (uploaded(device, x) for x in (form.row, form.column, work))
        # for other types than the four scalars, such as pivots, only the size matters
        scalar = dtype if dtype in SCALARS else np.dtype(f"f{dtype.itemsize}")
        kernel = device.kernel("copy.cu", "copy_strided", scalar)
        arguments = (arrays.pointers, row, column, described(target, device).locator, tile_list)
        kernel((len(work),), launch.copies.copy_strided(), arguments)
    return target


def tiles(m: np.ndarray, n: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return (matrix, tile row, tile column) of all tiles of the matrices, as int32."""
    down, across = -(-m // rows), -(-n // columns)
    counts = (down * across).astype(np.int64)
    matrix = np.repeat(np.arange(len(m)), counts)
    rank = ranks(counts)
    coordinates = (matrix, rank % down[matrix], rank // down[matrix])
    return np.ascontiguousarray(np.stack(coordinates, axis=1).astype(np.int32))
