"""Stopwatch and memory gauge of the benchmarks."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time
from pathlib import Path

import numpy as np


class Peak:
    """Resident memory of a block in bytes: when it began, and at most.

    Linux counts the peak exactly and lets a process reset its mark; elsewhere both are None.
    """

    start: int | None = None
    top: int | None = None

    def __enter__(self):
        gc.collect()
        try:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")
            self.start = status("VmRSS")
        except (OSError, AttributeError):
            pass
        return self

    def __exit__(self, *_):
        if self.start is not None:
            self.top = max(status("VmHWM"), self.start)


def status(name: str) -> int:
    """Return one memory line of the process's status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(x for x in lines if x.startswith(name)).split()[1])


def peaks(symbolic: Peak, numeric: Peak) -> dict:
    """Return the peak above the start of the analysis, and of the first factorization alone."""
    if symbolic.top is None:
        return {}
    whole = max(symbolic.top, numeric.top) - symbolic.start
    return {"peak": whole, "peak_factor": numeric.top - numeric.start}


@contextlib.contextmanager
def no_garbage_collection():
    """Collect garbage now, and not inside of the block."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Clock:
    """Times by phase: at most ``reps`` samples, no more once ``budget`` seconds are spent."""

    def __init__(self, reps: int, budget: float):
        self.reps, self.budget, self.samples = reps, budget, {}

    def wants(self, phase: str) -> bool:
        """Tell whether the phase is to be timed once more."""
        taken = self.samples.get(phase, ())
        return not taken or (len(taken) < self.reps and sum(taken) < self.budget)

    def once(self, phase: str, call, *arguments):
        """Time one call and keep the time."""
        with no_garbage_collection():
            return self.sample(phase, call, *arguments)

    def sample(self, phase: str, call, *arguments):
        """Time one call, and leave garbage to the caller."""
        start = time.perf_counter()
        result = call(*arguments)
        self.samples.setdefault(phase, []).append(time.perf_counter() - start)
        return result

    def again(self, phase: str, call, *arguments):
        """Time the call as often as the phase wants; what it gives is gone before the next one.

        Garbage is collected once, before the first sample: a collection empties the processor's
        caches, which takes longer than a small system.
        """
        result = None
        with no_garbage_collection():
            while self.wants(phase):
                result = None
                result = self.sample(phase, call, *arguments)
        return result

    def anew(self, phase: str, build, call):
        """Time the call on a new solver each time; what building and closing cost is left out."""
        result = None
        with no_garbage_collection():
            while self.wants(phase):
                solver = build()
                result = self.sample(phase, call, solver)
                solver.close()
        return result

    def summary(self) -> dict:
        """Return median, minimum, maximum and number of the samples, by phase."""
        return {
            phase: {
                "median": float(np.median(taken)),
                "min": min(taken),
                "max": max(taken),
                "reps": len(taken),
            }
            for phase, taken in self.samples.items()
        }
