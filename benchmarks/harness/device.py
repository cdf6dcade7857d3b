"""The GPU as measurements need it: its memory, and times from an idle device to an idle device."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import vendor
from benchmarks.harness.clocks import Clock
from benchmarks.harness.processes import answer
from benchmarks.harness.records import Record


def about() -> Record:
    """Return the device, its driver and the versions of what runs on it."""
    import cupy

    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    driver = _driver() or str(runtime.driverGetVersion())
    found = {"device": name, "driver": driver, "cuda": runtime.runtimeGetVersion()}
    return found | {"cupy": cupy.__version__} | vendor.versions()


def _driver() -> str:
    """Version of the display driver, as the kernel module reports it."""
    try:
        words = (
            Path("/proc/driver/nvidia/version").read_text(encoding="ascii").split("\n")[0].split()
        )
        return next(w for w in words if w[0].isdigit() and w.count(".") >= 1)
    except (OSError, StopIteration):
        return ""


def about_in_a_process() -> Record:
    """Return `about`, by a process that takes no memory from others; no GPU is the end."""
    found = answer("harness.device", None, 120)
    if "error" in found:
        raise SystemExit("no GPU that can be used: {type}, {message}".format(**found["error"]))
    return found


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

    def sample(self, phase: str, call, *arguments):
        self.synchronize()
        start = time.perf_counter()
        result = call(*arguments)
        self.synchronize()
        self.samples.setdefault(phase, []).append(time.perf_counter() - start)
        return result

    def again(self, phase: str, call, *arguments):
        call(*arguments)  # compiles, allocates
        return super().again(phase, call, *arguments)


if __name__ == "__main__":
    print(json.dumps(about()))
