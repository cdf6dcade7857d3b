"""The rungs of the dense ladder that are kernels of this project: the papers' variants, ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.dense import svd
from benchmarks.dense.problem import Pivots, Problem, Run, in_place
from benchmarks.harness.cases import Case

PAPER: dict[str, tuple[str, ...]] = {  # variants of the papers, by routine
    "potrf": ("exclusive", "inclusive", "separate"),
    "gemv_n": ("big-tile", "classic"),
    "gemv_t": ("big-tile", "classic"),
    "gebrd": ("panels",),
}


def ours(problem: Problem, **options: Any) -> Run:
    """Run this package's driver of the routine."""
    from frontal.gpu.dense import blas3, gemv, getrf, potrf

    routine, info = problem.case.routine, problem.info
    if routine == "gebrd":
        return svd.gebrd(problem, options)
    if routine == "svd":
        return svd.svd(problem)
    a, b, c = (problem.operands[x].batch if x in problem.operands else None for x in "abc")
    pivots = p = None
    if routine in ("getrf", "getrs"):
        pivots = Pivots(problem, identity=routine == "getrs")
        p = pivots.batch(problem)
    calls: dict[str, Callable[[], Any]] = {
        "potrf": lambda: potrf.potrf(a, info, uplo="L"),
        "potrs": lambda: potrf.potrs(a, b, uplo="L"),
        "getrf": lambda: getrf.getrf(a, p, info),
        "getrs": lambda: getrf.getrs(a, p, b, "N"),
        "inv": lambda: getrf.inverse(a, info),
        "gemm": lambda: blas3.gemm("N", "N", 1.0, a, b, 1.0, c),
        "herk": lambda: blas3.herk("L", "N", 1.0, a, 1.0, c),
        "trsm": lambda: blas3.trsm("R", "L", "C", "N", 1.0, a, b),
        "gemv_n": lambda: gemv.gemv("N", 1.0, a, b, 1.0, c, **options),
        "gemv_t": lambda: gemv.gemv("T", 1.0, a, b, 1.0, c, **options),
    }
    return in_place(problem, calls[routine], pivots=pivots.get if routine == "getrf" else None)


def paper(problem: Problem, variant: str) -> Run:
    """Run a variant of the papers."""
    if problem.case.routine == "potrf":
        from benchmarks.dense import panels

        a = problem.operands["a"].batch
        return in_place(problem, lambda: panels.potrf(a, problem.info, "L", variant))
    if problem.case.routine == "gebrd":
        return ours(problem, panels=True)
    return ours(problem, variant=variant)


def planned(case: Case) -> list[str]:
    """Names of these rungs for a case."""
    variants = PAPER.get(case.routine, ())
    if case.shape == "native":  # one launch a panel, or tiles, is all that one matrix allows
        variants = tuple(v for v in variants if v in ("separate", "classic"))
    return [*(f"paper-{v}" for v in variants), "ours"]


BUILDERS: dict[str, Callable[[Problem], Run]] = {
    **{f"paper-{v}": partial(paper, variant=v) for variants in PAPER.values() for v in variants},
    "ours": ours,
}
