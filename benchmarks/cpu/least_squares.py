"""Least-squares solutions beside other methods: `python -m benchmarks.cpu.least_squares`.

Wall times of `frontal.lstsq`, of SciPy's LSMR with tolerances of 1e-14, of the normal equations by
`frontal.solve`, and of SuiteSparseQR where `sparseqr` is installed, and their ratios to the first;
each round measures all of them in turn. `optimality` is |A^H r| / (|A| |r|) for each, with the norm
of Frobenius, and `error` the relative distance of x from the exact solution.
One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to results/least_squares.jsonl.
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
from scipy.sparse.linalg import lsmr

import frontal

PROBLEMS = (
    "grid:60",
    "grid:150",
    "fit:20000",
    "graded:3000:1e2",
    "graded:3000:1e5",
    "graded:3000:1e8",
)
Solution = Callable[[], np.ndarray]


def matrix(problem: str) -> sp.csc_array:
    """Return a matrix with more rows than columns.

    ``grid:k`` has the differences of neighbours of a k x k grid and a tenth of the values, as in
    geodesy; ``fit:m`` m values of cubic splines with m / 8 knots; ``graded:n:c`` n columns whose
    differences are weighted by numbers from 1 to 1 / c, in random order.
    """
    name, *sizes = problem.split(":")
    rng, n = np.random.default_rng(0), int(sizes[0])
    if name == "grid":
        steps = sp.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
        unit = sp.eye_array(n)
        values = sp.eye_array(n * n, format="csr")[rng.choice(n * n, n * n // 10, replace=False)]
        return sp.csc_array(sp.vstack([sp.kron(steps, unit), sp.kron(unit, steps), values]))
    if name == "fit":
        from scipy.interpolate import BSpline

        knots = np.r_[[0.0] * 3, np.linspace(0, 1, n // 8), [1.0] * 3]
        return sp.csc_array(BSpline.design_matrix(np.sort(rng.uniform(0, 1, n)), knots, 3))
    weights = sp.diags_array(rng.permutation(np.geomspace(1, 1 / float(sizes[1]), n)))
    noise = sp.random_array((n, n), density=1 / n, rng=rng)
    return sp.csc_array(sp.vstack([weights @ (sp.eye_array(n) + 0.5 * noise), noise @ weights]))


def methods(A: sp.csc_array, b: np.ndarray) -> dict[str, Solution]:
    """Return the solutions by each method that is installed."""
    calls: dict[str, Solution] = {
        "lstsq": lambda: frontal.lstsq(A, b),
        "normal equations": lambda: frontal.solve(sp.csc_array(A.T @ A), A.T @ b, kind="spd"),
        "lsmr": lambda: lsmr(A, b, atol=1e-14, btol=1e-14, conlim=0, maxiter=5000)[0],
    }
    if find_spec("sparseqr") is not None:
        import sparseqr

        calls["SuiteSparseQR"] = lambda: np.asarray(sparseqr.solve(A, b, tolerance=0)).ravel()
    return calls


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times, optimality and errors of each method for one matrix."""
    A = matrix(problem)
    m, n = A.shape
    rng = np.random.default_rng(1)
    exact = rng.standard_normal(n)
    b = A @ exact
    noise = rng.standard_normal(m)
    noise -= A @ frontal.lstsq(A, noise)  # nearly orthogonal to the range of A
    b = b + noise
    calls = methods(A, b)
    times = times_in_turn(calls, rounds)
    size = float(np.sqrt((A.data**2).sum()))
    optimality, error = {}, {}
    for name, call in calls.items():
        x = call()
        r = b - A @ x
        optimality[name] = float(np.linalg.norm(A.T @ r) / size / np.linalg.norm(r))
        error[name] = float(np.linalg.norm(x - exact) / np.linalg.norm(exact))
    _, info = frontal.lstsq(A, b, return_info=True)
    return {
        "problem": problem,
        "shape": [m, n],
        "method": info.method,
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **ratios_of(times, "lstsq"),
        "optimality": optimality,
        "error": error,
        "condition": info.condition,
        "backward_error": info.backward_error,
        "peers": {"sparseqr": version("sparseqr")} if "SuiteSparseQR" in calls else {},
    }


if __name__ == "__main__":
    run(__doc__, "least_squares.jsonl", PROBLEMS, measured)
