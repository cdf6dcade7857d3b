"""Sentences with numbers for the README, from the results: `benchmarks/readme.py` writes them."""

from __future__ import annotations

import textwrap
from math import exp, log

import gpu_behind
from gpu_aims import H100
from harness import RESULTS, load
from ratios import RATIOS, Results

LARGE = 5000  # unknowns of a real matrix whose solution is more than overhead
_WIDTH = 100
_NONE = "No results yet."


def mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def real_matrices(smallest: int = 0) -> list[float]:
    """Return our time from scratch over the best peer's, by real matrix that both solve.

    Parameters
    ----------
    smallest : int
        Smallest number of unknowns.
    """
    results = Results(RESULTS / "matrices.jsonl")
    pairs = (
        (results.time(p, "frontal", "scratch"), results.best(p, "scratch")[1])
        for p in results.problems
        if results.record(p).get("n", 0) >= smallest
    )
    return [ours / best for ours, best in pairs if ours and best]


def faster_superlu() -> tuple[int, int]:
    """Return how many real matrices SuperLU solves faster, of those factorized by LU here."""
    results = Results(RESULTS / "matrices.jsonl")
    chosen = [p for p in results.problems if results.record(p).get("scratch_method") == "lu"]
    times = [[results.time(p, s, "scratch") for s in ("superlu", "frontal")] for p in chosen]
    known = [(theirs, ours) for theirs, ours in times if theirs and ours]
    return sum(theirs < ours for theirs, ours in known), len(known)


def model_problems() -> list[float]:
    """Return our time from scratch over the best peer's, by model problem."""
    (ratio,) = (r for r in RATIOS if r.text == "from scratch / the best peer's")
    return list(ratio.by_problem(Results(RESULTS / "cpu.jsonl")).values())


def _behind(ratios: list[float]) -> str:
    return f"{sum(x > 1 for x in ratios)} of {len(ratios)}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def measured() -> str:
    """Return the paragraph on times beside those of other solvers."""
    model, real, gpu = model_problems(), real_matrices(), gpu_behind.results(H100)
    if not (model and real and gpu):
        return _NONE
    cases = gpu_behind.cases(gpu)
    names = ("scratch", "refactor", "solve1", "scratch_memory")
    ratios = {n: [x for c in cases if (x := gpu_behind.ratio(gpu, c, n))] for n in names}
    means = {name: f"{mean(found):.2f}" for name, found in ratios.items()}
    device = " ".join(gpu_behind.device(gpu).split()[:2])
    large = real_matrices(LARGE)
    return _wrapped(
        f"Geometric means of time over another solver's: on an {device} {means['scratch']} of "
        f"cuDSS's for a first solution, {means['refactor']} for a refactorization and "
        f"{means['solve1']} for a solve, in {means['scratch_memory']} of its memory "
        f"({len(ratios['scratch'])} problems); on one thread of a CPU {mean(model):.2f} of the "
        f"best peer's for one solution of {len(model)} model problems, and {mean(real):.2f} for "
        f"{len(real)} real matrices, on {sum(x > 1 for x in real)} of which a peer is faster "
        f"({mean(large):.2f} for the {len(large)} with {LARGE} unknowns or more). "
        "[Where it is behind](#benchmarks) is listed too."
    )


def behind() -> str:
    """Return the paragraph on what other solvers do better."""
    model, real = model_problems(), real_matrices()
    if not (model and real):
        return _NONE
    (memory,) = (r for r in RATIOS if r.text.startswith("peak memory"))
    peak = memory.value(memory.by_problem(Results(RESULTS / "cpu.jsonl")).values())
    faster, of = faster_superlu()
    return _wrapped(
        f"**Where it is behind.** For one solution from scratch a peer is faster on "
        f"{_behind(model)} model problems, at worst by a factor of {max(model):.2f}, and on "
        f"{_behind(real)} real matrices, at worst by a factor of {max(real):.0f}, for a few dozen "
        f"unknowns. SuperLU is faster on {faster} of the {of} real matrices that are factorized by "
        "LU. The estimate of the condition adds to the time of a first solution. Peak memory "
        f"reaches {peak:.1f} times the analysis's estimate if columns are delayed. On a GPU cuDSS "
        "is faster for a first right-hand side on "
        "the host and for some first factorizations, and takes less memory for some plane "
        "problems. All figures: [benchmarks/results](benchmarks/results/README.md)."
    )


def compile_seconds() -> list[float]:
    """Return the seconds of the first calls ever of each method and scalar type, on the CPU."""
    records = load(RESULTS / "startup.jsonl")
    return [r["seconds"] for r in records if r["what"] == "first call ever"]


def startup() -> str:
    """Return the sentence on the time of first calls."""
    records = load(RESULTS / "startup.jsonl")
    first = compile_seconds()
    again = [r["seconds"] for r in records if r["what"] == "first call of a process"]
    if not first:
        return _NONE
    cores = records[-1]["machine"]["cores"]
    return _wrapped(
        f"The first call of a kind compiles for {min(first):.0f} to {max(first):.0f} seconds on "
        f"{cores} cores and stores the result; later processes need {min(again):.1f} to "
        f"{max(again):.1f} seconds for their first call. `frontal warm` compiles ahead of time; "
        "`analysis.save(file)` and `frontal.Analysis.load(file)` store the analysis of a pattern, "
        "and `FRONTAL_ANALYSIS_CACHE=folder` does so automatically "
        "([many systems](docs/guide/many.md))."
    )
