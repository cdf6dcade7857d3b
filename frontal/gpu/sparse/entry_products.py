"""Products of two blocks of vectors at the entries of A, on the device."""

from __future__ import annotations

import numpy as np

from ...matrix.value_map import ValueMap
from ..runtime.array import Array
from . import launch
from .factorize.entries import PatternEntries


def entry_products(
    entries: PatternEntries, order: ValueMap, R: Array, C: Array, diagonal: float, beside: float
) -> Array:
    """See `NumericFactor.entry_products`; nothing waits."""
    device, (row, column) = entries.device, entries.coordinates(order)
    R, C = (device.xp.asfortranarray(X) for X in (R, C))
    out = device.xp.empty(row.size, R.dtype)
    if not row.size:
        return out
    kernel = device.kernel("entry_products.cu", "entry_products", R.dtype)
    sizes = np.int64(row.size), np.int32(entries.n), np.int32(R.shape[1])
    factors = np.float64(diagonal), np.float64(beside)
    blocks = launch.system_blocks(row.size, device.limits)
    kernel((blocks,), (launch.SYSTEM_THREADS,), (*sizes, row, column, R, C, *factors, out))
    return out
