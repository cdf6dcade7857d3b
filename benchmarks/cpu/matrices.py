"""Solve every matrix of a folder with every solver: `python -m benchmarks.cpu.matrices`.

Results go to results/matrices.jsonl: kind, size, time from scratch, and the residual or the error.
"""

from __future__ import annotations

from benchmarks.cpu.compare import execute, options
from benchmarks.harness.problems import files


def main() -> None:
    parser = options(__doc__, "matrices.jsonl")
    parser.set_defaults(threads=[1], reps=3, budget=2.0, timeout=120.0)
    parser.set_defaults(solvers=["frontal", "cholmod", "pardiso", "superlu"])
    arguments = parser.parse_args()
    execute(files(arguments.matrices, smallest=0), arguments, only_scratch=True)


if __name__ == "__main__":
    main()
