"""Batches of sparse systems: `python -m benchmarks.gpu.batches p2d:30x1000 cd2d:30x1000`.

One pattern and many values: microseconds a system of a refactorization and of a solve, by one call
for all, by one factor after the other, by SciPy's `splu` in a loop, and on a GPU by the uniform
batch of cuDSS. On a GPU values and right-hand sides, one for each system, are there already, for
cuDSS as for `frontal batch gpu`; `frontal batch gpu, host arrays` brings them and takes solutions
back. Values of the batch differ by a factor between 1 and 2. Lines of JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import time
import warnings
from collections.abc import Callable
from ctypes import byref, c_void_p
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import frontal
from benchmarks.harness import cudss, grids
from benchmarks.harness.device import about as about_device
from benchmarks.harness.records import context, now

CASES = ("p2d:10x10000", "p2d:30x1000", "p2d:30x4000", "p3d:10x1000", "p3d:20x100", "cd2d:30x1000")
ALONE = 20  # systems that stand for all where they go one by one


def median(run: Callable[[], object], reps: int, wait: Callable[[], object]) -> float:
    """Median seconds of a call, after one that is not counted."""
    times = []
    for _ in range(reps + 1):
        wait()
        began = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def problem(name: str) -> tuple[sp.csc_array, str]:
    """A grid by its name and edge, and what kind of matrix it is."""
    grid, edge = grids.split(name)
    return sp.csc_array(grid.build(edge)), grid.kind


def ours(A: sp.csc_array, values: Any, b: Any, backend: str, reps: int) -> dict[str, float]:
    """By `factorize_batch`, from arrays of the host or of the device; the backward error too."""
    factors = frontal.factorize_batch(A, values, backend=backend)
    _, info = factors.solve(b, return_info=True)
    calls = {"refactor": lambda: factors.refactorize(values), "solve": lambda: factors.solve(b)}
    found = {name: median(call, reps, waiting(backend)) for name, call in calls.items()}
    return found | {"backward_error": float(info.backward_error.max())}


def one_by_one(
    A: sp.csc_array, values: np.ndarray, b: np.ndarray, backend: str, reps: int
) -> dict[str, float]:
    """By one `Factor`, refactorized for each system."""
    factor, few = frontal.factorize(A, backend=backend), values[:ALONE]
    calls = {
        "refactor": lambda: [factor.refactorize(one) for one in few],
        "solve": lambda: [factor.solve(b) for _ in few],
    }
    scale = len(values) / len(few)
    return {name: scale * median(run, reps, waiting(backend)) for name, run in calls.items()}


def scipy(A: sp.csc_array, values: np.ndarray, b: np.ndarray, reps: int) -> dict[str, float]:
    """By SuperLU in a loop."""
    few = [sp.csc_array((one, A.indices, A.indptr), shape=A.shape) for one in values[:ALONE]]
    lu, scale = splu(A), len(values) / len(few)
    calls = {
        "refactor": lambda: [splu(one) for one in few],
        "solve": lambda: [lu.solve(b) for _ in few],
    }
    return {name: scale * median(run, reps, waiting("cpu")) for name, run in calls.items()}


def uniform_batch(
    A: sp.csc_array, kind: str, values: np.ndarray, reps: int
) -> dict[str, float | str]:
    """By cuDSS's uniform batch: values and vectors stay on the device."""
    import cupy

    solver = cudss.Solver(A, kind, ubatch_size=len(values))
    try:
        count, n = len(values), A.shape[0]
        factor = values[:, :1] / A.data[0]
        many = cupy.asarray(factor) * solver.values[None]
        cudss.call("cudssMatrixSetValues", solver.matrix, many.data.ptr)
        vectors = cupy.ones((count, n)), cupy.zeros((count, n))  # as ours
        B, X = (dense(n, vector) for vector in vectors)

        def execute(phase: str) -> None:
            objects = solver.config, solver.data, solver.matrix, X, B
            cudss.call("cudssExecute", solver.handle, cudss.PHASES[phase], *objects)

        for phase in ("analysis", "factorization"):
            execute(phase)
        names = {"refactor": "refactorization", "solve": "solve"}
        found: dict[str, float | str] = {
            name: median(partial(execute, phase), reps, waiting("gpu"))
            for name, phase in names.items()
        }
        left = A @ vectors[1][-1].get() * factor[-1, 0] - 1
        found["residual"] = float(np.abs(left).max())
    except cudss.CudssError as error:
        found = {"error": str(error)}
    return found


def dense(n: int, array: Any) -> c_void_p:
    """The descriptor of vectors of which there is one a system."""
    made = c_void_p()
    about = n, 1, n, array.data.ptr, cudss.CUDA_TYPES[array.dtype.char], 0
    cudss.call("cudssMatrixCreateDn", byref(made), *about)
    return made


def waiting(backend: str) -> Callable[[], object]:
    """What waits until a device is done."""
    if backend != "gpu":
        return lambda: None
    import cupy

    return cupy.cuda.Device().synchronize


def rows(
    name: str, count: int, backends: list[str], reps: int, batches_only: bool
) -> list[dict[str, Any]]:
    """One row for each way of one case, in microseconds a system."""
    A, kind = problem(name)
    values = A.data * (1 + np.arange(count)[:, None] / count)
    b, made = np.ones(A.shape[0]), []

    def add(solver: str, found: dict[str, Any]) -> None:
        each = {k: 1e6 * v / count if k in ("refactor", "solve") else v for k, v in found.items()}
        made.append({"problem": name, "batch": count, "n": A.shape[0], "solver": solver} | each)

    for backend in backends:
        if backend == "gpu":
            import cupy

            there = cupy.asarray(values), cupy.ones((count, A.shape[0]))
            add("frontal batch gpu", ours(A, *there, backend, reps))
            del there
        name_of = "frontal batch gpu, host arrays" if backend == "gpu" else "frontal batch cpu"
        add(name_of, ours(A, values, b, backend, reps))
        if not batches_only:
            add(f"frontal loop {backend}", one_by_one(A, values, b, backend, reps))
    if not batches_only:
        add("scipy loop", scipy(A, values, b, reps))
    if "gpu" in backends and cudss.find() is not None:
        add("cudss uniform batch", uniform_batch(A, kind, values, reps))
    return made


def main() -> None:
    """Print a line for what was measured with, and one for each row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, help="name:edge x batch")
    parser.add_argument("--backends", default=None, help="cpu,gpu; by default what there is")
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--batches-only", action="store_true", help="nothing one by one")
    asked = parser.parse_args()
    found = ["cpu", *["gpu"] * (importlib.util.find_spec("cupy") is not None)]
    backends = asked.backends.split(",") if asked.backends else found
    warnings.simplefilter("error", frontal.PerformanceWarning)
    about = context() | {"date": now()}
    if "gpu" in backends:
        about["gpu"] = about_device()
    print(json.dumps({"about": about}), flush=True)
    for case in asked.cases:
        name, count = case.split("x")
        for row in rows(name, int(count), backends, asked.reps, asked.batches_only):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
