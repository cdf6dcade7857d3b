"""What blocks send each other in a solve, and where that is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..runtime.array import Array
from .fitted import aligned, fitted
from .pattern import Pattern
from .schedule import TILE

LAUNCHES = 4  # of a solve, each with a ticket of its own


class Messages:
    """What blocks send each other, for some right-hand sides or fewer.

    Messages are numbers whose bits are all set until they are sent (sparse/front_solve.cuh). Every
    solve leaves them so, but for the solution, whose messages lie where those of update rows were;
    whoever solves next makes way first. They serve all widths.

    Parameters
    ----------
    spare : device array of bytes
        Memory of factorizations, which as many of these arrays lie in as there is room for.
    launches : int
        Kernels of a solve.

    Attributes
    ----------
    sent : list of device arrays of bytes
        Values between the sweeps of larger fronts; tickets, messages of update rows and then the
        solution; and parts of sums.
    vectors : device array (n * width,)
        Right-hand sides, and values between the sweeps of small fronts.
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
        pattern: Pattern,
        dtype: np.dtype,
        width: int,
        spare: Array,
        launches: int = LAUNCHES,
    ) -> None:
        self.width, self.dtype, self._device = width, dtype, pattern.device
        self._n, self._first = int(pattern.plan.start[-1]), tickets_bytes(launches)
        sizes = message_sizes(message_rows(pattern, dtype), width, dtype, launches)
        placed, end = fitted(sizes, spare.nbytes)
        arrays = [
            pattern.device.xp.empty(size, np.uint8) if first is None else spare[first:][:size]
            for first, size in zip(placed, sizes, strict=True)
        ]
        self.left = spare[end:]
        self.sent, self.vectors = arrays[:3], arrays[3].view(dtype)
        ends = (
            first + size
            for first, size in zip(placed, sizes[:3], strict=False)
            if first is not None
        )
        self._among = spare[: max(ends, default=0)]
        self.tickets = self.sent[1][: 4 * launches].view(np.int32)
        self._solved = 0  # right-hand sides of a solution that lies among them
        for array in self.sent:
            self._clear(array)

    @property
    def of_rows(self) -> Array:
        """Messages of update rows, and then the solution."""
        return self.sent[1][self._first :]

    def vectors_of(self, width: int) -> Array:
        """(n, width) array for so many right-hand sides, or fewer than there is room for."""
        return self.vectors[: self._n * width].reshape(self._n, width)

    def solution_of(self, width: int) -> Array:
        """(n, width) array where the solution comes."""
        size = self._n * width
        return self.of_rows[: size * self.dtype.itemsize].view(self.dtype).reshape(-1, width)

    def beginning(self, width: int) -> Array:
        """What a solve for so many right-hand sides unsets before: tickets, and where it ends."""
        return self.sent[1][: self._end(width)]

    def make_way(self, width: int, graph: bool = False) -> None:
        """Enqueue what else is unset if there were more of them, before a solve for so many.

        Parameters
        ----------
        graph : bool
            It is a part of a graph, and may come after any other one.
        """
        anywhen = graph or self.shared or (self.width > width and self._device.capturing())
        before = self.width if anywhen else self._solved
        if before > width:
            self._clear(self.sent[1][self._end(width) : self._end(before)])
        self._solved, self.turns = width, self.turns + 1

    def _end(self, width: int) -> int:
        """Bytes of tickets and of such a solution."""
        return self._first + self._n * width * self.dtype.itemsize

    def unset(self) -> None:
        """Set the bits of what lies where a factorization has been at work."""
        self._clear(self._among)

    def _clear(self, array: Array) -> None:
        if array.size:
            self._device.clear(array, 0xFF)


def message_rows(pattern: Pattern, dtype: np.dtype) -> tuple[int, ...]:
    """Rows of the arrays of `Messages`, those of `vectors` last."""
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
