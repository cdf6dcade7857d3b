"""Kernels with their arguments, launched repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .array import Kernel, Value
from .device import Device


class Launch(NamedTuple):
    """A kernel with its launch parameters and arguments."""

    kernel: Kernel
    blocks: int | tuple[int, int, int]
    threads: int
    arguments: tuple[Value, ...]
    shared: int = 0

    def __call__(self) -> None:
        """Enqueue the kernel."""
        blocks = self.blocks
        grid = blocks if isinstance(blocks, tuple) else (blocks,)
        self.kernel(grid, (self.threads,), self.arguments, self.shared)


class CapturedLaunches:
    """Launches that become a graph, preceded by the initialization that they require.

    The first call enqueues the launches, the second one records them as a graph, and later ones
    replay it. While the caller captures the current stream into a graph, a graph can be neither
    launched nor recorded: then a call enqueues the launches and is not counted.

    Parameters
    ----------
    device : Device
    begin : callable
        Enqueues the initialization: counters are set to zero, messages to unset.
    launches : sequence of callables
        Each enqueues work, as a `Launch` does, and allocates no memory for it.
    graph : bool
        False: arguments change between calls, so no graph is recorded.

    Attributes
    ----------
    runs : int
        Number of calls so far that were not captured.
    captured : bool
        Whether a call was captured.
    """

    def __init__(
        self,
        device: Device,
        begin: Callable[[], None],
        launches: Sequence[Callable[[], object]],
        graph: bool = True,
    ) -> None:
        self._graph = graph
        self._device, self._begin, self._launches = device, begin, list(launches)
        self.runs: int = 0
        self.captured = False
        self._replay: Callable[[], bool] | None = None

    def __call__(self) -> None:
        """Enqueue all launches; nothing waits for the device."""
        if self.replay():
            return
        if self._device.capturing():
            self.captured = True
        else:
            self.runs += 1
            if self.runs == 2 and self._graph:
                self._replay = self._device.record(self.enqueue)
                self._replay()
                return
        self.enqueue()

    def replay(self) -> bool:
        """Replay the graph; return False without a launch if none exists or a capture is active."""
        if self._replay is None or not self._replay():
            return False
        self.runs += 1
        return True

    def append(self, launch: Callable[[], object]) -> None:
        """Add a launch, before the second call."""
        self._launches.append(launch)

    def enqueue(self) -> None:
        """Enqueue all launches one by one, as for capture into a larger graph."""
        self._begin()
        for launch in self._launches:
            launch()
