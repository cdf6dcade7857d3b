"""Kernels that are ready to be launched, again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .array import Kernel, Value
from .device import Device


class Launch(NamedTuple):
    """A kernel with all that it is called with."""

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
    """Launches that become a graph, with what makes ready for them.

    The first call enqueues them, the second records them as a graph, and later ones replay it.
    While the caller captures the current stream into a graph of his own, no graph can be launched
    into it, nor should one be recorded: then every call enqueues them, and does not count.

    Parameters
    ----------
    device : Device
    begin : callable
        Enqueues what makes ready: counters become zero, and messages unset.
    launches : sequence of callables
        Each enqueues something, as a `Launch` does, and takes no memory for it.
    graph : bool
        False: what they are given changes, and there is never a graph.

    Attributes
    ----------
    runs : int
        Calls so far that were not captured.
    captured : bool
        Whether a call was.
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
        """Enqueue them all; nothing waits for the device."""
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
        """Replay the graph; False, and nothing launched, if there is none or somebody captures."""
        if self._replay is None or not self._replay():
            return False
        self.runs += 1
        return True

    def append(self, launch: Callable[[], object]) -> None:
        """Take one more launch, before the second call."""
        self._launches.append(launch)

    def enqueue(self) -> None:
        """Enqueue them all one by one, as for a graph that has them as a part."""
        self._begin()
        for launch in self._launches:
            launch()
