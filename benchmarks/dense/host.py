"""The last rung of the dense ladder: LAPACK on the host, one matrix a core, all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numba
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.dense.problem import Operand, Problem, Run
from benchmarks.harness.cases import RIGHT_HAND_SIDES
from benchmarks.harness.vendor import UnavailableError
from frontal.cpu import blas

WORK = 4e10  # real operations of one timed call; the batch is cut to so many
ROUTINES = ("potrf", "getrf", "gemm", "herk", "trsm", "gemv_n", "gemv_t", "potrs", "getrs")
CODES = {name: code for code, name in enumerate(ROUTINES)}


def host(problem: Problem) -> Run:
    """A loop over the matrices, as many of them as the time allows."""
    case = problem.case
    count = min(len(problem.n), max(1, int(WORK / case.flops(problem.n[:1].clip(case.n // 2)))))
    if case.shape == "native" and case.n > 8192:
        raise UnavailableError("too long on the host")
    held = {}
    for name, x in problem.operands.items():
        flat = problem.original if name == problem.output else x.flat
        held[name] = Operand(flat[: int(x.offset[count])].get(), x.m, x.n, x.shape)
    output, n = held[problem.output], problem.n[:count]
    start, pivots = output.flat.copy(), np.zeros((count, case.n), np.int32)

    def restore() -> None:
        output.flat[:] = start

    def get(i: int) -> np.ndarray:
        return output.get(i, on_host=False)  # it is there already

    call = _call(problem, held, n, pivots)
    p = (lambda i: pivots[i, : problem.n[i]] - 1) if case.routine == "getrf" else None
    return Run(call, restore, get, pivots=p, count=count, on_host=True)


def _call(problem: Problem, held: dict[str, Operand], n: np.ndarray, pivots: np.ndarray) -> Any:
    """The call to time; one matrix gets all threads of the BLAS instead."""
    case, a = problem.case, held["a"]
    if case.routine == "inv":
        return _inverse(a.flat, a.offset, n)
    width = RIGHT_HAND_SIDES if case.routine in ("potrs", "getrs") else 0
    operands = [held.get(name, a) for name in "abc"]
    arrays, places = [x.flat for x in operands], [x.offset[: len(n)] for x in operands]
    routines = blas.routines(problem.dtype)
    code, loop = CODES[case.routine], compiled()
    # from here on: setting it takes longer than some calls
    threadpool_limits(numba.get_num_threads() if case.shape == "native" else 1, "blas")
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
