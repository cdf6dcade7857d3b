"""Measure one job: every phase of one solver on one problem. Prints one JSON object."""

from __future__ import annotations

import json
import sys
import warnings
from functools import partial

import numpy as np
import scipy.io
import scipy.sparse as sp
import threadpoolctl

import peers
from gauges import Clock, Peak, peaks
from harness import Job, failure, is_file

# Small problems that take every path of the kind: dense blocks large and small, zero diagonals.
WARM_UP = {
    "spd": ("poisson3d:16",),
    "symmetric": ("convdiff3d:16", "kkt:500"),
    "general": ("convdiff3d:16", "kkt:500"),
}


def read(problem: str):
    """Return the matrix of a generated problem or of a file, in CSC."""
    if is_file(problem):
        return sp.csc_array(scipy.io.mmread(problem))
    from frontal import problems

    return sp.csc_array(problems.from_name(problem))


def kind_of(A) -> str:
    """Return "spd" (Hermitian, positive diagonal), "symmetric" (complex ones too) or "general".

    A shifted Laplacian is told from a definite one by its smoothest vector.
    """
    if same(A, A.conj().T) and min(A.diagonal().real.min(), A.sum().real) > 0:
        return "spd"
    return "symmetric" if same(A, A.T) else "general"


def same(A, B) -> bool:
    return abs(A - B).max() == 0


def residual(A, x, b) -> float:
    """Return the normwise backward error ‖b - Ax‖ / (‖A‖ ‖x‖ + ‖b‖) in the infinity norm."""
    if not np.isfinite(x).all():
        return float("nan")
    norm = abs(A).sum(axis=1).max()
    return float(abs(b - A @ x).max() / (norm * abs(x).max() + abs(b).max()))


def right_sides(A, count: int = 16):
    """Return ``count`` random right-hand sides in A's dtype, in Fortran order; always the same."""
    B = np.random.default_rng(0).standard_normal((A.shape[0], count))
    return np.asfortranarray(B).astype(A.dtype)


def phases(A, build, clock: Clock) -> dict:
    """Run and time each phase of one solver on A; return what was found beside the times."""
    B = right_sides(A)
    b = B[:, 0].copy()
    solver = build()
    with Peak() as symbolic:
        clock.once("analysis", solver.analyze)
    with Peak() as numeric:
        clock.once("factor", solver.factor)
    found = {"residual_unrefined": residual(A, solver.solve(b), b)} | peaks(symbolic, numeric)
    clock.again("refactor", solver.refactor)
    clock.again("solve", solver.solve, b)
    clock.again("solve16", solver.solve, B)
    if hasattr(solver, "solve_refined"):
        clock.again("solve_refined", solver.solve_refined, b)
        # with the estimate of its condition
        clock.anew("solve_first", solver.fresh, lambda one: one.solve_refined(b))
    found |= solver.facts()
    solver.close()
    clock.anew("analysis", build, lambda one: one.analyze())
    return found


def scratch(A, build, clock: Clock) -> dict:
    """Time one solve from nothing; return its residual and what the solver says of it."""
    b = right_sides(A)[:, 0].copy()
    x, solver = clock.anew("scratch", build, lambda one: (one.scratch(b), one))
    return {"residual": residual(A, x, b)} | solver.outcome


def metis(A, clock: Clock) -> None:
    """Time METIS alone on the pattern of A + Aᵀ: the yardstick of what follows the ordering."""
    try:
        import pymetis
    except ImportError:
        return
    from frontal.ordering.graph import adjacency

    graph = adjacency(A)
    start, indices = np.asarray(graph.indptr, np.int32), np.asarray(graph.indices, np.int32)
    clock.again("metis", lambda: pymetis.nested_dissection(xadj=start, adjncy=indices))


def measure(job: Job) -> dict:
    """Return the record of one job, or why there is none."""
    entry = peers.SOLVERS[job.solver]
    A = read(job.problem)
    kind = kind_of(A)
    if kind not in entry.takes:
        return {"skipped": f"{job.solver} does not take {kind} matrices"}
    options = dict(entry.options)
    if entry.build is peers.Frontal:
        options["reuse"] = job.refactorizations

    def build(matrix=A):
        return entry.build(matrix, kind == "spd", **options)

    record = {"n": A.shape[0], "nnz": A.nnz, "kind": kind, "dtype": str(A.dtype)}
    clock = Clock(job.reps, job.budget)
    parts = [scratch] if job.only_scratch else [phases, scratch]
    try:
        for small in (read(name).astype(A.dtype) for name in WARM_UP[kind]):
            for part in parts:
                part(small, partial(build, small), Clock(1, 0))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for part in parts:
                record |= part(A, build, clock)
    except Exception as error:  # a failure is a row of the table
        return record | failure(type(error).__name__, str(error).split("\n")[0])
    if job.solver == "frontal" and not job.only_scratch:
        metis(A, clock)
    return record | {
        "phases": clock.summary(),
        "warnings": sorted({w.category.__name__ for w in caught}),
        "blas": blas(),
    }


def blas() -> list[str]:
    """Return the BLAS libraries loaded here, with version and core."""
    loaded = [x for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"]
    return sorted(
        " ".join(filter(None, (x["internal_api"], x["version"], x.get("architecture"))))
        for x in loaded
    )


if __name__ == "__main__":
    print(json.dumps(measure(Job(**json.loads(sys.argv[1])))))
