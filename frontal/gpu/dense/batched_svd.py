"""QR and singular value decompositions of batches of matrices, with SciPy's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.device import Device
from .arguments import argument
from .call_cache import cached_call
from .decompose import bidiagonal, decompose
from .geqrf import copy_upper, geqrf, rescale
from .lists import Arrays, transposed
from .operands import Matrices
from .outcome import outcome


def qr(a: Matrices, mode: str = "full", overwrite_a: bool = False) -> Any:
    """Compute the QR factorizations A = Q R by Householder reflectors.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    mode : {"full", "economic", "r"}
        Q is square, has min(m, n) columns, or is not computed.
    overwrite_a : bool
        Permit work in the memory of ``a``, which destroys its contents.

    Returns
    -------
    q : (m, m), or (m, k) with k = min(m, n), as ``a``
        Omitted with ``mode="r"``.
    r : (m, n), or (k, n) with ``mode="economic"``, as ``a``
        Upper triangular.

    Raises
    ------
    ValueError
        For an unknown mode.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> q, r = batched.qr(cp.array([[3.0, 1.0], [4.0, 2.0]]))
    >>> abs(r).round(3)
    array([[5. , 2.2],
           [0. , 0.4]])
    """
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"mode must be 'full', 'economic' or 'r', not {mode!r}")
    factors = cached_call(_qr, ("a",), (a,), (mode,), overwrite_a)
    return factors[0] if mode == "r" else factors


def _qr(device: Device, a: Arrays, mode: str, overwrite: int) -> tuple[Arrays, ...]:
    operand = argument("a", a, device, write=True, overwrite=bool(overwrite))
    batch = operand.batch
    exponents, _ = rescale(batch)
    reflectors = geqrf(batch)
    m, n = operand.sizes
    rows = np.minimum(m, n) if mode == "economic" else m
    r = operand.new(rows, n)
    copy_upper(batch, r.batch, exponents)
    if mode == "r":
        return (r.arrays,)
    q = operand.new(m, rows)
    reflectors.form(q.batch)
    return q.arrays, r.arrays


def bidiagonalize(a: Matrices, check: bool = True) -> Any:
    """Compute the bidiagonalizations A = Q B P^H by Householder reflectors.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    check : bool
        Wait, and raise if a matrix has NaN or infinity.

    Returns
    -------
    d : (k,) array, (count, k) array, or list of arrays, of the real type
        Diagonal of B, which has k = min(m, n) rows and columns.
    e : (k - 1,), as ``d``
        Superdiagonal of B if m >= n, else its subdiagonal.
    q : (m, k), as ``a``
        In any memory order, as is ``ph``.
    ph : (k, n), as ``a``
        P^H.
    info : (count,) int32 array
        With ``check=False`` only: see `svd`.

    Raises
    ------
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> a = cp.array([[0.0, 3.0], [4.0, 0.0], [0.0, 0.0]])
    >>> d, e, q, ph = batched.bidiagonalize(a)
    >>> (q @ (cp.diag(d) + cp.diag(e, 1)) @ ph).round(10)
    array([[0., 3.],
           [4., 0.],
           [0., 0.]])
    """
    *result, info = cached_call(bidiagonal, ("a",), (a,), ())
    return outcome("bidiagonalize", tuple(result), info, check)


def svd(
    a: Matrices, full_matrices: bool = True, compute_uv: bool = True, check: bool = True
) -> Any:
    """Compute the singular value decompositions A = U diag(s) V^H.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    full_matrices : bool
        Compute square U and V; otherwise they have k = min(m, n) columns.
    compute_uv : bool
        Compute U and V^H besides the singular values.
    check : bool
        Wait, and raise if a matrix has NaN or infinity.

    Returns
    -------
    u : (m, m) or (m, k), as ``a``
        Only with ``compute_uv``. In any memory order, as is ``vh``.
    s : (k,) array, (count, k) array, or list of arrays, of the real type
        Singular values, in descending order.
    vh : (n, n) or (k, n), as ``a``
        Only with ``compute_uv``.
    info : (count,) int32 array
        With ``check=False`` only: 0; the first column, counted from 1, with an entry that is not
        finite (all results are NaN); min(m, n) + 1 if an iteration has not converged. Rows
        are counted instead if m < n, or if m = n and rows are contiguous.

    Raises
    ------
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> u, s, vh = batched.svd(cp.array([[0.0, 2.0], [1.0, 0.0]]))
    >>> s
    array([2., 1.])
    >>> abs(u * s @ vh)
    array([[0., 2.],
           [1., 0.]])
    """
    if not compute_uv:
        return svdvals(a, check)
    *result, info = cached_call(_svd, ("a",), (a,), (bool(full_matrices),))
    return outcome("svd", tuple(result), info, check)


def _svd(device: Device, a: Arrays, full: bool, overwrite: int) -> tuple:
    decomposition = decompose(device, a, full, True)
    assert decomposition.sides is not None
    left, right = decomposition.sides.left.arrays, decomposition.sides.right.arrays
    return left, decomposition.s.result(), transposed(right), decomposition.info


def svdvals(a: Matrices, check: bool = True) -> Any:
    """Compute the singular values, in descending order.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    check : bool
        Wait, and raise if a matrix has NaN or infinity.

    Returns
    -------
    s : (k,) array, (count, k) array, or list of arrays, of the real type
        With k = min(m, n).
    info : (count,) int32 array
        With ``check=False`` only: see `svd`.

    Raises
    ------
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> list(batched.svdvals([cp.array([[0.0, 2.0], [1.0, 0.0]]), cp.array([[3.0], [4.0]])]))
    [array([2., 1.]), array([5.])]
    """
    s, info = cached_call(_svdvals, ("a",), (a,), ())
    return outcome("svd", s, info, check)


def _svdvals(device: Device, a: Arrays, overwrite: int) -> tuple:
    decomposition = decompose(device, a, False, False)
    return decomposition.s.result(), decomposition.info
