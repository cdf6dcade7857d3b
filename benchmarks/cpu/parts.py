"""Parts of solves and Gaussian draws beside whole solves: `python -m benchmarks.cpu.parts`.

Process times of half solves and draws for Cholesky, and their ratios to `solve(b, refine=0)` of the
same build in the same process, for one vector and for 64; each round measures all of them in turn.
One thread works. Results go to results/parts.jsonl.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks.harness.processes import on_threads
from benchmarks.harness.rounds import ratios_of, run, times_in_turn

os.environ |= on_threads(int(os.environ.get("FRONTAL_NUM_THREADS", "1")))  # before NumPy is loaded

import time

import numpy as np
import scipy.sparse as sp

import frontal
from frontal.problems import from_name

PROBLEMS = "poisson2d:100", "poisson2d:300", "poisson3d:20", "poisson3d:30"
COLUMNS = 64  # right-hand sides, or draws, together


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times of one matrix, and their ratios to an unrefined solve."""
    A = sp.csc_array(from_name(problem))
    factor, n = frontal.factorize(A, kind="spd"), A.shape[0]
    rng = np.random.default_rng(0)
    b, B = rng.standard_normal(n), np.asfortranarray(rng.standard_normal((n, COLUMNS)))
    calls: dict[str, Callable[[], object]] = {
        "solve": lambda: factor.solve(b, refine=0),
        "L": lambda: factor.solve(b, system="L"),
        "Lt": lambda: factor.solve(b, system="Lt"),
        "sample": lambda: factor.sample(rng=rng),
        "refined solve": lambda: factor.solve(b),
    }
    blocks: dict[str, Callable[[], object]] = {
        f"solve of {COLUMNS}": lambda: factor.solve(B, refine=0),
        f"Lt of {COLUMNS}": lambda: factor.solve(B, system="Lt"),
        f"{COLUMNS} draws": lambda: factor.sample(COLUMNS, rng=rng),
        f"random numbers of {COLUMNS} draws": lambda: rng.standard_normal((COLUMNS, n)),
    }
    records = [
        ratios_of(times_in_turn(group, rounds, clock=time.process_time), unit)
        for group, unit in ((calls, "solve"), (blocks, f"solve of {COLUMNS}"))
    ]
    return {
        "problem": problem,
        "n": n,
        "method": factor.info["method"],
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **{name: records[0][name] | records[1][name] for name in ("phases", "ratios")},
    }


if __name__ == "__main__":
    run(__doc__, "parts.jsonl", PROBLEMS, measured)
