"""Markdown table of the public functions of `frontal.gpu.batched` beside torch's, for report.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpu_cases import DTYPES
from gpu_report import table
from harness import RESULTS, load, origin

PUBLIC = RESULTS / "gpu_public.jsonl"
OURS, OTHER = "public", "torch"


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
    for case in sorted(cases, key=lambda c: (c[0], letters.index(c[1]), c[2])):
        routine, letter, n, batch = case
        ours, other = (cells[(*case, rung)]["seconds"]["median"] for rung in (OURS, OTHER))
        about = [f"{routine}, {DTYPES[letter].__name__}", f"{n} x {batch}"]
        rows.append([*about, f"{1e6 * ours:.0f}", f"{1e6 * other:.0f}", f"{other / ours:.1f}"])
    last = max(cells.values(), key=lambda r: r["date"])
    note = (
        f"Microseconds of a call, host included. {last['gpu']['device']}; {origin(cells.values())}."
    )
    header = ["function", "order x batch", "ours", "torch", "torch / ours"]
    return {"GPU: public functions": f"{table(header, rows)}\n\n{note}"}
