"""Measure one entry of the GPU comparison: every phase of one solver on one sparse problem.

A process of its own, called by `compare`; prints one JSON object. Times are the host's, from an
idle device to an idle device; matrix values and right-hand sides stay on the device.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from benchmarks.gpu import scratch
from benchmarks.harness import cudss, grids
from benchmarks.harness.device import Device, DeviceClock
from benchmarks.harness.problems import is_file, kind_of, label, read, residual, right_sides
from benchmarks.harness.processes import failure
from benchmarks.harness.solvers import Solver

WIDTH = 16  # right-hand sides of the phase solve16
WARM_UPS = {"spd": "p3d", "symmetric": "ind3d", "general": "cd3d"}  # of real matrices, by kind
LARGEST_HOST = 30000  # rows; CuPy's splu factorizes on the host


@dataclass(frozen=True)
class Entry:
    """One solver on one problem, ``name:edge`` or a Matrix Market file, in one scalar type.

    ``reps`` repetitions of each phase, fewer once ``budget`` seconds are spent on it; ``order`` is
    the file through which one solver's elimination order reaches another; ``scratch`` how often
    the whole is solved from scratch.
    """

    problem: str
    solver: str
    dtype: str = "d"
    reps: int = 30
    budget: float = 1.0
    order: str = ""
    scratch: int = 3

    @property
    def label(self) -> str:
        return f"{label(self.problem)} {self.dtype} {self.solver}"


class Frontal:
    """This package. Where it takes no array of the device, the host's is given, and that is told.

    ``solve`` is the sweep alone, ``solve_refined`` what a user gets by default.
    """

    backend: ClassVar[str] = "gpu"
    ordering: ClassVar[str] = "auto"  # what a user gets; the cost of its factor is told

    def __init__(self, A, kind: str, device: Any, entry: Entry) -> None:
        import frontal

        self.api, self.A, self.device, self.order = frontal, A, device, entry.order
        self.kind = kind
        self.values = device.xp.asarray(A.data)
        self.on_host: list[str] = []
        self.analysis: Any = None
        self.factored: Any = None

    def from_scratch(self, kind: str) -> scratch.Frontal:
        return scratch.Frontal(self.A, kind, self.device, self.backend)

    def analyze(self) -> None:
        self.analysis = self.api.analyze(
            self.A, kind=self.kind, ordering=self.ordering, backend=self.backend, reuse=10
        )

    def factor(self) -> None:
        self.factored = self.analysis.factorize(self.A)

    def refactor(self) -> None:
        refactorize = self.factored.refactorize
        self._first_of(
            "refactor", lambda: refactorize(self.values), lambda: refactorize(self.A.data)
        )

    def solve(self, B) -> Any:
        return self._solve("solve", B, refine=0)

    def solve_refined(self, B) -> Any:
        return self._solve("solve_refined", B)

    def _solve(self, phase: str, B: Any, **options: int) -> Any:
        xp, solve = self.device.xp, self.factored.solve

        def through_host() -> Any:
            return xp.asarray(solve(xp.asnumpy(B), **options))

        x = self._first_of(phase, lambda: solve(B, **options), through_host)
        if not isinstance(x, xp.ndarray):
            self.on_host.append(phase)
            x = xp.asarray(x)
        return x

    def _first_of(self, phase: str, resident: Callable, through_host: Callable) -> Any:
        if phase not in self.on_host:
            try:
                return resident()
            except self.api.errors.FrontalError:
                raise  # of the numbers, not of where they are
            except (TypeError, ValueError):
                self.on_host.append(phase)
        return through_host()

    def save_order(self) -> None:
        """Leave the elimination order for another solver."""
        if self.order:
            np.save(self.order, self.analysis.perm)

    def facts(self) -> dict[str, Any]:
        analysis = self.analysis
        return {
            "amendments": self.factored.analysis.amendments,
            "resident": not self.on_host,
            "on_host": sorted(set(self.on_host)),
            "method": analysis.method,
            "ordering": analysis.ordering.method,
            "nnz_factor": int(analysis.nnz_factor),
            "flops": float(analysis.flops),
            "levels": int(analysis.levels),
            "fronts": int(analysis.n_fronts),
            "memory_estimate": {k: int(v) for k, v in analysis.memory.items()},
            "analysis_seconds": {k: float(v) for k, v in analysis.seconds.items()},
        }

    def close(self) -> None:
        self.factored = self.analysis = None


class FrontalLDL(Frontal):
    """LDLᵀ of a positive definite matrix: what it costs over Cholesky where nothing is delayed."""

    from_scratch = None  # nobody would

    def __init__(self, A, kind: str, device: Any, entry: Entry) -> None:
        if kind != "spd":
            raise SkippedError("it is LDLᵀ anyway, or LU")
        super().__init__(A, "symmetric", device, entry)


class CuDSS:
    """cuDSS with its own ordering and as many host threads as there are cores."""

    same_order: ClassVar[bool] = False

    def __init__(self, A, kind: str, device: Any, entry: Entry) -> None:
        permutation = None
        if self.same_order:
            permutation = self._order_of_frontal(A, kind, entry.order)
        self.device, self.A = device, A
        self.xp, self.solution = device.xp, {}
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self.solver = cudss.Solver(A, kind, permutation, threads=cores)
        self.mtype = cudss.matrix_type(kind, A.dtype)

    @staticmethod
    def _order_of_frontal(A, kind: str, saved: str) -> np.ndarray:
        if saved and Path(saved).exists():
            order = np.load(saved)
            if len(order) == A.shape[0]:  # and not of the warm-up
                return order
        import frontal

        return frontal.analyze(A, kind=kind, ordering=Frontal.ordering, reuse=10).perm

    def from_scratch(self, kind: str) -> scratch.CuDSS:
        return scratch.CuDSS(self.A, kind, self.device, self.solver.threads)

    def analyze(self) -> None:
        self.solver.analyze()

    def factor(self) -> None:
        self.solver.factorize()

    def refactor(self) -> None:
        self.solver.refactorize()

    def solve(self, B) -> Any:
        if B.shape not in self.solution:
            self.solution[B.shape] = self.xp.zeros_like(B, order="F")
        X = self.solution[B.shape]
        self.solver.solve(B, X)
        return X

    def facts(self) -> dict[str, Any]:
        self.solver.check()
        found = {
            "resident": True,
            "method": self.mtype,
            "ordering": "frontal's" if self.same_order else "own",
            "host_threads": self.solver.threads,
            "cudss": cudss.version(),
        }
        figures = {"nnz_factor": "lu_nnz", "flops": "flops", "perturbed_pivots": "npivots"}
        for ours, theirs in figures.items():
            found[ours] = self.solver.get(theirs)[0]
        estimates = self.solver.get("memory_estimates", 16)
        known = zip(cudss.ESTIMATES, estimates[: len(cudss.ESTIMATES)], strict=True)
        return found | {"memory_estimate": dict(known)}

    def close(self) -> None:
        self.solver.close()
        self.solution.clear()


class CuDSSSame(CuDSS):
    """cuDSS with the elimination order of this package."""

    same_order = True
    from_scratch = None  # its order is not its own


class CuPyX:
    """``cupyx.scipy.sparse.linalg.splu``: SuperLU on the host, its solves on the device."""

    def __init__(self, A, kind: str, device: Any, entry: Entry) -> None:
        if A.shape[0] > LARGEST_HOST:
            raise SkippedError(f"more than {LARGEST_HOST} rows take too long on the host")
        from cupyx.scipy.sparse import csc_matrix
        from cupyx.scipy.sparse.linalg import splu

        self.splu, parts = splu, [device.xp.asarray(x) for x in (A.data, A.indices, A.indptr)]
        self.A = csc_matrix(tuple(parts), shape=A.shape)
        self.factored: Any = None

    def analyze(self) -> None:
        pass

    def factor(self) -> None:
        self.factored = self.splu(self.A)

    refactor = factor

    def solve(self, B) -> Any:
        return self.factored.solve(B)

    def facts(self) -> dict[str, Any]:
        return {"resident": True, "method": "lu", "ordering": "colamd"}

    def close(self) -> None:
        self.factored = None


class SkippedError(Exception):
    """A problem that a solver is not asked to solve."""


def _lacks_cudss() -> str:
    return "" if cudss.find() else f"cuDSS ({cudss.VARIABLE} or the wheel {cudss.WHEELS[0]})"


SOLVERS = {
    "frontal": Solver(Frontal, "numba"),
    "frontal-ldl": Solver(FrontalLDL, "numba"),
    "cudss": Solver(CuDSS, "ctypes", lacks=_lacks_cudss),
    "cudss-same": Solver(CuDSSSame, "ctypes", lacks=_lacks_cudss),
    "cupyx": Solver(CuPyX, "cupyx"),
}


def worst(A, X, B) -> float:
    """Return the largest backward error of the columns, NaN where one is not finite."""
    return float(np.max([residual(A, X[:, j], B[:, j]) for j in range(B.shape[1])]))


def phases(A, solver: Any, device: Any, clock: DeviceClock) -> dict[str, Any]:
    """Run and time each phase of one solver on A; return what was found beside the times."""
    xp, B = device.xp, right_sides(A, WIDTH)
    device.free()  # what CuPy's pool keeps would serve for these, and its rest not be counted
    many, one = xp.asarray(B, order="F"), xp.asarray(B[:, 0].copy())
    before = device.free()
    clock.once("analysis", solver.analyze)
    clock.once("factor1", solver.factor)
    clock.again("refactor", solver.refactor)
    solved = {"residual": clock.again("solve1", solver.solve, one)}
    if hasattr(solver, "solve_refined"):  # at once: a device that was idle is slower at first
        solved["residual_refined"] = clock.again("solve_refined", solver.solve_refined, one)
    found = {name: residual(A, xp.asnumpy(x), B[:, 0]) for name, x in solved.items()}
    X = clock.again("solve16", solver.solve, many)
    found["residual16"] = worst(A, xp.asnumpy(X, order="A"), B)  # else by a copy there
    return found | {"memory": device.taken(before)} | solver.facts()


def from_scratch(
    A, kind: str, solver: Any, device: Any, clock: DeviceClock, reps: int
) -> dict[str, Any]:
    """Solve from scratch beforehand, where a solver can; return what was found beside the times."""
    if not reps or not getattr(solver, "from_scratch", None):
        return {}
    b = right_sides(A, 1)[:, 0].copy()
    found = scratch.measure(solver.from_scratch(kind), b, device, clock.samples, reps)
    return found | {"residual_scratch": residual(A, found.pop("x"), b)}


def system_of(name: str, letter: str) -> tuple[sp.csc_array, str]:
    """Return the matrix of a problem and its kind; that of a file in its own scalar type."""
    if not is_file(name):
        return grids.make(name, letter)
    A = read(name)
    A = sp.csc_array(A.astype(np.result_type(A.dtype, np.float64)))
    A.sort_indices()
    return A, kind_of(A)


def warm_up(entry: Entry) -> str:
    """Return a small problem that takes the same path through a solver."""
    if not is_file(entry.problem):
        return grids.warm_up(entry.problem)
    A, kind = system_of(entry.problem, entry.dtype)
    grid = "hz3d" if np.iscomplexobj(A) else WARM_UPS[kind]
    return grids.warm_up(f"{grid}:1")


def run(name: str, entry: Entry, device: Any, reps: int, budget: float) -> dict[str, Any]:
    """Return the record of a problem: the entry's own, or a small one before it."""
    A, kind = system_of(name, entry.dtype)
    solver = SOLVERS[entry.solver].build(A, kind, device, entry)
    try:
        clock = DeviceClock(reps, budget, device.synchronize)
        whole = from_scratch(A, kind, solver, device, clock, min(reps, entry.scratch))
        found = whole | phases(A, solver, device, clock)
        if name == entry.problem and hasattr(solver, "save_order"):
            solver.save_order()
    finally:
        solver.close()
    about = {"n": A.shape[0], "nnz": int(A.nnz), "kind": kind, "scalars": str(A.dtype)}
    summary = clock.summary()
    if found.get("flops"):
        found["tflops"] = found["flops"] / summary["refactor"]["median"] / 1e12
    return about | found | {"phases": summary}


def measure(entry: Entry, device: Any) -> dict[str, Any]:
    """Return the record of an entry, or why there is none."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(warm_up(entry), entry, device, 1, 0.0)
            caught.clear()
            record = run(entry.problem, entry, device, entry.reps, entry.budget)
    except SkippedError as reason:
        return {"skipped": str(reason)}
    except Exception as error:  # a failure is a row of the table
        return failure(type(error).__name__, str(error).split("\n")[0][:500])
    return record | {"warnings": sorted({w.category.__name__ for w in caught})}


if __name__ == "__main__":
    print(json.dumps(measure(Entry(**json.loads(sys.argv[1])), Device())))
