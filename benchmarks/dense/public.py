"""Public batched functions beside PyTorch's and CuPy's: `python -m benchmarks.dense.public`.

A time is one call on arrays of the device, from an idle device until it is idle again, as the host
sees it: Python, memory and launches count. Calls of all rungs alternate in one process, on the
same row-major inputs, and none waits for what failed. Lists of matrices of different sizes have
rungs of their own: a list, and a `Batch` of it made before. One JSON line an entry goes to
results/gpu_public.jsonl as soon as it is measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness import device
from benchmarks.harness.cases import DTYPES
from benchmarks.harness.records import RESULTS, Record, writer

ORDERS = (8, 16, 32, 64, 128, 256, 512, 1024)
TELLING = (8, 32, 64, 256)  # orders that come first
FEW, MOST, BYTES = 100, 10_000, 8e9  # matrices, and bytes of an input
ROUTINES = ("cholesky", "lu_factor", "inv", "solve", "solve_triangular", "gemm")
LISTED = 1000  # matrices of a list, of 1 to 64 rows
RIVALS = ("torch", "cupy")
Store = Callable[[Record], Record]


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


def ours(routine: str, a: Any, b: Any) -> Callable[[], Any]:
    """A call of this package's function."""
    from frontal.gpu import batched

    return {
        "cholesky": lambda: batched.cholesky(a, lower=True, check=False)[0],
        "lu_factor": lambda: batched.lu_factor(a, check=False)[0],
        "inv": lambda: batched.inv(a, check=False)[0],
        "solve": lambda: batched.solve(a, b, check=False)[0],
        "solve_triangular": lambda: batched.solve_triangular(a, b, lower=True),
        "gemm": lambda: batched.gemm(1.0, a, b),
    }[routine]


def calls(routine: str, a: Any, b: Any) -> dict[str, Callable[[], Any]]:
    """The same work by each rung, to be checked against each other."""
    import cupy
    import torch

    ta, tb = (torch.from_dlpack(x) for x in (a, b))
    linalg = torch.linalg
    rivals: dict[str, tuple[Callable[[], Any], ...]] = {
        "cholesky": (lambda: linalg.cholesky_ex(ta)[0], lambda: cupy.linalg.cholesky(a)),
        "lu_factor": (lambda: linalg.lu_factor_ex(ta)[0],),
        "inv": (lambda: linalg.inv_ex(ta)[0], lambda: cupy.linalg.inv(a)),
        "solve": (lambda: linalg.solve_ex(ta, tb)[0], lambda: cupy.linalg.solve(a, b)),
        "solve_triangular": (lambda: linalg.solve_triangular(ta, tb, upper=False),),
        "gemm": (lambda: torch.matmul(ta, tb), lambda: cupy.matmul(a, b)),
    }
    return {"public": ours(routine, a, b)} | dict(zip(RIVALS, rivals[routine], strict=False))


def lists(letter: str, routine: str) -> dict[str, Callable[[], Any]]:
    """Calls with matrices of 1 to 64 rows: a list of them, and a `Batch` of it."""
    from frontal.gpu import batched

    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 65, LISTED)
    whole, other = (x[0] for x in stacks(letter, 64, 1))
    a, b = ([x.T[:n, :n] for n in sizes] for x in (whole, other))
    batches = tuple(batched.Batch(x) for x in (a, b))
    return {"list": ours(routine, a, b), "Batch": ours(routine, *batches)}


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
    """Seconds of each call of each rung, in turn, as many as there is time for, 3 at the least.

    What takes much longer than there is time is called once.
    """
    import cupy

    wait = cupy.cuda.runtime.deviceSynchronize

    def seconds(call: Callable[[], Any]) -> float:
        wait()
        began = time.perf_counter()
        result = call()
        wait()
        spent = time.perf_counter() - began
        del result
        return spent

    for call in rungs.values():  # notes launches, fills pools of memory
        call()
    times = {name: [seconds(call)] for name, call in rungs.items()}
    first = next(iter(rungs))
    more = {k: call for k, call in rungs.items() if k == first or times[k][0] < 3 * budget}
    times |= {name: [] for name in more}
    start = time.perf_counter()
    for i in range(reps):
        for name, call in more.items():
            times[name].append(seconds(call))
        if i >= 2 and time.perf_counter() - start > budget:
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


def write(store: Store, case: Record, times: dict[str, list[float]], error: float) -> None:
    """Store one record a rung, and print a line."""
    middle = {rung: median(found) for rung, found in times.items()}
    for rung, found in times.items():
        seconds = {"median": middle[rung], "min": min(found), "max": max(found), "reps": len(found)}
        store(case | {"rung": rung, "difference": error, "seconds": seconds})
    label = f"{case['dtype']} {case['routine']} {case['n']} x {case['batch']}"
    shown = "  ".join(f"{rung} {1e6 * t:.0f}" for rung, t in middle.items())
    print(f"{label:34} {shown} us  {error:.1e}", flush=True)


def cases(options: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Scalar type, order, number of matrices: a few orders of all types, then the others."""
    for telling in (True, False):
        for letter in options.dtypes:
            for n in options.orders:
                if (n in TELLING) == telling:
                    for count in counts(letter, n):
                        yield letter, n, count


def run_stacks(options: argparse.Namespace, store: Store) -> None:
    """Time stacks, until the time is over."""
    for letter, n, count in cases(options):
        empty_pools()
        a, b = stacks(letter, n, count)
        for routine in options.routines:
            if time.perf_counter() > options.until:
                print("the time is over")
                return
            case = {"routine": routine, "dtype": letter, "n": n, "batch": count}
            try:
                one_case(options, store, case, a, b)
            except (MemoryError, RuntimeError) as error:
                print(f"{case}: {str(error)[:200]}", flush=True)
                empty_pools()


def one_case(options: argparse.Namespace, store: Store, case: Record, a: Any, b: Any) -> None:
    """Check and time one function on stacks."""
    rungs = calls(case["routine"], a, b)
    if case["n"] >= 512 and case["batch"] > FEW:
        rungs.pop("cupy", None)  # which would take all the time
    first, *others = [call() for call in rungs.values()]
    error = max(difference(first, other) for other in others)
    del first, others
    write(store, case, measured(rungs, options.reps, options.budget), error)


def empty_pools() -> None:
    """Give memory back that CuPy and PyTorch keep."""
    import cupy
    import torch

    cupy.get_default_memory_pool().free_all_blocks()
    torch.cuda.empty_cache()


def run_lists(options: argparse.Namespace, store: Store) -> None:
    """Time lists of matrices of different sizes, and the device's share of that."""
    for letter in options.dtypes:
        for routine in options.routines:
            rungs = lists(letter, routine)
            error = difference(*[list(call()) for call in rungs.values()])
            times = measured(rungs, options.reps, options.budget)
            times["device"] = [kernel_time(rungs["Batch"])]
            case = {"routine": routine, "dtype": letter, "n": "1-64", "batch": LISTED}
            write(store, case, times, error)


def main() -> None:
    began = time.perf_counter()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtypes", default="dszc")
    parser.add_argument("--routines", nargs="*", default=ROUTINES)
    parser.add_argument("--orders", nargs="*", type=int, default=ORDERS)
    parser.add_argument("--reps", type=int, default=30)
    parser.add_argument("--budget", type=float, default=0.15, help="seconds of a case")
    parser.add_argument("--seconds", type=float, default=200.0, help="of the whole run")
    parser.add_argument("--only", choices=["stacks", "lists"])
    parser.add_argument("--output", type=Path, default=RESULTS / "gpu_public.jsonl")
    options = parser.parse_args()
    options.until = began + options.seconds
    import torch

    gpu = device.about() | {"torch": torch.__version__}
    with writer(options.output, append=True, gpu=gpu) as store:
        if options.only != "stacks":
            run_lists(options, store)
        if options.only != "lists":
            run_stacks(options, store)


if __name__ == "__main__":
    main()
