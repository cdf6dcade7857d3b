"""What the sparse solver must reach on a GPU: ratios to cuDSS, aims, tables of results/gpu.jsonl.

`python benchmarks/gpu_aims.py` prints them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple

from harness import RESULTS, load, origin

SPARSE, H100 = RESULTS / "gpu.jsonl", RESULTS / "gpu_h100.jsonl"
SOLVERS = ("frontal", "cudss", "cudss-same", "cupyx")
PHASES = {"refactor": "refactor", "solve1": "solve"}  # those that have aims, and their titles


class Aim(NamedTuple):
    """Milliseconds in double precision on one H200: what comes first, and what is the goal."""

    first: float
    goal: float


AIMS: dict[str, dict[str, Aim]] = {
    "p2d:300": {"refactor": Aim(1.0, 0.4), "solve1": Aim(0.3, 0.12)},
    "p2d:1000": {"refactor": Aim(5, 1.8), "solve1": Aim(1.0, 0.35)},
    "p2d:2000": {"refactor": Aim(18, 6), "solve1": Aim(3, 1.1)},
    "p3d:30": {"refactor": Aim(2.5, 1.0), "solve1": Aim(0.4, 0.2)},
    "p3d:50": {"refactor": Aim(8, 3), "solve1": Aim(1.0, 0.5)},
    "p3d:64": {"refactor": Aim(25, 12), "solve1": Aim(1.5, 0.8)},
    "p3d:100": {"refactor": Aim(220, 130), "solve1": Aim(5, 3.7)},
    "el27:30": {"refactor": Aim(14, 7), "solve1": Aim(1.0, 0.5)},
    "cd3d:55": {"refactor": Aim(40, 20), "solve1": Aim(1.3, 0.8)},
}


class Results:
    """Records by problem, scalar type and solver; one that was measured again stands as it was
    measured last."""

    def __init__(self, records: Iterable[dict[str, Any]]) -> None:
        self.records = {(r["problem"], r["dtype"], r["solver"]): r for r in records}
        self.cases = list(dict.fromkeys((p, d) for p, d, _ in self.records))
        found = {solver for _, _, solver in self.records}
        self.solvers = [name for name in SOLVERS if name in found]

    def record(self, case: tuple[str, str], solver: str = "frontal") -> dict[str, Any]:
        """Return a record, empty where there is none."""
        return self.records.get((*case, solver), {})

    def milliseconds(self, case: tuple[str, str], solver: str, phase: str) -> float | None:
        """Return the median of a phase, or None."""
        found = self.record(case, solver).get("phases", {}).get(phase)
        return 1e3 * found["median"] if found else None

    def ratio(self, case: tuple[str, str], phase: str, rival: str = "cudss") -> float | None:
        """Return our time over the rival's, or None."""
        ours, theirs = (self.milliseconds(case, s, phase) for s in ("frontal", rival))
        return ours / theirs if ours and theirs else None

    def rivals(self) -> list[str]:
        """Return the ways of cuDSS that were measured."""
        return [s for s in self.solvers if s.startswith("cudss")] or ["cudss"]


def mean(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of those that are there."""
    known = [x for x in ratios if x]
    return exp(sum(map(log, known)) / len(known)) if known else None


def figure(value: float | None) -> str:
    """Return a number with three significant digits, a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def comparison(results: Results, rival: str) -> list[list[str]]:
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
            times = [results.milliseconds(case, s, phase) for s in ("frontal", rival)]
            row += [*map(figure, times), figure(results.ratio(case, phase, rival))]
        rows.append(row)
    means = [figure(mean(results.ratio(c, x, rival) for c in results.cases)) for x in PHASES]
    return [*rows, ["geometric mean", "", "", "", "", "", means[0], "", "", means[1]]]


def judged(value: float | None, bound: float) -> str:
    """Return whether a time keeps its bound, or by what factor it misses."""
    if value is None:
        return "no result"
    return "reached" if value <= bound else f"short {value / bound:.2f}x"


def aims(results: Results) -> list[list[str]]:
    """Return header and a row for each problem and phase that has an aim."""
    rows = [["problem", "phase", "ms", "first aim", "", "goal", ""]]
    for problem, phases in AIMS.items():
        for phase, aim in phases.items():
            took = results.milliseconds((problem, "d"), "frontal", phase)
            row = [problem, PHASES[phase], figure(took)]
            for bound in aim:
                row += [f"{bound:g}", judged(took, bound)]
            rows.append(row)
    return rows


def details(results: Results) -> list[list[str]]:
    """Return header and a row for each record: size, cost, the other phases, memory, residual."""
    header = ["problem", "dtype", "solver", "n", "nnz(factor)", "flops", "levels", "analysis s"]
    header += ["first factor ms", "solve refined ms", "16 rhs ms", "memory MiB", "residual"]
    rows = [header]
    for problem, dtype in results.cases:
        for solver in results.solvers:
            record = results.record((problem, dtype), solver)
            if "error" in record:
                told = record["error"]["type"]
                rows.append([problem, dtype, solver, told, *[""] * (len(header) - 4)])
            elif record:
                rows.append([problem, dtype, solver, *_detail(results, record)])
    return rows


def _detail(results: Results, record: dict[str, Any]) -> list[str]:
    case, solver = (record["problem"], record["dtype"]), record["solver"]
    analysis = results.milliseconds(case, solver, "analysis")
    others = ("factor1", "solve_refined", "solve16")
    times = [results.milliseconds(case, solver, x) for x in others]
    entries, flops = record.get("nnz_factor"), record.get("flops")
    return [
        f"{record['n']:,}",
        f"{entries:,}" if entries else "–",
        f"{flops:.2e}" if flops else "–",
        str(record.get("levels", "–")),
        figure(analysis / 1e3 if analysis is not None else None),
        *map(figure, times),
        f"{record['memory'] / 2**20:,.0f}",
        f"{record['residual']:.0e}",
    ]


def aligned(rows: list[list[str]]) -> str:
    """Return rows as text in columns, the first to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ([a.ljust(widths[0]), *map(str.rjust, rest, widths[1:])] for a, *rest in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def markdown(rows: list[list[str]]) -> str:
    """Return rows as a Markdown table, the first of them being its header."""
    header, *rest = rows
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rest]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


NOTE = (
    "Ratios are ours over cuDSS's, each by its last row, which may be of different runs; "
    "TF/s by the flops that each counts for its own factors."
)
STAR = "* values or right-hand sides of ours went through the host."


def notes(results: Results) -> str:
    """Return what is to be said of the comparison."""
    starred = any(not results.record(c).get("resident", True) for c in results.cases)
    return f"{NOTE} {STAR}" if starred else NOTE


def text(records: Iterable[dict[str, Any]]) -> str:
    """Return the comparison with each cuDSS measured, and the aims, as text."""
    results = Results(records)
    rivals = results.rivals()
    parts = [aligned(comparison(results, rival)) for rival in rivals]
    return "\n\n".join([*parts, notes(results), aligned(aims(results))])


def sections(path: Path = SPARSE) -> dict[str, str]:
    """Return the parts of the report by heading; none without results."""
    records = load(path)
    if not records:
        return {}
    results = Results(records)
    rivals = results.rivals()
    tables = [markdown(comparison(results, rival)) for rival in rivals]
    last = max(records, key=lambda r: r["date"])
    about = ", ".join(f"{k} {v}" for k, v in last["gpu"].items())
    packages = ", ".join(f"{k} {v}" for k, v in last["versions"].items())
    libraries = sorted({f"cuDSS {r['cudss']}" for r in records if "cudss" in r})
    about = "; ".join([about, *libraries, last["machine"]["cpu"], packages])
    return {
        "Sparse systems on a GPU": "\n\n".join([*tables, notes(results)]),
        "Sparse systems on a GPU: aims": markdown(aims(results)),
        "Sparse systems on a GPU: details": markdown(details(results)),
        "Sparse systems on a GPU: origin": f"{about}; {origin(results.records.values())}.",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=Path, default=SPARSE)
    print(text(load(parser.parse_args().results)))


if __name__ == "__main__":
    main()
