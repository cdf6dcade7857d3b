"""All tables: `python -m benchmarks.report.results` writes benchmarks/results/README.md."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.harness.records import RESULTS, Record, load, newest
from benchmarks.harness.records import origin as origin_of
from benchmarks.report import dense, public, sparse
from benchmarks.report.peers import CPU, MATRICES, RATIOS, Ratio, Results
from benchmarks.report.tables import listed, markdown, seconds

PHASES = ("analysis", "refactor", "solve")
REAL_PHASES = (  # title, our phase, the peers' phase
    ("from scratch", "scratch", "scratch"),
    ("refactorization", "refactor", "refactor"),
    ("solve with checks", "solve_refined", "solve"),
    ("solve without", "solve", "solve"),
)
STARTUP, STARTUP_GPU = RESULTS / "startup.jsonl", RESULTS / "startup_gpu.jsonl"


def comparison(results: Results, ratios: Iterable[Ratio] = RATIOS) -> str:
    """Return the table of ratios: aim, geometric mean, range, number of problems."""

    def row(ratio: Ratio) -> list[str]:
        found = ratio.by_problem(results).values()
        aim = f"{'≥' if ratio.at_least else '≤'} {ratio.bound:g}"
        if not found:
            return [ratio.text, aim, "–", "–", "0"]
        span = f"{min(found):.2f} to {max(found):.2f}"
        return [ratio.text, aim, f"{ratio.value(found):.2f}", span, str(len(found))]

    return markdown(["ratio", "aim", "geometric mean", "range", "problems"], *map(row, ratios))


def times(results: Results, threads: int) -> str:
    """Return the table problems × solvers of analysis / refactorization / solve."""

    def cell(problem: str, solver: str) -> str:
        record = results.record(problem, solver, threads)
        if "error" in record:
            return record["error"]["type"]
        found = [results.time(problem, solver, phase, threads) for phase in PHASES]
        return " / ".join(map(seconds, found)) if record else ""

    rows = ([p, *(cell(p, s) for s in results.solvers)] for p in results.problems)
    return markdown(["problem", *results.solvers], *rows)


def overview(results: Results) -> str:
    """Return the table of this solver by problem, one thread, and the best peer from scratch."""

    def row(problem: str) -> list[str]:
        record = results.record(problem)
        about = [f"{record[k]:,}" if k in record else "–" for k in ("n", "nnz_factor")]
        ours = [results.time(problem, "frontal", x) for x in ("scratch", "refactor", "solve")]
        name, time = results.best(problem, "scratch")
        method = record.get("method", "–")
        return [problem, method, *about, *map(seconds, [*ours, time]), name]

    header = ["problem", "method", "n", "nnz(factor)", "from scratch", "refactor", "solve"]
    return markdown([*header, "best peer", "which"], *map(row, results.problems))


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
        return [seconds(results.time(problem, solver, "scratch")), found]

    def row(problem: str) -> list[str]:
        record = results.record(problem)
        about = [str(record.get(k, "–")) for k in ("kind", "n", "nnz", "scratch_method")]
        return [problem, *about, *(x for s in results.solvers for x in outcome(problem, s))]

    header = ["matrix", "kind", "n", "nnz", "method"]
    header += [x for s in results.solvers for x in (f"{s} s", "residual")]
    return markdown(header, *map(row, results.problems))


def beside_the_best(results: Results) -> str:
    """Return the table of real matrices: our times, and the best peer's with its name."""

    def row(problem: str) -> list[str]:
        cells = [problem]
        for _, ours, theirs in REAL_PHASES:
            name, best = results.best(problem, theirs)
            cells += [seconds(results.time(problem, "frontal", ours)), f"{seconds(best)} {name}"]
        return cells

    header = [x for title, _, _ in REAL_PHASES for x in (title, "best peer")]
    return markdown(["matrix", *header], *map(row, results.problems))


def startup(records: list[Record]) -> str:
    """Return the table of the import and of the first calls."""
    named = [[r["what"], r.get("method", ""), r.get("dtype", "")] for r in records]
    rows = ([*row, seconds(r["seconds"])] for row, r in zip(named, records, strict=True))
    return markdown(["what", "method", "dtype", "s"], *rows)


def origin(records: Iterable[Record]) -> str:
    """Return one line on where, when and with what the records were measured."""
    records = list(records)
    last = newest(records)
    machine = last["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']:.0f} GiB"
    return f"{where}; {origin_of(records)}; {listed(last['versions'])}."


def sections() -> dict[str, str]:
    """Return the parts of the report by heading, those whose results are there."""
    cpu, real = Results(CPU), Results(MATRICES)
    first, first_gpu = load(STARTUP), load(STARTUP_GPU)
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
        found["Real matrices, seconds on one thread"] = beside_the_best(real)
    if first:
        found["Start-up"] = startup(first)
    if first_gpu:
        gpu = first_gpu[0]["gpu"]["device"]
        found["Start-up on a GPU"] = f"{gpu}; {origin(first_gpu)}\n\n{startup(first_gpu)}"
    return found | sparse.sections() | public.sections() | dense.sections()


def main() -> None:
    parts = "\n".join(f"## {title}\n\n{body}\n" for title, body in sections().items())
    head = "Written by `python -m benchmarks.report.results` from the JSON lines beside it."
    (RESULTS / "README.md").write_text(f"# Results\n\n{head}\n\n{parts}", encoding="utf-8")


if __name__ == "__main__":
    main()
