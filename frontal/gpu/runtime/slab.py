"""Arrays in one piece of memory: the system rounds each piece that is taken up to 2 MiB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

import numpy as np

from .array import Array

Kind = tuple[tuple[int, ...], np.dtype]  # shape and scalar type of an array
ALIGNMENT = 512  # bytes, a multiple of which begins each of some arrays


def kinds_of(arrays: Sequence[np.ndarray]) -> list[Kind]:
    """What such arrays are."""
    return [(array.shape, array.dtype) for array in arrays]


def bytes_of(kinds: Sequence[Kind]) -> int:
    """Bytes of memory for such arrays."""
    return sum(_padded(kind) for kind in kinds)


def arrays_in(memory: Array, kinds: Sequence[Kind]) -> list[Array]:
    """Such arrays one after the other in memory, an array of bytes."""
    arrays, first = [], 0
    for shape, dtype in kinds:
        size = math.prod(shape) * dtype.itemsize
        arrays.append(memory[first : first + size].view(dtype).reshape(*shape))
        first += _padded((shape, dtype))
    return arrays


class Slab:
    """Memory in which arrays get their places when they come, from whatever thread.

    Parameters
    ----------
    memory : device array of bytes
    """

    def __init__(self, memory: Array) -> None:
        self._free, self._lock = memory, Lock()

    def arrays(self, kinds: Sequence[Kind]) -> list[Array] | None:
        """Such arrays; None if there is no room for all of them."""
        size = bytes_of(kinds)
        with self._lock:
            if size > self._free.size:
                return None
            memory, self._free = self._free[:size], self._free[size:]
        return arrays_in(memory, kinds)


def _padded(kind: Kind) -> int:
    shape, dtype = kind
    return -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
