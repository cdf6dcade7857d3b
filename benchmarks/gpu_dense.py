"""The ladder of the GPU's dense routines: `python benchmarks/gpu_dense.py`.

For each routine, scalar type and set of sizes: a naive kernel, the papers' variants, ours, the
vendor's, one stream a matrix, padding to the largest size, LAPACK on the host. One JSON line an
entry goes to results/gpu_dense.jsonl; a table comes last.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import gpu_ratios
import gpu_rivals as rivals
import gpu_rungs as rungs
from gpu_cases import DTYPES, SHAPES, SIZES, Case, cases
from harness import HERE, RESULTS, ROOT, commit, machine, now, versions

QUICK = {"fixed": (8, 32, 256), "uniform": (32, 256), "gaussian": (), "native": (1024, 4096)}
START_TIMEOUT = 120.0


class Process:
    """A worker process; started when first needed and again after it died."""

    def __init__(self) -> None:
        self.process: Any = None
        self.about: dict[str, Any] = {}

    def ask(self, entry: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Return the worker's answer, or why there is none."""
        try:
            if self.process is None:
                self._start()
            self.process.stdin.write(json.dumps(entry) + "\n")
            self.process.stdin.flush()
            result = self._read(timeout)
        except (RuntimeError, OSError) as error:
            self.stop()
            return {"error": {"type": type(error).__name__, "message": str(error)}}
        if not result.pop("healthy", True):
            self.stop()
        return result

    def _start(self) -> None:
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "gpu_worker.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
        )
        self.lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, args=(self.process, self.lines), daemon=True).start()
        self.about = self._read(START_TIMEOUT)["about"]

    @staticmethod
    def _listen(process: Any, lines: Queue) -> None:
        for line in process.stdout:
            lines.put(line)
        lines.put("")

    def _read(self, timeout: float) -> dict[str, Any]:
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


def plan(options: argparse.Namespace) -> list[tuple[Case, str]]:
    """Return the entries: for each case its rungs, lowest first."""
    found = cases(options.routines, options.dtypes, options.sizes, options.shapes)
    if options.quick:
        found = [c for c in found if c.n in QUICK[c.shape]]
    entries = [(c, rung) for c in found for rung in [*rungs.planned(c), *rivals.planned(c)]]
    return [(c, r) for c, r in entries if not options.rungs or r.split("-")[0] in options.rungs]


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure all entries; write each as it ends."""
    worker, records = Process(), []
    context = {"machine": machine(), "versions": versions(), "commit": commit()}
    limits = {"budget": options.budget, "reps": options.reps}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    todo: list[tuple[dict, str]] = [({"rung": "ceilings", "dtypes": options.dtypes}, "ceilings")]
    todo += [({**c.as_dict(), "rung": rung}, f"{c.label} {rung}") for c, rung in plan(options)]
    began = time.perf_counter()
    with options.output.open("a" if options.append else "w") as stream:
        for i, (entry, label) in enumerate(todo):
            spent = time.perf_counter() - began
            if spent > options.total:
                print(f"stopped after {spent:.0f} s with {len(todo) - i} entries left", flush=True)
                break
            result = worker.ask(entry | limits, options.timeout)
            if result.pop("unavailable", False):
                continue
            record = entry | result | {"parameters": limits, "date": now(), "gpu": worker.about}
            records.append(record | context)
            stream.write(json.dumps(records[-1]) + "\n")
            stream.flush()
            print(f"[{i + 1}/{len(todo)}, {spent:.0f} s] {label:44} {summary(record)}", flush=True)
    worker.stop()
    return records


def summary(record: dict[str, Any]) -> str:
    """Return a record in one line."""
    if "error" in record:
        return "{type}: {message}".format(**record["error"])[:160]
    if record["rung"] == "ceilings":
        peaks = ", ".join(f"{k} {v / 1e3:.1f}" for k, v in record["gemm_gflops"].items())
        return f"copy {record['copy_gbytes']:.0f} GB/s; gemm TF/s {peaks}"
    share = f"{100 * record['roofline']:5.1f} %" if "roofline" in record else "       "
    low, middle, high = (1e6 * record["seconds"][k] for k in ("min", "median", "max"))
    spread = f"{middle:10.1f} us ({low:.1f}..{high:.1f})"
    wrong = "" if record["ok"] in (True, None) else f"  WRONG (residual {record['residual']:.1e}, "
    wrong += f"{record['failed']} failed)" if wrong else ""
    return f"{record['gflops']:9.1f} GF/s {share} {spread}{wrong}"


def table(records: list[dict[str, Any]]) -> str:
    """Return GF/s, a line a case and a column a rung; wrong results carry a mark."""
    names = [r for r in (*rungs.BUILDERS, *rivals.BUILDERS) if any(x["rung"] == r for x in records)]
    lines: dict[str, dict[str, str]] = {}
    for record in records:
        if record["rung"] == "ceilings":
            continue
        case = Case(**{k: record[k] for k in ("routine", "dtype", "shape", "n", "batch")})
        if "error" in record:
            cell = record["error"]["type"][:9]
        else:
            cell = f"{record['gflops']:.0f}" + ("!" if record["ok"] is False else "")
        lines.setdefault(case.label, {})[record["rung"]] = cell
    short = [n.replace("paper-", "")[:11] for n in names]
    text = [f"{'GF/s':34}" + "".join(f"{n:>12}" for n in short)]
    for label, cells in lines.items():
        text.append(f"{label:34}" + "".join(f"{cells.get(n, ''):>12}" for n in names))
    return "\n".join(text)


def letters(text: str) -> str:
    """Scalar types as letters, checked."""
    if not text or set(text) - set(DTYPES):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the letters {''.join(DTYPES)}")
    return text


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--quick", action="store_true", help="a few sizes, short times")
    add("--routines", nargs="+", choices=SIZES, default=list(SIZES), metavar="NAME")
    add("--dtypes", type=letters, default="d", help="letters of s, d, c, z")
    add("--sizes", nargs="+", type=int, default=[], metavar="N", help="only these")
    add("--shapes", nargs="+", choices=SHAPES, default=SHAPES, metavar="SHAPE")
    add("--rungs", nargs="+", default=[], help="naive, paper, ours, vendor, streamed, ...")
    add("--budget", type=float, default=0.2, help="seconds of timed calls of one entry")
    add("--reps", type=int, default=20, help="most timed calls of one entry")
    add("--timeout", type=float, default=60.0, help="seconds after which an entry is given up")
    add("--total", type=float, default=520.0, help="seconds after which no entry is begun")
    add("--output", type=Path, default=RESULTS / "gpu_dense.jsonl")
    add("--append", action="store_true", help="add to the results; the last of each entry stands")
    options = parser.parse_args()
    if options.quick:
        options.budget = min(options.budget, 0.1)
    return options


def main() -> None:
    options = arguments()
    print(table(run(options)))
    print(gpu_ratios.text(options.output))


if __name__ == "__main__":
    main()
