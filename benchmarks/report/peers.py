"""What is compared with the peers on the CPU: ratios by problem, their mean, their bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.records import RESULTS, Record, load
from benchmarks.harness.solvers import SOLVERS
from benchmarks.report.tables import mean

CPU, MATRICES = RESULTS / "cpu.jsonl", RESULTS / "matrices.jsonl"


class Results:
    """The records of one results file, by problem, solver and threads."""

    def __init__(self, path: Path):
        # a job that was run again stands as it was run last
        self.records = {(r["problem"], r["solver"], r["threads"]): r for r in load(path)}
        self.problems = list(dict.fromkeys(problem for problem, _, _ in self.records))
        found = {solver for _, solver, _ in self.records}
        self.solvers = [name for name in SOLVERS if name in found]
        self.threads = sorted({threads for _, _, threads in self.records})

    def record(self, problem: str, solver: str = "frontal", threads: int = 1) -> Record:
        """Return a job's record, empty where it was not run."""
        return self.records.get((problem, solver, threads), {})

    def time(self, problem: str, solver: str, phase: str, threads: int = 1) -> float | None:
        """Return the median time of a phase in seconds, or None where there is none."""
        found = self.record(problem, solver, threads).get("phases", {}).get(phase, {})
        return found.get("median")

    def best(self, problem: str, phase: str, names: Iterable[str] = ()) -> tuple[str, float | None]:
        """Return the fastest peer on one thread and its time; ("–", None) where there is none."""
        peers = [s for s in names or self.solvers if not s.startswith("frontal")]
        found = [(t, s) for s in peers if (t := self.time(problem, s, phase))]
        return min(found)[::-1] if found else ("–", None)

    def ratios(self, phase: str, smallest: int = 0, theirs: str | None = None) -> list[float]:
        """Return our time over the best peer's, by problem of enough rows that both solve.

        `theirs` is the phase of the peers, by default the same.
        """
        chosen = [p for p in self.problems if self.record(p).get("n", 0) >= smallest]
        peer = theirs or phase
        pairs = [(self.time(p, "frontal", phase), self.best(p, peer)[1]) for p in chosen]
        return [ours / best for ours, best in pairs if ours and best]

    def is_kind(self, problem: str, kind: str) -> bool:
        """Tell whether a matrix is of a kind of `problems.kind_of`."""
        return kind in {
            r.get("kind") for (name, _, _), r in self.records.items() if name == problem
        }

    def spd(self, problem: str) -> bool:
        """Tell whether the matrix is Hermitian with a positive diagonal."""
        return self.is_kind(problem, "spd")

    def symmetric(self, problem: str) -> bool:
        """Tell whether the matrix is symmetric and not definite."""
        return self.is_kind(problem, "symmetric")

    def lu(self, problem: str, solver: str, phase: str = "refactor") -> float | None:
        """Return the time of LU, which has the name `solver-lu` where another method is taken."""
        other = self.spd(problem) or (solver == "frontal" and self.symmetric(problem))
        return self.time(problem, f"{solver}-lu" if other else solver, phase)


def in_3d(_: Results, problem: str) -> bool:
    return re.match(r"\w*3d\w*:", problem) is not None


def after_ordering(results: Results, problem: str) -> float | None:
    """Return the seconds of the analysis's stages that follow the ordering."""
    stages = list(results.record(problem).get("analysis_seconds", {}).items())
    names = [name for name, _ in stages]
    later = stages[names.index("ordering") + 1 :] if "ordering" in names else []
    return sum(time for _, time in later) or None


def first_estimate(results: Results, problem: str) -> float | None:
    """Return the seconds by which a first solution takes longer than others."""
    times = [results.time(problem, "frontal", name) for name in ("solve_first", "solve_refined")]
    return None if None in times else max(times[0] - times[1], 1e-9)


Figure = Callable[[Results, str], "float | None"]


@dataclass(frozen=True)
class Ratio:
    """One comparison; ``over`` and ``under`` give a problem's figures, or None.

    A `headline` is in the project's README.
    """

    text: str
    bound: float
    over: Figure
    under: Figure
    where: Callable[[Results, str], bool] = lambda results, problem: True
    at_least: bool = False
    worst: bool = False
    headline: bool = False

    def by_problem(self, results: Results) -> dict[str, float]:
        """Return the ratio for each problem that has both figures."""
        chosen = (p for p in results.problems if self.where(results, p))
        pairs = ((p, self.over(results, p), self.under(results, p)) for p in chosen)
        return {p: float(a / b) for p, a, b in pairs if a and b}

    def value(self, ratios: Iterable[float]) -> float:
        """Return the geometric mean, or the worst."""
        ratios = list(ratios)
        if self.worst:
            return min(ratios) if self.at_least else max(ratios)
        return mean(ratios) or 0.0


def _time(solver: str, phase: str, threads: int = 1) -> Figure:
    return lambda results, problem: results.time(problem, solver, phase, threads)


def _lu(solver: str) -> Figure:
    return lambda results, problem: results.lu(problem, solver)


def _best(phase: str, *names: str) -> Figure:
    return lambda results, problem: results.best(problem, phase, names)[1]


def _peak(results: Results, problem: str) -> float | None:
    return results.record(problem).get("peak")


def _estimate(results: Results, problem: str) -> float | None:
    return results.record(problem).get("memory_estimate", {}).get("total")


REFACTOR = _time("frontal", "refactor")
FROM_SCRATCH = Ratio(
    "from scratch / the best peer's", 1.3, _time("frontal", "scratch"), _best("scratch"),
    headline=True,
)  # fmt: skip
PEAK = Ratio("peak memory / the analysis's estimate (worst)", 1.3, _peak, _estimate, worst=True)
RATIOS = (
    Ratio("Cholesky refactorization / PARDISO's (type 2)", 1.3,
          REFACTOR, _time("pardiso", "refactor"), where=Results.spd, headline=True),
    Ratio("LU refactorization / PARDISO's (type 11, 13)", 1.3,
          _lu("frontal"), _lu("pardiso"), headline=True),
    Ratio("SuperLU / LU refactorization, 3-D", 6.0,
          _time("superlu", "refactor"), _lu("frontal"), where=in_3d, at_least=True),
    Ratio("LDLᵀ refactorization / the best of PARDISO's (type -2, 6) and MUMPS's (SYM=2)", 1.2,
          REFACTOR, _best("refactor", "pardiso-sym", "mumps-sym"),
          where=Results.symmetric, headline=True),
    Ratio("refactorization on one thread / on two, 3-D", 1.6,
          REFACTOR, _time("frontal", "refactor", 2), where=in_3d, at_least=True),
    Ratio("analysis after the ordering / METIS", 0.2, after_ordering, _time("frontal", "metis")),
    Ratio("estimate of the condition at a first solution / refactorization", 0.5,
          first_estimate, REFACTOR),
    Ratio("solve / CHOLMOD's", 1.3,
          _time("frontal", "solve"), _best("solve", "cholmod", "cholmod-mkl"), headline=True),
    FROM_SCRATCH,
    PEAK,
)  # fmt: skip
HEADLINES = tuple(ratio for ratio in RATIOS if ratio.headline)
