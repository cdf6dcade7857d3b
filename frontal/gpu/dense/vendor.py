"""cuBLAS and cuSOLVER, for sizes at which they measure faster than this package's kernels.

These are one large matrix, and products of a stack of large ones. Each function runs a call and
returns True, or returns False: for matrices of different sizes, a size below ``min_order``, or a
type that CuPy does not bind.
"""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .operands import MatrixBatch, Submatrix, op_sizes

_OPERATION = {"N": 0, "T": 1, "C": 2}  # cublasOperation_t
_FILL = {"L": 0, "U": 1}  # cublasFillMode_t
_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}


class Vendor:
    """CUDA's libraries as CuPy binds them, on the current stream."""

    def __init__(self) -> None:
        from cupy.cuda import device
        from cupy_backends.cuda.libs import cublas, cusolver

        self._cublas, self._cusolver, self._handles = cublas, cusolver, device

    def gemm(
        self,
        trans: tuple[str, str],
        alpha: complex,
        a: Submatrix,
        b: Submatrix,
        beta: complex,
        c: Submatrix,
        min_order: int,
    ) -> bool:
        """Compute C = alpha op(A) op(B) + beta C, if m·n·k is at least ``min_order`` cubed."""
        depth = int(op_sizes(a, trans[0])[1][0]) if c.batch.count else 0
        if not _is_large(c, depth, min_order):
            return False
        name, handle = f"{_LETTER[c.batch.dtype.char]}gemm", self._handles.get_cublas_handle()
        scalars = np.array([alpha, beta], c.batch.dtype)
        getattr(self._cublas, name)(
            handle,
            *(_OPERATION[x] for x in trans),
            int(c.rows[0]),
            int(c.cols[0]),
            depth,
            scalars[:1].ctypes.data,
            *_place(a),
            *_place(b),
            scalars[1:].ctypes.data,
            *_place(c),
        )
        return True

    def gemm_of_stacks(
        self,
        trans: tuple[str, str],
        alpha: complex,
        a: Submatrix,
        b: Submatrix,
        beta: complex,
        c: Submatrix,
        *,
        min_order: int,
        together: int,
        tile: tuple[int, int],
    ) -> bool:
        """Compute `gemm` for each matrix of stacks of one size; one A or B may serve all of C.

        The sum of m·n·k over the stack, with m and n padded to tiles as in this package's kernels,
        must be at least `together`; complex products count four times.
        """
        count = c.batch.count
        stacks = all(x.batch.wrapper == "batched" and not x.batch.locator["p"] for x in (a, b, c))
        depth = int(op_sizes(a, trans[0])[1][0]) if count else 0
        if not (stacks and _work(c, depth) >= min_order**3):
            return False
        m, n = int(c.rows[0]), int(c.cols[0])
        padded = [-(-size // side) * side for size, side in zip((m, n), tile, strict=True)]
        if count * prod(padded) * depth * (4 if c.batch.dtype.kind == "c" else 1) < together:
            return False
        letter = _LETTER[c.batch.dtype.char]
        product, handles = getattr(self._cublas, f"{letter}gemmStridedBatched"), self._handles
        scalars = np.array([alpha, beta], c.batch.dtype)
        (at_a, *layout_a), (at_b, *layout_b), (at_c, *layout_c) = map(_places, (a, b, c))
        alpha_address, beta_address = (x.ctypes.data for x in (scalars, scalars[1:]))
        op_a, op_b = (_OPERATION[x] for x in trans)

        def enqueue(a: int, b: int, c: int, _keep: np.ndarray = scalars) -> None:
            handle = handles.get_cublas_handle()
            product(
                handle,
                op_a,
                op_b,
                m,
                n,
                depth,
                alpha_address,
                a,
                *layout_a,
                b,
                *layout_b,
                beta_address,
                c,
                *layout_c,
                count,
            )

        c.batch.device.call(enqueue, (at_a, at_b, at_c))
        return True

    def syrk(
        self,
        uplo: str,
        trans: str,
        alpha: complex,
        a: Submatrix,
        beta: complex,
        c: Submatrix,
        min_order: int,
    ) -> bool:
        """Compute C = alpha A Aᵀ + beta C or alpha Aᵀ A + beta C, if n·n·k ≥ ``min_order``³."""
        depth = int(op_sizes(a, trans)[1][0]) if c.batch.count else 0
        if not _is_large(c, depth, min_order):
            return False
        name, handle = f"{_LETTER[c.batch.dtype.char]}syrk", self._handles.get_cublas_handle()
        scalars = np.array([alpha, beta], c.batch.dtype)
        getattr(self._cublas, name)(
            handle,
            _FILL[uplo],
            min(_OPERATION[trans], 1),
            int(c.rows[0]),
            depth,
            scalars[:1].ctypes.data,
            *_place(a),
            scalars[1:].ctypes.data,
            *_place(c),
        )
        return True

    def getrf(self, a: MatrixBatch, pivots: MatrixBatch, info: Array, min_order: int) -> bool:
        """Factor P·A = L·U in place if m and n are at least ``min_order``; info as in cuSOLVER."""
        if a.wrapper != "native" or min(a.max_m, a.max_n) < min_order:
            return False
        letter, handle = _LETTER[a.dtype.char], self._handles.get_cusolver_handle()
        m, n, ld = int(a.m[0]), int(a.n[0]), int(a.ld[0])
        address = int(a.locator["a"])
        size = getattr(self._cusolver, f"{letter}getrf_bufferSize")(handle, m, n, address, ld)
        work = a.device.xp.empty(size, a.dtype)
        getattr(self._cusolver, f"{letter}getrf")(
            handle,
            m,
            n,
            address,
            ld,
            work.data.ptr,
            int(pivots.locator["a"]),
            a.device.pointer(info),
        )
        return True


def vendor_of(device: Device) -> Vendor | None:
    """Return the libraries for arrays of a device; None if the device is emulated."""
    return _vendor() if device.cuda else None


@cache
def _vendor() -> Vendor:
    return Vendor()


def _is_large(c: Submatrix, depth: int, min_order: int) -> bool:
    return c.batch.wrapper == "native" and depth > 0 and _work(c, depth) >= min_order**3


def _work(c: Submatrix, depth: int) -> int:
    """Return m·n·k of the product for the first C."""
    return int(c.rows[0]) * int(c.cols[0]) * depth if c.batch.count else 0


def _place(operand: Submatrix) -> tuple[int, int]:
    """Return address and leading dimension of a window of a single matrix."""
    batch, ld = operand.batch, int(operand.batch.ld[0])
    return int(batch.locator["a"]) + (operand.i + operand.j * ld) * batch.dtype.itemsize, ld


def _places(operand: Submatrix) -> tuple[int, int, int]:
    """Return `_place` of the first matrix of a stack, and the stride to the next one."""
    return (*_place(operand), int(operand.batch.locator["stride"]))
