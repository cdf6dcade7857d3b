"""Singular values and vectors of batches of matrices, by Jacobi or by bidiagonalization.

A = U·diag(s)·Vᵀ with at least as many rows as columns, where V is the conjugate of the usual V: so
the SVD of Aᵀ has U and V exchanged. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..runtime.array import NULL, Array, Value
from ..runtime.limits import Limits
from . import launch
from .gebrd import Bidiagonal, gebrd
from .geqrf import copy_upper, geqrf, rescale, set_identity
from .operands import MatrixBatch
from .worklists import uploaded
from .workspace import workspace


@dataclass(frozen=True)
class Svd:
    """Outputs of a batch of m×n matrices, m ≥ n."""

    s: MatrixBatch  # n×1: singular values, real, in descending order
    u: MatrixBatch | None = None  # m×n or m×m; None without vectors
    v: MatrixBatch | None = None  # n×n; None without vectors


JACOBI, QR_JACOBI, BIDIAGONAL, QR_BIDIAGONAL = range(4)


def paths(m: np.ndarray, n: np.ndarray, dtype: npt.DTypeLike, limits: Limits) -> np.ndarray:
    """Return the algorithm for each matrix; all matrices of a call of `gesvd` must use one.

    Only `JACOBI` does not modify the matrix.
    """
    max_order = launch.svd.max_jacobi_order(dtype, limits)
    bidiagonal_path = np.where(m >= launch.svd.MIN_QR_ASPECT * n, QR_BIDIAGONAL, BIDIAGONAL)
    return np.where(n > max_order, bidiagonal_path, np.where(m > max_order, QR_JACOBI, JACOBI))


def gesvd(a: MatrixBatch, out: Svd, path: int) -> Array:
    """Compute the SVD of matrices by one algorithm; all but `JACOBI` destroy the matrices.

    Returns
    -------
    info : (count,) int32 device array
        0; the first column, counted from 1, with an entry that is not finite (all results are NaN);
        or the number of columns plus 1, if an iteration has not converged.
    """
    if path == JACOBI:
        info = a.device.xp.zeros(a.count, np.int32)
        _jacobi(a, out, info)
        return info
    exponents, info = rescale(a)
    q = geqrf(a) if path in (QR_JACOBI, QR_BIDIAGONAL) else None
    if path == QR_JACOBI:
        if out.u is not None:
            set_identity(out.u)
        _jacobi(a, out, info, exponents)
    else:
        if q is not None:
            r = workspace(a, a.n, a.n)
            copy_upper(a, r, NULL)
            a = r
        _bidiagonal(a, out, exponents, info)
    if q is not None and out.u is not None:
        q.apply(out.u)
    return info


def _bidiagonal(a: MatrixBatch, out: Svd, exponents: Array, info: Array) -> None:
    """Compute the SVD of scaled matrices by way of B; further rows of u are of the identity."""
    reduced = gebrd(a, factors=out.u is not None)
    bdsqr(reduced, out, exponents, info)
    if out.u is not None and out.v is not None:
        reduced.q.apply(out.u)
        reduced.p.apply(out.v)


def bdsqr(bidiagonal: Bidiagonal, out: Svd, exponents: Array, info: Array) -> None:
    """Compute the SVD of bidiagonal matrices, reduced from scaled matrices.

    Parameters
    ----------
    out : Svd
        u may have more rows and columns than B, which are set to those of the identity.
    info : (count,) int32 device array
        If it is 0, set to the number of columns plus 1 if the iteration does not converge.
    """
    d, vectors = bidiagonal.d, out.u is not None
    if not d.count or not d.max_n:
        return
    real, n = d.dtype, d.n.astype(np.int64)
    threads, shared, level = launch.svd.bdsqr(d.max_n, real, vectors, d.device.limits)
    work = workspace(d, launch.svd.BDSQR_REALS_PER_ROW * n, 1) if level == 0 else d
    sides = [workspace(d, n, n) if vectors and level < 2 else d for _ in "uv"]
    left, right = (d, d) if out.u is None or out.v is None else (out.u, out.v)
    operands = (d, bidiagonal.e, out.s, work, *sides, left, right)
    flags = np.int32(vectors), np.int32(level)
    arguments = (*(x.locator for x in operands), *flags, exponents, info)
    bidiagonal.q.v.run("bdsqr", (d.count,), (threads,), arguments, shared)


def _jacobi(a: MatrixBatch, out: Svd, info: Array, exponents: Value = NULL) -> None:
    """Run Jacobi on matrices, or with `exponents` on the triangles R of scaled matrices."""
    upper, vectors = exponents is not NULL, out.u is not None
    rows = np.maximum(a.n if upper else a.m, 1)
    left, right = (out.s, out.s) if out.u is None or out.v is None else (out.u, out.v)
    for low, order in zip((0, *launch.svd.JACOBI_ORDERS), launch.svd.JACOBI_ORDERS, strict=False):
        members = np.flatnonzero((rows > low) & (rows <= order))
        if not len(members):
            continue
        lanes, threads, shared = launch.svd.jacobi(order, a.dtype, vectors)
        chosen: Value = NULL
        if len(members) < a.count:
            chosen = uploaded(a.device, members.astype(np.int32))
        flags = np.int32(upper), np.int32(vectors)
        arguments = (a.locator, out.s.locator, left.locator, right.locator, *flags, chosen)
        arguments = (*arguments, exponents, info)
        grid, constants = (len(members),), {"ORDER": order, "GROUP": lanes}
        a.run("jacobi", grid, (threads,), arguments, shared, **constants)
