"""The generated parts of the project's README: `python -m benchmarks.report.readme` writes them.

They are tables and sentences with numbers of the benchmarks, each between a pair of markers;
`--pictures` draws the chart and the picture of the gallery too, in docs/static.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.records import ROOT, load
from benchmarks.report import chart, gallery, results, sparse
from benchmarks.report.peers import CPU, FROM_SCRATCH, HEADLINES, MATRICES, PEAK, Results
from benchmarks.report.results import STARTUP
from benchmarks.report.sparse import H100, MEASURES, REAL, SPARSE, beside_cudss
from benchmarks.report.tables import NO_RESULTS, behind, figure, markdown, mean

LARGE = 5000  # unknowns of a real matrix whose solution is more than overhead
_WIDTH = 100


# --- tables ------------------------------------------------------------------------------------


def peers() -> str:
    """Return the ratios to the peers on the CPU, or that there are none."""
    found = Results(CPU)
    if not found.problems:
        return NO_RESULTS
    return f"{results.comparison(found, HEADLINES)}\n\n{results.origin(found.records.values())}"


def real(path: Path = MATRICES) -> str:
    """Return our times over those of the best peer of each real matrix, on one thread."""
    found = Results(path)
    header = ["one thread", "geometric mean", f"n ≥ {LARGE:,}", "range", "behind on"]
    rows = []
    for title, phase, theirs in results.REAL_PHASES:
        ratios, large = found.ratios(phase, 0, theirs), found.ratios(phase, LARGE, theirs)
        if ratios:
            numbers = figure(mean(ratios)), figure(mean(large))
            extent = f"{figure(min(ratios))} to {figure(max(ratios))}"
            rows.append([title, *numbers, extent, behind(ratios)])
    return markdown(header, *rows) if rows else NO_RESULTS


def cudss(paths: Sequence[Path] = (H100, SPARSE, REAL)) -> str:
    """Return what is compared with cuDSS: means, ranges, and on how many problems it is behind."""
    known = [(path, found) for path in paths if (found := beside_cudss(path))]
    devices = [found for _, found in known]
    if not devices:
        return NO_RESULTS
    header = ["double precision"]
    for path, found in known:
        about = f"real matrices, {found.device}" if path == REAL else found.device
        header += [about, "range", "behind on"]
    rows = [
        [title, *(cell for found in devices for cell in _beside(found, name))]
        for name, title, _ in MEASURES
    ]
    return markdown(header, *rows)


def _beside(found: sparse.Results, measure: str) -> list[str]:
    """The mean of a measure's ratios, their range, and how many are above 1."""
    ratios = sorted(found.ratios(measure))
    if not ratios:
        return ["–"] * 3
    return [figure(mean(ratios)), f"{figure(ratios[0])} to {figure(ratios[-1])}", behind(ratios)]


# --- sentences ---------------------------------------------------------------------------------


def real_matrices(smallest: int = 0) -> list[float]:
    """Return our time from scratch over the best peer's, by real matrix with enough unknowns."""
    return Results(MATRICES).ratios("scratch", smallest)


def model_problems() -> list[float]:
    """Return our time from scratch over the best peer's, by model problem."""
    return list(FROM_SCRATCH.by_problem(Results(CPU)).values())


def faster_superlu() -> tuple[int, int]:
    """Return how many real matrices SuperLU solves faster, of those factorized by LU here."""
    found = Results(MATRICES)
    chosen = [p for p in found.problems if found.record(p).get("scratch_method") == "lu"]
    times = [[found.time(p, s, "scratch") for s in ("superlu", "frontal")] for p in chosen]
    known = [(theirs, ours) for theirs, ours in times if theirs and ours]
    return sum(theirs < ours for theirs, ours in known), len(known)


def compile_seconds() -> list[float]:
    """Return the seconds of the first calls ever of each method and scalar type, on the CPU."""
    return [r["seconds"] for r in load(STARTUP) if r["what"] == "first call ever"]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def measured() -> str:
    """Return the paragraph on times beside those of other solvers."""
    model, real, gpu = model_problems(), real_matrices(), beside_cudss(H100)
    if not (model and real and gpu):
        return NO_RESULTS
    names = ("scratch", "refactor", "solve1", "scratch_memory")
    means = {name: f"{mean(gpu.ratios(name)):.2f}" for name in names}
    device = " ".join(gpu.device.split()[:2])
    large = real_matrices(LARGE)
    return _wrapped(
        f"Geometric means of time over another solver's: on an {device} {means['scratch']} of "
        f"cuDSS's for a first solution, {means['refactor']} for a refactorization and "
        f"{means['solve1']} for a solve, in {means['scratch_memory']} of its memory "
        f"({len(gpu.ratios('scratch'))} problems); on one thread of a CPU {mean(model):.2f} of the "
        f"best peer's for one solution of {len(model)} model problems, and {mean(real):.2f} for "
        f"{len(real)} real matrices, on {sum(x > 1 for x in real)} of which a peer is faster "
        f"({mean(large):.2f} for the {len(large)} with {LARGE} unknowns or more). "
        "[Where it is behind](#benchmarks) is listed too."
    )


def weak_points() -> str:
    """Return the paragraph on what other solvers do better."""
    model, real = model_problems(), real_matrices()
    if not (model and real):
        return NO_RESULTS
    peak = PEAK.value(PEAK.by_problem(Results(CPU)).values())
    faster, of = faster_superlu()
    return _wrapped(
        f"**Where it is behind.** For one solution from scratch a peer is faster on "
        f"{behind(model)} model problems, at worst by a factor of {max(model):.2f}, and on "
        f"{behind(real)} real matrices, at worst by a factor of {max(real):.0f}, for a few dozen "
        f"unknowns. SuperLU is faster on {faster} of the {of} real matrices that are factorized by "
        "LU. The estimate of the condition adds to the time of a first solution. Peak memory "
        f"reaches {peak:.1f} times the analysis's estimate if columns are delayed. On a GPU cuDSS "
        "is faster for a first right-hand side on the host, for first factorizations and many "
        "solves with checks of real matrices, and takes less memory for some plane problems. All "
        "figures: [benchmarks/results](benchmarks/results/README.md)."
    )


def startup() -> str:
    """Return the sentence on the time of first calls."""
    records = load(STARTUP)
    first = compile_seconds()
    again = [r["seconds"] for r in records if r["what"] == "first call of a process"]
    if not first:
        return NO_RESULTS
    cores = records[-1]["machine"]["cores"]
    return _wrapped(
        f"The first call of a kind compiles for {min(first):.0f} to {max(first):.0f} seconds on "
        f"{cores} cores and stores the result; later processes need {min(again):.1f} to "
        f"{max(again):.1f} seconds for their first call. `frontal warm` compiles ahead of time; "
        "`analysis.save(file)` and `frontal.Analysis.load(file)` store the analysis of a pattern, "
        "and `FRONTAL_ANALYSIS_CACHE=folder` does so automatically "
        "([many systems](docs/guide/many.md))."
    )


TABLES = {"chart": chart.caption, "benchmarks": peers, "matrices": real, "cuDSS": cudss}
SENTENCES = {"measured": measured, "startup": startup, "behind": weak_points}
PARTS = TABLES | SENTENCES


def filled(text: str, parts=PARTS) -> str:
    """Return the README with each named part written anew between its markers."""
    for name, write in parts.items():
        before, after = ("\n", " ") if name in SENTENCES else ("\n\n", "\n\n")
        block = f"<!-- {name}: begin -->{before}{write()}{after}<!-- {name}: end -->"
        pattern = rf"<!-- {name}: begin -->.*?<!-- {name}: end -->"
        text, count = re.subn(pattern, lambda _, block=block: block, text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"README.md has {count} places for the {name}, it should have one")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pictures", action="store_true", help="draw the pictures too")
    if parser.parse_args().pictures:
        chart.draw()
        gallery.draw()
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
