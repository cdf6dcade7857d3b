"""Time Matrix Market files beside SciPy's reader: `python -m benchmarks.cpu.files`.

Both read the same file in turns in one process, each with the threads it takes by default, and
both results are compared bit by bit. Results go to results/files.jsonl.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

from benchmarks.harness.records import RESULTS, writer
from frontal.io import read_matrix
from frontal.io.matrix_market import read_matrix_market

ORDER = 1_000_000  # rows and columns
LINES = 500_000  # written at a time
READERS: dict[str, Callable[[Path], object]] = {
    "frontal": read_matrix_market,
    "scipy": scipy.io.mmread,
    "frontal, CSC": read_matrix,
    "scipy, CSC": lambda path: sp.csc_array(scipy.io.mmread(path)),
}


def write(path: Path, entries: int, field: str) -> None:
    """Write a matrix with random places and values that need all digits."""
    rng = np.random.default_rng(0)
    with path.open("w") as stream:
        stream.write(f"%%MatrixMarket matrix coordinate {field} general\n")
        stream.write(f"{ORDER} {ORDER} {entries}\n")
        for first in range(0, entries, LINES):
            count = min(LINES, entries - first)
            rows, columns = rng.integers(1, ORDER + 1, (2, count)).tolist()
            values = rng.standard_normal(count) if field == "real" else rng.integers(-99, 99, count)
            lines = zip(rows, columns, values.tolist(), strict=True)
            stream.writelines(f"{i} {j} {value!r}\n" for i, j, value in lines)


def measured(path: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Return median, least and processors' seconds of each reader; they take turns."""
    walls: dict[str, list[float]] = {name: [] for name in READERS}
    works: dict[str, list[float]] = {name: [] for name in READERS}
    for turn in range(rounds + 1):
        for name in random.sample(list(READERS), len(READERS)):  # each follows each
            read = READERS[name]
            wall, work = time.perf_counter(), time.process_time()
            read(path)
            if turn:  # the first one is not counted
                walls[name].append(time.perf_counter() - wall)
                works[name].append(time.process_time() - work)
    return {
        name: {
            "median": statistics.median(walls[name]),
            "min": min(walls[name]),
            "processors": statistics.median(works[name]),
        }
        for name in READERS
    }


def equal(path: Path) -> bool:
    """Whether both readers return the same bits."""
    ours, theirs = read_matrix_market(path), scipy.io.mmread(path)
    pairs = (ours.row, theirs.row), (ours.col, theirs.col), (ours.data, theirs.data)
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000_000)
    parser.add_argument("--fields", nargs="+", default=["real", "integer"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "files.jsonl")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, writer(asked.output) as store:
        for field in asked.fields:
            path = Path(folder) / "a.mtx"
            write(path, asked.entries, field)
            record = {"file": f"coordinate {field} general", "entries": asked.entries}
            record |= {"bytes": path.stat().st_size, "equal": equal(path)}
            phases = measured(path, asked.rounds)
            ratios = {
                f"frontal / scipy{kind}": phases[f"frontal{kind}"]["median"]
                / phases[f"scipy{kind}"]["median"]
                for kind in ("", ", CSC")
            }
            record |= {"rounds": asked.rounds, "phases": phases, "ratios": ratios}
            store(record)
            print(record, flush=True)


if __name__ == "__main__":
    main()
