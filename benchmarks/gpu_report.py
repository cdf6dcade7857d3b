"""Markdown tables of the GPU ladder, for report.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gpu_ratios
from gpu_cases import DTYPES, SHAPES, SIZES
from gpu_plots import TITLES, ceilings, collected
from harness import RESULTS, load, origin

LADDER = RESULTS / "gpu_dense.jsonl"
ORDER = ("naive", "paper", "ours", "magma", "vendor", "streamed", "padding", "host")


def _rank(rung: str) -> tuple[int, str]:
    return ORDER.index(rung.split("-")[0]), rung


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def rates(records: list[dict[str, Any]]) -> str:
    """Return the table sizes × rungs of GF/s, with our share of the roofline."""
    rungs = sorted({r["rung"] for r in records}, key=_rank)
    cells = {(r["n"], r["rung"]): r for r in records}
    rows = []
    for n in sorted({r["n"] for r in records}):
        found = [cells.get((n, rung), {}) for rung in rungs]
        rate = [f"{r['gflops']:,.0f}" if r else "" for r in found]
        share = cells.get((n, "ours"), {}).get("roofline")
        rows.append([str(n), *rate, f"{100 * share:.0f} %" if share else ""])
    return table(["n", *rungs, "ours / roofline"], rows)


def sections(path: Path = LADDER) -> dict[str, str]:
    """Return the parts of the report by heading; none without results."""
    measured = [r for r in load(path) if r.get("gpu")]
    if not measured:
        return {}
    records, limits = collected(path), ceilings(path)
    found = {"GPU: aims": table(["aim", "bound", "by size", ""], gpu_ratios.rows(path))}
    for routine in SIZES:
        for letter, dtype in DTYPES.items():
            mine = [r for r in records if (r["routine"], r["dtype"]) == (routine, letter)]
            if not any(r["rung"] != "magma" for r in mine):
                continue
            by_shape = {s: [r for r in mine if r["shape"] == s] for s in SHAPES}
            parts = [f"{TITLES[s]}:\n\n{rates(r)}" for s, r in by_shape.items() if r]
            name = f"GPU: {routine.replace('_', ' ')}, {dtype.__name__}, GF/s"
            found[name] = "\n\n".join(parts)
    last = max(measured, key=lambda r: r["date"])
    about = ", ".join(f"{k} {v}" for k, v in last["gpu"].items())
    peaks = ", ".join(f"{k} {v / 1e3:.1f}" for k, v in limits.get("gemm_gflops", {}).items())
    note = f"{about}; {origin(r for r in records if r['rung'] != 'magma')}."
    if limits:
        note += f" Ceilings: copy {limits['copy_gbytes'] / 1e3:.2f} TB/s, gemm {peaks} TF/s."
    source = {r["source"] for r in records if "source" in r}
    found["GPU: origin"] = " ".join([note, *(f"MAGMA's rows: {s}." for s in source)])
    return found
