"""Times on the GPU: CUDA events around a call whose inputs are restored and out of the cache.

Before each timed call the device is kept busy for as long as the host needs to hand the call
over, so that a time is the device's and not the interpreter's; the time from an idle device to
the end, as the host sees it, is measured beside it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness import vendor
from benchmarks.harness.cases import DTYPES

_CODE = r"""
extern "C" __global__ void spin(long long nanoseconds) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < nanoseconds);
}
extern "C" __global__ void sweep(const float4 *data, long long count, float *out) {
    float sum = 0;
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count;
         i += (long long)gridDim.x * blockDim.x) {
        float4 v = data[i];
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 12345.678f) *out = sum;
}
"""
_LONGEST_SPIN = 4e-3


@dataclass(frozen=True)
class Times:
    """Seconds of the timed calls, by the device's clock and by the host's."""

    device: list[float]
    host: list[float]

    def as_dict(self) -> dict[str, Any]:
        found = {"median": median(self.device), "min": min(self.device), "max": max(self.device)}
        return {"seconds": found | {"reps": len(self.device)}, "seconds_host": median(self.host)}


@cache
def _kernel(name: str) -> Any:
    import cupy

    return cupy.RawModule(code=_CODE).get_function(name)


@cache
def _large() -> Any:
    import cupy

    return cupy.ones(64 << 20, np.float32)  # 256 MiB, several times the cache


def flush() -> None:
    """Read more than the cache holds, so that it keeps nothing of the inputs."""
    _kernel("sweep")((528,), (512,), (_large(), np.int64(_large().size // 4), _large()))


def spin(seconds: float) -> None:
    """Keep the device busy."""
    nanoseconds = np.int64(1e9 * min(seconds, _LONGEST_SPIN))
    _kernel("spin")((1,), (1,), (nanoseconds,))


class Stopwatch:
    """Times calls on the current stream of the current device."""

    def __init__(self, budget: float, most: int) -> None:
        import cupy

        self.cupy, self.budget, self.most = cupy, budget, most

    def __call__(self, call: Callable[[], None], restore: Callable[[], None]) -> Times:
        """Warm up, then repeat until the budget is spent: twice at least, ``most`` at most."""
        synchronize = self.cupy.cuda.runtime.deviceSynchronize
        restore()
        call()  # compiles, allocates
        synchronize()
        whole: list[float] = []
        handed = 0.0
        began = time.perf_counter()
        for _ in range(3):
            restore()
            synchronize()
            start = time.perf_counter()
            call()
            handed = time.perf_counter() - start
            synchronize()
            whole.append(time.perf_counter() - start)
            if time.perf_counter() - began > self.budget / 2:
                break
        one = (time.perf_counter() - began) / len(whole) + min(handed, _LONGEST_SPIN)
        reps = int(np.clip(self.budget / one, 2, self.most))
        timed = [self._once(call, restore, handed) for _ in range(reps)]
        return Times(timed, whole)

    def _once(self, call: Callable[[], None], restore: Callable[[], None], handed: float) -> float:
        event = self.cupy.cuda.Event
        start, stop = event(), event()
        restore()
        flush()
        spin(1.5 * handed + 2e-5)
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, stop) / 1e3


@cache
def bandwidth() -> float:
    """Bytes a second, read and written, of the best of several large copies."""
    import cupy

    source = cupy.ones(2 << 30, np.uint8)
    target = cupy.empty_like(source)
    times = Stopwatch(0.3, 20)(lambda: cupy.copyto(target, source), lambda: None)
    return 2 * source.nbytes / min(times.device)


@cache
def peak(letter: str) -> float:
    """Real operations a second of the best of several large products by cuBLAS."""
    import cupy

    n = 8192 if letter != "z" else 6144
    rng = cupy.random.default_rng(5)
    dtype = np.dtype(DTYPES[letter])
    a, b = (rng.random((n, n)).astype(dtype) for _ in range(2))
    c = cupy.zeros((n, n), dtype)
    one, zero = (vendor.scalar(x, letter) for x in (1.0, 0.0))
    about = (vendor.N, vendor.N, n, n, n, one, a, n, b, n, zero, c, n)
    call = vendor.blas("gemm_v2", letter, *about)
    times = Stopwatch(0.4, 20)(call, lambda: None)
    flops = 2 * n**3 * (4 if letter in "cz" else 1)
    return flops / min(times.device)
