"""The rungs of bidiagonalization and SVD: the paper's panels, ours, the vendor's, LAPACK.

A result is one array for its check: U, what is between, and V^H side by side.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_void_p
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from benchmarks.dense.problem import Problem, Run
from benchmarks.harness import vendor
from benchmarks.harness.vendor import UnavailableError

MAX_WORK = 4e10  # real operations of a timed call on the host or of a loop of calls


# --- ours --------------------------------------------------------------------------------------


def gebrd(problem: Problem, options: dict) -> Run:
    """This package's bidiagonalization, or that of the paper: by panels from the first column."""
    from frontal.gpu.dense.gebrd import gebrd

    a, state = problem.operands["a"].batch, {}

    def call() -> None:
        state.clear()
        state["found"] = gebrd(a, **options)

    return Run(call, problem.restore, lambda i: _formed(state, i))


def _formed(state: dict[str, Any], i: int) -> np.ndarray:
    """Q, d, e and P^H of matrix i."""
    from frontal.gpu.dense.workspace import workspace

    found = state["found"]
    if "formed" not in state:
        q, p = (workspace(found.d, found.d.n, found.d.n, found.q.v.dtype) for _ in "qp")
        found.q.form(q)
        found.p.form(p)
        state["formed"] = q, p
    q, p = (_get(x, i) for x in state["formed"])
    middle = [_get(x, i).T for x in (found.d, found.e)]
    return np.hstack([q, *middle, p.T])


def svd(problem: Problem) -> Run:
    """This package's SVD with vectors."""
    from frontal.gpu.dense.gesvd import Svd, gesvd, paths
    from frontal.gpu.dense.workspace import real_type, workspace

    a = problem.operands["a"].batch
    way = np.unique(paths(a.m, a.n, a.dtype, a.device.limits))
    if len(way) != 1:
        raise UnavailableError("matrices that take different ways")
    out = Svd(
        workspace(a, a.n, 1, real_type(a.dtype)), workspace(a, a.m, a.n), workspace(a, a.n, a.n)
    )

    def call() -> None:
        problem.info[:] = gesvd(a, out, int(way[0]))

    def get(i: int) -> np.ndarray:
        s, u, v = (_get(x, i) for x in (out.s, out.u, out.v))
        return np.hstack([u, s, v.T])

    return Run(call, problem.restore, get, info=problem.info)


def _get(batch: Any, i: int) -> np.ndarray:
    """Matrix i of a workspace on the host."""
    matrices = batch.keep[-1]
    return (matrices if batch.wrapper == "native" else matrices[i]).get()


# --- the vendor's ------------------------------------------------------------------------------


def _stack(problem: Problem) -> Any:
    """The matrices as NumPy has them."""
    case = problem.case
    return problem.operands["a"].flat.reshape(-1, case.n, case.n).transpose(0, 2, 1)


def _looped(problem: Problem, least: int = 8) -> int:
    """How many matrices a loop takes."""
    case = problem.case
    return min(case.batch, max(least, int(MAX_WORK / case.flops(problem.n[:1]) / 20)))


def _by_library(problem: Problem, svd: Callable, a: Any, on_host: Callable) -> Run:
    """SVD of a stack by a library: of all matrices up to order 32, above of as many as a loop."""
    count = len(a) if problem.case.n <= 32 else _looped(problem)
    found: list[Any] = [None]

    def call() -> None:
        found[0] = svd(a[:count])

    def get(i: int) -> np.ndarray:
        u, s, vh = (on_host(x[i]) for x in found[0])
        return np.hstack([u, s[:, None], vh])

    return Run(call, problem.restore, get, count=count)


def vendor_svd(problem: Problem) -> Run:
    """cuSOLVER as CuPy calls it: gesvdjBatched up to 32, a loop of gesvd above."""
    import cupy

    return _by_library(problem, cupy.linalg.svd, _stack(problem), lambda x: x.get())


def torch(problem: Problem) -> Run:
    """PyTorch's choice of cuSOLVER's routines."""
    try:
        import torch
    except ImportError as error:
        raise UnavailableError("PyTorch is not here") from error
    a = torch.from_dlpack(_stack(problem))
    return _by_library(problem, torch.linalg.svd, a, lambda x: x.cpu().numpy())


def vendor_gebrd(problem: Problem) -> Run:
    """A loop of cuSOLVER's gebrd."""
    case, xp = problem.case, problem.xp
    letter, n, a = case.dtype, case.n, problem.operands["a"]
    count, real = _looped(problem), np.float32 if letter in "sc" else np.float64
    values = xp.empty((count, 2, n), real), xp.empty((count, 2, n), problem.dtype)
    size = vendor.workspace("gebrd", letter, n, n)
    work = xp.empty(max(size, 1), problem.dtype)
    calls = []
    for i in range(count):
        about = (n, n, c_void_p(int(a.addresses[i])), max(n, 1), *values[0][i], *values[1][i])
        info = problem.info[i : i + 1]
        calls.append(vendor.solver("gebrd", letter, *about, work, size, info))

    def call() -> None:
        for one in calls:
            one()

    def get(i: int) -> np.ndarray:
        return _unpacked(a.get(i), *(x[i].get() for x in values))

    return Run(call, problem.restore, get, info=problem.info, count=count)


def _unpacked(a: np.ndarray, values: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Q, d, e and P^H of what LAPACK leaves."""
    n = len(a)
    q, p = np.eye(n, dtype=a.dtype), np.eye(n, dtype=a.dtype)
    for i in reversed(range(n)):
        v = np.concatenate([[1], a[i + 1 :, i]])
        q[i:] -= tau[0, i] * np.outer(v, v.conj() @ q[i:])
        if i + 1 < n:
            u = np.concatenate([[1], a[i, i + 2 :].conj()])
            p[i + 1 :] -= tau[1, i] * np.outer(u, u.conj() @ p[i + 1 :])
    return np.hstack([q, values.T, p.conj().T]).astype(a.dtype)


VENDOR = {"svd": vendor_svd, "gebrd": vendor_gebrd}


# --- LAPACK on the host ------------------------------------------------------------------------


def host(problem: Problem) -> Run:
    """LAPACK on the host, a thread a matrix, as many matrices as the time allows."""
    case, held = problem.case, problem.operands["a"]
    count = min(len(problem.n), max(8, int(MAX_WORK / case.flops(problem.n[:1].clip(case.n // 2)))))
    matrices = [held.get(i) for i in range(count)]
    if case.routine == "gebrd":
        raise UnavailableError("LAPACK's gebrd is not among SciPy's functions")
    found: list[Any] = [None] * count

    def one(i: int) -> None:
        found[i] = scipy.linalg.svd(matrices[i], check_finite=False)

    def call() -> None:
        with threadpool_limits(1, "blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(one, range(count)))

    def get(i: int) -> np.ndarray:
        u, s, vh = found[i]
        return np.hstack([u, s[:, None], vh])

    return Run(call, problem.restore, get, count=count, on_host=True)
