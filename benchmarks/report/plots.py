"""Plots of the dense ladder from its results: `python -m benchmarks.report.plots` writes them.

One file a routine and scalar type, one panel a shape: GF/s against the size, a line a rung, and
what the device's ceilings allow. MAGMA's numbers are those of results/magma_reference.jsonl.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.harness.cases import DTYPES, SIZES, Case
from benchmarks.harness.records import RESULTS, Record
from benchmarks.report.dense import LADDER, TITLES, by_shape, ceilings, collected

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


def bound(record: Record, limits: Record) -> float | None:
    """GF/s that the ceilings allow for a case."""
    peak = limits.get("gemm_gflops", {}).get(record["dtype"])
    if peak is None or record["batch"] is None:
        return None
    case = Case(*(record[k] for k in ("routine", "dtype", "shape", "n", "batch")))
    n = case.sizes()
    flops, moved = case.flops(n), case.bytes(n)
    return flops / max(flops / peak, moved / limits["copy_gbytes"])


def panel(axes: Any, records: list[Record], limits: Record) -> None:
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


def draw(records: list[Record], limits: Record, folder: Path) -> list[Path]:
    """Write one picture for each routine and scalar type that has results."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    written = []
    for routine, dtype in product(SIZES, DTYPES):
        shapes = by_shape(records, routine, dtype)
        if not shapes:
            continue
        size = (5 * len(shapes), 4.2)
        figure, grid = plt.subplots(1, len(shapes), figsize=size, squeeze=False)
        for axes, mine in zip(grid[0], shapes.values(), strict=True):
            panel(axes, mine, limits)
            axes.set_ylabel(f"{dtype}{routine.replace('_', ' ')}, GF/s")
        figure.tight_layout()
        written.append(folder / f"gpu_{dtype}{routine}.png")
        figure.savefig(written[-1], dpi=130)
        plt.close(figure)
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=Path, default=LADDER)
    parser.add_argument("--folder", type=Path, default=RESULTS)
    options = parser.parse_args()
    for path in draw(collected(options.results), ceilings(options.results), options.folder):
        print(path.name)


if __name__ == "__main__":
    main()
