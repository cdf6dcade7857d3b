"""Pseudo-inverses and least squares for batches of matrices, by the SVD."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .arguments import argument, require_sizes
from .blas3 import gemm
from .call_cache import cached_call
from .decompose import Decomposition, Sides, decompose
from .geqrf import divide
from .lists import Arrays
from .operands import Matrices
from .outcome import outcome
from .workspace import workspace


def pinv(
    a: Matrices, rtol: float | None = None, return_rank: bool = False, check: bool = True
) -> Any:
    """Compute Moore-Penrose pseudo-inverses.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    rtol : float, optional
        Singular values of at most ``rtol`` times the largest are treated as zero; default:
        max(m, n) times the eps of the type.
    return_rank : bool
        Also return the ranks: the numbers of the other singular values.
    check : bool
        Wait, and raise if a matrix has NaN or infinity.

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
        With ``check=True``, with the indices of the matrices that failed.

    Examples
    --------
    >>> import cupy as cp
    >>> from frontal.gpu import batched
    >>> batched.pinv(cp.array([[2.0, 0.0], [0.0, 0.0]]))
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    out, rank, info = cached_call(_pinv, ("a",), (a,), (rtol,))
    return outcome("svd", (out, rank) if return_rank else out, info, check)


def _pinv(device: Device, a: Arrays, rtol: float | None, overwrite: int) -> tuple:
    decomposition, sides, rank = _divided(device, a, rtol)
    left, right = sides.left, sides.right
    out = left.new(right.sizes[0], left.sizes[0])
    gemm("N", "C", 1.0, right.batch, left.batch, 0.0, out.batch)
    return out.arrays, rank, decomposition.info


def lstsq(a: Matrices, b: Matrices, cond: float | None = None, check: bool = True) -> Any:
    """Compute the least-squares solutions x of A x = b of minimum norm.

    Parameters
    ----------
    a : (m, n) array, (count, m, n) array, or list of (m_i, n_i) arrays
    b : as ``a``, (m, k) or (m,) each
        Right-hand sides.
    cond : float, optional
        Singular values of at most ``cond`` times the largest are treated as zero; default:
        max(m, n) times the eps of the type.
    check : bool
        Wait, and raise if a matrix has NaN or infinity.

    Returns
    -------
    x : as ``b``, (n, k) or (n,) each
    rank : (count,) int32 array
        Numbers of singular values above the threshold of ``cond``.
    s : (min(m, n),) array, (count, min(m, n)) array, or list of arrays, of the real type
        Singular values.
    info : (count,) int32 array
        With ``check=False`` only: see `svd`.

    Raises
    ------
    ValueError
        If sizes do not fit.
    BatchError
        With ``check=True``, with the indices of the matrices that failed.

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
    *result, info = cached_call(_lstsq, ("a", "b"), (a, b), (cond,))
    return outcome("svd", tuple(result), info, check)


def _lstsq(device: Device, a: Arrays, b: Arrays, cond: float | None, overwrite: int) -> tuple:
    decomposition, sides, rank = _divided(device, a, cond)
    left, right = sides.left, sides.right
    rhs = argument("b", b, device, like=left, vectors=None)
    require_sizes("b", rhs.batch.m, left.batch.m, "rows", "rows of a")
    x = left.new(right.sizes[0], rhs.sizes[1], vectors=rhs.vectors)
    along = workspace(left.batch, left.batch.n, rhs.batch.n)
    gemm("C", "N", 1.0, left.batch, rhs.batch, 0.0, along)
    gemm("N", "N", 1.0, right.batch, along, 0.0, x.batch)
    return x.result(), rank, decomposition.s.result(), decomposition.info


def _divided(device: Device, a: Arrays, rtol: float | None) -> tuple[Decomposition, Sides, Array]:
    """Return the SVD, its sides and the ranks.

    Columns of V are divided by their singular values, or zero if `rtol` treats these as zero.
    """
    decomposition = decompose(device, a, False, True)
    assert decomposition.sides is not None
    u, v, real = (
        decomposition.sides.left.batch,
        decomposition.sides.right.batch,
        decomposition.s.batch.dtype,
    )
    relative = np.maximum(u.m, v.m) * np.finfo(real).eps
    relative = (relative if rtol is None else np.full(u.count, rtol)).astype(real)
    return decomposition, decomposition.sides, divide(v, decomposition.s.batch, relative)
