"""The whole solve from scratch beside cuDSS, and where ours is behind, from results/gpu.jsonl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_aims import H100, SPARSE, Results, figure, markdown, mean
from harness import load, origin

NOTE = (
    "From scratch: a SciPy matrix and b on the host to x on the host, an analysis of its own each "
    "time, what each solver does by default (ours refines), kernels warm; medians. Memory is what "
    "the device has less at the end of it, or after all phases with 16 right-hand sides, whose "
    "solutions count, CuPy's pool included. A dash: not measured."
)
# what is compared, its title and unit, and its value in that unit
MEASURES = (
    ("refactor", "refactorization", "ms"),
    ("solve1", "solve", "ms"),
    ("scratch", "from scratch", "s"),
    ("scratch_analysis", "analysis", "s"),
    ("scratch_factor", "first factorization", "ms"),
    ("scratch_solve", "solve from the host", "ms"),
    ("scratch_memory", "memory", "MiB"),
    ("memory", "memory with 16 right-hand sides", "MiB"),
)
SHORT = ("refactor", "solve1", "scratch", "scratch_factor", "scratch_memory")  # of the README
_VISIBLE = 1.005  # ratios above are printed as more than 1.00


def value(results: Results, case: tuple[str, str], solver: str, measure: str) -> float | None:
    """Return a measure of a record in the unit of its title, or None."""
    unit = {name: unit for name, _, unit in MEASURES}[measure]
    if unit == "MiB":
        found = results.record(case, solver).get(measure)
        return found / 2**20 if found else None
    took = results.milliseconds(case, solver, measure)
    return took / 1e3 if took and unit == "s" else took


def ratio(results: Results, case: tuple[str, str], measure: str) -> float | None:
    """Return ours over cuDSS's, or None."""
    ours, theirs = (value(results, case, solver, measure) for solver in ("frontal", "cudss"))
    return ours / theirs if ours and theirs else None


def cases(results: Results) -> list[tuple[str, str]]:
    """Return the cases that cuDSS has a record of."""
    return [case for case in results.cases if results.record(case, "cudss")]


def from_scratch(results: Results) -> list[list[str]]:
    """Return header and a row a problem: each part of ours, of cuDSS's and the ratio, and means."""
    shown = MEASURES[2:]
    header = ["problem", "dtype", "n"]
    for _, title, unit in shown:
        header += [f"{title} {unit}", "cudss", "ratio"]
    rows = [header]
    for case in cases(results):
        size = results.record(case).get("n")
        row = [*case, f"{size:,}" if size else "–"]
        for name, _, _ in shown:
            row += [figure(value(results, case, s, name)) for s in ("frontal", "cudss")]
            row.append(figure(ratio(results, case, name)))
        rows.append(row)
    last = ["geometric mean", "", ""]
    for name, _, _ in shown:
        last += ["", "", figure(mean(ratio(results, c, name) for c in cases(results)))]
    return [*rows, last]


def behind(results: Results) -> str:
    """Return what ours takes more of than cuDSS, by problem and factor, the worst first."""
    parts, best = [], []
    for name, title, _ in MEASURES:
        known = [(ratio(results, c, name), c) for c in cases(results)]
        ratios = [(x, c) for x, c in known if x]
        worse = sorted((x, c) for x, c in ratios if x > _VISIBLE)[::-1]
        if worse:
            told = ", ".join(f"{problem} {x:.2f}x" for x, (problem, _) in worse)
            parts.append(f"{title} ({len(worse)} of {len(ratios)} problems): {told}")
        elif ratios:
            best.append(f"{title} ({len(ratios)} problems)")
    lines = [f"Behind cuDSS in {x}." for x in parts]
    if best:
        lines.append(f"Nowhere behind in {', '.join(best)}.")
    return "\n".join(f"- {line}" for line in lines)


def short(results: Results) -> list[list[str]]:
    """Return header and a row a problem of the ratios alone."""
    titles = {name: title for name, title, _ in MEASURES}
    rows = [["problem", "n", *(titles[name] for name in SHORT)]]
    for case in cases(results):
        size = results.record(case).get("n")
        ratios = [figure(ratio(results, case, name)) for name in SHORT]
        rows.append([case[0], f"{size:,}" if size else "–", *ratios])
    means = [figure(mean(ratio(results, c, x) for c in cases(results))) for x in SHORT]
    return [*rows, ["geometric mean", "", *means]]


def _results(path: Path) -> tuple[Results, list[dict[str, Any]]] | None:
    records = load(path)
    compared = [r for r in records if r["solver"] in ("frontal", "cudss")]
    results = Results(compared)
    return (results, compared) if cases(results) else None


def results(path: Path = SPARSE) -> Results | None:
    """Return the results of both solvers; None without those of cuDSS."""
    found = _results(path)
    return found[0] if found else None


def sections(path: Path = SPARSE, other: Path = H100) -> dict[str, str]:
    """Return the parts of the report by heading; none without results of cuDSS."""
    made = {}
    for name, of in (("from scratch", path), ("from scratch on an H100", other)):
        found = _results(of)
        if found:
            parts = [markdown(from_scratch(found[0])), NOTE, behind(found[0]), _origin(found[0])]
            made[f"Sparse systems on a GPU: {name}"] = "\n\n".join(parts)
    return made


def _records(results: Results) -> list[dict[str, Any]]:
    found = [results.record(c, s) for c in cases(results) for s in ("frontal", "cudss")]
    return [record for record in found if record]


def device(results: Results) -> str:
    """Return what the last record was measured on, and when."""
    last = max(_records(results), key=lambda r: r["date"])
    return f"{last['gpu'].get('device', '')} ({last['date'][:10]})"


def _origin(results: Results) -> str:
    return f"{device(results)}; {origin(_records(results))}."


def readme(path: Path = SPARSE) -> str:
    """Return the table of the README: ours over cuDSS's by problem, and where ours is behind."""
    found = _results(path)
    if not found:
        return "No results yet."
    results, _ = found
    return "\n\n".join([markdown(short(results)), NOTE, behind(results), _origin(results)])


if __name__ == "__main__":
    print(readme())
