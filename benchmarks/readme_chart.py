"""The README's chart: seconds against n for the 7-point Laplacian of cubes, from the results.

`python benchmarks/readme_chart.py` writes docs/static/laplacian.svg. Times on the CPU are those of
results/laplacian.jsonl, which `--measure` takes (on a machine that does nothing else), and without
it those of results/cpu.jsonl; times on a GPU are of results/gpu.jsonl.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cpu
from gpu_aims import SPARSE
from gpu_aims import Results as OnGpu
from harness import RESULTS, ROOT, jobs, load, origin, run_all

PICTURE = ROOT / "docs" / "static" / "laplacian.svg"
ON_HOST = RESULTS / "laplacian.jsonl"
EDGES = (8, 12, 16, 24, 32, 40)
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
    found = load(ON_HOST) or load(RESULTS / "cpu.jsonl")
    return [r for r in found if r["problem"].startswith("poisson3d:") and r["threads"] == 1]


def on_host(solver: str, phase: str) -> Points:
    """n and median seconds on one thread; a job that was run again stands as it was run last."""
    last = {r["problem"]: r for r in host_records() if r["solver"] == solver and "phases" in r}
    return sorted((r["n"], r["phases"][phase]["median"]) for r in last.values())


def on_device(solver: str, phase: str) -> Points:
    """n and median seconds of the same problems in double precision on a GPU."""
    results = OnGpu(load(SPARSE))
    cases = [case for case in results.cases if case[0].startswith("p3d:") and case[1] == "d"]
    found = [(results.record(c, solver), results.milliseconds(c, solver, phase)) for c in cases]
    return sorted((r["n"], t / 1e3) for r, t in found if t)


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
    device = [r for r in load(SPARSE) if r["problem"].startswith("p3d:")]
    parts = ["The 7-point Laplacian of cubes, medians of seconds"]
    if host:
        cpus = ", ".join(sorted({r["machine"]["cpu"] for r in host}))
        parts.append(f"one thread on {cpus} ({origin(host)[:10]})")
    if device:
        last = max(device, key=lambda r: r["date"])
        parts.append(f"{last['gpu'].get('device', '')} ({origin([last])[:10]})")
    return "; ".join(parts) + "."


def measure() -> None:
    """Take the times on the CPU anew."""
    problems = [f"poisson3d:{edge}" for edge in EDGES]
    todo = jobs(problems, cpu.installed(list(HOST)), [1], reps=3, budget=2.0)
    run_all(todo, 30.0, ON_HOST, append=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--measure", action="store_true", help="take the times on the CPU anew")
    if parser.parse_args().measure:
        measure()
    draw()


if __name__ == "__main__":
    main()
