"""The first rung of the GPU ladder: kernels as one would write them first, kernels/naive_*.cu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_svd
from gpu_cases import Problem
from gpu_runs import Pivots, Run, in_place

Naive = Callable[[Problem], Run]

KERNELS = Path(__file__).resolve().parent / "kernels"


def kernel(name: str, entry: str, batch: Any) -> Any:
    """Return a compiled entry point for the matrices of a batch."""
    return batch.device.kernel((KERNELS / name).as_posix(), entry, batch.dtype)


def _simple(file: str, operands: str, threads: tuple[int, int], across: bool) -> Naive:
    """A kernel with a thread an entry or a row of the output, a grid for the largest matrix."""

    def build(problem: Problem) -> Run:
        case, batches = problem.case, [problem.operands[x].batch for x in operands]
        function = kernel(file, f"{case.routine}_{batches[0].wrapper}", batches[0])
        down = -(-case.n // threads[0])
        grid = (down, -(-case.n // threads[1]) if across else 1, case.batch)
        arguments = tuple(b.locator for b in batches)
        return in_place(problem, lambda: function(grid, threads, arguments))

    return build


def _potrf(problem: Problem) -> Run:
    """A block a matrix."""
    a = problem.operands["a"].batch
    function = kernel("naive_potrf.cu", f"potrf_{a.wrapper}", a)
    arguments = (a.locator, problem.info)
    return in_place(problem, lambda: function((problem.case.batch,), (256,), arguments))


def _getrf(problem: Problem) -> Run:
    """A block a matrix."""
    a, rows = problem.operands["a"].batch, Pivots(problem)
    function, p = kernel("naive_getrf.cu", f"getrf_{a.wrapper}", a), rows.batch(problem)

    def call() -> None:
        function((problem.case.batch,), (256,), (a.locator, p.locator, problem.info))

    return in_place(problem, call, pivots=rows.get)


def _gebrd(problem: Problem) -> Run:
    """A block a matrix."""
    a = problem.operands["a"].batch
    return gpu_svd.naive(problem, kernel("naive_gebrd.cu", f"gebrd_{a.wrapper}", a))


NAIVE: dict[str, Naive] = {
    "potrf": _potrf,
    "getrf": _getrf,
    "gebrd": _gebrd,
    "gemm": _simple("naive_blas3.cu", "abc", (16, 16), across=True),
    "herk": _simple("naive_blas3.cu", "ac", (16, 16), across=True),
    "trsm": _simple("naive_blas3.cu", "ab", (256, 1), across=False),
    "gemv_n": _simple("naive_gemv.cu", "abc", (256, 1), across=False),
    "gemv_t": _simple("naive_gemv.cu", "abc", (256, 1), across=False),
}
