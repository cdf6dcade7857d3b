"""The ladder of the GPU's dense routines: `python -m benchmarks.dense.ladder`.

For each routine, scalar type and set of sizes: the papers' variants, ours, the vendor's, one stream
a matrix, padding to the largest size, LAPACK on the host. One JSON line an entry goes to
results/gpu_dense.jsonl; the aims come last, reached or short.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from benchmarks.dense import ours, rivals
from benchmarks.harness.cases import SHAPES, SIZES, Case, cases
from benchmarks.harness.grids import letters
from benchmarks.harness.processes import environment, failure, run_all
from benchmarks.harness.records import Record
from benchmarks.report import dense

QUICK = {"fixed": (8, 32, 256), "uniform": (32, 256), "gaussian": (), "native": (1024, 4096)}
START_TIMEOUT = 120.0


class Process:
    """A worker process; started when first needed and again after it died."""

    def __init__(self) -> None:
        self.process: Any = None
        self.about: Record = {}

    def ask(self, entry: Record, timeout: float) -> Record:
        """Return the worker's answer, or why there is none."""
        try:
            if self.process is None:
                self._start()
            self.process.stdin.write(json.dumps(entry) + "\n")
            self.process.stdin.flush()
            result = self._read(timeout)
        except (RuntimeError, OSError) as error:
            self.stop()
            return failure(type(error).__name__, str(error))
        if not result.pop("healthy", True):
            self.stop()
        return result

    def _start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.dense.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, args=(self.process, self.lines), daemon=True).start()
        self.about = self._read(START_TIMEOUT)["about"]

    @staticmethod
    def _listen(process: Any, lines: Queue) -> None:
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def _read(self, timeout: float) -> Record:
        try:
            line = self.lines.get(timeout=timeout)
        except Empty:
            raise RuntimeError(f"no answer after {timeout:g} s") from None
        if not line:
            raise RuntimeError(f"the worker died with status {self.process.wait()}")
        return json.loads(line)

    def stop(self) -> None:
        """End the worker."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@dataclass(frozen=True)
class Entry:
    """One implementation of a case; without a case, the device's ceilings."""

    rung: str
    case: Case | None = None

    @property
    def label(self) -> str:
        return f"{self.case.label} {self.rung}" if self.case else self.rung


def plan(options: argparse.Namespace) -> list[Entry]:
    """Return the entries: for each case its rungs, lowest first."""
    found = cases(options.routines, options.dtypes, options.sizes, options.shapes)
    if options.quick:
        found = [c for c in found if c.n in QUICK[c.shape]]
    entries = [Entry(rung, c) for c in found for rung in [*ours.planned(c), *rivals.planned(c)]]
    wanted = options.rungs
    return [e for e in entries if not wanted or e.rung.split("-")[0] in wanted]


def run(options: argparse.Namespace) -> list[Record]:
    """Measure all entries; write each as it ends."""
    worker, limits = Process(), {"budget": options.budget, "reps": options.reps}

    def measure(entry: Entry, _: float) -> Record:
        case = asdict(entry.case) if entry.case else {"dtypes": options.dtypes}
        asked = {"rung": entry.rung, **case}
        result = worker.ask(asked | limits, options.timeout)
        if result.pop("unavailable", False):
            return {"skipped": result["error"]["message"]}
        return asked | result | {"parameters": limits, "gpu": worker.about}

    todo = [Entry("ceilings"), *plan(options)]
    try:
        return run_all(todo, measure, summary, options.output, options.append, options.total)
    finally:
        worker.stop()


def summary(record: Record) -> str:
    """Return a record in one line."""
    if record["rung"] == "ceilings":
        peaks = ", ".join(f"{k} {v / 1e3:.1f}" for k, v in record["gemm_gflops"].items())
        return f"copy {record['copy_gbytes']:.0f} GB/s; gemm TF/s {peaks}"
    share = f"{100 * record['roofline']:5.1f} %" if "roofline" in record else "       "
    low, middle, high = (1e6 * record["seconds"][k] for k in ("min", "median", "max"))
    spread = f"{middle:10.1f} us ({low:.1f}..{high:.1f})"
    wrong = "" if record["ok"] in (True, None) else f"  WRONG (residual {record['residual']:.1e}, "
    wrong += f"{record['failed']} failed)" if wrong else ""
    return f"{record['gflops']:9.1f} GF/s {share} {spread}{wrong}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="a few sizes, short times")
    add("--routines", nargs="+", choices=SIZES, default=list(SIZES), metavar="NAME")
    add("--dtypes", type=letters, default="d", help="letters of s, d, c, z")
    add("--sizes", nargs="+", type=int, default=[], metavar="N", help="only these")
    add("--shapes", nargs="+", choices=SHAPES, default=SHAPES, metavar="SHAPE")
    add("--rungs", nargs="+", default=[], help="paper, ours, vendor, streamed, ...")
    add("--budget", type=float, default=0.2, help="seconds of timed calls of one entry")
    add("--reps", type=int, default=20, help="most timed calls of one entry")
    add("--timeout", type=float, default=60.0, help="seconds after which an entry is given up")
    add("--total", type=float, default=520.0, help="seconds after which no entry is begun")
    add("--output", type=Path, default=dense.LADDER)
    add("--append", action="store_true", help="add to the results; the last of each entry stands")
    options = parser.parse_args()
    if options.quick:
        options.budget = min(options.budget, 0.1)
    return options


def main() -> None:
    options = arguments()
    run(options)
    print(dense.text(options.output))


if __name__ == "__main__":
    main()
