"""Several arrays in one allocation: the system rounds each allocation up to 2 MiB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from threading import Lock

import numpy as np

from .array import Array

Kind = tuple[tuple[int, ...], np.dtype]  # shape and scalar type of an array
ALIGNMENT = 512  # bytes, of the arrays in an allocation


def kinds_of(arrays: Sequence[np.ndarray]) -> list[Kind]:
    """Return shapes and scalar types of arrays."""
    return [(array.shape, array.dtype) for array in arrays]


def starts_of(kinds: Sequence[Kind]) -> list[int]:
    """Return the first byte of each of these arrays in one memory, and the end of the last."""
    return [0, *accumulate(map(_padded, kinds))]


def bytes_of(kinds: Sequence[Kind]) -> int:
    """Return bytes of memory for arrays of these kinds."""
    return sum(map(_padded, kinds))


def joined(arrays: Sequence[np.ndarray], starts: Sequence[int]) -> np.ndarray:
    """Return contiguous host arrays in one array of bytes, each at its place of `starts_of`.

    Bytes between them are arbitrary.
    """
    out = np.empty(starts[-1], np.uint8)
    for array, first in zip(arrays, starts, strict=False):
        out[first : first + array.nbytes] = array.reshape(-1).view(np.uint8)
    return out


class Slab:
    """Memory from which any thread takes parts.

    Parameters
    ----------
    memory : device array of bytes
    """

    def __init__(self, memory: Array) -> None:
        self._free, self._lock = memory, Lock()

    def take(self, size: int) -> Array | None:
        """Return new memory of this number of bytes; None if there is less."""
        with self._lock:
            if size > self._free.size:
                return None
            memory, self._free = self._free[:size], self._free[size:]
        return memory


def _padded(kind: Kind) -> int:
    shape, dtype = kind
    return -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
