"""The README's chart: seconds against n for the 7-point Laplacian of cubes, from the results.

`python -m benchmarks.report.chart` writes docs/static/laplacian.svg. Times on the CPU are those of
results/cpu.jsonl, times on a GPU those of results/gpu.jsonl.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.records import ROOT, load, newest, origin
from benchmarks.report import sparse
from benchmarks.report.peers import CPU

PICTURE = ROOT / "docs" / "static" / "laplacian.svg"
PHASES = {"scratch": "one solve from scratch", "refactor": "refactorization"}
# solver: how it is named, and drawn
HOST = {
    "frontal": ("frontal, one core", "C0", "-"),
    "pardiso": ("PARDISO, one core", "C2", "--"),
    "superlu": ("SciPy's SuperLU", "C3", "--"),
}
DEVICE = {"frontal": ("frontal, GPU", "C1", "-"), "cudss": ("cuDSS, GPU", "C4", "--")}
Points = list[tuple[int, float]]


def host_records() -> list[dict]:
    """Records of the problems poisson3d on one thread."""
    return [r for r in load(CPU) if r["problem"].startswith("poisson3d:") and r["threads"] == 1]


def on_host(solver: str, phase: str) -> Points:
    """n and median seconds on one thread; a job that was run again stands as it was run last."""
    last = {r["problem"]: r for r in host_records() if r["solver"] == solver and "phases" in r}
    return sorted((r["n"], r["phases"][phase]["median"]) for r in last.values())


def on_device(solver: str, phase: str) -> Points:
    """n and median seconds of the same problems in double precision on a GPU."""
    results = sparse.Results(load(sparse.SPARSE))
    cases = [case for case in results.cases if case[0].startswith("p3d:") and case[1] == "d"]
    records = [results.record(case, solver) for case in cases]
    medians = [(r["n"], r["phases"].get(phase)) for r in records if "phases" in r]
    return sorted((n, found["median"]) for n, found in medians if found)


def lines() -> list[tuple[str, str, str, str, Points]]:
    """What is drawn: phase, name, color, dashes and points of each line that has points."""
    found = []
    for phase in PHASES:
        for solvers, points in ((HOST, on_host), (DEVICE, on_device)):
            for solver, look in solvers.items():
                found.append((phase, *look, points(solver, phase)))
    return [line for line in found if line[-1]]


def draw(path: Path = PICTURE) -> None:
    """Write the chart: one panel a phase, both axes logarithmic."""
    import matplotlib
    from matplotlib.figure import Figure

    # the same file from the same numbers
    with matplotlib.rc_context({"svg.hashsalt": "frontal", "svg.fonttype": "path"}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        panels = dict(zip(PHASES, figure.subplots(1, 2, sharey=True), strict=True))
        for phase, name, color, dashes, points in lines():
            x, y = zip(*points, strict=True)
            panels[phase].plot(x, y, dashes, color=color, marker="o", ms=4, label=name)
        for phase, axes in panels.items():
            axes.set(xscale="log", yscale="log", xlabel="n", title=PHASES[phase])
            axes.grid(alpha=0.3)
        panels["scratch"].set_ylabel("seconds")
        panels["scratch"].legend(fontsize="small", frameon=False)
        figure.savefig(path, metadata={"Date": None})


def caption() -> str:
    """What the chart shows, and where it was measured."""
    host = host_records()
    device = [r for r in load(sparse.SPARSE) if r["problem"].startswith("p3d:")]
    parts = ["The 7-point Laplacian of cubes, medians of seconds"]
    if host:
        cpus = ", ".join(sorted({r["machine"]["cpu"] for r in host}))
        parts.append(f"one thread on {cpus} ({origin(host)[:10]})")
    if device:
        last = newest(device)
        parts.append(f"{last['gpu'].get('device', '')} ({origin([last])[:10]})")
    return "; ".join(parts) + "."


if __name__ == "__main__":
    draw()
