"""Copies of panels between the host and two windows on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ...runtime.array import Array, Event
from ...runtime.device import Device
from .offsets import StreamedLayout

Step = tuple[int, Callable[[], object]]  # a segment, and the function that enqueues work with it


class Windows:
    """The panels of a factor on the host, with two segments on the device at a time.

    The device `memory` begins with the windows. `host` is pinned, with the offsets `held` of the
    layout, and `lane` copies the panels.
    """

    def __init__(
        self, device: Device, layout: StreamedLayout, memory: Array, host: np.ndarray
    ) -> None:
        self._layout, self._memory, self.host, self.lane = layout, memory, host, device.lane()
        self._loaded: list[int | None] = [None, None]
        self._marks: list[Event] = [self.lane.mark(), self.lane.mark()]

    def on_device(self, g: int) -> Array:
        """Return the window of a segment, as long as its panels."""
        first = int(self._layout.window[g])
        return self._memory[first : first + int(self._layout.length[g])]

    def on_host(self, g: int) -> np.ndarray:
        """Return the panels of a segment on the host."""
        first = int(self._layout.held[g])
        return self.host[first : first + int(self._layout.length[g])]

    def forget(self) -> None:
        """Mark both windows invalid, after writes to them or to the panels on the host."""
        self._loaded = [None, None]

    def through(self, steps: Iterable[Step]) -> None:
        """Process segments in order; the next one is copied while one is processed.

        Consecutive steps have the same or adjacent segments.
        """
        steps = list(steps)
        for (g, work), (following, _) in zip(steps, [*steps[1:], steps[-1]], strict=True):
            self._send(g)
            self._send(following)
            self.lane.join(self._marks[g % 2])
            work()

    def _send(self, g: int) -> None:
        """Copy a segment to its window, after all enqueued work with the window."""
        if self._loaded[g % 2] == g:
            return
        self.lane.behind()
        self.lane.send(self.on_host(g), self.on_device(g))
        self._loaded[g % 2], self._marks[g % 2] = g, self.lane.mark()
