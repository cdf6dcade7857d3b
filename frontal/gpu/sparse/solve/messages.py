"""What blocks send each other in a solve, and where that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...runtime.array import Array
from ..layout.schedule import TILE
from ..layout.subset_packing import aligned, packed_subset
from ..pattern import DevicePattern

LAUNCHES = 4  # of a solve, each with a ticket of its own
_MIN_LENT_BYTES = (
    1 << 23
)  # bytes of right-hand sides that lie where solutions come: then graphs gain nothing


class Messages:
    """What blocks send each other, for some right-hand sides or fewer.

    Messages are numbers whose bits are all set until they are sent (sparse/front_solve.cuh). Every
    solve leaves them so, but for the solution, whose messages lie where those of update rows were;
    whoever solves next makes way first. They serve all widths. Where vectors of the widest solves
    are lent, those of solves half as wide or less lie behind the messages that these have.

    Parameters
    ----------
    spare : device array of bytes
        Memory of factorizations, which as many of these arrays lie in as there is room for.
    launches : int
        Kernels of a solve.
    lent : bool
        Right-hand sides lie elsewhere, at least at first.

    Attributes
    ----------
    sent : list of device arrays of bytes
        Values between the sweeps of larger fronts; tickets, messages of update rows and then the
        solution; and parts of sums.
    left : device array of bytes
        What is left of the spare memory.
    turns : int
        Sweeps that were enqueued.
    shared : bool
        A graph that somebody replays, nobody knows when, leaves solutions here.
    """

    turns = 0
    shared = False

    def __init__(
        self,
        pattern: DevicePattern,
        dtype: np.dtype,
        width: int,
        spare: Array,
        launches: int = LAUNCHES,
        lent: bool = False,
    ) -> None:
        self.width, self.dtype, self._device = width, dtype, pattern.device
        self._n, self._first = int(pattern.plan.start[-1]), tickets_bytes(launches)
        rows = message_rows(pattern, dtype)
        self._lent, self._rows = lent, rows[1]
        sizes = message_sizes(rows, width, dtype, launches)
        sizes = sizes[:3] if lent else sizes
        placed, end = packed_subset(sizes, spare.nbytes)
        arrays = [
            pattern.device.xp.empty(size, np.uint8) if first is None else spare[first:][:size]
            for first, size in zip(placed, sizes, strict=True)
        ]
        self.remainder = spare[end:]
        self.sent = arrays[:3]
        self._vectors = {} if lent else {width: arrays[3].view(dtype)}
        ends = (
            first + size
            for first, size in zip(placed, sizes[:3], strict=False)
            if first is not None
        )
        self._among = spare[: max(ends, default=0)]
        self.tickets = self.sent[1][: 4 * launches].view(np.int32)
        self._solved = 0  # right-hand sides of the last solve
        self._in_use: list[tuple[int, int]] = []  # bytes of messages of rows that are not unset
        for array in self.sent:
            self._clear(array)

    @property
    def of_rows(self) -> Array:
        """Messages of update rows, and then the solution."""
        return self.sent[1][self._first :]

    def vectors_of(self, width: int) -> Array:
        """(n, width) array for so many right-hand sides, and y of small fronts; always the same."""
        size = self._n * width
        if self._behind(width):
            buffer = self.sent[1][self._last(width) :][: size * self.dtype.itemsize]
            return buffer.view(self.dtype).reshape(self._n, width)
        if width not in self._vectors:
            wider = [array for array in self._vectors.values() if array.size >= size]
            self._vectors[width] = wider[0] if wider else self._taken(size)
        return self._vectors[width][:size].reshape(self._n, width)

    def _taken(self, size: int) -> Array:
        """Memory for so many entries, of what is left if there is room."""
        needed = size * self.dtype.itemsize
        if needed > self.remainder.size:
            return self._device.xp.empty(size, self.dtype)
        buffer, self.remainder = (
            self.remainder[:needed].view(self.dtype),
            self.remainder[aligned(needed) :],
        )
        return buffer

    def solution_of(self, width: int) -> Array:
        """(n, width) array where the solution comes."""
        size = self._n * width
        return self.of_rows[: size * self.dtype.itemsize].view(self.dtype).reshape(-1, width)

    def beginning(self, width: int) -> Array:
        """What a solve for so many right-hand sides unsets before: tickets, and where it ends."""
        return self.sent[1][: self._end(width)]

    def make_way(self, width: int, graph: bool = False) -> None:
        """Enqueue what is unset of what others left, before a solve for so many.

        Parameters
        ----------
        graph : bool
            It is a part of a graph, and may come after any other one.
        """
        self.turns += 1
        anywhen = graph or self.shared or (self.width > width and self._device.capturing())
        if width == self._solved and not anywhen:
            return
        begin, end = self._end(width), self._last(width)
        if anywhen:
            self._in_use = [(0, self._last(self.width) if self._lent else self._end(self.width))]
        for first, last in self._in_use:
            if max(first, begin) < min(last, end):
                self._clear(self.sent[1][max(first, begin) : min(last, end)])
        self._note(width)

    def replayed(self, width: int) -> None:
        """Take note of a graph with a solve for so many, which makes way itself."""
        self.turns += 1
        self._note(width)

    def _note(self, width: int) -> None:
        """Of what a solve for so many leaves."""
        begin, end = self._end(width), self._last(width)
        vectors = end + (begin - self._first) * self._behind(width)
        beyond = [(max(first, end), last) for first, last in self._in_use if last > vectors]
        self._in_use, self._solved = [(0, begin), (end, vectors), *beyond], width

    def _behind(self, width: int) -> bool:
        """Whether so many vectors lie behind the messages of their solves."""
        return self._lent and 2 * width <= self.width

    def _end(self, width: int) -> int:
        """Bytes of tickets and of such a solution."""
        return self._first + self._n * width * self.dtype.itemsize

    def _last(self, width: int) -> int:
        """Bytes of tickets and of all messages of rows."""
        return self._first + self._rows * width * self.dtype.itemsize

    def unset(self) -> None:
        """Set the bits of what lies where a factorization has been at work."""
        self._clear(self._among)

    def _clear(self, array: Array) -> None:
        if array.size:
            self._device.clear(array, 0xFF)


def lends(n: int, width: int, dtype: np.dtype) -> bool:
    """Whether so many right-hand sides of order n lie where their solutions come."""
    return width > 2 and n * width * dtype.itemsize >= _MIN_LENT_BYTES


def message_rows(pattern: DevicePattern, dtype: np.dtype) -> tuple[int, ...]:
    """Rows of the arrays of `Messages`, those of right-hand sides last."""
    n, tasks = int(pattern.plan.start[-1]), pattern.solve_tasks(dtype)
    return tasks.between, max(tasks.messages, n), TILE * tasks.partials, n


def message_sizes(
    rows: Sequence[int], width: int, dtype: np.dtype, launches: int = LAUNCHES
) -> list[int]:
    """Bytes of these arrays."""
    sizes = [width * dtype.itemsize * count for count in rows]
    sizes[1] += tickets_bytes(launches)
    return sizes


def tickets_bytes(launches: int) -> int:
    """Bytes of tickets, which lie before messages."""
    return aligned(np.dtype(np.int32).itemsize * launches)
