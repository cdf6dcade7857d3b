"""Markdown tables from the results: `python benchmarks/report.py` writes results/README.md."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log10

import gpu_aims
import gpu_behind
import gpu_public_report
import gpu_report
import harness
from harness import RESULTS, load
from ratios import RATIOS, Results

PHASES = ("analysis", "refactor", "solve")


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table; the first column is left-aligned, the others right-aligned."""
    header = list(header)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def figure(value: float | None) -> str:
    """Return a time with two figures (three from 1 on), to 0.1 ms; none is a dash."""
    if value is None:
        return "–"
    if value < 5e-5:
        return "0"
    digits = 2 - floor(log10(value)) if value >= 1 else 1 - floor(log10(max(value, 1e-3)))
    return f"{value:.{max(digits, 0)}f}"


def comparison(results: Results) -> str:
    """Return the table of the ratios: aim, geometric mean, range, number of problems."""

    def row(ratio) -> list[str]:
        found = ratio.by_problem(results).values()
        aim = f"{'≥' if ratio.at_least else '≤'} {ratio.bound:g}"
        if not found:
            return [ratio.text, aim, "–", "–", "0"]
        span = f"{min(found):.2f} to {max(found):.2f}"
        return [ratio.text, aim, f"{ratio.value(found):.2f}", span, str(len(found))]

    return table(["ratio", "aim", "geometric mean", "range", "problems"], map(row, RATIOS))


def times(results: Results, threads: int) -> str:
    """Return the table problems × solvers of analysis / refactorization / solve."""

    def cell(problem: str, solver: str) -> str:
        record = results.record(problem, solver, threads)
        if "error" in record:
            return record["error"]["type"]
        found = [results.time(problem, solver, phase, threads) for phase in PHASES]
        return " / ".join(map(figure, found)) if record else ""

    rows = ([p, *(cell(p, s) for s in results.solvers)] for p in results.problems)
    return table(["problem", *results.solvers], rows)


def overview(results: Results) -> str:
    """Return the table of this solver by problem, one thread, and the best peer from scratch."""

    def row(problem: str) -> list[str]:
        record = results.record(problem)
        about = [f"{record[k]:,}" if k in record else "–" for k in ("n", "nnz_factor")]
        ours = [results.time(problem, "frontal", x) for x in ("scratch", "refactor", "solve")]
        name, time = results.best(problem, "scratch")
        method = record.get("method", "–")
        return [problem, method, *about, *map(figure, [*ours, time]), name]

    header = ["problem", "method", "n", "nnz(factor)", "from scratch", "refactor", "solve"]
    return table([*header, "best peer", "which"], map(row, results.problems))


def collection(results: Results) -> str:
    """Return the table of real matrices: method, time from scratch, residual or error, peers."""

    def outcome(problem: str, solver: str) -> list[str]:
        record = results.record(problem, solver)
        if "error" in record:
            return ["–", record["error"]["type"]]
        if not record:
            return ["", ""]
        warned = [name for name in record["warnings"] if name == "IllConditionedWarning"]
        found = " ".join([f"{record['residual']:.0e}", *warned])
        return [figure(results.time(problem, solver, "scratch")), found]

    def row(problem: str) -> list[str]:
        record = results.record(problem)
        about = [str(record.get(k, "–")) for k in ("kind", "n", "nnz", "scratch_method")]
        return [problem, *about, *(x for s in results.solvers for x in outcome(problem, s))]

    header = ["matrix", "kind", "n", "nnz", "method"]
    header += [x for s in results.solvers for x in (f"{s} s", "residual")]
    return table(header, map(row, results.problems))


def startup(records: list[dict]) -> str:
    """Return the table of the import and of the first calls."""
    rows = (
        [r["what"], r.get("method", ""), r.get("dtype", ""), figure(r["seconds"])] for r in records
    )
    return table(["what", "method", "dtype", "s"], rows)


def origin(records: Iterable[dict]) -> str:
    """Return one line on where, when and with what the records were measured."""
    last = max(records, key=lambda r: r["date"])
    machine, versions = last["machine"], last["versions"]
    packages = ", ".join(f"{k} {v}" for k, v in versions.items())
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB"
    return f"{where}; {harness.origin(records)}; {packages}."


def sections() -> dict[str, str]:
    """Return the parts of the report by heading, those whose results are there."""
    cpu, real = Results(RESULTS / "cpu.jsonl"), Results(RESULTS / "matrices.jsonl")
    first, first_gpu = load(RESULTS / "startup.jsonl"), load(RESULTS / "startup_gpu.jsonl")
    found = {}
    if cpu.problems:
        found["Ratios"] = comparison(cpu)
        found["Problems"] = "Seconds, one thread.\n\n" + overview(cpu)
        for threads in cpu.threads:
            title = f"Solvers, {threads} thread{'s' * (threads > 1)}"
            note = "Seconds: analysis / refactorization / solve without refinement.\n\n"
            found[title] = note + times(cpu, threads)
        found["Origin"] = origin(cpu.records.values())
    if real.problems:
        found["Real matrices, one solve from scratch"] = collection(real)
    if first:
        found["Start-up"] = startup(first)
    if first_gpu:
        gpu = first_gpu[0]["gpu"]["device"]
        found["Start-up on a GPU"] = f"{gpu}; {origin(first_gpu)}\n\n{startup(first_gpu)}"
    found |= gpu_aims.sections() | gpu_behind.sections() | gpu_public_report.sections()
    return found | gpu_report.sections()


def main() -> None:
    parts = "\n".join(f"## {title}\n\n{body}\n" for title, body in sections().items())
    head = "# Results\n\nWritten by `benchmarks/report.py` from the JSON lines beside it.\n\n"
    (RESULTS / "README.md").write_text(head + parts)


if __name__ == "__main__":
    main()
