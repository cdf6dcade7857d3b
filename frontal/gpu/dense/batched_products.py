"""Products of many matrices at once: gemm, herk, gemv with the arguments of scipy.linalg.blas."""

from __future__ import annotations

import numpy as np

from ..runtime.device import Device
from . import blas3
from . import gemv as vector
from .again import again
from .arguments import (
    Argument,
    M,
    argument,
    device_for,
    factor_of_product,
    is_real,
    listed,
    require_sizes,
    transposition,
)
from .copies import empty
from .lists import Batch as Listed
from .lists import Form
from .operands import Matrices
from .overlap import refuse_alias


def gemm(
    alpha: complex,
    a: M,
    b: M,
    beta: complex = 0.0,
    c: M | None = None,
    trans_a: int | str = 0,
    trans_b: int | str = 0,
    overwrite_c: bool = False,
) -> M:
    """Products C = alpha op(A) op(B) + beta C.

    Parameters
    ----------
    alpha, beta : scalar
    a, b : 2-D array, 3-D array, or list of 2-D arrays
        Both of one kind.
    c : as ``a``, optional
        What ``beta`` multiplies; without it, zero.
    trans_a, trans_b : {0, 1, 2, "N", "T", "C"}
        Whether op is nothing, the transpose, or the conjugate transpose.
    overwrite_c : bool
        Permit the result in the memory of ``c``, taken where columns are contiguous.

    Returns
    -------
    c : as ``a``

    Raises
    ------
    ValueError
        Where sizes do not fit, or ``c`` is to be overwritten and shares memory with ``a`` or
        ``b``.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> batched.gemm(1.0, cp.array([[1.0, 2.0]]), cp.array([[3.0], [4.0]]))
    array([[11.]])
    """
    if c is None:
        (out,) = again(_product, "a", (a, b), (alpha, beta, trans_a, trans_b))
        return out
    return run_gemm(device_for(a), a, b, c, (alpha, beta, trans_a, trans_b), overwrite_c)


def _product(
    device: Device,
    a: M,
    b: M,
    alpha: complex,
    beta: complex,
    trans_a: int | str,
    trans_b: int | str,
    overwrite: bool,
) -> tuple[M]:
    """Compute a product that is added to nothing, as `again` calls it."""
    return (run_gemm(device, a, b, None, (alpha, beta, trans_a, trans_b), overwrite),)


def run_gemm(
    device: Device,
    a: M,
    b: M,
    c: M | None,
    options: tuple[complex, complex, int | str, int | str],
    overwrite: bool,
) -> M:
    """Queue `gemm` on a device; ``options`` are ``alpha``, ``beta``, ``trans_a``, ``trans_b``."""
    alpha, beta, trans_a, trans_b = options
    left, ta = factor_of_product("a", a, device, transposition(trans_a))
    right, tb = factor_of_product("b", b, device, transposition(trans_b), left)
    m, k = _sizes(left, ta)
    inner, n = _sizes(right, tb)
    require_sizes("b", inner, k, "rows in op(b)", "columns of op(a)")
    out = _result(c, left, m, n, beta, overwrite)
    if c is not None:
        refuse_alias("c", out.batch, {"a": left.batch, "b": right.batch})
    scale = beta if c is not None else 0.0
    blas3.gemm(ta, tb, alpha, left.batch, right.batch, scale, out.batch, stacked=True)
    return out.result()


def herk(
    alpha: float,
    a: M,
    beta: float = 0.0,
    c: M | None = None,
    trans: int | str = 0,
    lower: bool = False,
    overwrite_c: bool = False,
) -> M:
    """Hermitian products C = alpha A A^H + beta C, one triangle; syrk for real types.

    Parameters
    ----------
    alpha, beta : float
    a : (n, k) array, (count, n, k) array, or list of arrays
    c : (n, n) array, (count, n, n) array, or list of arrays, optional
        What ``beta`` multiplies; without it, zero.
    trans : {0, 1, 2, "N", "T", "C"}
        Compute A^H A instead of A A^H where it is not 0. For complex types 1 is refused.
    lower : bool
        Which triangle to compute; the other one is left as it is in ``c``, or zero without it.
    overwrite_c : bool
        Permit the result in the memory of ``c``, taken where columns are contiguous.

    Returns
    -------
    c : as ``a``, square

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> batched.herk(1.0, cp.array([[1.0], [2.0]]), lower=True)
    array([[1., 0.],
           [2., 4.]])
    """
    device = device_for(a)
    op = transposition(trans)
    if is_real(a):
        left, op = factor_of_product("a", a, device, op)
    elif op == "T":
        raise ValueError("trans must be 0 or 2 for complex types: herk multiplies by A^H")
    else:
        left = argument("a", a, device)
    n = _sizes(left, op)[0]
    out = _result(c, left, n, n, beta, overwrite_c, zero=True)
    if c is not None:
        refuse_alias("c", out.batch, {"a": left.batch})
    scale = beta if c is not None else 0.0
    real = "N" if op == "N" else "C"
    blas3.herk("L" if lower else "U", real, alpha, left.batch, scale, out.batch)
    return out.result()


def gemv(
    alpha: complex,
    a: M,
    x: M,
    beta: complex = 0.0,
    y: M | None = None,
    trans: int | str = 0,
    overwrite_y: bool = False,
) -> M:
    """Products y = alpha op(A) x + beta y.

    Parameters
    ----------
    alpha, beta : scalar
    a : (m, n) array, (count, m, n) array, or list of arrays
    x : (n,) array, (count, n) array, or list of (n_i,) arrays
        (m,) where op transposes.
    y : (m,) array, (count, m) array, or list of arrays, optional
        What ``beta`` multiplies; without it, zero.
    trans : {0, 1, 2, "N", "T", "C"}
        Whether op is nothing, the transpose, or the conjugate transpose.
    overwrite_y : bool
        Permit the result in the memory of ``y``, taken where its entries are contiguous.

    Returns
    -------
    y : as ``x``

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> a = [cp.array([[1.0, 2.0]]), cp.array([[3.0]])]
    >>> batched.gemv(1.0, a, [cp.array([1.0, 1.0]), cp.array([2.0])])
    [array([3.]), array([6.])]
    """
    device = device_for(a)
    matrix, op = factor_of_product("a", a, device, transposition(trans))
    right = argument("x", x, device, like=matrix, vectors=True)
    m, n = _sizes(matrix, op)
    require_sizes("x", right.batch.m, n, "entries", "columns of op(a)")
    out = _result(y, matrix, m, np.ones_like(m), beta, overwrite_y, vectors=True, name="y")
    if y is not None:
        refuse_alias("y", out.batch, {"a": matrix.batch, "x": right.batch})
    scale = beta if y is not None else 0.0
    vector.gemv(op, alpha, matrix.batch, right.batch, scale, out.batch)
    return out.result()


def _sizes(held: Argument, trans: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of op(A)."""
    batch = held.batch
    return (batch.m, batch.n) if trans == "N" else (batch.n, batch.m)


def _result(
    c: Matrices | None,
    like: Argument,
    m: np.ndarray,
    n: np.ndarray,
    beta: complex,
    overwrite: bool,
    *,
    zero: bool = False,
    vectors: bool = False,
    name: str = "c",
) -> Argument:
    """The output: the user's, a copy of it, or new memory, which ``zero`` clears."""
    device, batch = like.batch.device, like.batch
    if c is not None:
        out = argument(name, c, device, like=like, write=True, overwrite=overwrite, vectors=vectors)
        require_sizes(name, out.batch.m, m, "rows", "rows of the product")
        require_sizes(name, out.batch.n, n, "columns", "columns of the product")
        return out
    if beta:
        raise ValueError(f"beta = {beta} multiplies {name}, which is not given")
    if isinstance(like.arrays, Listed):
        return listed(Form.dense(batch.dtype, m, n, vectors), device, zero)
    sizes = (m, n) if like.kind == "list" else (int(m.max(initial=0)), int(n.max(initial=0)))
    made = empty(like.kind, *sizes, batch.count, batch.dtype, device, zero)
    if vectors:
        made = [x[:, 0] for x in made] if like.kind == "list" else made[..., 0]
    return argument(name, made, device, like=like, write=True, overwrite=True, vectors=vectors)
