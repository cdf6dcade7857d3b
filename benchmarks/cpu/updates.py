"""Low-rank updates beside a refactorization: `python -m benchmarks.cpu.updates`.

Wall times of `update` and `downdate` with 1, 8 and 32 springs between neighbours, of `rowdel` with
`rowadd`, and of `solve_plus` with 8 springs, and their ratios to `refactorize` of the same build in
the same process; each round measures all of them in turn. Updates include those of A's values.
One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to results/updates.jsonl.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks.harness.processes import on_threads
from benchmarks.harness.rounds import ratios_of, run, times_in_turn

os.environ |= on_threads(int(os.environ.get("FRONTAL_NUM_THREADS", "1")))  # before NumPy is loaded

import numpy as np
import scipy.sparse as sp

import frontal
from frontal.problems import from_name

PROBLEMS = ("poisson2d:100", "poisson2d:300", "poisson3d:20", "poisson3d:30", "elasticity3d:10")
RANKS = (1, 8, 32)


def springs(A: sp.csc_array, rank: int) -> sp.csc_array:
    """Return columns with two entries each, for random entries of A below the diagonal."""
    i, j = A.tocoo().coords
    edges = np.random.default_rng(2).choice(np.flatnonzero(i > j), rank)
    rows = np.stack([i[edges], j[edges]], axis=1).ravel()
    arrays = np.tile([0.3, -0.3], rank), rows, np.arange(0, 2 * rank + 1, 2)
    return sp.csc_array(arrays, shape=(A.shape[0], rank))


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times of one matrix, and their ratios to a refactorization."""
    A = sp.csc_array(from_name(problem))
    factor, n = frontal.factorize(A), A.shape[0]
    calls: dict[str, Callable[[], object]] = {"refactorize": lambda: factor.refactorize(A.data)}
    for rank in RANKS:
        C = springs(A, rank)
        calls[f"update {rank}"] = lambda C=C: factor.update(C)
        calls[f"downdate {rank}"] = lambda C=C: factor.downdate(C)
    column, C, b = A[:, [n // 2]], springs(A, 8), np.ones(n)
    calls |= {
        "rowdel": lambda: factor.rowdel(n // 2),
        "rowadd": lambda: factor.rowadd(n // 2, column),
        "solve_plus 8": lambda: factor.solve_plus(b, C),
        "solve": lambda: factor.solve(b),
    }
    times = times_in_turn(calls, rounds)
    fresh = frontal.factorize(A)
    return {
        "problem": problem,
        "n": n,
        "method": factor.info["method"],
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **ratios_of(times, "refactorize"),
        "error": float(abs(factor.L - fresh.L).max() / abs(fresh.L).max()),
    }


if __name__ == "__main__":
    run(__doc__, "updates.jsonl", PROBLEMS, measured)
