"""Measure one job: every phase of one solver on one problem. Prints one JSON object."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
import threadpoolctl

from benchmarks.harness.clocks import Clock, Peak, peaks
from benchmarks.harness.problems import kind_of, label, read, residual, right_sides
from benchmarks.harness.processes import failure
from benchmarks.harness.solvers import SOLVERS, Frontal

# Small problems that take every path of the kind: dense blocks large and small, zero diagonals, LU
# by columns, the compiled calls of small systems.
WARM_UP = {
    "spd": ("poisson3d:16", "poisson2d:10"),
    "symmetric": ("convdiff3d:16", "kkt:500", "kkt:50"),
    "general": ("convdiff3d:16", "kkt:500", "convdiff2d:10", "circuit:500"),
}

WARM_UP_CALLS = 20  # of each phase: more than those that take the general path of small systems


@dataclass(frozen=True)
class Job:
    """One solver on one problem (``name:size`` or a Matrix Market file) in a process of its own.

    ``reps`` repetitions of each phase, fewer once ``budget`` seconds are spent on it;
    ``refactorizations`` is what the analysis is told to expect; ``only_scratch`` times no phase
    but the whole.
    """

    problem: str
    solver: str
    threads: int = 1
    reps: int = 5
    budget: float = 4.0
    refactorizations: int = 10
    only_scratch: bool = False

    @property
    def label(self) -> str:
        return f"{label(self.problem)} {self.solver} {self.threads}t"


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
    x = clock.anew("scratch", build, lambda one: one.scratch(b))
    return {"residual": residual(A, x, b)} | build().told(b)


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
    entry = SOLVERS[job.solver]
    A = read(job.problem)
    kind = kind_of(A)
    if kind not in entry.takes:
        return {"skipped": f"{job.solver} does not take {kind} matrices"}
    options = dict(entry.options)
    if entry.build is Frontal:
        options["reuse"] = job.refactorizations

    def build(matrix=A):
        return entry.build(matrix, kind == "spd", **options)

    record = {"n": A.shape[0], "nnz": A.nnz, "kind": kind, "dtype": str(A.dtype)}
    clock = Clock(job.reps, job.budget)
    parts = [scratch] if job.only_scratch else [phases, scratch]
    try:
        for small in (read(name).astype(A.dtype) for name in WARM_UP[kind]):
            for part in parts:
                part(small, partial(build, small), Clock(WARM_UP_CALLS, 0.1))
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
