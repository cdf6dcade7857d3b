"""Plots of the GPU ladder from its results: `python benchmarks/gpu_plots.py` writes them.

One file a routine and scalar type, one panel a shape: GF/s against the size, a line a rung, and
what the device's ceilings allow. MAGMA's numbers are those of results/magma_reference.jsonl.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

from gpu_cases import DTYPES, SHAPES, SIZES, Case
from harness import RESULTS, load

REFERENCE = RESULTS / "magma_reference.jsonl"
COLORS = {
    "ours": "black",
    "vendor": "tab:green",
    "magma": "tab:red",
    "streamed": "tab:olive",
    "padding": "tab:purple",
    "host": "tab:gray",
    "naive": "tab:brown",
}
PAPER = ("tab:blue", "tab:cyan", "tab:pink", "tab:orange")
TITLES = {
    "fixed": "one size, batch 10000 to n = 64, then 1000",
    "uniform": "sizes uniform in 1..N, batch 3000",
    "gaussian": "sizes Gaussian around N/2, batch 3000",
    "native": "one matrix",
}
Records = list[dict[str, Any]]


def collected(path: Path) -> Records:
    """Return the records that are numbers, the last of each entry, with MAGMA's rows.

    Of MAGMA's two batches of different sizes that of 3000 stands, where it was measured.
    """
    last: dict[tuple, dict] = {}
    for record in [*sorted(load(REFERENCE), key=lambda r: r["batch"] or 0), *load(path)]:
        key = tuple(record.get(k) for k in ("routine", "dtype", "shape", "n", "rung"))
        last[key] = record
    found = [r for r in last.values() if "gflops" in r and r.get("ok") is not False]
    return sorted(found, key=lambda r: r["n"])


def ceilings(path: Path) -> dict[str, Any]:
    """Return the last measured ceilings of the device; empty without them."""
    found = [r for r in load(path) if r["rung"] == "ceilings" and "copy_gbytes" in r]
    merged: dict[str, Any] = {"gemm_gflops": {}}
    for record in found:
        merged["copy_gbytes"] = record["copy_gbytes"]
        merged["gemm_gflops"] |= record["gemm_gflops"]
    return merged if found else {}


def bound(record: dict[str, Any], limits: dict[str, Any]) -> float | None:
    """GF/s that the ceilings allow for a case."""
    peak = limits.get("gemm_gflops", {}).get(record["dtype"])
    if peak is None or record["batch"] is None:
        return None
    case = Case(*(record[k] for k in ("routine", "dtype", "shape", "n", "batch")))
    n = case.sizes()
    flops, moved = case.flops(n), case.bytes(n)
    return flops / max(flops / peak, moved / limits["copy_gbytes"])


def panel(axes: Any, records: Records, limits: dict[str, Any]) -> None:
    """Draw one shape of one routine."""
    lines = defaultdict(list)
    for record in records:
        lines[record["rung"]].append((record["n"], record["gflops"]))
    spare = iter(PAPER)
    for rung, points in sorted(lines.items()):
        color = COLORS.get(rung) or next(spare, "tab:orange")
        width, style = (2.4, "-") if rung == "ours" else (1.2, "--" if rung == "magma" else "-")
        axes.plot(*zip(*points, strict=True), style, color=color, lw=width, marker=".", label=rung)
    roof = sorted({(r["n"], bound(r, limits)) for r in records if bound(r, limits)})
    if roof:
        axes.plot(*zip(*roof, strict=True), ":", color="black", lw=1, label="roofline")
    axes.set(xscale="log", yscale="log", xlabel="n", title=TITLES[records[0]["shape"]])
    ticks = sorted({r["n"] for r in records})
    axes.set_xticks(ticks, [str(n) for n in ticks], rotation=60, fontsize=7)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def draw(records: Records, limits: dict[str, Any], folder: Path) -> list[Path]:
    """Write one picture for each routine and scalar type that has results."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    written = []
    for routine in SIZES:
        for dtype in DTYPES:
            mine = [r for r in records if (r["routine"], r["dtype"]) == (routine, dtype)]
            if not any(r["rung"] != "magma" for r in mine):
                continue
            shapes = [s for s in SHAPES if any(r["shape"] == s for r in mine)]
            figure, grid = plt.subplots(1, len(shapes), figsize=(5 * len(shapes), 4.2))
            for axes, shape in zip([grid] if len(shapes) == 1 else grid, shapes, strict=True):
                panel(axes, [r for r in mine if r["shape"] == shape], limits)
                axes.set_ylabel(f"{dtype}{routine.replace('_', ' ')}, GF/s")
            figure.tight_layout()
            written.append(folder / f"gpu_{dtype}{routine}.png")
            figure.savefig(written[-1], dpi=130)
            plt.close(figure)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS / "gpu_dense.jsonl")
    parser.add_argument("--folder", type=Path, default=RESULTS)
    options = parser.parse_args()
    for path in draw(collected(options.results), ceilings(options.results), options.folder):
        print(path.name)


if __name__ == "__main__":
    main()
