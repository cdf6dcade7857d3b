"""Time every phase of this solver and of its peers, side by side: `python benchmarks/cpu.py`.

Each (problem, threads, solver) runs in a process of its own; results go to results/cpu.jsonl as
JSON lines, one a job. Peers that are not installed are skipped by name.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import scipy.io

from harness import MATRICES, RESULTS, Job, jobs, run_all
from peers import SOLVERS

PROBLEMS = (
    "poisson2d:300",
    "poisson2d:1000",
    "poisson3d:30",
    "poisson3d:50",
    "poisson3d27:40",
    "elasticity3d:20",
    "elasticity3d:30",
    "biharmonic2d:200",
    "convdiff3d:40",
    "helmholtz3d:30",
)


def files(folder: Path, smallest: int) -> list[str]:
    """Return the Matrix Market files of a folder with at least ``smallest`` rows, small first."""
    rows = {str(p): scipy.io.mminfo(p)[0] for p in folder.glob("*.mtx*")}
    return sorted((p for p in rows if rows[p] >= smallest), key=lambda p: (rows[p], p))


def installed(names: list[str]) -> list[str]:
    """Return the solvers that can run here; name the others once."""
    unknown = set(names) - set(SOLVERS)
    if unknown:
        raise SystemExit(f"unknown solvers {sorted(unknown)}; there are {', '.join(SOLVERS)}")
    missing = {name: SOLVERS[name].missing() for name in names}
    for name, module in missing.items():
        if module:
            print(f"skipped: {name} ({module} is not installed)")
    return [name for name in names if not missing[name]]


def options(description: str, output: str) -> argparse.ArgumentParser:
    """Return the options that every benchmark of jobs takes."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    add = parser.add_argument
    add("--solvers", nargs="+", default=list(SOLVERS), metavar="NAME", help=", ".join(SOLVERS))
    add("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    add("--matrices", type=Path, default=MATRICES, help="folder of Matrix Market files")
    add("--match", default="", help="regular expression on 'problem solver threads'")
    add("--reps", type=int, default=5, help="repetitions of each phase")
    add("--budget", type=float, default=4.0, help="seconds after which a phase repeats no more")
    add("--timeout", type=float, default=180.0, help="seconds after which a job is ended")
    add("--output", type=Path, default=RESULTS / output)
    add("--append", action="store_true", help="add to the results; the last of each job stands")
    add("--list", action="store_true", help="list the jobs and run nothing")
    return parser


def execute(todo: list[Job], arguments: argparse.Namespace) -> None:
    """Run or list the jobs that match."""
    todo = [job for job in todo if re.search(arguments.match, job.label)]
    if arguments.list:
        print(*(job.label for job in todo), sep="\n")
    else:
        run_all(todo, arguments.timeout, arguments.output, arguments.append)


def main() -> None:
    parser = options(__doc__, "cpu.jsonl")
    parser.add_argument("--problems", nargs="*", default=PROBLEMS, metavar="NAME:SIZE")
    parser.add_argument("--smallest", type=int, default=20000, help="rows a file must have")
    arguments = parser.parse_args()
    problems = [*arguments.problems, *files(arguments.matrices, arguments.smallest)]
    solvers = installed(arguments.solvers)
    repeat = {"reps": arguments.reps, "budget": arguments.budget}
    execute(jobs(problems, solvers, arguments.threads, **repeat), arguments)


if __name__ == "__main__":
    main()
