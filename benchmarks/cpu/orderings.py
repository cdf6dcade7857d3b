"""Compare the orderings on grids and on real matrices: `python -m benchmarks.cpu.orderings`.

Entries of the factor, flops and seconds of every method on every pattern go to
results/orderings.jsonl; `--print` shows the table of an earlier run. Unsymmetric patterns that need
a row matching are ordered after it.
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.harness.problems import MATRICES, files, is_file, label
from benchmarks.harness.processes import failure
from benchmarks.harness.records import RESULTS, load, writer
from benchmarks.report.tables import mean
from frontal.io import read_matrix
from frontal.matrix.canonical import canonical
from frontal.numeric.method import LU
from frontal.ordering import Graph, adjacency, order
from frontal.problems import from_name
from frontal.symbolic.matching import maximum_product_matching
from frontal.symbolic.preprocess import looks_at_values

GRIDS = (
    "poisson2d:300",
    "poisson2d:600",
    "poisson2d:1000",
    "poisson3d:20",
    "poisson3d:30",
    "poisson3d:50",
    "poisson3d:64",
    "poisson3d27:20",
    "poisson3d27:40",
    "elasticity3d:12",
    "elasticity3d:25",
)
METHODS: dict[str, dict] = {
    "natural": {"method": "natural"},
    "rcm": {"method": "rcm"},
    "amd": {"method": "amd"},
    "metis": {"method": "metis"},
    "nesdis": {"method": "nesdis"},
    "auto": {"method": "auto"},
    "auto x 100": {"method": "auto", "reuse": 100},
    "auto on a GPU": {"method": "auto", "rate": 1e13, "bandwidth": 1e11},
}
BASELINE = "metis"


def pattern(problem: str) -> Graph:
    """Return the graph that the solver would order."""
    A = read_matrix(problem) if is_file(problem) else from_name(problem)
    if looks_at_values(canonical(A, kind="general"), LU):
        matching = maximum_product_matching(A)
        if matching.rank == A.shape[0]:
            A = A[matching.rows]
    return adjacency(A)


def measure(graph: Graph, options: dict, reps: int, limit: float) -> dict:
    """Order a graph some times; the median, and what came out."""
    seconds = []
    for _ in range(reps):
        start = time.perf_counter()
        try:
            found = order(graph, **options, time_limit=limit)
        except TimeoutError as error:
            return failure(type(error).__name__, str(error))
        seconds.append(time.perf_counter() - start)
    times = {"seconds": statistics.median(seconds), "min": min(seconds), "max": max(seconds)}
    cost = {"nnz": found.cost.nnz, "flops": found.cost.flops, "height": found.cost.height}
    return {"taken": found.method, **cost, **times}


def run(problems: list[str], methods: list[str], arguments: argparse.Namespace) -> None:
    """Measure and write a record at a time."""
    warm = pattern("poisson3d:12")
    for method in methods:
        order(warm, **METHODS[method])  # compiles, and starts METIS's process
    with writer(arguments.output) as store:
        for i, problem in enumerate(problems):
            graph = pattern(problem)
            for method in methods:
                result = measure(graph, METHODS[method], arguments.reps, arguments.limit)
                record = {"problem": label(problem), "n": graph.n, "entries": graph.nnz}
                store(record | {"method": method, "options": METHODS[method]} | result)
            print(f"[{i + 1}/{len(problems)}] {label(problem)}", flush=True)


def table(records: list[dict]) -> Table:
    """Flops of each method over METIS's, with seconds; the last rows are geometric means."""
    found = {(r["problem"], r["method"]): r for r in records if "error" not in r}
    problems = {r["problem"]: r["n"] for r in records}
    methods = list(dict.fromkeys(r["method"] for r in records))
    view = Table(title=f"flops / flops of {BASELINE} (seconds)")
    for title in ("problem", "n", f"{BASELINE} flops", *methods):
        view.add_column(title, justify="left" if title == "problem" else "right")
    for problem, n in problems.items():
        base = found.get((problem, BASELINE))
        cells = [cell(found.get((problem, method)), base) for method in methods]
        view.add_row(problem, str(n), f"{base['flops']:.2e}" if base else "-", *cells)
    view.add_section()
    for least in (0, 10_000):
        means = [means_of(found, [p for p in problems if problems[p] >= least], m) for m in methods]
        view.add_row("geometric mean", f">= {least}", "", *means)
    return view


def cell(record: dict | None, base: dict | None) -> str:
    """Show one record against the baseline."""
    if not record:
        return "-"
    ratio = f"{record['flops'] / base['flops']:.2f}" if base else f"{record['flops']:.2e}"
    taken = f" {record['taken']}" if record["taken"] != record["method"] else ""
    return f"{ratio}{taken} ({record['seconds']:.2g})"


def means_of(found: dict, problems: list[str], method: str) -> str:
    """Geometric means of flops and of seconds over the baseline's."""
    pairs = [
        (found[p, method], found[p, BASELINE])
        for p in problems
        if (p, method) in found and (p, BASELINE) in found
    ]
    if not pairs:
        return "-"
    flops, seconds = (mean(r[key] / b[key] for r, b in pairs) for key in ("flops", "seconds"))
    return f"{flops:.3f} ({seconds:.2g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--problems", nargs="*", default=GRIDS, metavar="NAME:SIZE")
    add("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="NAME")
    add("--matrices", type=Path, default=MATRICES, help="folder of Matrix Market files")
    add("--smallest", type=int, default=1000, help="rows a file must have")
    add("--match", default="", help="regular expression on the problem")
    add("--reps", type=int, default=3, help="repetitions")
    add("--limit", type=float, default=60.0, help="seconds after which METIS is ended")
    add("--output", type=Path, default=RESULTS / "orderings.jsonl")
    add("--print", action="store_true", help="run nothing, show the table of the output file")
    arguments = parser.parse_args()
    problems = [*arguments.problems, *files(arguments.matrices, arguments.smallest)]
    if not arguments.print:
        chosen = [p for p in problems if re.search(arguments.match, label(p))]
        run(chosen, arguments.methods, arguments)
    Console(width=200).print(table(load(arguments.output)))


if __name__ == "__main__":
    main()
