"""Eigenvalues beside SciPy and beside a refactorization: `python -m benchmarks.cpu.eigenvalues`.

Wall times of 12 eigenvalues closest to zero, with and without the proof that none is missing, of
all eigenvalues in an interval with as many, and of their number by inertia; SciPy's `eigsh` has the
same shift and first vector. Ratios are to `refactorize` by Cholesky of the same build in the same
process; each round measures all of them in turn.
One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to results/eigenvalues.jsonl.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks.harness.processes import on_threads
from benchmarks.harness.rounds import ratios_of, run, times_in_turn

os.environ |= on_threads(int(os.environ.get("FRONTAL_NUM_THREADS", "1")))  # before NumPy is loaded

import numpy as np
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg

import frontal
from frontal.linalg import eigsh, eigvals_count
from frontal.problems import from_name

PROBLEMS = (
    "poisson2d:100",
    "poisson2d:300",
    "poisson3d:20",
    "poisson3d:30",
    "elasticity3d:10",
)
WANTED = 12  # eigenvalues
INNER = 40  # position of the eigenvalue near which the inner shift lies


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times of one matrix, and their ratios to a refactorization."""
    A = sp.csc_array(from_name(problem))
    factor = frontal.factorize(A, kind="spd")
    values = eigsh(A, k=INNER + 1, sigma=0, return_eigenvectors=False)
    high, inner = (1.001 * values[k - 1] for k in (WANTED, INNER))  # between eigenvalues
    v0 = np.random.default_rng(0).uniform(-1, 1, A.shape[0])
    near = {"k": WANTED, "sigma": 0.0, "v0": v0}
    calls: dict[str, Callable[[], object]] = {
        "refactorize": lambda: factor.refactorize(A.data),
        "eigsh": lambda: eigsh(A, **near),
        "eigsh without proof": lambda: eigsh(A, **near, complete=False),
        "eigsh of scipy": lambda: scipy.sparse.linalg.eigsh(A, **near),
        "inner eigsh": lambda: eigsh(A, **near | {"sigma": inner}),
        "inner eigsh of scipy": lambda: scipy.sparse.linalg.eigsh(A, **near | {"sigma": inner}),
        "interval": lambda: eigsh(A, interval=(0, high), v0=v0),
        "count": lambda: eigvals_count(A, 0, high),
    }
    shifted = sp.csc_array(A - high * sp.eye_array(A.shape[0]))
    indefinite = frontal.factorize(shifted, kind="symmetric")
    calls["inertia"] = lambda: indefinite.refactorize(shifted.data).inertia
    times = times_in_turn(calls, rounds)
    _, _, info = eigsh(A, interval=(0, high), return_info=True)
    return {
        "problem": problem,
        "n": A.shape[0],
        "method": factor.info["method"],
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **ratios_of(times, "refactorize"),
        "error": info.backward_error,
        "count": info.count,
        "peers": {"scipy": scipy.__version__},
    }


if __name__ == "__main__":
    run(__doc__, "eigenvalues.jsonl", PROBLEMS, measured)
