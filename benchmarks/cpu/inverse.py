"""Entries of inverses beside a refactorization: `python -m benchmarks.cpu.inverse`.

Wall times of `diag_inv`, `selected_inverse` and 200 scattered diagonal entries, and their ratios to
`refactorize` of the same build in the same process; each round measures all of them in turn. For
positive definite matrices the selected inverse of sparsax in A's pattern is measured too, where it
is installed: without its factorization, which its cache stores.
One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to results/inverse.jsonl.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import time
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.harness.processes import on_threads
from benchmarks.harness.records import RESULTS, writer

os.environ |= on_threads(int(os.environ.get("FRONTAL_NUM_THREADS", "1")))  # before NumPy is loaded

import numpy as np
import scipy.sparse as sp

import frontal
from frontal.problems import from_name

PROBLEMS = (
    "poisson2d:100",
    "poisson2d:300",
    "poisson3d:20",
    "poisson3d:30",
    "elasticity3d:10",
    "convdiff2d:100",
    "convdiff3d:20",
    "helmholtz3d:16",
)
SCATTERED = 200  # diagonal entries


def peers(A: sp.csc_array, method: str) -> dict[str, Callable[[], object]]:
    """Return the selected inverses of other packages that are installed."""
    if method != "cholesky" or find_spec("sparsax") is None:
        return {}
    import jax
    import sparsax

    jax.config.update("jax_enable_x64", True)
    upper = sp.coo_array(sp.triu(A))
    row, column, values = (jax.numpy.asarray(x) for x in (*upper.coords, upper.data))
    n = A.shape[0]
    return {"sparsax": lambda: jax.block_until_ready(sparsax.selinv(row, column, values, n))}


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times of one matrix, and their ratios to a refactorization."""
    A = sp.csc_array(from_name(problem))
    factor, n = frontal.factorize(A), A.shape[0]
    places = np.random.default_rng(0).choice(n, min(n, SCATTERED), replace=False)
    calls: dict[str, Callable[[], object]] = {
        "refactorize": lambda: factor.refactorize(A.data),
        "diag_inv": factor.diag_inv,
        "selected_inverse": factor.selected_inverse,
        f"{SCATTERED} entries": lambda: factor.inverse_entries(places, places),
        "selected_inverse of L + U": lambda: factor.selected_inverse("factor"),
    }
    calls |= peers(A, factor.info["method"])
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 2):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if turn >= 2:
                times[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(found) for name, found in times.items()}
    _, info = factor.diag_inv(return_info=True)
    return {
        "problem": problem,
        "n": n,
        "method": factor.info["method"],
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        "phases": {name: {"median": t, "min": min(times[name])} for name, t in medians.items()},
        "ratios": {name: t / medians["refactorize"] for name, t in medians.items()},
        "error": info.error,
        "peers": {"sparsax": version("sparsax")} if "sparsax" in calls else {},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--match", default="", help="regular expression on the problem")
    parser.add_argument("--append", action="store_true", help="keep earlier records")
    parser.add_argument("--output", type=Path, default=RESULTS / "inverse.jsonl")
    options = parser.parse_args()
    with writer(options.output, options.append) as store:
        for problem in (x for x in PROBLEMS if re.search(options.match, x)):
            record = store(measured(problem, options.rounds))
            ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in record["ratios"].items())
            print(f"{problem:16} {record['method']:9} {ratios}", flush=True)


if __name__ == "__main__":
    main()
