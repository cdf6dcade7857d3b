"""Some matrices of a batch, in an order: their lists on the device."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from .batch import Batch


def subset(a: Batch, members: np.ndarray) -> Batch:
    """Some matrices of a batch of different sizes, in their order."""
    device = a.device
    sizes = (np.ascontiguousarray(s[members]) for s in (a.m, a.n, a.ld))
    addresses = a.keep[0][uploaded(device, members.tobytes(), np.int64)]
    made = Batch.of_sizes(device, a.dtype, np.zeros(len(members), np.uint64), *sizes)
    made.locator["p"] = device.pointer(addresses)
    return replace(made, keep=(addresses, *made.keep[1:], *a.keep))


@lru_cache(maxsize=512)
def uploaded(device: Any, array: bytes, dtype: Any) -> Any:
    return device.upload(np.frombuffer(array, dtype))


def order_list(a: Batch, members: np.ndarray) -> Any:
    """The order in which blocks take matrices: an array on the device; 0, a null, for their own."""
    if a.wrapper != "vbatched":
        return np.uint64(0)
    return uploaded(a.device, members.astype(np.int32).tobytes(), np.int32)
