"""Solve real matrices with every solver: `python -m benchmarks.cpu.matrices`.

They are those of a folder (`--matrices`) and, with `--packages`, those that installed packages ship
(`harness/packaged.py`). Results go to results/matrices.jsonl: kind, size, times of all phases, and
the residual or the error; with `--scratch` the time from scratch alone.
"""

from __future__ import annotations

from benchmarks.cpu.compare import execute, options
from benchmarks.harness.packaged import names
from benchmarks.harness.problems import files


def main() -> None:
    parser = options(__doc__, "matrices.jsonl")
    parser.set_defaults(threads=[1], reps=3, budget=2.0, timeout=120.0)
    parser.set_defaults(solvers=["frontal", "cholmod", "klu", "pardiso", "superlu", "umfpack"])
    parser.add_argument("--packages", action="store_true", help="matrices of packages, too")
    parser.add_argument("--scratch", action="store_true", help="time solves from scratch alone")
    arguments = parser.parse_args()
    problems = files(arguments.matrices, smallest=0) + (names() if arguments.packages else [])
    execute(problems, arguments, only_scratch=arguments.scratch)


if __name__ == "__main__":
    main()
