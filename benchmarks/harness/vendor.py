"""cuBLAS and cuSOLVER through ctypes, on the libraries that CuPy has loaded.

CuPy binds few of the batched routines and not for all scalar types; C binds them all.
"""

from __future__ import annotations

import ctypes
import re
from ctypes import byref, c_double, c_float, c_int, c_void_p
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


def argument(x: Any) -> Any:
    """Return an argument for C: an int, the address of a device array, else what it is."""
    if isinstance(x, (int, np.integer)):
        return c_int(x)
    return c_void_p(x.data.ptr) if hasattr(x, "data") else x


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
    """Return a call with its arguments converted once; it raises on a bad status.

    It keeps the arrays among them alive.
    """
    f = function(name)
    converted = tuple(map(argument, arguments))

    def call() -> None:
        status = f(*converted)
        if status:
            raise VendorError(f"{name} returned status {status}")

    call.arguments = arguments
    return call


def blas(name: str, letter: str, *arguments: Any, handle: c_void_p | None = None) -> Any:
    """Return a call of cuBLAS in a scalar type."""
    return bound(f"cublas{letter.upper()}{name}", handle or blas_handle(), *arguments)


def solver(name: str, letter: str, *arguments: Any, handle: c_void_p | None = None) -> Any:
    """Return a call of cuSOLVER in a scalar type."""
    return bound(f"cusolverDn{letter.upper()}{name}", handle or solver_handle(), *arguments)


def workspace(name: str, letter: str, *arguments: Any) -> int:
    """Return the entries of workspace that a routine of cuSOLVER needs."""
    size = c_int()
    solver(f"{name}_bufferSize", letter, *arguments, byref(size))()
    return size.value


def adjoint(letter: str) -> int:
    """Return the operation of the conjugate transpose."""
    return C if letter in "cz" else T


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
