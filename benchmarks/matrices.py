"""Solve every Matrix Market file of a folder with every solver: `python benchmarks/matrices.py`.

Results go to results/matrices.jsonl: kind, size, time from scratch, and the residual or the error.
"""

from __future__ import annotations

from cpu import execute, files, installed, options
from harness import jobs


def main() -> None:
    parser = options(__doc__, "matrices.jsonl")
    parser.set_defaults(threads=[1], reps=3, budget=2.0, timeout=120.0)
    parser.set_defaults(solvers=["frontal", "cholmod", "pardiso", "superlu"])
    arguments = parser.parse_args()
    problems = files(arguments.matrices, smallest=0)
    repeat = {"reps": arguments.reps, "budget": arguments.budget, "only_scratch": True}
    todo = jobs(problems, installed(arguments.solvers), arguments.threads, **repeat)
    execute(todo, arguments)


if __name__ == "__main__":
    main()
