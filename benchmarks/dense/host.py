"""The last rung of the dense ladder: LAPACK on the host, one matrix a core, all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.dense.problem import Problem, Run
from benchmarks.harness.vendor import UnavailableError
from frontal.cpu import blas

WORK = 4e10  # real operations of one timed call; the batch is cut to so many
CODES = {"potrf": 0, "getrf": 1, "gemm": 2, "herk": 3, "trsm": 4, "gemv_n": 5, "gemv_t": 6}
CODES |= {"potrs": 7, "getrs": 8}


def host(problem: Problem) -> Run:
    """A loop over the matrices, as many of them as the time allows."""
    case = problem.case
    count = min(len(problem.n), max(1, int(WORK / case.flops(problem.n[:1].clip(case.n // 2)))))
    if case.shape == "native" and case.n > 8192:
        raise UnavailableError("too long on the host")
    flat, offsets = {}, {}
    for name, operand in problem.operands.items():
        original = problem.original if name == problem.output else operand.flat
        flat[name] = original[: int(operand.offset[count])].get()
        offsets[name] = operand.offset
    start = flat[problem.output].copy()
    result, n = flat[problem.output], problem.n[:count]
    pivots = np.zeros((count, case.n), np.int32)

    def restore() -> None:
        result[:] = start

    def get(i: int) -> np.ndarray:
        held, place = problem.operands[problem.output], offsets[problem.output]
        part = result[int(place[i]) : int(place[i + 1])]
        return part.reshape(int(held.n[i]), int(held.m[i])).T

    call = _call(problem, flat, offsets, n, pivots, case.shape == "native")
    p = (lambda i: pivots[i, : problem.n[i]] - 1) if case.routine == "getrf" else None
    return Run(call, restore, get, pivots=p, count=count, on_host=True)


def _call(problem: Problem, flat: dict, offsets: dict, n, pivots, native: bool) -> Any:
    """The call to time; one matrix gets all threads of the BLAS instead."""
    case = problem.case
    if case.routine == "inv":
        return _inverse(flat["a"], offsets["a"], n)
    width = {"potrs": 16, "getrs": 16}.get(case.routine, 0)
    names = [x if x in flat else "a" for x in "abc"]
    arrays = [flat[x] for x in names]
    places = [offsets[x][: len(n)] for x in names]
    threads = numba.get_num_threads() if native else 1
    routines = blas.routines(problem.dtype)
    code, loop = CODES[case.routine], compiled()
    threadpool_limits(threads, "blas")  # from here on: setting it takes longer than some calls
    return lambda: loop(code, routines, *arrays, *places, n, width, pivots)


def _inverse(a: np.ndarray, offset: np.ndarray, n: np.ndarray) -> Any:
    """Inverses by NumPy, a piece of the batch for each core."""
    pieces = np.array_split(np.arange(len(n)), numba.get_num_threads())
    same = bool((n == n[0]).all())

    def work(piece: np.ndarray) -> None:
        if same and len(piece):
            k = int(n[0])
            part = a[offset[piece[0]] : offset[piece[-1] + 1]].reshape(len(piece), k, k)
            part[...] = np.linalg.inv(part)  # of the transpose, by which the result is the same
            return
        for i in piece:
            part = a[offset[i] : offset[i + 1]].reshape(n[i], n[i])
            part[...] = np.linalg.inv(part)

    threadpool_limits(1, "blas")
    pool = ThreadPoolExecutor(len(pieces))
    return lambda: list(pool.map(work, pieces))


@numba.njit
def herk(routines, n, a, c):
    """Lower triangle of C += A A^H, square."""
    one, n = blas.address(routines.reals), np.int32(n)
    arguments = (np.uint8(blas.LOWER), np.uint8(blas.NO_TRANS), n, n, one, a, n, one, c, n)
    blas.call(routines.table[1], arguments)


@cache
def compiled() -> Any:
    """The loop over the matrices, compiled once."""
    return numba.njit(parallel=True, error_model="numpy")(_loop)


def _loop(code, routines, a, b, c, a_at, b_at, c_at, n, width, pivots):
    size = routines.scalars.itemsize
    adjoint = routines.adjoint
    for i in numba.prange(len(n)):
        k = n[i]
        pa = blas.address(a) + a_at[i] * size
        pb = blas.address(b) + b_at[i] * size
        pc = blas.address(c) + c_at[i] * size
        info = np.zeros(1, np.int32)
        if code == 0:
            blas.potrf(routines, k, pa, k, info)
        elif code == 1:
            blas.getrf(routines, k, k, pa, k, pivots[i], info)
        elif code == 2:
            blas.gemm(routines, blas.NO_TRANS, blas.NO_TRANS, k, k, k, 0, pa, k, pb, k, 0, pc, k)
        elif code == 3:
            herk(routines, k, pa, pc)
        elif code == 4:
            blas.trsm(routines, blas.RIGHT, blas.LOWER, adjoint, blas.NON_UNIT, k, k, pa, k, pb, k)
        elif code == 5:
            blas.gemv(routines, blas.NO_TRANS, k, k, 0, pa, k, pb, 0, pc)
        elif code == 6:
            blas.gemv(routines, blas.TRANS, k, k, 0, pa, k, pb, 0, pc)
        else:
            unit = blas.UNIT if code == 8 else blas.NON_UNIT
            second = blas.UPPER if code == 8 else blas.LOWER
            trans = blas.NO_TRANS if code == 8 else adjoint
            blas.trsm(routines, blas.LEFT, blas.LOWER, blas.NO_TRANS, unit, k, width, pa, k, pb, k)
            blas.trsm(routines, blas.LEFT, second, trans, blas.NON_UNIT, k, width, pa, k, pb, k)
