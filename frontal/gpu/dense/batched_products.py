"""Products of batches of matrices: gemm, herk, gemv with the arguments of scipy.linalg.blas."""

from __future__ import annotations

from ..._typing import Untyped
from ..runtime.device import Device
from . import blas3
from . import gemv as vector
from .arguments import Argument, M, argument, is_real, product_operand, require_sizes, transposition
from .call_cache import cached_call
from .lists import Arrays, transposed
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
    """Compute C = alpha op(A) op(B) + beta C.

    Parameters
    ----------
    alpha, beta : scalar
    a, b : 2-D array, 3-D array, or list of 2-D arrays
        Both of one kind.
    c : as ``a``, optional
        Multiplied by ``beta``; zero if omitted.
    trans_a, trans_b : {0, 1, 2, "N", "T", "C"}
        op is the identity, the transpose, or the conjugate transpose.
    overwrite_c : bool
        Permit the result in the memory of ``c``, which is used if columns are contiguous.

    Returns
    -------
    c : as ``a``
        With contiguous rows if op(A) and op(B) have them and ``c`` is omitted.

    Raises
    ------
    ValueError
        If sizes do not fit, or if ``c`` is to be overwritten and shares memory with ``a`` or ``b``.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> batched.gemm(1.0, cp.array([[1.0, 2.0]]), cp.array([[3.0], [4.0]]))
    array([[11.]])
    """
    options = alpha, beta, (trans_a, trans_b)
    (out,) = cached_call(_gemm, ("a", "b", "c"), (a, b, c), options, overwrite_c)
    return out


def _gemm(
    device: Device,
    a: Arrays,
    b: Arrays,
    c: Arrays | None,
    alpha: complex,
    beta: complex,
    trans: tuple[int | str, int | str],
    overwrite: bool,
) -> tuple[Arrays]:
    left, ta = product_operand("a", a, device, transposition(trans[0]))
    right, tb = product_operand("b", b, device, transposition(trans[1]), left)
    m, k = _sizes(left, ta)
    inner, n = _sizes(right, tb)
    require_sizes("b", inner, k, "rows in op(b)", "columns of op(a)")
    inputs = {"a": left, "b": right}
    if c is None and ta == tb == "T":  # stored by rows: Cᵀ = BᵀAᵀ is by columns, faster
        out, _ = _result("c", None, (n, m), beta, overwrite, inputs)
        blas3.gemm("N", "N", alpha, right.batch, left.batch, 0.0, out.batch, stacked=True)
        return (transposed(out.arrays),)
    out, scale = _result("c", c, (m, n), beta, overwrite, inputs)
    blas3.gemm(ta, tb, alpha, left.batch, right.batch, scale, out.batch, stacked=True)
    return (out.result(),)


def herk(
    alpha: float,
    a: M,
    beta: float = 0.0,
    c: M | None = None,
    trans: int | str = 0,
    lower: bool = False,
    overwrite_c: bool = False,
) -> M:
    """Compute one triangle of C = alpha A A^H + beta C; syrk for real types.

    Parameters
    ----------
    alpha, beta : float
    a : (n, k) array, (count, n, k) array, or list of arrays
    c : (n, n) array, (count, n, n) array, or list of arrays, optional
        Multiplied by ``beta``; zero if omitted.
    trans : {0, 1, 2, "N", "T", "C"}
        Unless 0 or "N", compute A^H A instead of A A^H; 1 and "T" raise for complex types.
    lower : bool
        Triangle to compute; the other triangle is unchanged, or zero without ``c``.
    overwrite_c : bool
        Permit the result in the memory of ``c``, which is used if columns are contiguous.

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
    options = alpha, beta, trans, bool(lower)
    (out,) = cached_call(_herk, ("a", "c"), (a, c), options, overwrite_c)
    return out


def _herk(
    device: Device,
    a: Arrays,
    c: Arrays | None,
    alpha: float,
    beta: float,
    trans: int | str,
    lower: bool,
    overwrite: bool,
) -> tuple[Arrays]:
    op = transposition(trans)
    if is_real(a):
        left, op = product_operand("a", a, device, op)
    elif op == "T":
        raise ValueError("trans must be 0 or 2 for complex types: herk multiplies by A^H")
    else:
        left = argument("a", a, device)
    n, _ = _sizes(left, op)
    out, scale = _result("c", c, (n, n), beta, overwrite, {"a": left}, zero=True)
    real = "N" if op == "N" else "C"
    blas3.herk("L" if lower else "U", real, alpha, left.batch, scale, out.batch)
    return (out.result(),)


def gemv(
    alpha: complex,
    a: M,
    x: M,
    beta: complex = 0.0,
    y: M | None = None,
    trans: int | str = 0,
    overwrite_y: bool = False,
) -> M:
    """Compute y = alpha op(A) x + beta y.

    Parameters
    ----------
    alpha, beta : scalar
    a : (m, n) array, (count, m, n) array, or list of arrays
    x : (n,) array, (count, n) array, or list of (n_i,) arrays
        Of m entries if op transposes.
    y : (m,) array, (count, m) array, or list of arrays, optional
        Multiplied by ``beta``; zero if omitted.
    trans : {0, 1, 2, "N", "T", "C"}
        op is the identity, the transpose, or the conjugate transpose.
    overwrite_y : bool
        Permit the result in the memory of ``y``, which is used if entries are contiguous.

    Returns
    -------
    y : as ``x``

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> a = [cp.array([[1.0, 2.0]]), cp.array([[3.0]])]
    >>> list(batched.gemv(1.0, a, [cp.array([1.0, 1.0]), cp.array([2.0])]))
    [array([3.]), array([6.])]
    """
    (out,) = cached_call(_gemv, ("a", "x", "y"), (a, x, y), (alpha, beta, trans), overwrite_y)
    return out


def _gemv(
    device: Device,
    a: Arrays,
    x: Arrays,
    y: Arrays | None,
    alpha: complex,
    beta: complex,
    trans: int | str,
    overwrite: bool,
) -> tuple[Arrays]:
    matrix, op = product_operand("a", a, device, transposition(trans))
    right = argument("x", x, device, like=matrix, vectors=True)
    m, n = _sizes(matrix, op)
    require_sizes("x", right.batch.m, n, "entries", "columns of op(a)")
    inputs = {"a": matrix, "x": right}
    out, scale = _result("y", y, (m, 1), beta, overwrite, inputs, vectors=True)
    vector.gemv(op, alpha, matrix.batch, right.batch, scale, out.batch)
    return (out.result(),)


def _sizes(operand: Argument, trans: str) -> tuple[Untyped, Untyped]:
    """Return rows and columns of op(A): integers, or for a list arrays of one number a matrix."""
    m, n = operand.sizes
    return (m, n) if trans == "N" else (n, m)


def _result(
    name: str,
    c: Arrays | None,
    sizes: tuple[Untyped, Untyped],
    beta: complex,
    overwrite: bool,
    inputs: dict[str, Argument],
    *,
    zero: bool = False,
    vectors: bool = False,
) -> tuple[Argument, complex]:
    """Return the output and its factor beta.

    The output is the user's arrays, a copy of them, or new memory, cleared by ``zero``.
    """
    (m, n), like = sizes, inputs["a"]
    if c is None:
        if beta:
            raise ValueError(f"beta = {beta} multiplies {name}, which is not given")
        return like.new(m, n, zero=zero, vectors=vectors), 0.0
    device = like.batch.device
    out = argument(name, c, device, like=like, write=True, overwrite=overwrite, vectors=vectors)
    require_sizes(name, out.batch.m, m, "rows", "rows of the product")
    require_sizes(name, out.batch.n, n, "columns", "columns of the product")
    if overwrite:
        refuse_alias(name, out.batch, {k: x.batch for k, x in inputs.items()})
    return out, beta
