"""Time sparse problems × solvers on a GPU: `python -m benchmarks.gpu.compare`.

Each (problem, scalar type, solver) runs in a process of its own; results go to results/gpu.jsonl
as JSON lines, those of real matrices (`--matrices FOLDER`) to results/gpu_matrices.jsonl. Peers
that are not installed are skipped by name. Last come the ratios to cuDSS and the aims, reached or
short.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.gpu.worker import SOLVERS, Entry
from benchmarks.harness import grids
from benchmarks.harness.device import about_in_a_process
from benchmarks.harness.problems import files, label
from benchmarks.harness.processes import answer, chosen, installed, run_all
from benchmarks.harness.records import Record, load
from benchmarks.report import sparse

PROBLEMS = (
    "p2d:30", "p2d:300", "p2d:500", "p2d:1000", "p2d:2000",
    "p3d:30", "p3d:50", "p3d:64", "p3d:100", "p27:40", "el27:20", "el27:30",
    "cd2d:500", "cd2d:1000", "cd3d:40", "cd3d:55", "hz3d:30",
    "ind3d:40", "ind3d:55",
)  # fmt: skip


def solvers(options: argparse.Namespace) -> list[str]:
    """Return the solvers that can run here; name the others once.

    This package comes first: its elimination order is what "cudss-same" is given.
    """
    names = ["cudss-same" if options.same_ordering and s == "cudss" else s for s in options.solvers]
    return installed(sorted(names, key=list(SOLVERS).index), SOLVERS)


def plan(options: argparse.Namespace, solvers: list[str]) -> list[Entry]:
    """Return the product, solvers innermost: what is compared runs within minutes of each other."""
    limits = {"reps": options.reps, "budget": options.budget, "scratch": options.scratch}
    cases = [(p, d) for p in options.problems for d in options.dtypes]
    return chosen([Entry(p, s, d, **limits) for p, d in cases for s in solvers], options.match)


def run(todo: list[Entry], options: argparse.Namespace) -> list[Record]:
    """Measure the entries; write each as it ends."""
    with tempfile.TemporaryDirectory() as folder:

        def timed(entry: Entry, left: float) -> Record:
            # an entry that is begun late must end in time for the tables
            return measure(entry, Path(folder), min(options.timeout, left))

        device = about_in_a_process()
        limits = {"append": options.append, "total": options.total}
        return run_all(todo, timed, summary, options.output, gpu=device, **limits)


def measure(entry: Entry, folder: Path, timeout: float) -> Record:
    """Return the record of an entry, measured in a process of its own."""
    order = folder / re.sub(r"\W", "_", f"{entry.problem}_{entry.dtype}.npy")
    job = asdict(replace(entry, order=str(order)))
    result = answer("gpu.worker", job, timeout)
    record = {"problem": label(entry.problem), "dtype": entry.dtype, "solver": entry.solver}
    limits = {"reps": entry.reps, "budget": entry.budget, "timeout": round(timeout, 1)}
    limits["scratch"] = entry.scratch
    return record | result | {"parameters": limits}


def summary(record: Record) -> str:
    """Return a record in one line, times in milliseconds."""
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


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    names = ", ".join(SOLVERS)
    add("--problems", nargs="+", type=problem, default=PROBLEMS, metavar="NAME:EDGE")
    add("--matrices", type=Path, metavar="FOLDER", help="Matrix Market files instead of problems")
    add("--smallest", type=int, default=1000, help="least number of rows of a matrix")
    add("--dtypes", type=grids.letters, default="d", help="letters of s, d, c, z")
    add("--solvers", nargs="+", choices=SOLVERS, default=["frontal", "cudss", "cupyx"],
        metavar="NAME", help=names)  # fmt: skip
    add("--same-ordering", action="store_true", help="cuDSS takes frontal's elimination order")
    add("--match", default="", help="regular expression on 'problem dtype solver'")
    add("--reps", type=int, default=30, help="most repetitions of each phase")
    add("--budget", type=float, default=1.0, help="seconds after which a phase repeats no more")
    add("--scratch", type=int, default=3, help="how often the whole is solved from scratch")
    add("--timeout", type=float, default=240.0, help="seconds after which an entry is ended")
    add("--total", type=float, default=520.0, help="seconds after which none is begun or goes on")
    add("--output", type=Path, help="by default among the results")
    add("--append", action="store_true", help="add to the results; the last of each entry stands")
    add("--list", action="store_true", help="list the entries and run nothing")
    options = parser.parse_args(given)
    if options.matrices:
        options.problems = files(options.matrices, options.smallest)
    options.output = options.output or (sparse.REAL if options.matrices else sparse.SPARSE)
    return options


def main() -> None:
    options = arguments()
    todo = plan(options, solvers(options))
    if options.list:
        print(*(entry.label for entry in todo), sep="\n")
        return
    run(todo, options)
    print(sparse.text(load(options.output)))


if __name__ == "__main__":
    main()
