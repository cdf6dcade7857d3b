"""Dense linear algebra on batches of matrices on the GPU, with SciPy's names and arguments.

Every routine takes one matrix (2-D), a stack of one size (3-D) or a list of matrices of different
sizes, as CuPy arrays of float32, float64, complex64 or complex128 in any memory order, and returns
the same kind, with contiguous columns unless stated otherwise. For a list it returns a `Batch`: a
sequence that makes its arrays on demand and is itself a valid argument. Subnormal float32 numbers
are flushed to zero, except by QR and SVD.

The first two calls with stacks of one shape, memory order and type, or with lists of such shapes,
take longer than later calls, which replay recorded launches; lists to be overwritten are never
replayed. A `Batch` in place of a list saves the inspection of each array.

Work is queued on CuPy's current stream. Only ``check=True`` waits for it and raises
`frontal.errors.BatchError`, which holds the results of the other matrices, if matrices have no
factor or inverse. ``check=False`` returns LAPACK's ``info`` as a device array instead, one number
a matrix: 0, or the first column without a pivot, counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from . import blas3
from . import getrf as lu
from . import potrf as chol
from .arguments import (
    Argument,
    M,
    argument,
    product_operand,
    require_sizes,
    require_square,
    result_for,
    source,
    transposition,
)
from .batched_products import gemm, gemv, herk
from .call_cache import cached_call
from .lists import Arrays
from .operands import Matrices, MatrixBatch, SourceBatch
from .outcome import outcome
from .overlap import refuse_alias
from .pivots import new_pivots, pivots_of

__all__ = [
    "cho_solve",
    "cholesky",
    "gemm",
    "gemv",
    "herk",
    "inv",
    "lu_factor",
    "lu_solve",
    "solve_triangular",
]


def cholesky(
    a: Matrices, lower: bool = False, overwrite_a: bool = False, check: bool = True
) -> Any:
    """Compute the Cholesky factorizations A = L L^H or A = U^H U.

    Parameters
    ----------
    a : (n, n) array, (count, n, n) array, or list of (n_i, n_i) arrays
        Hermitian positive definite; only the triangle selected by ``lower`` is read.
    lower : bool
        Whether to compute L; the default is U, as in SciPy.
    overwrite_a : bool
        Permit the factor in the memory of ``a``, which is used if columns are contiguous.
    check : bool
        Wait, and raise if a matrix is not positive definite.

    Returns
    -------
    c : as ``a``
        The factors; the other triangle is zero.
    info : (count,) int32 array
        With ``check=False`` only: see the module docstring.

    Raises
    ------
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> a = cp.array([[[4.0, 2.0], [2.0, 5.0]], [[9.0, 3.0], [3.0, 2.0]]])
    >>> batched.cholesky(a, lower=True)
    array([[[2., 0.],
            [1., 2.]],
    <BLANKLINE>
           [[3., 0.],
            [1., 1.]]])
    """
    c, info = cached_call(run_cholesky, ("a",), (a,), (lower,), overwrite_a)
    return outcome("cholesky", c, info, check)


def run_cholesky(device: Device, a: Arrays, lower: bool, overwrite: bool) -> tuple[Arrays, Array]:
    """Queue `cholesky` on a device; return the factors and info."""
    operand, turned = source("a", a, device)
    require_square("a", operand)
    out = result_for("a", a, operand, turned, overwrite)
    info = device.xp.empty(out.batch.count, np.int32)
    input_batch = SourceBatch(operand.batch, turned)
    chol.potrf(out.batch, info, "L" if lower else "U", source=input_batch)
    return out.result(), info


def cho_solve(c_and_lower: tuple[M, bool], b: M, overwrite_b: bool = False) -> M:
    """Solve A x = b with the factors that `cholesky` returned.

    Parameters
    ----------
    c_and_lower : (factors, bool)
        Result of `cholesky`, and its argument ``lower``.
    b : as the factors, (n, k) or (n,) each
        Right-hand sides.
    overwrite_b : bool
        Permit the solution in the memory of ``b``, which is used if columns are contiguous.

    Returns
    -------
    x : as ``b``

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> c = batched.cholesky(cp.array([[4.0, 2.0], [2.0, 5.0]]))
    >>> batched.cho_solve((c, False), cp.array([8.0, 12.0]))
    array([1., 2.])
    """
    c, lower = c_and_lower
    (x,) = cached_call(run_cho_solve, ("c", "b"), (c, b), (lower,), overwrite_b)
    return x


def run_cho_solve(
    device: Device, c: Arrays, b: Arrays, lower: bool, overwrite: bool
) -> tuple[Arrays]:
    """Queue `cho_solve` on a device."""
    factor, right = _solve_inputs(device, c, b, overwrite, "c")
    chol.potrs(factor.batch, right.batch, uplo="L" if lower else "U")
    return (right.result(),)


def lu_factor(a: Matrices, overwrite_a: bool = False, check: bool = True) -> Any:
    """Compute the LU factorizations P A = L U with partial pivoting.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    overwrite_a : bool
        Permit the factors in the memory of ``a``, which is used if columns are contiguous.
    check : bool
        Wait, and raise if a matrix has a pivot that is zero or NaN.

    Returns
    -------
    lu : as ``a``
        U, with L below its diagonal; the unit diagonal of L is not stored.
    piv : (min(m, n),) int32 array, (count, min(m, n)) array, or list of arrays
        Row i was interchanged with row piv[i]; counted from 0, as in SciPy.
    info : (count,) int32 array
        With ``check=False`` only: see the module docstring.

    Raises
    ------
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> lu, piv = batched.lu_factor([cp.array([[1.0, 2.0], [2.0, 6.0]]), cp.array([[3.0]])])
    >>> lu[0]
    array([[ 2. ,  6. ],
           [ 0.5, -1. ]])
    >>> list(piv)
    [array([1, 1], dtype=int32), array([0], dtype=int32)]
    """
    factors, piv, info = cached_call(run_lu_factor, ("a",), (a,), (), overwrite_a)
    return outcome("lu_factor", (factors, piv), info, check)


def run_lu_factor(device: Device, a: Arrays, overwrite: bool) -> tuple[Arrays, Arrays, Array]:
    """Queue `lu_factor` on a device; return the factors, their pivots, and info."""
    operand, input_batch = _lu_input(device, a, overwrite, lu.reads_elsewhere)
    info = device.xp.empty(operand.batch.count, np.int32)
    pivots = new_pivots(operand)
    lu.getrf(operand.batch, pivots.batch, info, source=input_batch, first=0)
    return operand.result(), pivots.result(), info


def lu_solve(lu_and_piv: tuple[M, M], b: M, trans: int | str = 0, overwrite_b: bool = False) -> M:
    """Solve op(A) x = b with the factors that `lu_factor` returned.

    Parameters
    ----------
    lu_and_piv : (factors, pivots)
        Result of `lu_factor`.
    b : as the factors, (n, k) or (n,) each
        Right-hand sides.
    trans : {0, 1, 2, "N", "T", "C"}
        Solve with A, A^T or A^H.
    overwrite_b : bool
        Permit the solution in the memory of ``b``, which is used if columns are contiguous.

    Returns
    -------
    x : as ``b``

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> a = [cp.array([[1.0, 2.0], [2.0, 6.0]]), cp.array([[4.0]])]
    >>> list(batched.lu_solve(batched.lu_factor(a), [cp.array([3.0, 8.0]), cp.array([2.0])]))
    [array([1., 1.]), array([0.5])]
    """
    factors, piv = lu_and_piv
    (x,) = cached_call(run_lu_solve, ("lu", "piv", "b"), (factors, piv, b), (trans,), overwrite_b)
    return x


def run_lu_solve(
    device: Device, factors: Arrays, piv: Arrays, b: Arrays, trans: int | str, overwrite: bool
) -> tuple[Arrays]:
    """Queue `lu_solve` on a device."""
    factor, right = _solve_inputs(device, factors, b, overwrite, "lu")
    lu.getrs(factor.batch, pivots_of(factor, piv), right.batch, transposition(trans), first=0)
    return (right.result(),)


def inv(a: Matrices, overwrite_a: bool = False, check: bool = True) -> Any:
    """Compute inverses by LU with partial pivoting.

    Parameters
    ----------
    a : (n, n) array, (count, n, n) array, or list of (n_i, n_i) arrays
    overwrite_a : bool
        Permit the inverse in the memory of ``a``, which is used if columns are contiguous.
    check : bool
        Wait, and raise if a matrix has no inverse.

    Returns
    -------
    ainv : as ``a``
    info : (count,) int32 array
        With ``check=False`` only: see the module docstring.

    Raises
    ------
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> batched.inv(cp.array([[2.0, 1.0], [1.0, 1.0]]))
    array([[ 1., -1.],
           [-1.,  2.]])
    """
    inverses, info = cached_call(_inv, ("a",), (a,), (), overwrite_a)
    return outcome("inv", inverses, info, check)


def _inv(device: Device, a: Arrays, overwrite: bool) -> tuple[Arrays, Array]:
    operand, input_batch = _lu_input(device, a, overwrite, lu.inverts_elsewhere)
    require_square("a", operand)
    info = device.xp.empty(operand.batch.count, np.int32)
    lu.inverse(operand.batch, info, source=input_batch)
    return operand.result(), info


def solve_triangular(
    a: M,
    b: M,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
) -> M:
    """Solve op(A) x = b with triangular matrices.

    Diagonals are not checked for zeros, which give infinity or NaN.

    Parameters
    ----------
    a : (n, n) array, (count, n, n) array, or list of (n_i, n_i) arrays
        Only the triangle selected by ``lower`` is read.
    b : as ``a``, (n, k) or (n,) each
        Right-hand sides.
    trans : {0, 1, 2, "N", "T", "C"}
        Solve with A, A^T or A^H.
    lower : bool
        Which triangle of ``a`` to use; the default is the upper one, as in SciPy.
    unit_diagonal : bool
        Diagonals are ones and are not read.
    overwrite_b : bool
        Permit the solution in the memory of ``b``, which is used if columns are contiguous.

    Returns
    -------
    x : as ``b``

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> a, b = cp.array([[2.0, 0.0], [1.0, 1.0]]), cp.array([2.0, 3.0])
    >>> batched.solve_triangular(a, b, lower=True)
    array([1., 2.])
    """
    options = trans, bool(lower), bool(unit_diagonal)
    (x,) = cached_call(_solve_triangular, ("a", "b"), (a, b), options, overwrite_b)
    return x


def _solve_triangular(
    device: Device, a: Arrays, b: Arrays, trans: int | str, lower: bool, unit: bool, overwrite: bool
) -> tuple[Arrays]:
    letter = transposition(trans)
    triangle, op = product_operand("a", a, device, letter)
    input_batch = None
    if overwrite or not blas3.is_tiny(triangle.batch):
        right = _right_hand_sides(triangle, b, overwrite, "a")
    else:
        require_square("a", triangle)
        rhs, turned = source("b", b, device, triangle, vectors=None)
        right = result_for("b", b, rhs, turned, False)
        require_sizes("b", right.batch.m, triangle.batch.n, "rows", "columns of a")
        input_batch = SourceBatch(rhs.batch, turned)
    uplo = "L" if lower == (op == letter) else "U"  # of the transpose if op changed
    diag = "U" if unit else "N"
    blas3.trsm("L", uplo, op, diag, 1.0, triangle.batch, right.batch, source=input_batch)
    return (right.result(),)


# --- inputs and outputs ------------------------------------------------------------------------


def _lu_input(
    device: Device, a: Arrays, overwrite: bool, elsewhere: Callable[[MatrixBatch], bool]
) -> tuple[Argument, SourceBatch | None]:
    """Return the output and its input, which is None if both are the same matrices."""
    operand, turned = source("a", a, device)
    if not elsewhere(operand.batch):
        return argument("a", a, device, write=True, overwrite=overwrite), None
    out = result_for("a", a, operand, turned, overwrite)
    return out, None if out is operand else SourceBatch(operand.batch, turned)


def _solve_inputs(
    device: Device, a: Arrays, b: Arrays, overwrite: bool, name: str
) -> tuple[Argument, Argument]:
    """Return the factors and the right-hand sides, which are overwritten by the solutions."""
    factor = argument(name, a, device)
    return factor, _right_hand_sides(factor, b, overwrite, name)


def _right_hand_sides(factor: Argument, b: Arrays, overwrite: bool, name: str) -> Argument:
    """Return right-hand sides for square factors, which messages call ``name``."""
    device = factor.batch.device
    require_square(name, factor)
    right = argument("b", b, device, like=factor, write=True, overwrite=overwrite, vectors=None)
    require_sizes("b", right.batch.m, factor.batch.n, "rows", f"columns of {name}")
    if overwrite:
        refuse_alias("b", right.batch, {name: factor.batch})
    return right
