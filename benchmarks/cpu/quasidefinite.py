"""Quasidefinite KKT systems beside QDLDL: `python -m benchmarks.cpu.quasidefinite`.

Wall times of a refactorization and of a solve without refinement, and their ratios to a
refactorization by Cholesky of a matrix of the same pattern; QDLDL (`pip install qdldl`) is measured
where it is installed. Each round measures all calls in turn. Systems are those of an interior-point
method for optimal control on a grid, with bounds of the control: K = [P, A^T; A, -D], D over eight
decades. One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to
results/quasidefinite.jsonl.
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

PROBLEMS = "poisson2d:30", "poisson2d:60", "poisson2d:100", "poisson3d:10", "poisson3d:16"


def kkt_of(name: str) -> sp.csc_array:
    """Return the KKT matrix of optimal control with the equation of a named problem."""
    equation = from_name(name)
    n, rng = equation.shape[0], np.random.default_rng(0)
    identity, nothing = sp.eye_array(n), sp.csc_array((n, n))
    P = sp.block_diag([identity, 1e-2 * identity]) + 1e-8 * sp.eye_array(2 * n)
    A = sp.block_array([[equation, -identity], [nothing, identity], [nothing, -identity]])
    slacks = 10.0 ** rng.uniform(-4, 4, 2 * n)
    D = sp.diags_array(np.concatenate([np.full(n, 1e-8), slacks]))
    return sp.csc_array(sp.block_array([[P, A.T], [A, -D]]))


def dominant(K: sp.csc_array) -> sp.csc_array:
    """Return a positive definite matrix with the pattern of K."""
    return sp.csc_array(abs(K) + sp.diags_array(abs(K).sum(axis=1) + 1))


def peers(K: sp.csc_array, b: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return the calls of QDLDL, if it is installed."""
    if find_spec("qdldl") is None:
        return {}
    import qdldl

    upper = sp.csc_matrix(sp.triu(K))
    solver = qdldl.Solver(upper)
    return {"QDLDL": lambda: solver.update(upper), "QDLDL solve": lambda: solver.solve(b)}


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times of one system, and their ratios to a refactorization by Cholesky."""
    K = kkt_of(problem)
    S, b = dominant(K), np.ones(K.shape[0])
    factor = frontal.analyze(K, kind="quasidefinite", reuse=100, backend="cpu").factorize(K)
    cholesky = frontal.analyze(S, kind="spd", reuse=100, backend="cpu").factorize(S)
    searching = frontal.analyze(K, kind="symmetric", reuse=100, backend="cpu").factorize(K)
    calls: dict[str, Callable[[], object]] = {
        "cholesky": lambda: cholesky.refactorize(S.data),
        "quasidefinite": lambda: factor.refactorize(K.data),
        "symmetric": lambda: searching.refactorize(K.data),
        "quasidefinite solve": lambda: factor.solve(b, refine=0),
        "cholesky solve": lambda: cholesky.solve(b, refine=0),
        **peers(K, b),
    }
    times = times_in_turn(calls, rounds)
    return {
        "problem": problem,
        "n": K.shape[0],
        "method": factor.analysis.method,
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **ratios_of(times, "cholesky"),
        "growth": factor.growth,
        "peers": {"qdldl": version("qdldl")} if find_spec("qdldl") else {},
    }


if __name__ == "__main__":
    run(__doc__, "quasidefinite.jsonl", PROBLEMS, measured)
