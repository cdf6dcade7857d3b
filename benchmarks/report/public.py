"""Tables of the public functions of `frontal.gpu.batched` beside torch's and CuPy's."""

from __future__ import annotations

from pathlib import Path
from statistics import geometric_mean

from benchmarks.harness.cases import DTYPES
from benchmarks.harness.records import RESULTS, Record, load, origin
from benchmarks.report.tables import markdown

PUBLIC = RESULTS / "gpu_public.jsonl"
STACKS, LISTS = ("public", "torch", "cupy"), ("list", "Batch", "device")
Cells = dict[tuple, Record]


def newest(records: list[Record]) -> Cells:
    """Return the last record of each routine, type, size and rung."""
    ordered = sorted(records, key=lambda r: r["date"])
    return {(r["routine"], r["dtype"], r["n"], r["batch"], r["rung"]): r for r in ordered}


def cases(cells: Cells, *rungs: str) -> list[tuple]:
    """Return the cases that all of the rungs have, by routine, type and size."""
    found = [key[:-1] for key in cells if key[-1] == rungs[0]]
    found = [case for case in found if all((*case, rung) in cells for rung in rungs)]
    letters = list(DTYPES)
    return sorted(found, key=lambda c: (c[0], letters.index(c[1]), *c[2:]))


def cells_of(cells: Cells, case: tuple, rungs: tuple[str, ...]) -> tuple[list[str], list[float]]:
    """Return the first cells of a case's row, and the seconds of its rungs, 0 where none."""
    routine, letter, n, batch = case
    times = [cells[(*case, r)]["seconds"]["median"] if (*case, r) in cells else 0 for r in rungs]
    shown = [f"{1e6 * time:.0f}" if time else "" for time in times]
    return [f"{routine}, {DTYPES[letter].__name__}", f"{n} x {batch}", *shown], times


def sections(path: Path = PUBLIC) -> dict[str, str]:
    """Return the parts of the report by heading; none without results."""
    cells = newest(load(path))
    rows, ratios = [], {}
    of_stacks = cases(cells, *STACKS[:2])
    for case in of_stacks:
        row, (ours, *others) = cells_of(cells, case, STACKS)
        ratio = f"{min(filter(None, others)) / ours:.2f}"
        rows.append([*row, ratio])
        ratios.setdefault(case[0], []).append(float(ratio))
    if not rows:
        return {}
    header = ["function", "order x batch", "ours", "torch", "CuPy", "the faster / ours"]
    parts = [markdown(header, *rows), _note(cells, of_stacks, STACKS), _summary(ratios)]
    found = {"GPU: public functions": "\n\n".join(parts)}
    of_lists = cases(cells, "Batch")
    if of_lists:
        header = ["function", "orders x number", "list", "Batch", "device alone"]
        table = markdown(header, *(cells_of(cells, case, LISTS)[0] for case in of_lists))
        found["GPU: lists"] = f"{table}\n\n{_note(cells, of_lists, LISTS)}"
    return found


def _note(cells: Cells, cases: list[tuple], rungs: tuple[str, ...]) -> str:
    """What the figures are, and where they are from."""
    records = [cells[(*c, r)] for c in cases for r in rungs if (*c, r) in cells]
    devices = ", ".join(sorted({r["gpu"]["device"] for r in records}))
    return f"Microseconds of a call, host included. {devices}; {origin(records)}."


def _summary(ratios: dict[str, list[float]]) -> str:
    """How it stands over all sizes and types, by function."""
    lines = [
        f"- {name}: {geometric_mean(x):.1f} in the geometric mean of {len(x)}, least {min(x):.2f}"
        for name, x in sorted(ratios.items())
    ]
    return "The faster over ours:\n\n" + "\n".join(lines)
