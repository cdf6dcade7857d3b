"""Large host arrays on their way to a device: threads copy them into pinned pieces, in turn."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from types import ModuleType
from typing import NamedTuple, Protocol

import numpy as np

from ...parts import in_parts

LEAST = 4 << 20  # bytes: what is smaller is sent as it is
PIECE = 2 << 20
USED = False


class Stream(Protocol):
    """One of CuPy's."""

    ptr: int


class Event(Protocol):
    """One of CuPy's."""

    def record(self, stream: Stream) -> None:
        """Note where the stream is."""
        ...

    def synchronize(self) -> None:
        """Wait until it has come there."""
        ...


class _Piece(NamedTuple):
    """Pinned memory, and an event after what it was sent with last."""

    memory: np.ndarray
    pointer: int
    sent: Event


class Staging:
    """Pinned pieces of memory, two for each thread that sends.

    Parameters
    ----------
    xp : module
        CuPy.
    index : int
        Of the device.
    """

    def __init__(self, xp: ModuleType, index: int) -> None:
        self._cuda, self._index = xp.cuda, index
        self._free: SimpleQueue[tuple[_Piece, _Piece]] = SimpleQueue()

    def send(self, source: np.ndarray, pointer: int, stream: Stream) -> None:
        """Copy a contiguous array to an address; when this returns, the source has been read.

        What comes after on the stream finds the copy.
        """
        given = source.reshape(-1).view(np.uint8)

        def work(first: int, last: int) -> None:
            with self._cuda.Device(self._index):
                pieces = self._taken()
                try:
                    for number, begin in enumerate(range(first, last, PIECE)):
                        part = given[begin : min(begin + PIECE, last)]
                        self._pass_on(part, pieces[number % 2], pointer + begin, stream)
                finally:
                    self._free.put(pieces)

        in_parts(work, given.size)

    def _pass_on(self, part: np.ndarray, piece: _Piece, pointer: int, stream: Stream) -> None:
        piece.sent.synchronize()  # what it held before has left it
        piece.memory[: part.size] = part
        runtime = self._cuda.runtime
        kind = runtime.memcpyHostToDevice
        runtime.memcpyAsync(pointer, piece.pointer, part.size, kind, stream.ptr)
        piece.sent.record(stream)

    def _taken(self) -> tuple[_Piece, _Piece]:
        try:
            return self._free.get_nowait()
        except Empty:
            return self._new(), self._new()

    def _new(self) -> _Piece:
        memory = self._cuda.alloc_pinned_memory(PIECE)
        array = np.frombuffer(memory, np.uint8, PIECE)
        return _Piece(array, int(memory.ptr), self._cuda.Event(disable_timing=True))
