"""The whole solve from scratch on a GPU: a SciPy matrix and b on the host to x on the host.

Each repetition has an analysis of its own, with what the solver does by default; kernels are warm,
for the problem before it was a small one of the same grid. What it costs is split into analysis,
the first factorization and the solve, transfers included; memory is what the device has less.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import cudss

PARTS = ("analysis", "factor", "solve")
Mark = Callable[[str], None]


class Frontal:
    """This package as `frontal.solve` runs it."""

    def __init__(self, A, kind: str, device: Any, backend: str) -> None:
        import frontal

        self.api, self.A, self.backend = frontal, A, backend
        self.factored: Any = None

    def run(self, b: np.ndarray, mark: Mark) -> np.ndarray:
        """Solve, and mark the end of each part."""
        analysis = self.api.analyze(self.A, backend=self.backend)
        mark("analysis")
        self.factored = analysis.factorize(self.A)
        mark("factor")
        x = self.factored.solve(b)
        mark("solve")
        return x

    def facts(self) -> dict[str, Any]:
        """Return what was chosen, and the bytes of the factor."""
        info = self.factored.info
        return {"scratch_ordering": info["ordering"], "factor_memory": int(info["memory"])}

    def close(self) -> None:
        """Give everything back."""
        self.factored.free()
        self.factored = None


class CuDSS:
    """cuDSS by itself, its handle and the triangle that it wants made beforehand."""

    def __init__(self, A, kind: str, device: Any, threads: int) -> None:
        self.A, self.kind, self.xp, self.threads = A, kind, device.xp, threads
        self.half = cudss.stored(A, kind)
        self.handle = cudss.new_handle()
        self.solver: Any = None

    def run(self, b: np.ndarray, mark: Mark) -> np.ndarray:
        """Solve, and mark the end of each part."""
        given = {"threads": self.threads, "half": self.half, "handle": self.handle}
        self.solver = cudss.Solver(self.A, self.kind, **given)
        self.solver.analyze()
        mark("analysis")
        self.solver.factorize()
        mark("factor")
        B = self.xp.asarray(b)
        X = self.xp.zeros_like(B)
        self.solver.solve(B, X)
        x = self.xp.asnumpy(X)
        mark("solve")
        return x

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

    Parameters
    ----------
    solver : Frontal or CuDSS
    b : (n,) array
    device : gpu_sparse.Device
    samples : dict
        Gets seconds of "scratch", "scratch_analysis", "scratch_factor" and "scratch_solve".
    """
    found: dict[str, Any] = {}
    for _ in range(reps):
        gc.collect()
        before = device.free()
        times = [time.perf_counter()]

        def mark(part: str, times: list[float] = times) -> None:
            device.synchronize()
            times.append(time.perf_counter())

        x = solver.run(b, mark)
        parts = dict(zip(PARTS, np.diff(times).tolist(), strict=True))
        for name, seconds in [("", times[-1] - times[0]), *parts.items()]:
            samples.setdefault(f"scratch_{name}".rstrip("_"), []).append(seconds)
        found = {"scratch_memory": device.taken(before), **solver.facts(), "x": x}
        solver.close()
    return found
