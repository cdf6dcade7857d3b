"""The rungs of the dense ladder that are not ours: the vendor's, streams, padding, LAPACK, PyTorch.

Each function takes a problem and returns a run, or raises ``UnavailableError``.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_double, c_float, c_int, c_longlong, c_void_p
from typing import Any

import numpy as np

from benchmarks.dense import svd
from benchmarks.dense.problem import VARIABLE, Pivots, Problem, Run, in_place
from benchmarks.harness import vendor
from benchmarks.harness.cases import Case
from benchmarks.harness.vendor import LEFT, LOWER, NON_UNIT, RIGHT, N, T, UnavailableError

STREAMS = 32
MAX_PADDED = 40 << 30  # bytes
SINGULAR = ("gebrd", "svd")


# --- the vendor's routine for the whole batch --------------------------------------------------


def batched(problem: Problem) -> Run:
    """cuSOLVER's or cuBLAS's batched routine, or its native one for one matrix."""
    case = problem.case
    if case.shape in VARIABLE and case.routine not in ("gemm", "herk"):
        raise UnavailableError("the vendor has no batch of different sizes")
    if case.routine in SINGULAR:
        return svd.VENDOR[case.routine](problem)
    if case.shape == "native":
        return one_by_one(problem, 0)
    if case.shape in VARIABLE:
        return _grouped(problem)
    return _of_one_size(problem)


def _of_one_size(p: Problem) -> Run:
    """The batched routine, or an equivalent: there is no batched rank-k update."""
    routine, letter, n, count = p.case.routine, p.case.dtype, p.case.n, p.case.batch
    one, trans = vendor.scalar(1.0, letter), vendor.adjoint(letter)
    flat = {name: x.flat for name, x in p.operands.items()}
    at = {name: x.pointers for name, x in p.operands.items()}
    square, line = c_longlong(n * n), c_longlong(n)
    if routine == "inv":
        return _inverse(p)
    if routine == "potrf":
        call = vendor.solver("potrfBatched", letter, LOWER, n, at["a"], n, p.info, count)
        return in_place(p, call)
    if routine == "getrf":
        pivots = Pivots(p)
        call = vendor.blas("getrfBatched", letter, n, at["a"], n, pivots.flat, p.info, count)
        return in_place(p, call, pivots=pivots.get)
    if routine == "getrs":
        pivots, info = Pivots(p, identity=True), (c_int * 1)()
        about = (N, n, int(p.operands["b"].n[0]), at["a"], n, pivots.flat, at["b"], n, info, count)
        return in_place(p, vendor.blas("getrsBatched", letter, *about), pivots=pivots.get)
    if routine in ("gemm", "herk"):
        second, op = ("b", N) if routine == "gemm" else ("a", trans)
        about = (flat["a"], n, square, flat[second], n, square, one, flat["c"], n, square, count)
        return in_place(p, vendor.blas("gemmStridedBatched", letter, N, op, n, n, n, one, *about))
    if routine == "trsm":
        about = (RIGHT, LOWER, trans, NON_UNIT, n, n, one, at["a"], n, at["b"], n, count)
        return in_place(p, vendor.blas("trsmBatched", letter, *about))
    if routine == "potrs":
        about = (NON_UNIT, n, int(p.operands["b"].n[0]), one, at["a"], n, at["b"], n, count)
        first, second = (
            vendor.blas("trsmBatched", letter, LEFT, LOWER, op, *about) for op in (N, trans)
        )
        return in_place(p, lambda: (first(), second()))
    op = T if routine == "gemv_t" else N
    about = (flat["a"], n, square, flat["b"], 1, line, one, flat["c"], 1, line, count)
    return in_place(p, vendor.blas("gemvStridedBatched", letter, op, n, n, one, *about))


def _inverse(p: Problem) -> Run:
    letter, n, count = p.case.dtype, p.case.n, p.case.batch
    a, target = p.operands["a"], p.xp.empty_like(p.original)
    result = type(a)(target, a.m, a.n, a.shape)
    rest = (result.pointers, n, p.info, count)
    if n <= 32:
        call = vendor.blas("matinvBatched", letter, n, a.pointers, n, *rest)
        return Run(call, p.restore, result.get, info=p.info)
    about = (n, a.pointers, n, Pivots(p).flat)
    factor = vendor.blas("getrfBatched", letter, *about, p.info, count)
    invert = vendor.blas("getriBatched", letter, *about, *rest)
    return Run(lambda: (factor(), invert()), p.restore, result.get, info=p.info)


def _grouped(p: Problem) -> Run:
    """Products of square matrices, each order a group of one."""
    letter, count = p.case.dtype, len(p.n)
    if letter in "cz":
        raise UnavailableError("cuBLAS has no grouped product for complex types")
    herk = p.case.routine == "herk"
    a, b, c = (p.operands[x].pointers for x in ("a", "a" if herk else "b", "c"))
    integers = c_int * count
    orders, single = integers(*map(int, p.n)), integers(*[1] * count)
    ones = ((c_float if letter == "s" else c_double) * count)(*[1.0] * count)
    ops = integers(*[N] * count), integers(*[T if herk else N] * count)
    about = (*ops, orders, orders, orders, ones, a, orders, b, orders, ones, c, orders)
    return in_place(p, vendor.blas("gemmGroupedBatched", letter, *about, count, single))


# --- the vendor's routine for one matrix, on many streams --------------------------------------


def streamed(problem: Problem) -> Run:
    """The native routine for each matrix, round robin over streams."""
    return one_by_one(problem, STREAMS)


def one_by_one(problem: Problem, count: int) -> Run:
    """The native routine for each matrix, on ``count`` streams or on the current one."""
    case = problem.case
    if case.routine not in NATIVE:
        raise UnavailableError(f"no native routine of {case.routine}")
    lanes = vendor.streams(count) if count else [(None, None, None)]
    factors, pivots, work, size = case.routine in ("potrf", "getrf"), None, [], 0
    if factors:
        n, lower = case.n, [LOWER] if case.routine == "potrf" else [case.n]
        about = (*lower, n, problem.operands["a"].flat, max(n, 1))
        size = vendor.workspace(case.routine, case.dtype, *about)
        work = [problem.xp.empty(max(size, 1), problem.dtype) for _ in lanes]
    if case.routine == "getrf":
        pivots = Pivots(problem)
    calls = []
    for i, n in enumerate(map(int, problem.n)):
        _, blas, solver = lanes[i % len(lanes)]
        at = [c_void_p(int(x.addresses[i])) for x in problem.operands.values()]
        if factors:
            info = c_void_p(problem.info.data.ptr + 4 * i)
            rest = (n, at[0], max(n, 1), work[i % len(lanes)])
            if pivots is None:
                about = (LOWER, *rest, size, info)
            else:
                about = (n, *rest, c_void_p(int(pivots.addresses[i])), info)
            calls.append(vendor.solver(case.routine, case.dtype, *about, handle=solver))
        else:
            name, about = NATIVE[case.routine](case.dtype, n, *at)
            calls.append(vendor.blas(name, case.dtype, *about, handle=blas))
    call = _forked(calls, [lane[0] for lane in lanes]) if count else calls[0]
    return in_place(problem, call, pivots=pivots.get if pivots else None)


def _forked(calls: list[Callable], streams: list[Any]) -> Callable[[], None]:
    """Run calls on streams that begin and end with the current one."""
    import cupy

    def call() -> None:
        main = cupy.cuda.get_current_stream()
        start = main.record()
        for stream in streams:
            stream.wait_event(start)
        for one in calls:
            one()
        for stream in streams:
            main.wait_event(stream.record())

    return call


def _gemm(letter: str, n: int, a: Any, b: Any, c: Any) -> tuple[str, tuple]:
    one = vendor.scalar(1.0, letter)
    return "gemm_v2", (N, N, n, n, n, one, a, n, b, n, one, c, n)


def _herk(letter: str, n: int, a: Any, c: Any) -> tuple[str, tuple]:
    """Lower triangle of C += A A^H."""
    one = vendor.real(1.0, letter)
    name = "herk_v2" if letter in "cz" else "syrk_v2"
    return name, (LOWER, N, n, n, one, a, n, one, c, n)


def _trsm(letter: str, n: int, a: Any, b: Any) -> tuple[str, tuple]:
    """B = B L^-H."""
    about = (RIGHT, LOWER, vendor.adjoint(letter), NON_UNIT, n, n)
    return "trsm_v2", (*about, vendor.scalar(1.0, letter), a, n, b, n)


def _gemv(op: int) -> Callable[..., tuple[str, tuple]]:
    def arguments(letter: str, n: int, a: Any, x: Any, y: Any) -> tuple[str, tuple]:
        one = vendor.scalar(1.0, letter)
        return "gemv_v2", (op, n, n, one, a, n, x, 1, one, y, 1)

    return arguments


# routines of one matrix; those of cuBLAS by name and arguments
NATIVE: dict[str, Any] = {
    "potrf": None,
    "getrf": None,
    "gemm": _gemm,
    "herk": _herk,
    "trsm": _trsm,
    "gemv_n": _gemv(N),
    "gemv_t": _gemv(T),
}


# --- others ------------------------------------------------------------------------------------


def padding(problem: Problem) -> Run:
    """The vendor's batched routine on matrices padded to the largest by an identity."""
    case = problem.case
    wide = Case(case.routine, case.dtype, "fixed", case.n, case.batch)
    size = case.n**2 * case.batch * case.itemsize * (len(problem.operands) + 1)
    if size > MAX_PADDED:
        raise UnavailableError(f"{size / 2**30:.0f} GiB of padded matrices")
    run = _of_one_size(Problem.padded(problem, wide))
    whole, pivots = run.get, run.pivots
    run.get = lambda i: np.asfortranarray(whole(i)[: problem.n[i], : problem.columns(i)])
    if pivots is not None:
        run.pivots = lambda i: pivots(i)[: problem.n[i]]
    return run


def host(problem: Problem) -> Run:
    """LAPACK on the host, one matrix a core."""
    if problem.case.routine in SINGULAR:
        return svd.host(problem)
    from benchmarks.dense.host import host  # compiles with this package's own BLAS calls

    return host(problem)


def planned(case: Case) -> list[str]:
    """Names of these rungs for a case."""
    variable = case.shape in VARIABLE
    names = []
    if not variable or (case.routine in ("gemm", "herk") and case.dtype in "sd"):
        names.append("vendor")
    if variable and case.routine in NATIVE:
        names.append("streamed")
    if case.routine == "svd" and not variable:
        names.append("torch")
    if variable and not case.routine.startswith("gemv") and case.routine not in SINGULAR:
        names.append("padding")
    if case.shape != "native" or case.n <= 8192:
        names.append("host")
    return names


BUILDERS: dict[str, Callable[[Problem], Run]] = {
    "vendor": batched,
    "streamed": streamed,
    "padding": padding,
    "torch": svd.torch,
    "host": host,
}
