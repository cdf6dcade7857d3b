"""Pseudo-inverses and least squares of many matrices at once, by their singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .again import again
from .arguments import Argument, argument, device_for, require_sizes
from .blas3 import gemm
from .copies import empty
from .decompose import Decomposition, decompose
from .geqrf import divide
from .operands import Batch, Matrices
from .outcome import outcome
from .workspace import indexed, real_type, workspace


def pinv(
    a: Matrices, rtol: float | None = None, return_rank: bool = False, check: bool = True
) -> Any:
    """Moore-Penrose pseudo-inverses.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    rtol : float, optional
        Singular values of at most ``rtol`` times the largest count as zero; max(m, n) times the
        precision of the type if not given.
    return_rank : bool
        Return how many do not.
    check : bool
        Wait, and raise for matrices with NaN or infinity.

    Returns
    -------
    b : (n, m), as ``a``
    rank : (count,) int32 array
        With ``return_rank=True`` only.
    info : (count,) int32 array
        With ``check=False`` only: see `svd`.

    Raises
    ------
    BatchError
        With ``check=True``, naming the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> batched.pinv(cp.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    out, rank, info = again(_pinv, "a", (a,), (rtol,), lists=False)
    return outcome("svd", device_for(a), (out, rank) if return_rank else out, info, check)


def _pinv(device: Device, a: Matrices, rtol: float | None, overwrite: int) -> tuple:
    found, left, right, rank = _divided(device, a, rtol)
    sizes = _sizes(found)
    out = empty(found.kind, sizes[1], sizes[0], left.count, left.dtype, found.device)
    gemm("N", "C", 1.0, right, left, 0.0, Batch.of(found.device, out))
    return out, rank, found.info


def lstsq(a: Matrices, b: Matrices, cond: float | None = None, check: bool = True) -> Any:
    """Least-squares solutions x of A x = b, those of least norm where there are several.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    b : as ``a``, (m, k) or (m,) each
        Right-hand sides.
    cond : float, optional
        Singular values of at most ``cond`` times the largest count as zero; max(m, n) times the
        precision of the type if not given.
    check : bool
        Wait, and raise for matrices with NaN or infinity.

    Returns
    -------
    x : as ``b``, (n, k) or (n,) each
    rank : (count,) int32 array
        How many singular values count.
    s : (min(m, n),) array, (count, min(m, n)) array, or list of arrays, of the real type
        Singular values.
    info : (count,) int32 array
        With ``check=False`` only: see `svd`.

    Raises
    ------
    ValueError
        Where sizes do not fit.
    BatchError
        With ``check=True``, naming the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> x, rank, s = batched.lstsq(cp.array([[3.0], [4.0]]), cp.array([3.0, 4.0]))
    >>> x
    array([1.])
    >>> s
    array([5.])
    """
    *result, info = again(_lstsq, "a", (a, b), (cond,), lists=False)
    return outcome("svd", device_for(a), tuple(result), info, check)


def _lstsq(device: Device, a: Matrices, b: Matrices, cond: float | None, overwrite: int) -> tuple:
    found, left, right, rank = _divided(device, a, cond)
    like = Argument(found.kind, found.u, left)
    given = argument("b", b, device, like=like, vectors=None)
    require_sizes("b", given.batch.m, left.m, "rows", "rows of a")
    listed = found.kind == "list"
    columns = given.batch.n.astype(np.int64) if listed else int(given.arrays.shape[-1])
    x = empty(found.kind, _sizes(found)[1], columns, left.count, left.dtype, device)
    along = workspace(left, left.n, given.batch.n)
    gemm("C", "N", 1.0, left, given.batch, 0.0, along)
    gemm("N", "N", 1.0, right, along, 0.0, Batch.of(device, x))
    solution = Argument(found.kind, x, given.batch, given.vectors).result()
    return solution, rank, found.s, found.info


def _divided(
    device: Device, a: Matrices, rtol: float | None
) -> tuple[Decomposition, Batch, Batch, Array]:
    """The SVD, U, V with its columns divided by the singular values that count, and how many do."""
    found = decompose(device, a, False, True)
    u, v = (Batch.of(found.device, x) for x in (found.u, found.v))
    s = indexed(found.s, (..., None))
    real = real_type(u.dtype)
    relative = np.maximum(found.m, found.n) * np.finfo(real).eps
    relative = (relative if rtol is None else np.full(u.count, rtol)).astype(real)
    return found, u, v, divide(v, Batch.of(found.device, s), relative)


def _sizes(found: Decomposition) -> tuple[np.ndarray | int, np.ndarray | int]:
    """Rows and columns of A, as `empty` takes them."""
    if found.kind == "list":
        return found.m, found.n
    return found.u.shape[-2], found.v.shape[-2]  # type: ignore[union-attr]
