"""Memory for batches that only drivers use, of one size or of many, consecutive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .operands import MatrixBatch, table_of


def workspace(
    like: MatrixBatch,
    m: np.ndarray | int,
    n: np.ndarray | int,
    dtype: npt.DTypeLike | None = None,
    zero: bool = False,
) -> MatrixBatch:
    """Return as many new m×n matrices as a batch has, with its wrapper.

    Parameters
    ----------
    like : MatrixBatch
    m, n : int, or int arrays with a number for each matrix
    dtype : dtype, optional
        Default: that of ``like``.
    zero : bool
        Clear the memory.
    """
    device, dtype = like.device, np.dtype(like.dtype if dtype is None else dtype)
    rows, columns = (np.broadcast_to(np.asarray(x, np.int64), like.count) for x in (m, n))
    sizes = rows * columns
    flat = (device.xp.zeros if zero else device.xp.empty)(int(sizes.sum()), dtype)
    if like.wrapper != "vbatched":
        size = int(rows[0]) if like.count else 0, int(columns[0]) if like.count else 0
        stack = flat.reshape(like.count, size[1], size[0]).transpose(0, 2, 1)
        return MatrixBatch.from_array(device, stack[0] if like.wrapper == "native" else stack)
    return MatrixBatch.following(device, flat, rows, columns)


def with_rows(batch: MatrixBatch, m: np.ndarray) -> MatrixBatch:
    """Describe the first m rows of each matrix of a batch."""
    if np.array_equal(batch.m, m):
        return batch
    if batch.wrapper != "vbatched":
        locator = batch.locator.copy()
        locator["m"] = m[0]
        return replace(batch, locator=locator, m=m)
    sizes = np.asarray(m, np.int32), batch.n, batch.ld
    table = table_of(batch.device, *sizes)
    addresses, _, *keep = batch.keep
    return MatrixBatch.at(batch.device, batch.dtype, addresses, table, sizes, tuple(keep))


def real_type(dtype: npt.DTypeLike) -> np.dtype:
    """Return the scalar type of the real part."""
    return np.dtype(np.dtype(dtype).char.lower())
