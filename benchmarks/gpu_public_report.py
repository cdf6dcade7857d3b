"""Markdown table of the public functions of `frontal.gpu.batched` beside torch's, for report.py."""

from __future__ import annotations

from pathlib import Path
from statistics import geometric_mean
from typing import Any

from gpu_cases import DTYPES
from gpu_report import table
from harness import RESULTS, load, origin

PUBLIC = RESULTS / "gpu_public.jsonl"
OURS, OTHER = "public", "torch"
RUNGS = (OURS, OTHER, "cupy")


def newest(records: list[dict[str, Any]]) -> dict[tuple, dict[str, Any]]:
    """Return the last record of each routine, type, size and rung."""
    ordered = sorted(records, key=lambda r: r["date"])
    return {(r["routine"], r["dtype"], r["n"], r["batch"], r["rung"]): r for r in ordered}


def sections(path: Path = PUBLIC) -> dict[str, str]:
    """Return the part of the report by heading; none without results."""
    cells = newest(load(path))
    cases = [key[:-1] for key in cells if key[-1] == OURS and (*key[:-1], OTHER) in cells]
    if not cases:
        return {}
    rows, letters = [], list(DTYPES)
    for case in sorted(cases, key=lambda c: (c[0], letters.index(c[1]), c[2], c[3])):
        routine, letter, n, batch = case
        times = {r: cells[(*case, r)]["seconds"]["median"] for r in RUNGS if (*case, r) in cells}
        about = [f"{routine}, {DTYPES[letter].__name__}", f"{n} x {batch}"]
        shown = [f"{1e6 * times[r]:.0f}" if r in times else "" for r in RUNGS]
        least = min(times[r] for r in RUNGS[1:] if r in times)
        rows.append([*about, *shown, f"{least / times[OURS]:.2f}"])
    header = ["function", "order x batch", "ours", "torch", "CuPy", "the faster / ours"]
    shown = {key: r for key, r in cells.items() if key[:-1] in cases and key[-1] in RUNGS}
    text = f"{table(header, rows)}\n\n{_note(shown)}\n\n{_summary(rows)}"
    return {"GPU: public functions": text} | _of_lists(cells)


def _note(cells: dict[tuple, dict[str, Any]]) -> str:
    """What the figures are, and where they are from."""
    devices = ", ".join(sorted({r["gpu"]["device"] for r in cells.values()}))
    return f"Microseconds of a call, host included. {devices}; {origin(cells.values())}."


def _summary(rows: list[list[str]]) -> str:
    """How it stands over all sizes and types, by function."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row[0].split(",")[0], []).append(float(row[-1]))
    lines = [
        f"- {name}: {geometric_mean(x):.1f} in the geometric mean of {len(x)}, least {min(x):.2f}"
        for name, x in sorted(found.items())
    ]
    return "The faster over ours:\n\n" + "\n".join(lines)


def _of_lists(cells: dict[tuple, dict[str, Any]]) -> dict[str, str]:
    """The table of lists of matrices of different sizes."""
    rows, letters = [], list(DTYPES)
    cases = [key[:-1] for key in cells if key[-1] == "Batch"]
    for case in sorted(cases, key=lambda c: (c[0], letters.index(c[1]))):
        routine, letter, n, batch = case
        kinds = [cells.get((*case, rung)) for rung in ("list", "Batch", "device")]
        shown = [f"{1e6 * x['seconds']['median']:.0f}" if x else "" for x in kinds]
        rows.append([f"{routine}, {DTYPES[letter].__name__}", f"{n} x {batch}", *shown])
    if not rows:
        return {}
    header = ["function", "orders x number", "list", "Batch", "device alone"]
    own = {key: r for key, r in cells.items() if key[:-1] in cases}
    return {"GPU: lists": f"{table(header, rows)}\n\n{_note(own)}"}
