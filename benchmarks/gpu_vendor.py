"""cuBLAS and cuSOLVER through ctypes, on the libraries that CuPy has loaded.

CuPy binds few of the batched routines and not for all scalar types; C binds them all.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import byref, c_double, c_float, c_int, c_longlong, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

N, T, C = 0, 1, 2  # cublasOperation_t
LOWER, UPPER = 0, 1  # cublasFillMode_t
LEFT, RIGHT = 0, 1
NON_UNIT, UNIT = 0, 1


class VendorError(RuntimeError):
    """A status of cuBLAS or cuSOLVER that is not success."""


class UnavailableError(RuntimeError):
    """A routine that the vendor does not have for this type or size."""


def _path(name: str) -> str:
    """File of a library that this process has loaded, or that CuPy's finder knows."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        found = re.search(rf"\S+/lib{name}\.so\S*$", line)
        if found:
            return found[0]
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return str(load_nvidia_dynamic_lib(name).abs_path)


@cache
def library(name: str) -> ctypes.CDLL:
    """Return cublas or cusolver, opened once."""
    import cupy

    if name == "cublas":
        cupy.cuda.device.get_cublas_handle()
    else:
        cupy.cuda.device.get_cusolver_handle()
    return ctypes.CDLL(_path(name))


def pointer(x: Any) -> c_void_p:
    """Address of a device array's first entry, an address as it is, null for none."""
    if x is None:
        return c_void_p(0)
    return c_void_p(int(x if isinstance(x, (int, np.integer)) else x.data.ptr))


def scalar(value: float, letter: str) -> Any:
    """Reference to a host scalar of one of the four types."""
    kind = c_float if letter in "sc" else c_double
    return byref((kind * 2)(value, 0.0)) if letter in "cz" else byref(kind(value))


def real(value: float, letter: str) -> Any:
    """Reference to a host scalar of the real type."""
    return scalar(value, {"c": "s", "z": "d"}.get(letter, letter))


def function(name: str) -> Any:
    """Return a C function of either library by its full name."""
    owner = library("cusolver" if name.startswith("cusolver") else "cublas")
    try:
        found = getattr(owner, name)
    except AttributeError as error:
        raise UnavailableError(f"{name} is not in this library") from error
    found.restype = c_int
    return found


def bound(name: str, *arguments: Any) -> Any:
    """Return a call with its arguments converted once; it raises on a bad status."""
    f = function(name)
    kept = tuple(c_int(x) if isinstance(x, (int, np.integer)) else x for x in arguments)

    def call() -> None:
        status = f(*kept)
        if status:
            raise VendorError(f"{name} returned status {status}")

    return call


@cache
def blas_handle() -> c_void_p:
    """Handle of cuBLAS on the legacy default stream."""
    handle = c_void_p()
    bound("cublasCreate_v2", byref(handle))()
    return handle


@cache
def solver_handle() -> c_void_p:
    """Handle of cuSOLVER on the legacy default stream."""
    handle = c_void_p()
    bound("cusolverDnCreate", byref(handle))()
    return handle


@cache
def streams(count: int) -> list[tuple[Any, c_void_p, c_void_p]]:
    """Streams, each with a cuBLAS and a cuSOLVER handle of its own."""
    import cupy

    made = []
    for _ in range(count):
        stream = cupy.cuda.Stream(non_blocking=True)
        blas, solver = c_void_p(), c_void_p()
        bound("cublasCreate_v2", byref(blas))()
        bound("cublasSetStream_v2", blas, c_void_p(stream.ptr))()
        bound("cusolverDnCreate", byref(solver))()
        bound("cusolverDnSetStream", solver, c_void_p(stream.ptr))()
        made.append((stream, blas, solver))
    return made


def versions() -> dict[str, str]:
    """Versions of cuBLAS and cuSOLVER."""
    found = {}
    number = c_int()
    bound("cublasGetVersion_v2", blas_handle(), byref(number))()
    found["cublas"] = str(number.value)
    parts = []
    for kind in range(3):
        bound("cusolverGetProperty", kind, byref(number))()
        parts.append(str(number.value))
    found["cusolver"] = ".".join(parts)
    return found


# --- one matrix --------------------------------------------------------------------------------


def gemm(letter, ta, tb, m, n, k, a, lda, b, ldb, c, ldc, beta=1.0, handle=None):
    """C = op(A) op(B) + beta C."""
    sizes = (m, n, k, scalar(1.0, letter), pointer(a), lda, pointer(b), ldb)
    rest = (scalar(beta, letter), pointer(c), ldc)
    name = f"cublas{letter.upper()}gemm_v2"
    return bound(name, handle or blas_handle(), ta, tb, *sizes, *rest)


def herk(letter, n, k, a, lda, c, ldc, handle=None):
    """Lower triangle of C += A A^H."""
    name = f"cublas{letter.upper()}{'herk' if letter in 'cz' else 'syrk'}_v2"
    one = real(1.0, letter)
    return bound(
        name, handle or blas_handle(), LOWER, N, n, k, one, pointer(a), lda, one, pointer(c), ldc
    )


def trsm(letter, m, n, a, lda, b, ldb, handle=None):
    """B = B L^-H."""
    trans = C if letter in "cz" else T
    about = (RIGHT, LOWER, trans, NON_UNIT, m, n, scalar(1.0, letter))
    name = f"cublas{letter.upper()}trsm_v2"
    return bound(name, handle or blas_handle(), *about, pointer(a), lda, pointer(b), ldb)


def gemv(letter, trans, m, n, a, lda, x, y, handle=None):
    """y += op(A) x."""
    one = scalar(1.0, letter)
    name = f"cublas{letter.upper()}gemv_v2"
    about = (trans, m, n, one, pointer(a), lda, pointer(x), 1, one, pointer(y), 1)
    return bound(name, handle or blas_handle(), *about)


def potrf_workspace(letter, n, a) -> int:
    """Entries of workspace of one Cholesky factorization."""
    size = c_int()
    name = f"cusolverDn{letter.upper()}potrf_bufferSize"
    bound(name, solver_handle(), LOWER, n, pointer(a), max(n, 1), byref(size))()
    return size.value


def potrf(letter, n, a, work, size, info, handle=None):
    """Cholesky of one matrix, lower triangle."""
    name = f"cusolverDn{letter.upper()}potrf"
    about = (LOWER, n, pointer(a), max(n, 1), pointer(work), size, pointer(info))
    return bound(name, handle or solver_handle(), *about)


def getrf_workspace(letter, n, a) -> int:
    """Entries of workspace of one LU factorization."""
    size = c_int()
    name = f"cusolverDn{letter.upper()}getrf_bufferSize"
    bound(name, solver_handle(), n, n, pointer(a), max(n, 1), byref(size))()
    return size.value


def getrf(letter, n, a, work, pivots, info, handle=None):
    """LU with partial pivoting of one matrix."""
    name = f"cusolverDn{letter.upper()}getrf"
    about = (n, n, pointer(a), max(n, 1), pointer(work), pointer(pivots), pointer(info))
    return bound(name, handle or solver_handle(), *about)


def gebrd_workspace(letter, n) -> int:
    """Entries of workspace of one bidiagonalization."""
    size = c_int()
    bound(f"cusolverDn{letter.upper()}gebrd_bufferSize", solver_handle(), n, n, byref(size))()
    return size.value


def gebrd(letter, n, a, d, e, tauq, taup, work, size, info, handle=None):
    """Bidiagonalization of one matrix."""
    name, values = f"cusolverDn{letter.upper()}gebrd", (d, e, tauq, taup, work)
    about = (n, n, pointer(a), max(n, 1), *map(pointer, values), size, pointer(info))
    return bound(name, handle or solver_handle(), *about)


# --- batches of one size -----------------------------------------------------------------------


def potrf_batched(letter, n, pointers, info, count):
    name = f"cusolverDn{letter.upper()}potrfBatched"
    return bound(name, solver_handle(), LOWER, n, pointer(pointers), n, pointer(info), count)


def getrf_batched(letter, n, pointers, pivots, info, count):
    name = f"cublas{letter.upper()}getrfBatched"
    about = (n, pointer(pointers), n, pointer(pivots), pointer(info), count)
    return bound(name, blas_handle(), *about)


def getri_batched(letter, n, pointers, pivots, inverses, info, count):
    name = f"cublas{letter.upper()}getriBatched"
    about = (n, pointer(pointers), n, pointer(pivots), pointer(inverses), n, pointer(info), count)
    return bound(name, blas_handle(), *about)


def getrs_batched(letter, n, columns, pointers, pivots, b, count):
    name = f"cublas{letter.upper()}getrsBatched"
    about = (N, n, columns, pointer(pointers), n, pointer(pivots), pointer(b), n)
    return bound(name, blas_handle(), *about, byref(c_int()), count)


def matinv_batched(letter, n, pointers, inverses, info, count):
    name = f"cublas{letter.upper()}matinvBatched"
    about = (n, pointer(pointers), n, pointer(inverses), n, pointer(info), count)
    return bound(name, blas_handle(), *about)


def gemm_batched(letter, ta, tb, m, n, k, a, b, c, count):
    """C[i] += op(A[i]) op(B[i]) for matrices one after the other."""
    name = f"cublas{letter.upper()}gemmStridedBatched"
    one = scalar(1.0, letter)
    about = (ta, tb, m, n, k, one, pointer(a), m if ta == N else k, c_longlong(m * k))
    rest = (pointer(b), k if tb == N else n, c_longlong(k * n), one, pointer(c), m)
    return bound(name, blas_handle(), *about, *rest, c_longlong(m * n), count)


def gemm_grouped(letter, sizes, ta, tb, a, b, c):
    """C[i] += op(A[i]) op(B[i]), square matrices of each order a group of one."""
    if letter in "cz":
        raise UnavailableError("cuBLAS has no grouped product for complex types")
    name = f"cublas{letter.upper()}gemmGroupedBatched"
    count = len(sizes)
    ints = c_int * count
    kind = (c_float if letter == "s" else c_double) * count
    orders, ones = ints(*map(int, sizes)), kind(*[1.0] * count)
    ops = ints(*[ta] * count), ints(*[tb] * count)
    about = (*ops, orders, orders, orders, ones, pointer(a), orders, pointer(b), orders)
    call = bound(name, blas_handle(), *about, ones, pointer(c), orders, count, ints(*[1] * count))
    return call


def trsm_batched(letter, side, trans, m, n, a, lda, b, count):
    """B[i] = L[i]^-1 B[i] or its like, by arrays of pointers."""
    name = f"cublas{letter.upper()}trsmBatched"
    about = (side, LOWER, trans, NON_UNIT, m, n, scalar(1.0, letter), pointer(a), lda)
    return bound(name, blas_handle(), *about, pointer(b), m, count)


def gemv_batched(letter, trans, n, a, x, y, count):
    """y[i] += op(A[i]) x[i] for square matrices one after the other."""
    name = f"cublas{letter.upper()}gemvStridedBatched"
    one = scalar(1.0, letter)
    about = (trans, n, n, one, pointer(a), n, c_longlong(n * n), pointer(x), 1, c_longlong(n))
    return bound(name, blas_handle(), *about, one, pointer(y), 1, c_longlong(n), count)
