"""The rungs of the GPU ladder that are kernels of this project: naive, the papers', ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gpu_svd
from gpu_cases import Case, Problem
from gpu_naive import NAIVE
from gpu_runs import Pivots, Run, in_place
from gpu_vendor import UnavailableError

PAPER: dict[str, tuple[str, ...]] = {  # variants of the papers, by routine
    "potrf": ("exclusive", "inclusive", "separate"),
    "gemv_n": ("big-tile", "classic"),
    "gemv_t": ("big-tile", "classic"),
    "gebrd": ("panels",),
}


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
    return NAIVE[routine](problem)


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
    return gpu_svd.gebrd(problem, options)


def _svd(problem: Problem, _: dict) -> Run:
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
