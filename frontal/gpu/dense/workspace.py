"""Memory for batches that only drivers use, of one size or of many, consecutive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .lists import Batch, Form, described
from .operands import MatrixBatch


def workspace(
    like: MatrixBatch,
    m: np.ndarray | int,
    n: np.ndarray | int,
    dtype: npt.DTypeLike | None = None,
    zero: bool = False,
) -> MatrixBatch:
    """Return as many new m×n matrices as a batch has, with its wrapper; ``zero`` clears them."""
    device, dtype = like.device, np.dtype(like.dtype if dtype is None else dtype)
    rows, columns = (np.broadcast_to(np.asarray(x, np.int64), like.count) for x in (m, n))
    if like.wrapper == "vbatched":
        return described(Batch.new(Form.dense(dtype, rows, columns), device, zero), device)
    shape = like.count, int(columns.max(initial=0)), int(rows.max(initial=0))
    stack = (device.xp.zeros if zero else device.xp.empty)(shape, dtype).swapaxes(1, 2)
    return described(stack[0] if like.wrapper == "native" else stack, device)


def with_rows(batch: MatrixBatch, m: np.ndarray) -> MatrixBatch:
    """Describe the first m rows of each matrix of a batch."""
    if np.array_equal(batch.m, m):
        return batch
    if batch.wrapper != "vbatched":
        locator = batch.locator.copy()
        locator["m"] = m[0]
        return replace(batch, locator=locator, m=m)
    addresses, _, *keep = batch.keep
    sizes = m, batch.n, batch.ld
    return MatrixBatch.at(batch.device, batch.dtype, addresses, sizes, tuple(keep))


def real_type(dtype: npt.DTypeLike) -> np.dtype:
    """Return the scalar type of the real part."""
    return np.dtype(np.dtype(dtype).char.lower())
