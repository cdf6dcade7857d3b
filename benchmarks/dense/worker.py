"""Measures entries of the dense ladder as they come on stdin; a JSON line of result for each.

A process of its own, since a kernel that fails takes the device's context with it: the ladder then
starts another and goes on with the next entry.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.dense import ours, rivals, timing
from benchmarks.dense.checks import LIMIT, residual
from benchmarks.dense.problem import Problem
from benchmarks.harness import device
from benchmarks.harness.cases import Case
from benchmarks.harness.processes import failure
from benchmarks.harness.vendor import UnavailableError

BUILDERS: dict[str, Callable] = {**ours.BUILDERS, **rivals.BUILDERS}
LARGEST_CHECK = 2048  # one matrix above is checked on the device: the host takes too long


class Worker:
    """Keeps the operands of the last case, which the next entry most often shares."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.case: Case | None = None
        self.problem: Any = None

    def measure(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return what an entry measured, or its error."""
        if entry["rung"] == "ceilings":
            return self._ceilings(entry["dtypes"])
        case = Case(**{k: entry[k] for k in ("routine", "dtype", "shape", "n", "batch")})
        if case != self.case:
            self.case = self.problem = None
            self.cupy.get_default_memory_pool().free_all_blocks()
            self.problem, self.case = Problem(case, self.cupy), case
        problem = self.problem
        problem.restore()
        problem.info.fill(0)
        run = BUILDERS[entry["rung"]](problem)
        if run.on_host:
            times = on_host(run, entry["budget"])
        else:
            times = timing.Stopwatch(entry["budget"], entry["reps"])(run.call, run.restore)
        done = problem.n[: run.count]
        result = times.as_dict() | {"matrices": len(done)}
        result |= self._rates(case, done, result["seconds"]["median"], run.on_host)
        return result | self._check(case, problem, run)

    def _rates(self, case: Case, n: np.ndarray, seconds: float, on_host: bool) -> dict[str, Any]:
        """Work done a second, and its share of what the device's ceilings allow."""
        flops, moved = case.flops(n), case.bytes(n)
        found = {"flops": flops, "bytes": moved}
        found |= {"gflops": flops / seconds / 1e9, "gbytes": moved / seconds / 1e9}
        if not on_host:
            bound = max(flops / timing.peak(case.dtype), moved / timing.bandwidth())
            found["roofline"] = bound / seconds
        return found

    def _check(self, case: Case, problem: Problem, run: Any) -> dict[str, Any]:
        """Run once more on fresh inputs and take the worst residual of a sample."""
        large = case.shape == "native" and case.n > LARGEST_CHECK
        if large and run.on_host:
            return {"residual": None, "failed": 0, "ok": None}
        run.restore()
        run.call()
        self.cupy.cuda.runtime.deviceSynchronize()
        xp, worst = self.cupy if large else np, 0.0
        for i in problem.sample(run.count):
            pivots = None if run.pivots is None else run.pivots(i)
            result = problem.result(i) if large else run.get(i)
            source = problem.source(i, on_host=not large)
            worst = max(worst, residual(case.routine, source, result, pivots, xp))
        failed = 0 if run.info is None else int(self.cupy.count_nonzero(run.info))
        return {"residual": worst, "failed": failed, "ok": worst <= LIMIT and not failed}

    def _ceilings(self, dtypes: str) -> dict[str, Any]:
        peaks = {letter: timing.peak(letter) / 1e9 for letter in dtypes}
        return {"copy_gbytes": timing.bandwidth() / 1e9, "gemm_gflops": peaks, "ok": True}


def on_host(run: Any, budget: float) -> timing.Times:
    """Time a run on the host's clock."""
    run.call()  # compiles, starts threads
    times: list[float] = []
    while not times or (sum(times) < budget and len(times) < 10):
        run.restore()
        began = time.perf_counter()
        run.call()
        times.append(time.perf_counter() - began)
    threadpool_limits(os.cpu_count(), "blas")  # for the checks
    return timing.Times(times, times)


def main() -> None:
    worker = Worker()
    answer({"about": device.about()})
    for line in sys.stdin:
        entry = json.loads(line)
        try:
            result = worker.measure(entry)
        except Exception as error:  # whatever fails is a result
            result = failure(type(error).__name__, str(error)[:500])
            result["unavailable"] = isinstance(error, UnavailableError)
        result["healthy"] = healthy(worker.cupy)
        answer(result)
        if not result["healthy"]:
            raise SystemExit(1)


def healthy(cupy: Any) -> bool:
    """Whether the device still answers, and answers right."""
    try:
        return int(cupy.arange(10).sum()) == 45
    except Exception:
        return False


def answer(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
