"""The rungs of the GPU ladder that are not ours: the vendor's, one stream a matrix, padding, host.

Each function takes a problem and returns a run, or raises ``UnavailableError``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gpu_vendor as vendor
from gpu_cases import Case, Problem
from gpu_runs import Pivots, Run, in_place
from gpu_vendor import UnavailableError

STREAMS = 32
MOST_PADDED = 40 << 30  # bytes
VARIABLE = ("uniform", "gaussian")
SINGULAR = ("gebrd", "svd")


# --- the vendor's routine for the whole batch --------------------------------------------------


def batched(problem: Problem) -> Run:
    """cuSOLVER's or cuBLAS's batched routine, or its native one for one matrix."""
    case = problem.case
    if case.shape in VARIABLE and case.routine not in ("gemm", "herk"):
        raise UnavailableError("the vendor has no batch of different sizes")
    if case.routine in SINGULAR:
        import gpu_svd

        return gpu_svd.VENDOR[case.routine](problem)
    if case.shape == "native":
        run = one_by_one(problem, 0)
        return run
    table = GROUPED if case.shape in VARIABLE else BATCHED
    return table[case.routine](problem)


def _letter(problem: Problem) -> tuple[str, int, int]:
    return problem.case.dtype, problem.case.n, problem.case.batch


def _potrf(p: Problem) -> Run:
    letter, n, count = _letter(p)
    a = p.operands["a"].pointers
    return in_place(p, vendor.potrf_batched(letter, n, a, p.info, count))


def _getrf(p: Problem) -> Run:
    letter, n, count = _letter(p)
    a, pivots = p.operands["a"].pointers, Pivots(p)
    call = vendor.getrf_batched(letter, n, a, pivots.flat, p.info, count)
    return in_place(p, call, pivots=pivots.get)


def _inv(p: Problem) -> Run:
    letter, n, count = _letter(p)
    a, target = p.operands["a"], p.xp.empty_like(p.original)
    result = type(a)(target, a.m, a.n, a.shape)
    if n <= 32:
        call = vendor.matinv_batched(letter, n, a.pointers, result.pointers, p.info, count)
        return Run(call, p.restore, result.get, info=p.info)
    pivots = Pivots(p)
    factor = vendor.getrf_batched(letter, n, a.pointers, pivots.flat, p.info, count)
    about = (pivots.flat, result.pointers, p.info, count)
    invert = vendor.getri_batched(letter, n, a.pointers, *about)
    return Run(lambda: (factor(), invert()), p.restore, result.get, info=p.info)


def _gemm(p: Problem) -> Run:
    letter, n, count = _letter(p)
    flat = [p.operands[x].flat for x in "abc"]
    return in_place(p, vendor.gemm_batched(letter, vendor.N, vendor.N, n, n, n, *flat, count))


def _herk(p: Problem) -> Run:
    """The whole square: there is no batched rank-k update."""
    letter, n, count = _letter(p)
    a, c = p.operands["a"].flat, p.operands["c"].flat
    adjoint = vendor.C if letter in "cz" else vendor.T
    return in_place(p, vendor.gemm_batched(letter, vendor.N, adjoint, n, n, n, a, a, c, count))


def _grouped(adjoint: bool) -> Callable[[Problem], Run]:
    def build(p: Problem) -> Run:
        a, b, c = (p.operands[x].pointers for x in ("a", "a" if adjoint else "b", "c"))
        trans = vendor.T if adjoint else vendor.N
        return in_place(p, vendor.gemm_grouped(p.case.dtype, p.n, vendor.N, trans, a, b, c))

    return build


def _trsm(p: Problem) -> Run:
    letter, n, count = _letter(p)
    a, b = p.operands["a"].pointers, p.operands["b"].pointers
    trans = vendor.C if letter in "cz" else vendor.T
    return in_place(p, vendor.trsm_batched(letter, vendor.RIGHT, trans, n, n, a, n, b, count))


def _potrs(p: Problem) -> Run:
    letter, n, count = _letter(p)
    a, b = p.operands["a"].pointers, p.operands["b"]
    trans = vendor.C if letter in "cz" else vendor.T
    sizes = (n, int(b.n[0]), a, n, b.pointers, count)
    first = vendor.trsm_batched(letter, vendor.LEFT, vendor.N, *sizes)
    second = vendor.trsm_batched(letter, vendor.LEFT, trans, *sizes)
    return in_place(p, lambda: (first(), second()))


def _getrs(p: Problem) -> Run:
    letter, n, count = _letter(p)
    a, b, pivots = p.operands["a"].pointers, p.operands["b"], Pivots(p, identity=True)
    columns = int(b.n[0])
    call = vendor.getrs_batched(letter, n, columns, a, pivots.flat, b.pointers, count)
    return in_place(p, call, pivots=pivots.get)


def _gemv(trans: int) -> Callable[[Problem], Run]:
    def build(p: Problem) -> Run:
        letter, n, count = _letter(p)
        a, x, y = (p.operands[name].flat for name in "abc")
        return in_place(p, vendor.gemv_batched(letter, trans, n, a, x, y, count))

    return build


BATCHED: dict[str, Callable[[Problem], Run]] = {
    "potrf": _potrf,
    "getrf": _getrf,
    "inv": _inv,
    "gemm": _gemm,
    "herk": _herk,
    "trsm": _trsm,
    "potrs": _potrs,
    "getrs": _getrs,
    "gemv_n": _gemv(vendor.N),
    "gemv_t": _gemv(vendor.T),
}
GROUPED = {"gemm": _grouped(False), "herk": _grouped(True)}


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
    build, kept = NATIVE[case.routine], _Scratch(problem, len(lanes))
    calls = [
        build(problem, i, lanes[i % len(lanes)], kept, i % len(lanes))
        for i in range(len(problem.n))
    ]
    pivots = kept.pivots.get if case.routine == "getrf" else None
    if not count:
        return in_place(problem, calls[0], pivots=pivots)
    return in_place(problem, _forked(calls, [lane[0] for lane in lanes]), pivots=pivots)


class _Scratch:
    """Workspace for each stream and pivots for each matrix."""

    def __init__(self, problem: Problem, lanes: int) -> None:
        case, self.size = problem.case, 0
        self.pivots = Pivots(problem) if case.routine == "getrf" else None
        sizes = {"potrf": vendor.potrf_workspace, "getrf": vendor.getrf_workspace}
        if case.routine in sizes:
            self.size = sizes[case.routine](case.dtype, case.n, problem.operands["a"].flat)
        self.work = [problem.xp.empty(max(self.size, 1), problem.dtype) for _ in range(lanes)]


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


def _places(p: Problem, i: int) -> list[int]:
    return [int(p.operands[x].addresses[i]) for x in "abc" if x in p.operands]


def _one_potrf(p, i, lane, kept, k):
    (a,) = _places(p, i)
    info = p.info.data.ptr + 4 * i
    return vendor.potrf(p.case.dtype, int(p.n[i]), a, kept.work[k], kept.size, info, lane[2])


def _one_getrf(p, i, lane, kept, k):
    (a,) = _places(p, i)
    info, pivots = p.info.data.ptr + 4 * i, int(kept.pivots.addresses[i])
    return vendor.getrf(p.case.dtype, int(p.n[i]), a, kept.work[k], pivots, info, lane[2])


def _one_gemm(p, i, lane, kept, k):
    (a, b, c), n = _places(p, i), int(p.n[i])
    about = (n, n, n, a, n, b, n, c, n)
    return vendor.gemm(p.case.dtype, vendor.N, vendor.N, *about, handle=lane[1])


def _one_herk(p, i, lane, kept, k):
    (a, c), n = _places(p, i), int(p.n[i])
    return vendor.herk(p.case.dtype, n, n, a, n, c, n, handle=lane[1])


def _one_trsm(p, i, lane, kept, k):
    (a, b), n = _places(p, i), int(p.n[i])
    return vendor.trsm(p.case.dtype, n, n, a, n, b, n, handle=lane[1])


def _one_gemv(trans: int) -> Callable:
    def build(p, i, lane, kept, k):
        (a, x, y), n = _places(p, i), int(p.n[i])
        return vendor.gemv(p.case.dtype, trans, n, n, a, n, x, y, handle=lane[1])

    return build


NATIVE: dict[str, Callable] = {
    "potrf": _one_potrf,
    "getrf": _one_getrf,
    "gemm": _one_gemm,
    "herk": _one_herk,
    "trsm": _one_trsm,
    "gemv_n": _one_gemv(vendor.N),
    "gemv_t": _one_gemv(vendor.T),
}


# --- padding to the largest size ---------------------------------------------------------------


def padding(problem: Problem) -> Run:
    """The vendor's batched routine on matrices padded to the largest by an identity."""
    case = problem.case
    wide = Case(case.routine, case.dtype, "fixed", case.n, case.batch)
    size = case.n**2 * case.batch * case.itemsize * (len(problem.operands) + 1)
    if size > MOST_PADDED:
        raise UnavailableError(f"{size / 2**30:.0f} GiB of padded matrices")
    padded = Problem.padded(problem, wide)
    run = BATCHED[case.routine](padded)
    whole, pivots = run.get, run.pivots
    run.get = lambda i: np.asfortranarray(whole(i)[: problem.n[i], : problem.columns(i)])
    if pivots is not None:
        run.pivots = lambda i: pivots(i)[: problem.n[i]]
    return run


def host(problem: Problem) -> Run:
    """LAPACK on the host, one matrix a core."""
    if problem.case.routine in SINGULAR:
        import gpu_svd

        return gpu_svd.host(problem)
    import gpu_host  # compiles with this package's own BLAS calls

    return gpu_host.host(problem)


def torch(problem: Problem) -> Run:
    """What PyTorch does with the batch."""
    import gpu_svd

    return gpu_svd.torch(problem)


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
    "torch": torch,
    "host": host,
}
