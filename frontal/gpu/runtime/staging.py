"""Copies of large arrays to a device by some threads, through memory that stays where it is.

The driver reads other memory with one thread: of data that no cache has, half as fast as these.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from ..._typing import Untyped
from ...parts import in_parts

LEAST = 4 << 20  # bytes: fewer are there before a thread has begun
_CHUNK, _LANES = 2 << 20, 4
_TO_DEVICE = 1  # of cudaMemcpyKind


class _Lane:
    """A stream with two pieces of memory, of which one is filled while the other one is copied."""

    def __init__(self, cuda: Untyped) -> None:
        memory = cuda.PinnedMemory(2 * _CHUNK)
        views = [cuda.PinnedMemoryPointer(memory, i * _CHUNK) for i in (0, 1)]
        self.pieces = [np.ndarray(_CHUNK, np.uint8, view) for view in views]
        self.places = [view.ptr for view in views]
        self.copied = [cuda.Event(disable_timing=True) for _ in views]
        self.stream = cuda.Stream(non_blocking=True)
        self._copy = cuda.runtime.memcpyAsync

    def send(self, source: np.ndarray, target: int) -> None:
        """Copy bytes to an address; all are read on return, and on their way."""
        for turn, first in enumerate(range(0, source.size, _CHUNK)):
            part, i = source[first : first + _CHUNK], turn % 2
            self.copied[i].synchronize()
            np.copyto(self.pieces[i][: part.size], part)
            of = target + first, self.places[i], part.size
            self._copy(*of, _TO_DEVICE, self.stream.ptr)
            self.copied[i].record(self.stream)


class Staging:
    """Copies to the device ``index``, one array at a time.

    Parameters
    ----------
    cuda : module
        `cupy.cuda`.
    """

    def __init__(self, cuda: Untyped, index: int) -> None:
        self._cuda, self._index, self._lock = cuda, index, Lock()
        self._lanes: list[_Lane] | None = None

    def send(self, source: np.ndarray, target: int) -> bool:
        """Copy a contiguous array to an address, in the order of the current stream.

        Returns
        -------
        bool
            False if nothing was done, since another thread is at it or there is no memory for it.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._lanes is None:
                self._lanes = self._made()
            if not self._lanes:
                return False
            self._send(self._lanes, source.reshape(-1).view(np.uint8), target)
            return True
        finally:
            self._lock.release()

    def _made(self) -> list[_Lane]:
        try:
            return [_Lane(self._cuda) for _ in range(_LANES)]
        except self._cuda.runtime.CUDARuntimeError:
            return []

    def _send(self, lanes: list[_Lane], source: np.ndarray, target: int) -> None:
        current, before = self._cuda.get_current_stream(), self._cuda.Event(disable_timing=True)
        before.record(current)
        for lane in lanes:  # who had the memory before may be at work
            lane.stream.wait_event(before)
        ends = source.size * np.arange(len(lanes) + 1) // len(lanes)

        def share(first: int, last: int) -> None:
            self._cuda.runtime.setDevice(self._index)
            for lane, a, b in zip(lanes[first:last], ends[first:], ends[first + 1 :], strict=False):
                lane.send(source[a:b], target + int(a))

        in_parts(share, ends)
        for lane in lanes:
            for copied in lane.copied:
                current.wait_event(copied)
