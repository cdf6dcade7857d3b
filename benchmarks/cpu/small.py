"""Small systems beside SciPy, on one thread: `python -m benchmarks.cpu.small`.

What a call costs before any arithmetic: median times of the public functions, and their ratios to
`spsolve`, `splu` and `SuperLU.solve`; then how many more calls two Python threads make than one,
or as many as `--threads` says. Both sides take turns, so that what else the machine does slows
both. Results go to results/small.jsonl.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

from benchmarks.harness.processes import on_threads
from benchmarks.harness.records import RESULTS, writer

os.environ |= on_threads(1)  # before NumPy is loaded

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu, spsolve

import frontal

PROBLEMS = (("chain", 10), ("chain", 100), ("chain", 1000), ("grid", 100), ("grid", 1024))
WARM_UP, ROUNDS = 5, 10
TOGETHER = 1000  # unknowns of the system that threads solve with


def matrix(shape: str, n: int, kind: str) -> sp.csc_array:
    """A chain, or a square grid, of n unknowns; for LU with entries that differ by direction."""
    above = -1.0 if kind == "spd" else -0.5
    edge = n if shape == "chain" else round(n**0.5)
    line = sp.diags_array([-1.0, 2.1, above], offsets=[-1, 0, 1], shape=(edge, edge))
    whole = line if shape == "chain" else sp.kronsum(line, line)
    return sp.csc_array(whole)


def seconds(pairs: dict[str, Callable[[], object]], calls: int) -> dict[str, float]:
    """Median time of each function; they take turns, with a run of calls each."""
    times: dict[str, list[float]] = {name: [] for name in pairs}
    for _ in range(ROUNDS):
        for name, function in pairs.items():
            for turn in range(WARM_UP + calls // ROUNDS):
                began = time.perf_counter()
                function()
                if turn >= WARM_UP:
                    times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def measured(shape: str, n: int, kind: str, calls: int) -> dict[str, object]:
    """Times of one matrix, and their ratios to SciPy's."""
    A = matrix(shape, n, kind)
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    factor, lu = frontal.factorize(A), splu(A)
    values = A.data.copy()
    found = seconds(
        {
            "solve": lambda: frontal.solve(A, b),
            "spsolve": lambda: spsolve(A, b),
            "factorize": lambda: frontal.factorize(A),
            "factorize and solve": lambda: frontal.factorize(A).solve(b),
            "refactorize": lambda: factor.refactorize(values),
            "refactorize with a matrix": lambda: factor.refactorize(A),
            "refactorize and solve": lambda: factor.refactorize(values).solve(b),
            "splu": lambda: splu(A),
            "splu and solve": lambda: splu(A).solve(b),
            "Factor.solve": lambda: factor.solve(b),
            "lu.solve": lambda: lu.solve(b),
        },
        calls,
    )
    pairs = {
        "solve / spsolve": ("solve", "spsolve"),
        "factorize / splu": ("factorize", "splu"),
        "factorize and solve / splu and solve": ("factorize and solve", "splu and solve"),
        "refactorize / splu": ("refactorize", "splu"),
        "Factor.solve / lu.solve": ("Factor.solve", "lu.solve"),
    }
    return {
        "problem": f"{shape}:{A.shape[0]}",
        "n": A.shape[0],
        "nnz": A.nnz,
        "method": factor.info["method"],
        "threads": 1,
        "phases": {name: {"median": time_, "calls": calls} for name, time_ in found.items()},
        "ratios": {name: found[a] / found[b] for name, (a, b) in pairs.items()},
    }


def rate(functions: list[Callable[[], object]], seconds: float) -> float:
    """Calls a second of so many threads, each with a function of its own."""
    counts, until = [0] * len(functions), time.perf_counter() + seconds

    def repeat(i: int) -> None:
        while time.perf_counter() < until:
            functions[i]()
            counts[i] += 1

    threads = [threading.Thread(target=repeat, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


def together(shape: str, kind: str, duration: float, threads: int) -> dict[str, object]:
    """How many more calls Python threads make than one, with factors of their own."""
    A = matrix(shape, TOGETHER, kind)
    b = np.ones(A.shape[0])
    factors = [frontal.factorize(A) for _ in range(threads)]
    calls: dict[str, Callable[[frontal.Factor], Callable[[], object]]] = {
        "Factor.solve": lambda factor: lambda: factor.solve(b),
        "refactorize": lambda factor: lambda: factor.refactorize(A.data),
        "factorize": lambda _: lambda: frontal.factorize(A),
        "factorize and solve": lambda _: lambda: frontal.factorize(A).solve(b),
    }
    gains = {}
    for name, call in calls.items():
        functions = [call(factor) for factor in factors]
        runs = [
            rate(functions, duration) / rate(functions[:1], duration) for _ in range(5)
        ]  # what else runs here would make a single one worthless
        gains[name] = statistics.median(runs)
    return {
        "problem": f"{shape}:{A.shape[0]}",
        "method": factors[0].info["method"],
        "python_threads": threads,
        "gains": gains,
    }


def show(record: dict) -> str:
    """Return a record in one line."""
    numbers = record.get("ratios") or record["gains"]
    text = ", ".join(f"{name} {value:.2f}" for name, value in numbers.items())
    threads = f"{record['python_threads']} threads: " if "gains" in record else ""
    return f"{record['problem']:12} {record['method']:9} {threads}{text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--duration", type=float, default=0.15, help="seconds of threads together")
    parser.add_argument("--threads", type=int, nargs="*", default=[2], help="so many together")
    parser.add_argument("--threads-only", action="store_true", help="nothing beside SciPy")
    parser.add_argument("--output", type=Path, default=RESULTS / "small.jsonl")
    options = parser.parse_args()
    with writer(options.output) as store:

        def write(record: dict) -> None:
            store(record)
            print(show(record), flush=True)

        for kind in ("spd", "general"):
            for shape, n in () if options.threads_only else PROBLEMS:
                write(measured(shape, n, kind, options.calls))
        for kind, threads in product(("spd", "general"), options.threads):
            write(together("chain", kind, options.duration, threads))


if __name__ == "__main__":
    main()
