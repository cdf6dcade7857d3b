"""Launches of QR, Jacobi and bidiagonalization, and their limits of size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...runtime.limits import Limits

PANEL = 32  # reflectors of a block I - V T V^H
QR_THREADS = 256  # threads of a block of qr.cu
JACOBI_ORDERS = (16, 32, 48, 64)
MIN_QR_ASPECT = 1.6  # least m/n at which a QR factorization comes first
_LABRD_WARPS, _LANE = 8, 256  # warps a block of labrd.cu; bytes of a column a lane
_RESERVED = 8 << 10  # bytes, bound of static shared memory


def jacobi(order: int, dtype: npt.DTypeLike, vectors: bool) -> tuple[int, int, int]:
    """Return lanes a pair, threads and bytes of shared memory of jacobi.cu."""
    lanes = 4 if order <= 16 else 8 if order <= 32 else 16
    entries = order * (order + lanes) * (2 if vectors else 1)
    return lanes, order // 2 * lanes, entries * np.dtype(dtype).itemsize


def max_jacobi_order(dtype: npt.DTypeLike, limits: Limits) -> int:
    """Return the largest order whose matrix and vectors fit in shared memory."""
    available = limits.shared_block - _RESERVED
    return max(order for order in JACOBI_ORDERS if jacobi(order, dtype, True)[2] <= available)


def staged(rows: int, columns: int, dtype: npt.DTypeLike, limits: Limits) -> int:
    """Return bytes of a matrix in shared memory; 0 if it does not fit."""
    size = rows * columns * np.dtype(dtype).itemsize
    return size if size <= limits.shared_block - _RESERVED else 0


def gebd2(
    m: np.ndarray, n: np.ndarray, dtype: npt.DTypeLike, limits: Limits
) -> tuple[int, int] | None:
    """Return threads and bytes of shared memory of gebd2 for m×n matrices; None if too large."""
    entries = int(((m.astype(np.int64) | 1) * n).max(initial=0))
    size = entries * np.dtype(dtype).itemsize
    if size > limits.shared_block - _RESERVED:
        return None
    return (512 if int(n.max(initial=0)) > 96 else 256), size


def labrd(count: int, limits: Limits) -> tuple[tuple[int, int], int]:
    """Return the block, lanes along rows × groups of columns, and bytes of shared memory of labrd.

    Blocks are small if each multiprocessor has at least two: some read while others wait.
    """
    groups = 4 if count >= 2 * limits.multiprocessors else 16
    return (32, groups), 16 * 32 * groups


def labrd_once(rows: int, dtype: npt.DTypeLike, limits: Limits) -> tuple[int, int, int] | None:
    """Return threads, bytes of shared memory and rows a lane of labrd.cu; None if too large."""
    size = np.dtype(dtype).itemsize
    for lane_rows in (8, 16, 32):
        shared = (_LABRD_WARPS + 1) * 32 * lane_rows * size
        fits = lane_rows * size <= _LANE and shared <= limits.shared_block - _RESERVED
        if 32 * lane_rows >= rows and fits:
            return 32 * _LABRD_WARPS, shared, lane_rows
    return None


BDSQR_REALS_PER_ROW = 2 + 8 * 4  # reals a row: d, e, rotations of two times four sweeps


def bdsqr(n: int, real: npt.DTypeLike, vectors: bool, limits: Limits) -> tuple[int, int, int]:
    """Return threads, bytes of shared memory and ``level`` of bdsqr.cu for at most n rows."""
    item, available = np.dtype(real).itemsize, limits.shared_block - _RESERVED
    passes = max(-(-2 * n // 480), 1)  # over the rows, by all warps except one
    threads = 32 + -(-2 * n // (32 * passes)) * 32 if vectors else 32
    small, all_bytes = BDSQR_REALS_PER_ROW * n * item, (BDSQR_REALS_PER_ROW + 2 * n) * n * item
    if (
        vectors and 3 * all_bytes <= limits.shared_multiprocessor
    ):  # with fewer than 3 blocks, too few sweeps are active
        return threads, all_bytes, 2
    return (threads, small, 1) if small <= available else (threads, 0, 0)
