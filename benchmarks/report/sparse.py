"""Sparse systems on a GPU beside cuDSS: ratios, aims, and where this package is behind.

`python -m benchmarks.report.sparse` prints the tables of results/gpu.jsonl.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.records import RESULTS, Record, load, newest, origin
from benchmarks.report.tables import NO_RESULTS, aligned, count, figure, listed, markdown, mean

SPARSE, H100 = RESULTS / "gpu.jsonl", RESULTS / "gpu_h100.jsonl"
REAL = RESULTS / "gpu_matrices.jsonl"  # real matrices
SOLVERS = ("frontal", "cudss", "cudss-same", "cupyx")
PHASES = {"refactor": "refactor", "solve1": "solve"}  # those that have aims, and their titles
NOTE = (
    "Ratios are ours over cuDSS's, each by its last row, which may be of different runs; "
    "TF/s by the flops that each counts for its own factors."
)
STAR = "* values or right-hand sides of ours went through the host."
SCRATCH_NOTE = (
    "From scratch: a SciPy matrix and b on the host to x on the host, an analysis of its own each "
    "time, what each solver does by default (ours refines), kernels warm; medians. Memory is what "
    "the device has less at the end of it, or after all phases with 16 right-hand sides, whose "
    "solutions count, CuPy's pool included. A dash: not measured."
)
# what is compared with cuDSS, its title and unit
MEASURES = (
    ("refactor", "refactorization", "ms"),
    ("solve1", "solve", "ms"),
    ("solve_refined", "solve with checks", "ms"),
    ("scratch", "from scratch", "s"),
    ("scratch_analysis", "analysis", "s"),
    ("scratch_factor", "first factorization", "ms"),
    ("scratch_solve", "solve from the host", "ms"),
    ("scratch_memory", "memory", "MiB"),
    ("memory", "memory with 16 right-hand sides", "MiB"),
)
THEIRS = {"solve_refined": "solve1"}  # where cuDSS has no such measure
UNITS = {name: unit for name, _, unit in MEASURES}
_VISIBLE = 1.005  # ratios above are printed as more than 1.00
Case = tuple[str, str]  # problem, scalar type
Row = list[str]


class Aim(NamedTuple):
    """Milliseconds in double precision on one H200: what comes first, and what is the goal."""

    first: float
    goal: float


AIMS: dict[str, dict[str, Aim]] = {
    problem: {"refactor": Aim(*refactor), "solve1": Aim(*solve)}
    for problem, refactor, solve in (
        ("p2d:300", (1.0, 0.4), (0.3, 0.12)),
        ("p2d:1000", (5, 1.8), (1.0, 0.35)),
        ("p2d:2000", (18, 6), (3, 1.1)),
        ("p3d:30", (2.5, 1.0), (0.4, 0.2)),
        ("p3d:50", (8, 3), (1.0, 0.5)),
        ("p3d:64", (25, 12), (1.5, 0.8)),
        ("p3d:100", (220, 130), (5, 3.7)),
        ("el27:30", (14, 7), (1.0, 0.5)),
        ("cd3d:55", (40, 20), (1.3, 0.8)),
    )
}


class Results:
    """Records by problem, scalar type and solver; of repeated ones the last stands."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = {(r["problem"], r["dtype"], r["solver"]): r for r in records}
        self.cases = list(dict.fromkeys((p, d) for p, d, _ in self.records))
        found = {solver for _, _, solver in self.records}
        self.solvers = [name for name in SOLVERS if name in found]
        self.rivals = [s for s in self.solvers if s.startswith("cudss")] or ["cudss"]
        self.beside = [case for case in self.cases if self.record(case, "cudss")]

    def record(self, case: Case, solver: str = "frontal") -> Record:
        """Return a record, empty where there is none."""
        return self.records.get((*case, solver), {})

    def value(self, case: Case, solver: str, measure: str) -> float | None:
        """Return a measure in its unit of `UNITS`, a median in milliseconds by default."""
        record, unit = self.record(case, solver), UNITS.get(measure, "ms")
        if unit == "MiB":
            return record[measure] / 2**20 if record.get(measure) else None
        found = record.get("phases", {}).get(measure)
        return (1 if unit == "s" else 1e3) * found["median"] if found else None

    def pair(self, case: Case, measure: str, rival: str = "cudss") -> list[float | None]:
        """Return our value and the rival's."""
        theirs = THEIRS.get(measure, measure)
        return [self.value(case, "frontal", measure), self.value(case, rival, theirs)]

    def ratio(self, case: Case, measure: str, rival: str = "cudss") -> float | None:
        """Return ours over the rival's, or None."""
        ours, theirs = self.pair(case, measure, rival)
        return ours / theirs if ours and theirs else None

    def ratios(self, measure: str) -> list[float]:
        """Return ours over cuDSS's for each case that both have."""
        return [x for case in self.beside if (x := self.ratio(case, measure))]

    def compared(self) -> list[Record]:
        """Return the records of both solvers."""
        found = [self.record(c, s) for c in self.beside for s in ("frontal", "cudss")]
        return [record for record in found if record]

    @property
    def device(self) -> str:
        """What the last record was measured on, and when."""
        last = newest(self.compared())
        return f"{last['gpu'].get('device', '')} ({last['date'][:10]})"


def beside_cudss(path: Path = SPARSE) -> Results | None:
    """Return the results of this package and of cuDSS; None without those of cuDSS."""
    results = Results(r for r in load(path) if r["solver"] in ("frontal", "cudss"))
    return results if results.beside else None


def comparison(results: Results, rival: str) -> list[Row]:
    """Return header, a row a problem, and the geometric means of ours over the rival's."""
    header = ["problem", "dtype", "TF/s", f"{rival} TF/s"]
    for title in PHASES.values():
        header += [f"{title} ms", f"{rival} {title} ms", "ratio"]
    rows = [header]
    for case in results.cases:
        if rival != "cudss" and not results.record(case, rival):
            continue
        name = case[0] + ("" if results.record(case).get("resident", True) else " *")
        row = [name, case[1]]
        row += [figure(results.record(case, s).get("tflops")) for s in ("frontal", rival)]
        for phase in PHASES:
            row += map(figure, results.pair(case, phase, rival))
            row.append(figure(results.ratio(case, phase, rival)))
        rows.append(row)
    means = [figure(mean(results.ratio(c, x, rival) for c in results.cases)) for x in PHASES]
    return [*rows, ["geometric mean", "", "", "", "", "", means[0], "", "", means[1]]]


def judged(value: float | None, bound: float) -> str:
    """Return whether a time keeps its bound, or by what factor it misses."""
    if value is None:
        return "no result"
    return "reached" if value <= bound else f"short {value / bound:.2f}x"


def aims(results: Results) -> list[Row]:
    """Return header and a row for each problem and phase that has an aim."""
    rows = [["problem", "phase", "ms", "first aim", "", "goal", ""]]
    for problem, phases in AIMS.items():
        for phase, aim in phases.items():
            took = results.value((problem, "d"), "frontal", phase)
            bounds = [cell for bound in aim for cell in (f"{bound:g}", judged(took, bound))]
            rows.append([problem, PHASES[phase], figure(took), *bounds])
    return rows


def details(results: Results) -> list[Row]:
    """Return header and a row for each record: size, cost, the other phases, memory, residual."""
    header = ["problem", "dtype", "solver", "n", "nnz(factor)", "flops", "levels", "analysis s"]
    header += ["first factor ms", "solve refined ms", "16 rhs ms", "memory MiB", "residual"]
    rows = [header]
    for case in results.cases:
        for solver in results.solvers:
            record = results.record(case, solver)
            if "error" in record:
                told = record["error"]["type"]
                rows.append([*case, solver, told, *[""] * (len(header) - 4)])
            elif record:
                rows.append([*case, solver, *_detail(record)])
    return rows


def _detail(record: Record) -> Row:
    def time(phase: str, scale: float = 1e3) -> str:
        found = record["phases"].get(phase)
        return figure(scale * found["median"] if found else None)

    flops = record.get("flops")
    return [
        f"{record['n']:,}",
        count(record.get("nnz_factor")),
        f"{flops:.2e}" if flops else "–",
        str(record.get("levels", "–")),
        time("analysis", 1),
        *map(time, ("factor1", "solve_refined", "solve16")),
        f"{record['memory'] / 2**20:,.0f}",
        f"{record['residual']:.0e}",
    ]


def from_scratch(results: Results, first: int = 3) -> list[Row]:
    """Return header and a row a problem: each measure of ours, of cuDSS's and the ratio, and means.

    The measures are those of `MEASURES` from the `first` on.
    """
    header, last = ["problem", "dtype", "n"], ["geometric mean", "", ""]
    rows = [[*case, count(results.record(case).get("n"))] for case in results.beside]
    for name, title, unit in MEASURES[first:]:
        header += [f"{title} {unit}", "cudss", "ratio"]
        for case, row in zip(results.beside, rows, strict=True):
            row += map(figure, (*results.pair(case, name), results.ratio(case, name)))
        last += ["", "", figure(mean(results.ratios(name)))]
    return [header, *rows, last]


def behind(results: Results) -> str:
    """Return what ours takes more of than cuDSS, by problem and factor, the worst first."""
    lines, best = [], []
    for name, title, _ in MEASURES:
        ratios = [(x, c) for c in results.beside if (x := results.ratio(c, name))]
        worse = sorted((x, c) for x, c in ratios if x > _VISIBLE)[::-1]
        if worse:
            told = ", ".join(f"{problem} {x:.2f}x" for x, (problem, _) in worse)
            share = f"{len(worse)} of {len(ratios)} problems"
            lines.append(f"Behind cuDSS in {title} ({share}): {told}.")
        elif ratios:
            best.append(f"{title} ({len(ratios)} problems)")
    if best:
        lines.append(f"Nowhere behind in {', '.join(best)}.")
    return "\n".join(f"- {line}" for line in lines)


def notes(results: Results) -> str:
    """Return what is to be said of the comparison."""
    starred = any(not results.record(c).get("resident", True) for c in results.cases)
    return f"{NOTE} {STAR}" if starred else NOTE


def summary(results: Results | None) -> str:
    """Return where this package is behind, what that means, and its origin."""
    if results is None:
        return NO_RESULTS
    about = f"{results.device}; {origin(results.compared())}."
    return "\n\n".join([SCRATCH_NOTE, behind(results), about])


def text(records: Iterable[Record]) -> str:
    """Return the comparison with each cuDSS measured, and the aims, as text."""
    results = Results(records)
    parts = [aligned(*comparison(results, rival)) for rival in results.rivals]
    return "\n\n".join([*parts, notes(results), aligned(*aims(results))])


def sections(path: Path = SPARSE, other: Path = H100, real: Path = REAL) -> dict[str, str]:
    """Return the parts of the report by heading; none without results."""
    records, made = load(path), {}
    if records:
        results, last = Results(records), newest(records)
        tables = [markdown(*comparison(results, rival)) for rival in results.rivals]
        libraries = sorted({f"cuDSS {r['cudss']}" for r in records if "cudss" in r})
        about = [listed(last["gpu"]), *libraries, last["machine"]["cpu"], listed(last["versions"])]
        made[""] = "\n\n".join([*tables, notes(results)])
        made[": aims"] = markdown(*aims(results))
        made[": details"] = markdown(*details(results))
        made[": origin"] = f"{'; '.join(about)}; {origin(results.records.values())}."
    for name, file in ((": from scratch", path), (": from scratch on an H100", other)):
        found = beside_cudss(file)
        if found:
            made[name] = f"{markdown(*from_scratch(found))}\n\n{summary(found)}"
    found = beside_cudss(real)
    if found:
        made[": real matrices"] = f"{markdown(*from_scratch(found, 0))}\n\n{summary(found)}"
    return {f"Sparse systems on a GPU{name}": body for name, body in made.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=Path, default=SPARSE)
    print(text(load(parser.parse_args().results)))


if __name__ == "__main__":
    main()
