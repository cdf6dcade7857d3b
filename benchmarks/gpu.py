"""Time sparse problems × solvers on a GPU, side by side in one run: `python benchmarks/gpu.py`.

Each (problem, scalar type, solver) runs in a process of its own; results go to results/gpu.jsonl
as JSON lines. Peers that are not installed are skipped by name. Last come the ratios to cuDSS and
the aims, reached or short.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gpu_aims
import grids
from gpu_sparse import SOLVERS, Entry
from harness import HERE, ROOT, commit, failure, machine, now, versions

PROBLEMS = (
    "p2d:30", "p2d:300", "p2d:500", "p2d:1000", "p2d:2000",
    "p3d:30", "p3d:50", "p3d:64", "p3d:100", "p27:40", "el27:20", "el27:30",
    "cd2d:500", "cd2d:1000", "cd3d:40", "cd3d:55", "hz3d:30",
    "ind3d:40", "ind3d:55",
)  # fmt: skip
LEAST = 5.0  # seconds without which no entry is begun
ABOUT = "import gpu_worker, json; print(json.dumps(gpu_worker.Worker().about()))"


def plan(options: argparse.Namespace, solvers: list[str]) -> list[Entry]:
    """Return the product, solvers innermost: what is compared runs within minutes of each other."""
    limits = {"reps": options.reps, "budget": options.budget, "scratch": options.scratch}
    cases = [(p, d) for p in options.problems for d in options.dtypes]
    found = [Entry(p, s, d, **limits) for p, d in cases for s in solvers]
    return [entry for entry in found if re.search(options.match, entry.label)]


def chosen(options: argparse.Namespace) -> list[str]:
    """Return the solvers that can run here; name the others once.

    This package comes first: its elimination order is what "cudss-same" is given.
    """
    names = ["cudss-same" if options.same_ordering and s == "cudss" else s for s in options.solvers]
    names = sorted(dict.fromkeys(names), key=list(SOLVERS).index)
    lacking = {name: SOLVERS[name].lacks() for name in names}
    for name, missing in lacking.items():
        if missing:
            print(f"skipped: {name} ({missing} is not installed)")
    return [name for name in names if not lacking[name]]


def environment() -> dict[str, str]:
    """Return the variables of a worker, which imports what lies beside this file."""
    path = [str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, path))}


def answer(command: list[str], timeout: float) -> dict[str, Any]:
    """Return the JSON object that a process prints last; a crash or a timeout is one too."""
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env=environment(),
            timeout=timeout,
            capture_output=True,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return failure("Timeout", f"not done after {timeout:.0f} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return failure("Crash", f"exit status {done.returncode}: {last}")
    return json.loads(lines[-1])


def about() -> dict[str, Any]:
    """Return device, driver and versions of what runs on it; none means no benchmark."""
    found = answer(["-c", ABOUT], 120)
    if "error" in found:
        raise SystemExit("no GPU that can be used: {type}, {message}".format(**found["error"]))
    return found


def run(todo: list[Entry], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure the entries; write each as it ends."""
    context = {"gpu": about(), "machine": machine(), "versions": versions(), "commit": commit()}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    began = time.perf_counter()
    mode = "a" if options.append else "w"
    with options.output.open(mode) as stream, tempfile.TemporaryDirectory() as folder:
        for i, entry in enumerate(todo):
            spent = time.perf_counter() - began
            if spent > options.total - LEAST:
                print(f"stopped after {spent:.0f} s with {len(todo) - i} entries left", flush=True)
                break
            # an entry that is begun late must end in time for the tables
            record = measure(entry, Path(folder), min(options.timeout, options.total - spent))
            told = f"[{i + 1}/{len(todo)}, {spent:.0f} s] {entry.label:24}"
            if "skipped" in record:
                print(f"{told} skipped: {record['skipped']}", flush=True)
                continue
            records.append(record | {"date": now()} | context)
            stream.write(json.dumps(records[-1]) + "\n")
            stream.flush()
            print(f"{told} {summary(record)}", flush=True)
    return records


def measure(entry: Entry, folder: Path, timeout: float) -> dict[str, Any]:
    """Return the record of an entry, measured in a process of its own."""
    order = folder / re.sub(r"\W", "_", f"{entry.problem}_{entry.dtype}.npy")
    job = asdict(replace(entry, order=str(order)))
    result = answer([str(HERE / "gpu_sparse.py"), json.dumps(job)], timeout)
    record = {k: job[k] for k in ("problem", "dtype", "solver")}
    limits = {"reps": entry.reps, "budget": entry.budget, "timeout": round(timeout, 1)}
    limits["scratch"] = entry.scratch
    return record | result | {"parameters": limits}


def summary(record: dict[str, Any]) -> str:
    """Return a record in one line, times in milliseconds."""
    if "error" in record:
        return "{type}: {message}".format(**record["error"])[:160]
    times = ", ".join(f"{k} {1e3 * v['median']:.3g}" for k, v in record["phases"].items())
    rate = f"; {record['tflops']:.2f} TF/s" if "tflops" in record else ""
    where = "" if record["resident"] else f"; through the host: {', '.join(record['on_host'])}"
    return f"{times} ms{rate}; residual {record['residual']:.1e}{where}"


def problem(name: str) -> str:
    """A problem's name, checked."""
    try:
        grids.split(name)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def letters(text: str) -> str:
    """Scalar types as letters, checked."""
    if not text or set(text) - set(grids.LETTERS):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the letters {''.join(grids.LETTERS)}")
    return text


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    names = ", ".join(SOLVERS)
    add("--problems", nargs="+", type=problem, default=PROBLEMS, metavar="NAME:EDGE")
    add("--dtypes", type=letters, default="d", help="letters of s, d, c, z")
    add("--solvers", nargs="+", choices=SOLVERS, default=["frontal", "cudss", "cupyx"],
        metavar="NAME", help=names)  # fmt: skip
    add("--same-ordering", action="store_true", help="cuDSS takes frontal's elimination order")
    add("--match", default="", help="regular expression on 'problem dtype solver'")
    add("--reps", type=int, default=30, help="most repetitions of each phase")
    add("--budget", type=float, default=1.0, help="seconds after which a phase repeats no more")
    add("--scratch", type=int, default=3, help="how often the whole is solved from scratch")
    add("--timeout", type=float, default=240.0, help="seconds after which an entry is ended")
    add("--total", type=float, default=520.0, help="seconds after which none is begun or goes on")
    add("--output", type=Path, default=gpu_aims.SPARSE)
    add("--append", action="store_true", help="add to the results; the last of each entry stands")
    add("--list", action="store_true", help="list the entries and run nothing")
    return parser.parse_args(given)


def main() -> None:
    options = arguments()
    todo = plan(options, chosen(options))
    if options.list:
        print(*(entry.label for entry in todo), sep="\n")
        return
    run(todo, options)
    print(gpu_aims.text(gpu_aims.load(options.output)))


if __name__ == "__main__":
    main()
