"""Schur complements beside a refactorization: `python -m benchmarks.cpu.schur`.

Wall times of `refactorize` with k scattered unknowns of a Schur complement, each over `refactorize`
of the same matrix without one, in the same process; each round measures all of them in turn. Then
`schur`, and `schur_condense` with `schur_expand` over one solve without refinement and one with it.
One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to results/schur.jsonl.
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

PROBLEMS = (
    "poisson2d:100",
    "poisson2d:300",
    "poisson3d:20",
    "poisson3d:30",
    "elasticity3d:10",
    "convdiff3d:20",
)
SIZES = 100, 200, 500  # unknowns of the Schur complement


def condensed(factor: frontal.Factor, b: np.ndarray, xs: np.ndarray) -> np.ndarray:
    """Condense and expand one right-hand side."""
    factor.schur_condense(b)
    return factor.schur_expand(xs, b)


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times of one matrix, and their ratios to a refactorization."""
    A = sp.csc_array(from_name(problem))
    factor, n = frontal.factorize(A, backend="cpu"), A.shape[0]
    rng = np.random.default_rng(0)
    index, b = rng.permutation(n), rng.standard_normal(n)
    calls: dict[str, Callable[[], object]] = {"refactorize": lambda: factor.refactorize(A.data)}
    flops, errors = {}, {}
    for k in SIZES:
        part = frontal.factorize(A, schur=index[:k], backend="cpu")
        flops[k] = part.analysis.flops / factor.analysis.flops
        calls[f"k = {k}"] = lambda part=part: part.refactorize(A.data)
        calls[f"schur {k}"] = part.schur
        xs = np.linalg.solve(part.schur(), part.schur_condense(b))
        x = part.solve(b)
        errors[k] = float(abs(part.schur_expand(xs, b) - x).max() / abs(x).max())
        calls[f"condense, expand {k}"] = lambda part=part, xs=xs: condensed(part, b, xs)
        calls[f"solve {k}"] = lambda part=part: part.solve(b)
    return {
        "problem": problem,
        "n": n,
        "method": factor.info["method"],
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **ratios_of(times_in_turn(calls, rounds), "refactorize"),
        "flops": flops,
        "error": max(errors.values()),
    }


if __name__ == "__main__":
    run(__doc__, "schur.jsonl", PROBLEMS, measured)
