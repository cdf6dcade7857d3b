"""Public batched functions beside PyTorch's: `python benchmarks/gpu_public.py`.

A time is one call on arrays of the device, from an idle device until it is idle again, as the host
sees it: Python, memory and launches count. Calls of both rungs alternate in one process, on the
same row-major inputs, and neither waits for what failed. One JSON line an entry goes to
results/gpu_public.jsonl.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from gpu_cases import DTYPES
from gpu_worker import Worker
from harness import RESULTS, commit, machine, now, versions

CASES = ((8, 10000), (16, 10000), (32, 10000), (64, 5000), (128, 1000), (256, 500))
ROUTINES = ("cholesky", "lu_factor", "inv", "solve_triangular", "gemm")


def stacks(letter: str, n: int, count: int) -> tuple[Any, Any]:
    """Hermitian positive definite matrices, and others, on the device."""
    import cupy

    rng = np.random.default_rng(n)
    dtype = np.dtype(DTYPES[letter])
    b = rng.uniform(-1, 1, (64, n, n)).astype(dtype)
    if dtype.kind == "c":
        b += (1j * rng.uniform(-1, 1, b.shape)).astype(dtype)
    a = (b @ b.conj().swapaxes(1, 2) / n + np.eye(n)).astype(dtype)
    repeats = -(-count // len(a))
    return tuple(cupy.tile(cupy.asarray(x), (repeats, 1, 1))[:count] for x in (a, b))


def calls(routine: str, a: Any, b: Any) -> dict[str, Callable[[], Any]]:
    """The same work by each rung, checked against each other."""
    import torch

    from frontal.gpu import batched

    ta, tb = (torch.from_dlpack(x) for x in (a, b))
    linalg = torch.linalg
    ours: dict[str, Callable[[], Any]] = {
        "cholesky": lambda: batched.cholesky(a, lower=True, check=False)[0],
        "lu_factor": lambda: batched.lu_factor(a, check=False)[0],
        "inv": lambda: batched.inv(a, check=False)[0],
        "solve_triangular": lambda: batched.solve_triangular(a, b, lower=True),
        "gemm": lambda: batched.gemm(1.0, a, b),
    }
    theirs: dict[str, Callable[[], Any]] = {
        "cholesky": lambda: linalg.cholesky_ex(ta)[0],
        "lu_factor": lambda: linalg.lu_factor_ex(ta)[0],
        "inv": lambda: linalg.inv_ex(ta)[0],
        "solve_triangular": lambda: linalg.solve_triangular(ta, tb, upper=False),
        "gemm": lambda: torch.matmul(ta, tb),
    }
    return {"public": ours[routine], "torch": theirs[routine]}


def difference(found: Any, wanted: Any) -> float:
    """Relative difference of what two rungs return."""
    import cupy

    other = cupy.from_dlpack(wanted)
    return float(cupy.abs(found - other).max() / cupy.abs(other).max())


def measured(rungs: dict[str, Callable[[], Any]], reps: int) -> dict[str, list[float]]:
    """Seconds of each call of each rung, in turn, after three to warm up."""
    import cupy

    wait = cupy.cuda.runtime.deviceSynchronize
    times: dict[str, list[float]] = {name: [] for name in rungs}
    for i in range(reps + 3):
        for name, call in rungs.items():
            wait()
            began = time.perf_counter()
            result = call()
            wait()
            if i >= 3:
                times[name].append(time.perf_counter() - began)
            del result
    return times


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtypes", default="d")
    parser.add_argument("--routines", nargs="*", default=ROUTINES)
    parser.add_argument("--largest", type=int, default=256)
    parser.add_argument("--reps", type=int, default=50)
    parser.add_argument("--output", type=Path, default=RESULTS / "gpu_public.jsonl")
    options = parser.parse_args()
    about = {"gpu": Worker().about() | {"torch": torch.__version__}, "machine": machine()}
    about |= {"versions": versions(), "commit": commit()}
    cases = [(d, r, *c) for d in options.dtypes for r in options.routines for c in CASES]
    with options.output.open("w") as stream:
        for letter, routine, n, count in cases:
            if n > options.largest:
                continue
            rungs = calls(routine, *stacks(letter, n, count))
            error = difference(*(call() for call in rungs.values()))
            times = measured(rungs, options.reps)
            case = {"routine": routine, "dtype": letter, "n": n, "batch": count, "date": now()}
            for rung, found in times.items():
                seconds = {"median": median(found), "min": min(found), "max": max(found)}
                row = case | {"rung": rung, "difference": error}
                row |= {"seconds": seconds | {"reps": options.reps}}
                stream.write(json.dumps(row | about) + "\n")
            ours, theirs = (1e6 * median(x) for x in times.values())
            label = f"{letter}{routine} {n}x{count}"
            print(f"{label:32} {ours:8.0f} {theirs:8.0f} us  {error:.1e}", flush=True)


if __name__ == "__main__":
    main()
