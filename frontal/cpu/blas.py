"""Dense BLAS and LAPACK inside compiled code, through SciPy's own function pointers.

``routines(dtype)`` gathers the addresses of one scalar type; the functions below call them from
Numba code without Python, at the cost of a C call. Matrices are column-major and given by the
address of their first entry, as an integer.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numba.extending import get_cython_function_address

from ..compile.atomics import call, yield_address
from ..compile.jit import inner

# NumPy integers, since Numba compiles a function anew for each plain integer passed to it.
ONE, MINUS, ZERO = np.arange(3)  # positions in Routines.scalars
NO_TRANS, TRANS = np.uint8(ord("N")), np.uint8(ord("T"))
LEFT, RIGHT, LOWER, UPPER, UNIT, NON_UNIT = np.frombuffer(b"LRLUUN", np.uint8)


class Routines(NamedTuple):
    """Addresses and constants of one scalar type, as arrays so that compiled code is cacheable.

    Attributes
    ----------
    table : (9,) int64 array
        Addresses of gemm, herk (syrk), trsm, potrf, gemv, trsv, getrf, laswp, and of the
        system's thread yield.
    scalars : (3,) array of the scalar type
        1, -1 and 0.
    reals : (4,) array of its real type
        1, -1, 0 and eps.
    adjoint : uint8
        The letter C for complex types, else T, as a character code.
    """

    table: np.ndarray
    scalars: np.ndarray
    reals: np.ndarray
    adjoint: np.uint8


_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def routines(dtype: np.dtype) -> Routines:
    """Return the BLAS and LAPACK routines for a scalar type.

    Parameters
    ----------
    dtype : numpy.dtype
        float32, float64, complex64 or complex128.
    """
    letter = _LETTER[dtype.char]
    hermitian = "herk" if letter in "cz" else "syrk"
    table = [
        get_cython_function_address(f"scipy.linalg.cython_{library}", letter + name)
        for library, name in [
            ("blas", "gemm"),
            ("blas", hermitian),
            ("blas", "trsm"),
            ("lapack", "potrf"),
            ("blas", "gemv"),
            ("blas", "trsv"),
            ("lapack", "getrf"),
            ("lapack", "laswp"),
        ]
    ]
    real = np.real(np.zeros(1, dtype)).dtype
    return Routines(
        np.array([*table, yield_address()], np.int64),
        np.array([1, -1, 0], dtype),
        np.array([1, -1, 0, np.finfo(real).eps], real),
        np.uint8(ord("C" if letter in "cz" else "T")),
    )


@inner
def address(array):
    """Return the address of an array's first entry, as a signed integer."""
    return np.int64(array.ctypes.data)


@inner
def yield_thread(routines):
    """Let another thread run on this core."""
    call(routines.table[8], ())


@inner
def gemm(routines, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """Compute C = alpha op(A) op(B) + beta C; alpha and beta are positions in `scalars`."""
    scalars = address(routines.scalars)
    size = routines.scalars.itemsize
    call(
        routines.table[0],
        (
            np.uint8(transa),
            np.uint8(transb),
            np.int32(m),
            np.int32(n),
            np.int32(k),
            scalars + alpha * size,
            a,
            np.int32(lda),
            b,
            np.int32(ldb),
            scalars + beta * size,
            c,
            np.int32(ldc),
        ),
    )


@inner
def herk(routines, n, k, a, lda, beta, c, ldc):
    """Compute the lower triangle of C = beta C - A A^H."""
    reals = address(routines.reals)
    size = routines.reals.itemsize
    call(
        routines.table[1],
        (
            np.uint8(LOWER),
            np.uint8(NO_TRANS),
            np.int32(n),
            np.int32(k),
            reals + MINUS * size,
            a,
            np.int32(lda),
            reals + beta * size,
            c,
            np.int32(ldc),
        ),
    )


@inner
def trsm(routines, side, uplo, trans, diag, m, n, a, lda, b, ldb):
    """Compute B = op(A)^-1 B or B op(A)^-1 with a triangular A; B is m by n."""
    call(
        routines.table[2],
        (
            np.uint8(side),
            np.uint8(uplo),
            np.uint8(trans),
            np.uint8(diag),
            np.int32(m),
            np.int32(n),
            address(routines.scalars),
            a,
            np.int32(lda),
            b,
            np.int32(ldb),
        ),
    )


@inner
def potrf(routines, n, a, lda, info):
    """Compute the lower Cholesky factor in place; `info` is a (1,) int32 array, as LAPACK's."""
    call(
        routines.table[3],
        (np.uint8(LOWER), np.int32(n), a, np.int32(lda), address(info)),
    )


@inner
def gemv(routines, trans, m, n, alpha, a, lda, x, beta, y):
    """Compute y = alpha op(A) x + beta y for contiguous vectors; A is m by n."""
    scalars = address(routines.scalars)
    size = routines.scalars.itemsize
    increment = np.int32(1)
    call(
        routines.table[4],
        (
            np.uint8(trans),
            np.int32(m),
            np.int32(n),
            scalars + alpha * size,
            a,
            np.int32(lda),
            x,
            increment,
            scalars + beta * size,
            y,
            increment,
        ),
    )


@inner
def trsv(routines, uplo, trans, diag, n, a, lda, x):
    """Compute x = op(A)^-1 x for a triangular A and a contiguous vector."""
    call(
        routines.table[5],
        (
            np.uint8(uplo),
            np.uint8(trans),
            np.uint8(diag),
            np.int32(n),
            a,
            np.int32(lda),
            x,
            np.int32(1),
        ),
    )


@inner
def getrf(routines, m, n, a, lda, pivots, info):
    """Compute LU with partial pivoting in place; pivots count from 1, `info` as LAPACK's."""
    call(
        routines.table[6],
        (np.int32(m), np.int32(n), a, np.int32(lda), address(pivots), address(info)),
    )


@inner
def laswp(routines, n, a, lda, count, pivots):
    """Apply the row interchanges of getrf to n columns."""
    increment = np.int32(1)
    call(
        routines.table[7],
        (np.int32(n), a, np.int32(lda), increment, np.int32(count), address(pivots), increment),
    )
