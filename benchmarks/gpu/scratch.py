"""The whole solve from scratch on a GPU: a SciPy matrix and b on the host to x on the host.

Each repetition has an analysis of its own, with what the solver does by default; kernels are warm,
for the problem before it was a small one of the same grid. What it costs is split into analysis,
the first factorization and the solve, transfers included; memory is what the device has less.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np

from benchmarks.harness import cudss

PARTS = ("analysis", "factor", "solve")


class Frontal:
    """This package: `frontal.solve` with what comes by default, on the GPU."""

    def __init__(self, A, kind: str, device: Any, backend: str) -> None:
        import frontal

        self.api, self.A, self.backend = frontal, A, backend
        self.info: Any = None

    def run(self, b: np.ndarray) -> tuple[np.ndarray, list[float]]:
        """Solve; the seconds of each part are as told, and what is left is analysis."""
        start = time.perf_counter()
        x, self.info = self.api.solve(self.A, b, backend=self.backend, return_info=True)
        seconds = time.perf_counter() - start
        later = [self.info.seconds[name] for name in ("factorization", "solve")]
        return x, [seconds - sum(later), *later]

    def facts(self) -> dict[str, Any]:
        """Return what was chosen, and the bytes of the factor."""
        return {"scratch_ordering": self.info.ordering, "factor_memory": int(self.info.memory)}

    def close(self) -> None:
        """Nothing is kept."""


class CuDSS:
    """cuDSS by itself, its handle and the triangle that it wants made beforehand."""

    def __init__(self, A, kind: str, device: Any, threads: int) -> None:
        self.A, self.kind, self.threads = A, kind, threads
        self.device, self.xp = device, device.xp
        self.half = cudss.stored(A, kind)
        self.handle = cudss.new_handle()
        self.solver: Any = None

    def run(self, b: np.ndarray) -> tuple[np.ndarray, list[float]]:
        """Solve; each part ends with an idle device."""
        times = [time.perf_counter()]
        given = {"threads": self.threads, "half": self.half, "handle": self.handle}
        self.solver = cudss.Solver(self.A, self.kind, **given)
        self.solver.analyze()
        self._mark(times)
        self.solver.factorize()
        self._mark(times)
        B = self.xp.asarray(b)
        X = self.xp.zeros_like(B)
        self.solver.solve(B, X)
        x = self.xp.asnumpy(X)
        self._mark(times)
        return x, np.diff(times).tolist()

    def _mark(self, times: list[float]) -> None:
        self.device.synchronize()
        times.append(time.perf_counter())

    def facts(self) -> dict[str, Any]:
        """Return what cuDSS says that it keeps on the device."""
        told = self.solver.get("memory_estimates", 16)[: len(cudss.ESTIMATES)]
        estimate = dict(zip(cudss.ESTIMATES, told, strict=True))
        return {"scratch_ordering": "own", "factor_memory": estimate["device"]}

    def close(self) -> None:
        """Give everything back but the handle."""
        self.solver.close()
        self.solver = None


def measure(
    solver: Any, b: np.ndarray, device: Any, samples: dict[str, list[float]], reps: int
) -> dict[str, Any]:
    """Solve from scratch so often; return memory, facts and the last x, and add the times.

    One more comes first that is not counted: it compiles what only larger problems need.

    Parameters
    ----------
    solver : Frontal or CuDSS
    b : (n,) array
    device : harness.device.Device
    samples : dict
        Gets seconds of "scratch", "scratch_analysis", "scratch_factor" and "scratch_solve".
    """
    found: dict[str, Any] = {}
    for turn in range(reps + 1):
        gc.collect()
        before = device.free()
        x, seconds = solver.run(b)
        for name, took in zip(("", *PARTS), (sum(seconds), *seconds), strict=True):
            times = samples.setdefault(f"scratch_{name}".rstrip("_"), [])
            times += [took] * (turn > 0)
        found = {"scratch_memory": device.taken(before), **solver.facts(), "x": x}
        solver.close()
    return found
