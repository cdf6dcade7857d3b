"""The rungs of the GPU ladder that are kernels of this project: naive, the papers', ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_cases import Case, Problem
from gpu_naive import NAIVE
from gpu_vendor import UnavailableError

PAPER: dict[str, tuple[str, ...]] = {  # variants of the papers, by routine
    "potrf": ("exclusive", "inclusive", "separate"),
    "gemv_n": ("big-tile", "classic"),
    "gemv_t": ("big-tile", "classic"),
    "gebrd": ("panels",),
}


@dataclass
class Run:
    """A rung on a problem: what to time, how to restore its inputs, where its results are."""

    call: Callable[[], Any]
    restore: Callable[[], Any]
    get: Callable[[int], np.ndarray]  # result i on the host
    pivots: Callable[[int], np.ndarray] | None = None  # from 0
    info: Any = None  # array on the device, zero where all is well
    count: int | None = None  # matrices done, where not all
    on_host: bool = False


def in_place(problem: Problem, call: Callable[[], Any], **more: Any) -> Run:
    """Return a run whose result is the problem's output operand."""
    output = problem.operands[problem.output]
    return Run(call, problem.restore, output.get, **{"info": problem.info, **more})


class Pivots:
    """Row interchanges of LU, from 1, for all matrices of a problem one after the other."""

    def __init__(self, problem: Problem, identity: bool = False) -> None:
        xp, n = problem.xp, problem.n
        self.start = np.concatenate([[0], np.cumsum(n)])
        self.flat = xp.zeros(int(self.start[-1]), np.int32)
        if identity:
            ranks = np.concatenate([np.arange(1, k + 1, dtype=np.int32) for k in n])
            self.flat = xp.asarray(ranks)
        self.n = n
        self.addresses = (self.flat.data.ptr + 4 * self.start[:-1]).astype(np.uint64)

    def get(self, i: int) -> np.ndarray:
        return self.flat[int(self.start[i]) : int(self.start[i + 1])].get() - 1

    def batch(self, problem: Problem) -> Any:
        """The pivots as the LU drivers take them: one column for each matrix."""
        from frontal.gpu.dense.operands import MatrixBatch
        from frontal.gpu.runtime.device import device_of

        device, case = device_of(self.flat), problem.case
        if case.shape in ("uniform", "gaussian"):
            one = np.ones_like(self.n)
            return MatrixBatch.of_sizes(
                device, np.int32, self.addresses, self.n, one, np.maximum(self.n, 1)
            )
        stack = self.flat.reshape(len(self.n), case.n, 1)
        return MatrixBatch.from_array(device, stack[0] if case.shape == "native" else stack)


def ours(problem: Problem) -> Run:
    """This package's drivers."""
    return OURS[problem.case.routine](problem, {})


def paper(variant: str) -> Callable[[Problem], Run]:
    """A variant of the papers."""

    def build(problem: Problem) -> Run:
        if problem.case.routine == "potrf":
            import gpu_panels

            (a,) = _batches(problem)
            return in_place(problem, lambda: gpu_panels.potrf(a, problem.info, "L", variant))
        if problem.case.routine == "gebrd":
            return _gebrd(problem, {"panels": True})
        return OURS[problem.case.routine](problem, {"variant": variant})

    return build


def naive(problem: Problem) -> Run:
    """The straightforward kernel."""
    routine = problem.case.routine
    if routine not in NAIVE:
        raise UnavailableError(f"no naive kernel of {routine}")
    return NAIVE[routine](problem, in_place, Pivots)


def _batches(problem: Problem) -> list[Any]:
    return [problem.operands[x].batch for x in "abc" if x in problem.operands]


def _potrf(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import potrf

    (a,) = _batches(problem)
    return in_place(problem, lambda: potrf.potrf(a, problem.info, uplo="L", **options))


def _potrs(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import potrf

    a, b = _batches(problem)
    return in_place(problem, lambda: potrf.potrs(a, b, uplo="L", **options))


def _getrf(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import getrf

    (a,), pivots = _batches(problem), Pivots(problem)
    p = pivots.batch(problem)
    return in_place(problem, lambda: getrf.getrf(a, p, problem.info, **options), pivots=pivots.get)


def _getrs(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import getrf

    (a, b), pivots = _batches(problem), Pivots(problem, identity=True)
    p = pivots.batch(problem)
    return in_place(problem, lambda: getrf.getrs(a, p, b, "N", **options))


def _inv(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import getrf

    (a,) = _batches(problem)
    return in_place(problem, lambda: getrf.inverse(a, problem.info, **options))


def _gemm(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import blas3

    a, b, c = _batches(problem)
    return in_place(problem, lambda: blas3.gemm("N", "N", 1.0, a, b, 1.0, c, **options))


def _herk(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import blas3

    a, c = _batches(problem)
    return in_place(problem, lambda: blas3.herk("L", "N", 1.0, a, 1.0, c, **options))


def _trsm(problem: Problem, options: dict) -> Run:
    from frontal.gpu.dense import blas3

    a, b = _batches(problem)
    return in_place(problem, lambda: blas3.trsm("R", "L", "C", "N", 1.0, a, b, **options))


def _gebrd(problem: Problem, options: dict) -> Run:
    import gpu_svd

    return gpu_svd.gebrd(problem, options)


def _svd(problem: Problem, _: dict) -> Run:
    import gpu_svd

    return gpu_svd.svd(problem)


def _gemv(trans: str) -> Callable[[Problem, dict], Run]:
    def build(problem: Problem, options: dict) -> Run:
        from frontal.gpu.dense import gemv

        a, x, y = _batches(problem)
        return in_place(problem, lambda: gemv.gemv(trans, 1.0, a, x, 1.0, y, **options))

    return build


OURS: dict[str, Callable[[Problem, dict], Run]] = {
    "potrf": _potrf,
    "potrs": _potrs,
    "getrf": _getrf,
    "getrs": _getrs,
    "inv": _inv,
    "gemm": _gemm,
    "herk": _herk,
    "trsm": _trsm,
    "gemv_n": _gemv("N"),
    "gemv_t": _gemv("T"),
    "gebrd": _gebrd,
    "svd": _svd,
}


def planned(case: Case) -> list[str]:
    """Names of this project's rungs for a case."""
    names = ["naive"] if case.routine in NAIVE and case.n <= 2048 else []
    variants = PAPER.get(case.routine, ())
    if case.shape == "native":  # one launch a panel, or tiles, is all that one matrix allows
        variants = tuple(v for v in variants if v in ("separate", "classic"))
    return [*names, *(f"paper-{v}" for v in variants), "ours"]


BUILDERS: dict[str, Callable[[Problem], Run]] = {
    "naive": naive,
    **{f"paper-{v}": paper(v) for variants in PAPER.values() for v in variants},
    "ours": ours,
}
