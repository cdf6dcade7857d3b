"""The GPU as measurements need it: its memory, and times from an idle device to an idle device."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from gauges import Clock


class Device:
    """The GPU as the measurement needs it."""

    def __init__(self) -> None:
        import cupy

        self.xp: Any = cupy

    def synchronize(self) -> None:
        self.xp.cuda.runtime.deviceSynchronize()

    def free(self) -> int:
        """Return the free bytes, with no reserve kept by CuPy."""
        gc.collect()
        self.synchronize()
        self.xp.get_default_memory_pool().free_all_blocks()
        return int(self.xp.cuda.runtime.memGetInfo()[0])

    def taken(self, before: int) -> int:
        """Return the bytes taken since, the reserve of CuPy's pool included."""
        self.synchronize()
        return before - int(self.xp.cuda.runtime.memGetInfo()[0])


class DeviceClock(Clock):
    """Times from an idle device to an idle device; one untimed call before repetitions."""

    def __init__(self, reps: int, budget: float, synchronize: Callable[[], None]) -> None:
        super().__init__(reps, budget)
        self.synchronize = synchronize

    def once(self, phase: str, call, *arguments):
        self.synchronize()
        start = time.perf_counter()
        result = call(*arguments)
        self.synchronize()
        self.samples.setdefault(phase, []).append(time.perf_counter() - start)
        return result

    def again(self, phase: str, call, *arguments):
        call(*arguments)  # compiles, allocates
        gc.collect()
        gc.disable()  # a collection takes longer than many a solve
        try:
            return super().again(phase, call, *arguments)
        finally:
            gc.enable()
