"""Several arrays in one allocation: the system rounds each allocation up to 2 MiB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import Lock

import numpy as np

from .array import Array

Kind = tuple[tuple[int, ...], np.dtype]  # shape and scalar type of an array
ALIGNMENT = 512  # bytes, of the arrays in an allocation


def kinds_of(arrays: Sequence[np.ndarray]) -> list[Kind]:
    """Return shapes and scalar types of arrays."""
    return [(array.shape, array.dtype) for array in arrays]


def bytes_of(kinds: Sequence[Kind]) -> int:
    """Return bytes of memory for arrays of these kinds."""
    return sum(_padded(kind) for kind in kinds)


def arrays_in(memory: Array, kinds: Sequence[Kind]) -> list[Array]:
    """Return consecutive arrays of these kinds in memory, an array of bytes."""
    arrays, first = [], 0
    for shape, dtype in kinds:
        size = math.prod(shape) * dtype.itemsize
        array = memory[first : first + size].view(dtype)
        arrays.append(array if len(shape) == 1 else array.reshape(*shape))
        first += _padded((shape, dtype))
    return arrays


def joined(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the bytes of contiguous arrays as they lie in the memory of `arrays_in`.

    Bytes between them are arbitrary.
    """
    kinds = kinds_of(arrays)
    out, first = np.empty(bytes_of(kinds), np.uint8), 0
    for array, kind in zip(arrays, kinds, strict=True):
        out[first : first + array.nbytes] = array.reshape(-1).view(np.uint8)
        first += _padded(kind)
    return out


class Slab:
    """Memory from which any thread allocates arrays.

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

    def arrays(self, kinds: Sequence[Kind]) -> list[Array] | None:
        """Return new arrays of these kinds; None if they do not fit."""
        memory = self.take(bytes_of(kinds))
        return None if memory is None else arrays_in(memory, kinds)


def _padded(kind: Kind) -> int:
    shape, dtype = kind
    return -(-math.prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT
