"""Public batched functions beside PyTorch's and CuPy's: `python benchmarks/gpu_public.py`.

A time is one call on arrays of the device, from an idle device until it is idle again, as the host
sees it: Python, memory and launches count. Calls of all rungs alternate in one process, on the
same row-major inputs, and none waits for what failed. Lists of matrices of different sizes have
rungs of their own: a list, and a `Batch` of it made before. One JSON line an entry goes to
results/gpu_public.jsonl as soon as it is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean, median
from subprocess import run
from typing import Any

import numpy as np

from gpu_cases import DTYPES
from gpu_worker import Worker
from harness import RESULTS, commit, machine, now, versions

ORDERS = (8, 16, 32, 64, 128, 256, 512, 1024)
FEW, MOST, BYTES = 100, 10_000, 8e9  # matrices, and bytes of an input
ROUTINES = ("cholesky", "lu_factor", "inv", "solve", "solve_triangular", "gemm")
LISTED = 1000  # matrices of a list, of 1 to 64 rows
RIVALS = ("torch", "cupy")


def stacks(letter: str, n: int, count: int) -> tuple[Any, Any]:
    """Hermitian positive definite matrices, and others, on the device."""
    import cupy

    rng = np.random.default_rng(n)
    dtype = np.dtype(DTYPES[letter])
    b = rng.uniform(-1, 1, (64 if n <= 256 else 8, n, n)).astype(dtype)
    if dtype.kind == "c":
        b += (1j * rng.uniform(-1, 1, b.shape)).astype(dtype)
    held = cupy.asarray(b)
    a = (held @ held.conj().swapaxes(1, 2) / n + cupy.eye(n)).astype(dtype)
    repeats = -(-count // len(a))
    return tuple(cupy.ascontiguousarray(cupy.tile(x, (repeats, 1, 1))[:count]) for x in (a, held))


def calls(routine: str, a: Any, b: Any) -> dict[str, Callable[[], Any]]:
    """The same work by each rung, to be checked against each other."""
    import cupy
    import torch

    from frontal.gpu import batched

    ta, tb = (torch.from_dlpack(x) for x in (a, b))
    linalg = torch.linalg
    rungs: dict[str, tuple[Callable[[], Any], ...]] = {
        "cholesky": (
            lambda: batched.cholesky(a, lower=True, check=False)[0],
            lambda: linalg.cholesky_ex(ta)[0],
            lambda: cupy.linalg.cholesky(a),
        ),
        "lu_factor": (
            lambda: batched.lu_factor(a, check=False)[0],
            lambda: linalg.lu_factor_ex(ta)[0],
        ),
        "inv": (
            lambda: batched.inv(a, check=False)[0],
            lambda: linalg.inv_ex(ta)[0],
            lambda: cupy.linalg.inv(a),
        ),
        "solve": (
            lambda: batched.solve(a, b, check=False)[0],
            lambda: linalg.solve_ex(ta, tb)[0],
            lambda: cupy.linalg.solve(a, b),
        ),
        "solve_triangular": (
            lambda: batched.solve_triangular(a, b, lower=True),
            lambda: linalg.solve_triangular(ta, tb, upper=False),
        ),
        "gemm": (
            lambda: batched.gemm(1.0, a, b),
            lambda: torch.matmul(ta, tb),
            lambda: cupy.matmul(a, b),
        ),
    }
    return dict(zip(("public", *RIVALS), rungs[routine], strict=False))


def lists(letter: str, routine: str) -> dict[str, Callable[[], Any]]:
    """Calls with matrices of 1 to 64 rows: a list, and a `Batch` of it, which lets times end."""
    import cupy

    from frontal.gpu import batched

    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 65, LISTED)
    whole, other = (x[0] for x in stacks(letter, 64, 1))
    a = [cupy.asfortranarray(whole[:n, :n]) for n in sizes]
    b = [cupy.asfortranarray(other[:n, :n]) for n in sizes]
    batches = tuple(batched.Batch(x) for x in (a, b))
    work: dict[str, Callable[[Any, Any], Any]] = {
        "cholesky": lambda a, b: batched.cholesky(a, lower=True, check=False)[0],
        "lu_factor": lambda a, b: batched.lu_factor(a, check=False)[0],
        "inv": lambda a, b: batched.inv(a, check=False)[0],
        "solve": lambda a, b: batched.solve(a, b, check=False)[0],
        "solve_triangular": lambda a, b: batched.solve_triangular(a, b, lower=True),
        "gemm": lambda a, b: batched.gemm(1.0, a, b),
    }
    one = work[routine]
    return {"list": lambda: one(a, b), "Batch": lambda: one(*batches)}


def difference(found: Any, wanted: Any) -> float:
    """Relative difference of what two rungs return."""
    import cupy

    error, size = 0.0, 0.0
    stacked = getattr(wanted, "ndim", 0) == 3
    pairs = [(found, cupy.from_dlpack(wanted))] if stacked else zip(found, wanted, strict=True)
    for x, y in pairs:
        error = max(error, float(cupy.abs(x - y).max()))
        size = max(size, float(cupy.abs(y).max()))
    return error / size


def measured(
    rungs: dict[str, Callable[[], Any]], reps: int, budget: float
) -> dict[str, list[float]]:
    """Seconds of each call of each rung, in turn, as many as there is time for, 3 at the least."""
    import cupy

    wait = cupy.cuda.runtime.deviceSynchronize
    times: dict[str, list[float]] = {name: [] for name in rungs}
    for call in (*rungs.values(), *rungs.values()):  # notes launches, fills pools of memory
        call()
    wait()
    start = time.perf_counter()
    for i in range(reps + 1):
        for name, call in rungs.items():
            wait()
            began = time.perf_counter()
            result = call()
            wait()
            if i:
                times[name].append(time.perf_counter() - began)
            del result
        if i >= 3 and time.perf_counter() - start > budget:
            break
    return times


def kernel_time(call: Callable[[], Any], reps: int = 10) -> float:
    """Seconds of the device alone for a call, of many in a row; at least what the host takes."""
    import cupy

    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    # behind work that keeps the device busy until all calls are queued
    busy = cupy.ones((6000, 6000))
    cupy.cuda.runtime.deviceSynchronize()
    for _ in range(4):
        busy @ busy
    start.record()
    for _ in range(reps):
        call()
    stop.record()
    stop.synchronize()
    return cupy.cuda.get_elapsed_time(start, stop) / reps / 1e3


def counts(letter: str, n: int) -> list[int]:
    """Few matrices, and as many as there may be."""
    most = min(MOST, int(BYTES / n**2 / np.dtype(DTYPES[letter]).itemsize))
    return [FEW, most]


class Rows:
    """Writes rows as they come, and what a table needs."""

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.stream, self.about = path.open("a"), about
        self.ratios: dict[str, list[float]] = {}

    def write(self, case: dict[str, Any], times: dict[str, list[float]], error: float) -> None:
        """One row a rung, and a line for whoever looks on."""
        middle = {rung: median(found) for rung, found in times.items()}
        for rung, found in times.items():
            seconds = {"median": middle[rung], "min": min(found), "max": max(found)}
            row = case | {"date": now(), "rung": rung, "difference": error}
            row |= {"seconds": seconds | {"reps": len(found)}}
            self.stream.write(json.dumps(row | self.about) + "\n")
        self.stream.flush()
        for rival in RIVALS:
            if rival in middle:
                ratio = middle[rival] / middle["public"]
                self.ratios.setdefault(f"{case['routine']} {rival}", []).append(ratio)
        label = f"{case['dtype']} {case['routine']} {case['n']} x {case['batch']}"
        shown = "  ".join(f"{rung} {1e6 * t:.0f}" for rung, t in middle.items())
        print(f"{label:34} {shown} us  {error:.1e}", flush=True)

    def summary(self) -> None:
        """Geometric means of rivals' times over ours, and the least of them."""
        for name, found in sorted(self.ratios.items()):
            print(f"{name:28} {geometric_mean(found):6.2f} in the mean, {min(found):.2f} least")
        everything = [x for found in self.ratios.values() for x in found]
        if everything:
            print(f"{'all':28} {geometric_mean(everything):6.2f}, {min(everything):.2f} least")


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Scalar type, order, number of matrices."""
    for letter in options.dtypes:
        for n in options.orders:
            for count in counts(letter, n):
                yield letter, n, count


def run_stacks(options: argparse.Namespace, rows: Rows) -> None:
    """Time stacks, until the time is over."""
    import cupy

    for letter, n, count in cases(options):
        cupy.get_default_memory_pool().free_all_blocks()
        a, b = stacks(letter, n, count)
        for routine in options.routines:
            if time.perf_counter() > options.until:
                print("the time is over")
                return
            rungs = calls(routine, a, b)
            first, *others = [call() for call in rungs.values()]
            error = max(difference(first, other) for other in others)
            del first, others
            times = measured(rungs, options.reps, options.budget)
            case = {"routine": routine, "dtype": letter, "n": n, "batch": count}
            rows.write(case, times, error)


def run_lists(options: argparse.Namespace, rows: Rows) -> None:
    """Time lists of matrices of different sizes, and the device's share of that."""
    for letter in options.dtypes:
        for routine in options.routines:
            rungs = lists(letter, routine)
            error = difference(*[list(call()) for call in rungs.values()])
            times = measured(rungs, options.reps, options.budget)
            times["device"] = [kernel_time(rungs["Batch"])]
            case = {"routine": routine, "dtype": letter, "n": "1-64", "batch": LISTED}
            rows.write(case, times, error)


def warm(options: argparse.Namespace) -> None:
    """Compile in processes of their own, side by side, what will be timed; it is kept on disk."""

    def one(letter: str, routine: str) -> None:
        given = ["--dtypes", letter, "--routines", routine, "--compile"]
        run([sys.executable, __file__, *given], check=False, timeout=options.seconds)

    jobs = [(x, y) for x in options.dtypes for y in options.routines]
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda job: one(*job), jobs))


def compile_all(options: argparse.Namespace) -> None:
    """Call our functions once on few matrices of each order."""
    for letter in options.dtypes:
        for n in options.orders:
            a, b = stacks(letter, n, 8)
            for routine in options.routines:
                calls(routine, a, b)["public"]()
        for routine in options.routines:
            lists(letter, routine)["Batch"]()


def main() -> None:
    import torch

    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtypes", default="dszc")
    parser.add_argument("--routines", nargs="*", default=ROUTINES)
    parser.add_argument("--orders", nargs="*", type=int, default=ORDERS)
    parser.add_argument("--reps", type=int, default=30)
    parser.add_argument("--budget", type=float, default=0.15, help="seconds of a case")
    parser.add_argument("--seconds", type=float, default=200.0, help="of the whole run")
    parser.add_argument("--only", choices=["stacks", "lists"])
    parser.add_argument("--compile", action="store_true", help="time nothing")
    parser.add_argument("--output", type=Path, default=RESULTS / "gpu_public.jsonl")
    options = parser.parse_args()
    options.until = began + options.seconds
    if options.compile:
        return compile_all(options)
    warm(options)
    print(f"compiled within {time.perf_counter() - began:.0f} s", flush=True)
    about = {"gpu": Worker().about() | {"torch": torch.__version__}, "machine": machine()}
    rows = Rows(options.output, about | {"versions": versions(), "commit": commit()})
    if options.only != "stacks":
        run_lists(options, rows)
    if options.only != "lists":
        run_stacks(options, rows)
    rows.summary()
    return None


if __name__ == "__main__":
    main()
