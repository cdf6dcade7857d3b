"""Time every phase of this solver and of its peers: `python -m benchmarks.cpu.compare`.

Each (problem, threads, solver) runs in a process of its own; results go to results/cpu.jsonl as
JSON lines, one a job. Peers that are not installed are skipped by name.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.cpu.worker import Job
from benchmarks.harness.problems import MATRICES, files, label
from benchmarks.harness.processes import answer, chosen, installed, on_threads, run_all
from benchmarks.harness.records import RESULTS, Record
from benchmarks.harness.solvers import SOLVERS

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


def jobs(
    problems: Iterable[str], solvers: Sequence[str], threads: Sequence[int], **options
) -> list[Job]:
    """Return the product, solvers innermost: what is compared runs within minutes of each other.

    A solver without threads of its own has jobs on one thread only.
    """
    pairs = [(s, t) for t in threads for s in solvers if t == 1 or SOLVERS[s].threaded]
    return [Job(p, s, t, **options) for p in problems for s, t in pairs]


def measure(job: Job, timeout: float) -> Record:
    """Return the record of a job."""
    solver = SOLVERS[job.solver]
    limits = on_threads(job.threads) | {"MKL_DYNAMIC": "FALSE"}
    result = answer("cpu.worker", asdict(job), timeout, **limits, **solver.environment())
    record = {"problem": label(job.problem), "solver": job.solver, "threads": job.threads}
    parameters = {k: v for k, v in asdict(job).items() if k not in record}
    return record | result | {"parameters": parameters | {"timeout": timeout}}


def summary(record: Record) -> str:
    """Return a record in one line."""
    times = ", ".join(f"{k} {v['median']:.3g}" for k, v in record["phases"].items())
    return f"{times}; residual {record['residual']:.1e}"


def options(description: str | None, output: str) -> argparse.ArgumentParser:
    """Return the options that every benchmark of jobs takes."""
    parser = argparse.ArgumentParser(description=(description or "").split("\n")[0])
    add = parser.add_argument
    add("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS, metavar="NAME",
        help=", ".join(SOLVERS))  # fmt: skip
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


def execute(problems: Iterable[str], arguments: argparse.Namespace, **more) -> None:
    """Run or list the jobs that match."""
    limits = {"reps": arguments.reps, "budget": arguments.budget} | more
    solvers = installed(arguments.solvers, SOLVERS)
    todo = chosen(jobs(problems, solvers, arguments.threads, **limits), arguments.match)
    if arguments.list:
        print(*(job.label for job in todo), sep="\n")
        return

    def timed(job: Job, _: float) -> Record:
        return measure(job, arguments.timeout)

    run_all(todo, timed, summary, arguments.output, arguments.append)


def main() -> None:
    parser = options(__doc__, "cpu.jsonl")
    parser.add_argument("--problems", nargs="*", default=PROBLEMS, metavar="NAME:SIZE")
    parser.add_argument("--smallest", type=int, default=20000, help="rows a file must have")
    arguments = parser.parse_args()
    execute([*arguments.problems, *files(arguments.matrices, arguments.smallest)], arguments)


if __name__ == "__main__":
    main()
