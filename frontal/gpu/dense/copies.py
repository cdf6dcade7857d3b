"""New matrices of any kind, and copies of a user's arrays in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..runtime.array import Array
from ..runtime.device import Device
from ..runtime.jit import SCALARS
from . import launch
from .lists import Batch as Listed
from .lists import Form
from .operands import Batch, Matrices
from .worklists import uploaded


def empty(
    kind: str,
    m: int | np.ndarray,
    n: int | np.ndarray,
    count: int,
    dtype: npt.DTypeLike,
    device: Device,
    zero: bool = False,
) -> Any:
    """Return new matrices with contiguous columns; a list's lie one after the other.

    ``m`` and ``n`` are integers, or arrays of one size each for a list; ``zero`` clears the memory.
    """
    make = device.xp.zeros if zero else device.xp.empty
    if kind == "matrix":
        return make((m, n), dtype, order="F")
    if kind == "stack":
        return make((count, n, m), dtype).transpose(0, 2, 1)
    return split(
        make(int(np.multiply(m, n, dtype=np.int64).sum()), dtype), np.asarray(m), np.asarray(n)
    )


def split(flat: Array, m: np.ndarray, n: np.ndarray) -> list[Array]:
    """Return views of flat memory as m[i] x n[i] matrices, one after the other."""
    end = np.cumsum(np.multiply(m, n, dtype=np.int64)).tolist()
    places = zip([0, *end], end, m.tolist(), n.tolist(), strict=False)
    return [flat[i:j].reshape(columns, rows).T for i, j, rows, columns in places]


def copied(arrays: Matrices, device: Device) -> Matrices:
    """Return copies with contiguous columns."""
    if not isinstance(arrays, Sequence):
        kind, count = ("stack", len(arrays)) if arrays.ndim == 3 else ("matrix", 1)
        m, n = arrays.shape[-2:]
        target = empty(kind, m, n, count, arrays.dtype, device)
        single = kind == "matrix"
        _copy_stack(arrays[None] if single else arrays, target[None] if single else target, device)
        return target
    m, n = (np.array([a.shape[axis] for a in arrays], np.int32) for axis in (0, 1))
    dtype = arrays[0].dtype if arrays else np.dtype(np.float64)
    target = empty("list", m, n, len(arrays), dtype, device)
    copy_list(arrays, target, device)
    return target


def _copy_stack(arrays: Array, target: Array, device: Device) -> None:
    """Copy a stack of any strides to one with contiguous columns, by one launch."""
    if not arrays.size:
        return
    if any(s % arrays.itemsize for s in arrays.strides):
        device.copy(arrays, target)
        return
    count, m, n = arrays.shape
    down, across = -(-m // launch.COPY_TILE), -(-n // launch.COPY_TILE)
    strides = (np.int64(s // arrays.itemsize) for s in arrays.strides)
    arguments = (arrays, *strides, Batch.of(device, target).locator)
    kernel = device.kernel("copy.cu", "copy_stack", arrays.dtype)
    tiles_each = np.int32(down), np.int32(down * across)
    kernel((count * down * across,), launch.copy_strided(), (*arguments, *tiles_each))


def copy_list(arrays: Sequence[Array], target: list[Array], device: Device) -> None:
    """Copy matrices of any strides to ones with contiguous columns, by one launch."""
    if not arrays:
        return
    strides = np.array([a.strides for a in arrays], np.int64) // arrays[0].itemsize
    pointers = np.array([device.pointer(a) for a in arrays], np.uint64)
    _copy_strided(device.upload(pointers), strides[:, 0], strides[:, 1], Batch.of(device, target))


def copied_batch(arrays: Listed, device: Device) -> Listed:
    """Return copies with contiguous columns."""
    form = arrays.form
    made = Listed.new(Form.dense(form.dtype, form.m, form.n, form.vectors), device)
    _copy_strided(arrays.pointers, form.row, form.column, made.described(device))
    return made


def _copy_strided(pointers: Array, row: np.ndarray, column: np.ndarray, target: Batch) -> None:
    device, dtype = target.device, target.dtype
    work = tiles(target.m, target.n, launch.COPY_TILE, launch.COPY_TILE)
    if len(work):
        numbers = (np.ascontiguousarray(row), np.ascontiguousarray(column), work)
        table = [uploaded(device, x.tobytes(), x.dtype) for x in numbers]
        # the kernel knows the four scalars; of others, pivots say, their size alone matters
        scalar = dtype if dtype in SCALARS else np.dtype(f"f{dtype.itemsize}")
        kernel = device.kernel("copy.cu", "copy_strided", scalar)
        arguments = (pointers, *table[:2], target.locator, table[2])
        kernel((len(work),), launch.copy_strided(), arguments)


def tiles(m: np.ndarray, n: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Return (matrix, tile row, tile column) of every tile of matrices, int32."""
    down, across = -(-m // rows), -(-n // columns)
    each = (down * across).astype(np.int64)
    matrix = np.repeat(np.arange(len(m)), each)
    rank = np.arange(len(matrix)) - np.repeat(np.cumsum(each) - each, each)
    parts = (matrix, rank % down[matrix], rank // down[matrix])
    return np.ascontiguousarray(np.stack(parts, axis=1).astype(np.int32))
