"""Substitution over segments with panels from the host: one pass each way for all columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ...runtime.array import Array
from ...runtime.graph import Launch
from .. import launch
from ..layout.subset_packing import aligned
from ..solve.messages import LAUNCHES, Messages, message_sizes
from ..solve.sweeps import DeviceSolver, Pass, SweepLaunches, sweep_launches
from ..storage import Storage
from ..tasks.solves import counted_rows
from .pattern import StreamedPattern
from .windows import Windows


class StreamedSolver(DeviceSolver):
    """See `DeviceSolver`; a pass has as many right-hand sides as memory allows.

    Parameters
    ----------
    windows : Windows
        The panels.
    """

    resident = False

    def __init__(self, pattern: StreamedPattern, storage: Storage, windows: Windows) -> None:
        super().__init__(pattern, storage)
        self._segments, self.windows = pattern.count, windows
        self._blocks: dict[tuple[int, int, bool], SegmentSweeps] = {}
        self._rows = pattern.once(counted_rows)

    def sweeps(self, width: int, flip: bool, lent: bool = False) -> SweepLaunches:
        """Raise an error: sweeps with panels from the host are no graph."""
        raise ValueError("copies of panels from the host cannot be part of a graph")

    def passes(self, total: int, flip: bool, into: Array | None = None) -> Iterator[Pass]:
        """See `DeviceSolver`; raise a ValueError while a caller captures a graph."""
        if self.pattern.device.capturing():
            raise ValueError(
                "a graph is being captured, but the panels of this factor are on the host. Try: "
                "memory='device', or solve before the capture begins"
            )
        first = 0
        while first < total:
            widths = self._widths(total - first)
            self._prepare(widths)
            blocks = []
            for i, width in enumerate(widths):
                columns = slice(first, min(first + width, total))
                blocks.append((columns, self._block(i, width, flip)))
                first = columns.stop
            yield Pass(blocks, partial(self._run, [block for _, block in blocks]))

    def _widths(self, total: int) -> list[int]:
        """Return the widths of the blocks of a pass; the first may exceed the spare memory."""
        widths, room = [], self._spare.nbytes
        while total > 0:
            width = launch.solve_width(self.dtype, total)
            while width > 1 and self._size(width) > room:
                width //= 2
            if widths and self._size(width) > room:
                break
            widths.append(width)
            total, room = total - width, room - self._size(width)
        return widths

    def _size(self, width: int) -> int:
        return message_bytes(self._rows, width, self.dtype, self._segments)

    def _prepare(self, widths: list[int]) -> None:
        """Allocate messages for blocks, replacing narrower or fewer ones."""
        prepared = [messages.width for messages in self._messages]
        if len(prepared) >= len(widths) and all(map(int.__ge__, prepared, widths)):
            return
        self._messages.clear()
        self._blocks.clear()
        spare = self._spare
        for width in widths:
            self._messages.append(
                Messages(self.pattern, self.dtype, width, spare, launches=LAUNCHES * self._segments)
            )
            spare = self._messages[-1].remainder

    def _block(self, i: int, width: int, flip: bool) -> SegmentSweeps:
        key = i, width, flip
        if key not in self._blocks:
            self._blocks[key] = SegmentSweeps(self, self._messages[i], width, flip)
        return self._blocks[key]

    def _run(self, blocks: list[SegmentSweeps]) -> None:
        """Enqueue a pass."""
        for block in blocks:
            block.begin()
        up = [(g, [x for block in blocks for x in block.forward[g]]) for g in range(self._segments)]
        down = [
            (g, [x for block in blocks for x in block.backward[g]])
            for g in reversed(range(self._segments))
        ]
        self.windows.through((g, partial(_enqueue, launches)) for g, launches in up + down)


def message_bytes(rows: Sequence[int], columns: int, dtype: np.dtype, segments: int) -> int:
    """Return the bytes of messages for `columns` right-hand sides, rounded up to full blocks.

    `rows` are those of `counted_rows`.
    """
    width = launch.solve_width(dtype, columns)
    sizes = message_sizes(rows, width, dtype, LAUNCHES * segments)
    return -(-columns // width) * sum(map(aligned, sizes))


def _enqueue(launches: list[Launch]) -> None:
    for step in launches:
        step()


class SegmentSweeps:
    """See `SweepLaunches`; `forward` and `backward` have a list of launches for each segment."""

    def __init__(self, solver: StreamedSolver, messages: Messages, width: int, flip: bool) -> None:
        self.width, self._messages, self._device = width, messages, solver.pattern.device
        self.vectors, self.solution = messages.vectors_of(width), messages.solution_of(width)
        tasks = solver.tasks
        small, up, down = tasks.extents
        self.forward: list[list[Launch]] = []
        self.backward: list[list[Launch]] = []
        for g in range(len(small)):
            few, forward, backward = (slice(*extent[g].tolist()) for extent in (small, up, down))
            lists = (
                *(tasks.small[few], tasks.forward[forward]),
                *(tasks.backward[backward], tasks.small[few]),
            )
            panels, first = solver.windows.on_device(g), LAUNCHES * g
            sweeps = sweep_launches(
                solver, messages, self.vectors, width, flip, panels, lists, first
            )
            self.forward.append(sweeps[0] + sweeps[1])
            self.backward.append(sweeps[2] + sweeps[3])

    def begin(self) -> None:
        """Enqueue the reset of messages."""
        self._messages.make_way(self.width)
        self._device.clear(self._messages.beginning(self.width), 0xFF)
