"""Entries of inverses beside a refactorization: `python -m benchmarks.cpu.inverse`.

Wall times of `diag_inv`, `selected_inverse` and 200 scattered diagonal entries, and their ratios to
`refactorize` of the same build in the same process; each round measures all of them in turn. For
positive definite matrices the selected inverse of sparsax in A's pattern is measured too, where it
is installed: without its factorization, which its cache stores.
One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to results/inverse.jsonl.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec

from benchmarks.harness.processes import on_threads
from benchmarks.harness.rounds import ratios_of, run, times_in_turn

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
    times = times_in_turn(calls, rounds)
    _, info = factor.diag_inv(return_info=True)
    return {
        "problem": problem,
        "n": n,
        "method": factor.info["method"],
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **ratios_of(times, "refactorize"),
        "error": info.error,
        "peers": {"sparsax": version("sparsax")} if "sparsax" in calls else {},
    }


if __name__ == "__main__":
    run(__doc__, "inverse.jsonl", PROBLEMS, measured)
