"""Large arrays between the host and a device, in pieces, by memory whose pages stay where they are.

A device reaches no other pages of the host. A driver copies pages that may move to some of its own,
one after the other, and waits for all that is enqueued before. Here threads do so, while the pieces
before theirs are on their way, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock
from typing import Protocol

import numpy as np

from ..._typing import Untyped
from ...parts import in_parts

LEAST = 1 << 18  # bytes that are worth it
PIECE, PIECES = 1 << 20, 16  # bytes of a piece, and how many are under way at most
_WORD = 8


class Slot(Protocol):
    """Memory for a piece.

    Attributes
    ----------
    host : (PIECE,) uint8 array
    """

    host: np.ndarray

    def send(self, address: int, count: int, stream: Untyped) -> object:
        """Enqueue a copy of its first bytes to an address of the device."""
        ...

    def fetch(self, address: int, count: int, stream: Untyped) -> object:
        """Enqueue a copy of bytes of the device to its beginning."""
        ...

    def wait(self) -> object:
        """Wait for the last copy."""
        ...


class Staging:
    """Moves arrays by way of some slots, for any number of threads.

    Parameters
    ----------
    make : callable
        Takes memory for so many slots, when an array moves for the first time.
    """

    def __init__(self, make: Callable[[int], list[Slot]]) -> None:
        self._make, self._lock = make, Lock()
        self._free: SimpleQueue[Slot] | None = None

    def send(self, source: np.ndarray, address: int, stream: Untyped) -> None:
        """Enqueue a copy of a contiguous array to the device; it may be written to at once."""
        given = source.reshape(-1).view(np.uint8)

        def move(slot: Slot, first: int, last: int) -> None:
            slot.wait()
            slot.host[: last - first] = given[first:last]
            slot.send(address + first, last - first, stream)

        self._in_pieces(move, given.size)

    def fetch(self, address: int, target: np.ndarray, stream: Untyped) -> None:
        """Copy an array of the device to a contiguous one, after what is enqueued."""
        found = target.reshape(-1).view(np.uint8)

        def move(slot: Slot, first: int, last: int) -> None:
            slot.wait()
            slot.fetch(address + first, last - first, stream)
            slot.wait()
            found[first:last] = slot.host[: last - first]

        self._in_pieces(move, found.size)

    def _in_pieces(self, move: Callable[[Slot, int, int], None], count: int) -> None:
        def part(first: int, last: int) -> None:
            end = min(_WORD * last, count)
            for begin in range(_WORD * first, end, PIECE):
                with self._slot() as slot:
                    move(slot, begin, min(begin + PIECE, end))

        in_parts(part, -(-count // _WORD))

    @contextmanager
    def _slot(self) -> Iterator[Slot]:
        free = self._slots()
        slot = free.get()
        try:
            yield slot
        finally:
            free.put(slot)

    def _slots(self) -> SimpleQueue[Slot]:
        with self._lock:
            if self._free is None:
                self._free = SimpleQueue()
                for slot in self._make(PIECES):
                    self._free.put(slot)
            return self._free
