"""Messages between blocks in a solve, and their memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...runtime.array import Array
from ..layout.schedule import TILE
from ..layout.subset_packing import aligned, packed_subset
from ..pattern import DevicePattern

LAUNCHES = 4  # kernels of a solve, each with its own ticket
# bytes from which on right-hand sides lie in the memory of solutions: graphs gain nothing
_MIN_LENT_BYTES = 1 << 23


class Messages:
    """Messages between blocks, for at most `width` right-hand sides.

    Messages are numbers whose bits are all set until they are sent (sparse/front_solve.cuh). Every
    solve leaves them unset, except the solution, whose messages lie in the memory of those of
    update rows; the next solve resets it first. The messages serve all widths. If vectors of the
    widest solves are `lent`, those of solves at most half as wide lie behind the messages of these
    solves. As many of the arrays as fit lie in `spare`, memory of factorizations.

    Attributes
    ----------
    sent : list of device arrays of bytes
        Values between the sweeps of larger fronts; tickets, messages of update rows and then the
        solution; and partial sums.
    remainder : device array of bytes
        Unused part of the spare memory.
    turns : int
        Sweeps that were enqueued.
    shared : bool
        A graph that a caller may replay at any time writes solutions here.
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
        self._solved = 0  # number of right-hand sides of the last solve
        self._in_use: list[tuple[int, int]] = []  # byte ranges of messages of rows that are in use
        for array in self.sent:
            self._clear(array)

    @property
    def of_rows(self) -> Array:
        """Messages of update rows, and then the solution."""
        return self.sent[1][self._first :]

    def vectors_of(self, width: int) -> Array:
        """Return the (n, width) array of right-hand sides and y of small fronts, always one."""
        size = self._n * width
        if self._behind(width):
            buffer = self.sent[1][self._last(width) :][: size * self.dtype.itemsize]
            return buffer.view(self.dtype).reshape(self._n, width)
        if width not in self._vectors:
            wider = [array for array in self._vectors.values() if array.size >= size]
            self._vectors[width] = wider[0] if wider else self._taken(size)
        return self._vectors[width][:size].reshape(self._n, width)

    def _taken(self, size: int) -> Array:
        """Return memory for `size` entries, from the spare memory if there is room."""
        needed = size * self.dtype.itemsize
        if needed > self.remainder.size:
            return self._device.xp.empty(size, self.dtype)
        buffer, self.remainder = (
            self.remainder[:needed].view(self.dtype),
            self.remainder[aligned(needed) :],
        )
        return buffer

    def solution_of(self, width: int) -> Array:
        """Return the (n, width) array of the solution."""
        size = self._n * width
        return self.of_rows[: size * self.dtype.itemsize].view(self.dtype).reshape(-1, width)

    def beginning(self, width: int) -> Array:
        """Return the memory that a solve unsets before it begins: tickets and its solution."""
        return self.sent[1][: self._end(width)]

    def make_way(self, width: int, graph: bool = False) -> None:
        """Enqueue the reset of messages of earlier solves, before a solve of this width.

        The reset may be a part of a `graph`, which may follow any other solve.
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
        """Record a graph with a solve of this width, which contains its own reset."""
        self.turns += 1
        self._note(width)

    def _note(self, width: int) -> None:
        """Record the memory that a solve for `width` right-hand sides leaves in use."""
        begin, end = self._end(width), self._last(width)
        vectors = end + (begin - self._first) * self._behind(width)
        beyond = [(max(first, end), last) for first, last in self._in_use if last > vectors]
        self._in_use, self._solved = [(0, begin), (end, vectors), *beyond], width

    def _behind(self, width: int) -> bool:
        """Return whether `width` vectors lie behind the messages of their solves."""
        return self._lent and 2 * width <= self.width

    def _end(self, width: int) -> int:
        """Return the bytes of tickets and of a solution for `width` right-hand sides."""
        return self._first + self._n * width * self.dtype.itemsize

    def _last(self, width: int) -> int:
        """Return the bytes of tickets and of all messages of rows."""
        return self._first + self._rows * width * self.dtype.itemsize

    def unset(self) -> None:
        """Unset the messages in memory that a factorization has overwritten."""
        self._clear(self._among)

    def _clear(self, array: Array) -> None:
        if array.size:
            self._device.clear(array, 0xFF)


def lends(n: int, width: int, dtype: np.dtype) -> bool:
    """Return whether `width` right-hand sides of order n lie in the memory of their solutions."""
    return width > 2 and n * width * dtype.itemsize >= _MIN_LENT_BYTES


def message_rows(pattern: DevicePattern, dtype: np.dtype) -> tuple[int, ...]:
    """Return the rows of the arrays of `Messages`, those of right-hand sides last."""
    n, tasks = int(pattern.plan.start[-1]), pattern.solve_tasks(dtype)
    return tasks.between, max(tasks.messages, n), TILE * tasks.partials, n


def message_sizes(
    rows: Sequence[int], width: int, dtype: np.dtype, launches: int = LAUNCHES
) -> list[int]:
    """Return the bytes of these arrays."""
    sizes = [width * dtype.itemsize * count for count in rows]
    sizes[1] += tickets_bytes(launches)
    return sizes


def tickets_bytes(launches: int) -> int:
    """Return the bytes of tickets, which lie before messages."""
    return aligned(np.dtype(np.int32).itemsize * launches)
