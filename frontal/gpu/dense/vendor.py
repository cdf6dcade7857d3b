"""cuBLAS and cuSOLVER, for sizes at which they measure faster than this package's kernels.

These are one large matrix, and products of a stack of large ones. Each function runs a call and
returns True, or returns False: for matrices of different sizes, a size below ``min_order``, or a
type that CuPy does not bind.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .launch.products import GemmTuning, Tile
from .operands import TRANS, UPLO, MatrixBatch, Submatrix, op_sizes

_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}


class Product(NamedTuple):
    """C = alpha op(A) op(B) + beta C, for each matrix of a batch."""

    trans: tuple[str, str]
    alpha: complex
    a: Submatrix
    b: Submatrix
    beta: complex
    c: Submatrix

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Sizes m, n and k of the first matrix; zeros for an empty batch."""
        if not self.c.batch.count:
            return 0, 0, 0
        return int(self.c.rows[0]), int(self.c.cols[0]), int(op_sizes(self.a, self.trans[0])[1][0])

    @property
    def letter(self) -> str:
        """The letter of the scalar type in BLAS names."""
        return _LETTER[self.c.batch.dtype.char]

    def scalars(self) -> tuple[np.ndarray, int, int]:
        """Return alpha and beta in host memory, and their addresses."""
        scalars = np.array([self.alpha, self.beta], self.c.batch.dtype)
        return scalars, scalars.ctypes.data, scalars[1:].ctypes.data


class Vendor:
    """CUDA's libraries as CuPy binds them, on the current stream."""

    def __init__(self) -> None:
        from cupy.cuda import device
        from cupy_backends.cuda.libs import cublas, cusolver

        self._cublas, self._cusolver, self._handles = cublas, cusolver, device

    def gemm(self, product: Product, min_order: int) -> bool:
        """Compute one product if m·n·k is at least ``min_order`` cubed."""
        if not _is_large(product, min_order):
            return False
        _scalars, alpha, beta = product.scalars()
        a, b, c = (_place(x) for x in (product.a, product.b, product.c))
        ops = (TRANS[x] for x in product.trans)
        handle, run = self._handles.get_cublas_handle(), f"{product.letter}gemm"
        getattr(self._cublas, run)(handle, *ops, *product.sizes, alpha, *a, *b, beta, *c)
        return True

    def gemm_of_stacks(self, product: Product, numbers: GemmTuning, tile: Tile) -> bool:
        """Compute the products of stacks of one size; one A or B may serve all of C.

        m·n·k must be at least ``numbers.stacks`` cubed. Its sum over the stack, with m and n padded
        to tiles as in this package's kernels, must be at least ``numbers.together``; complex
        products count four times.
        """
        operands, batch = (product.a, product.b, product.c), product.c.batch
        count, (m, n, depth) = batch.count, product.sizes
        stacks = all(x.batch.wrapper == "batched" and not x.batch.locator["p"] for x in operands)
        if not (stacks and m * n * depth >= numbers.stacks**3):
            return False
        sides = tile.rows, tile.cols
        padded = [-(-size // side) * side for size, side in zip((m, n), sides, strict=True)]
        together = count * prod(padded) * depth * (4 if batch.dtype.kind == "c" else 1)
        if together < numbers.together:
            return False
        run = getattr(self._cublas, f"{product.letter}gemmStridedBatched")
        scalars, alpha, beta = product.scalars()
        (at_a, *layout_a), (at_b, *layout_b), (at_c, *layout_c) = map(_places, operands)
        head = *(TRANS[x] for x in product.trans), m, n, depth, alpha
        tail = *layout_b, beta
        handle_of = self._handles.get_cublas_handle

        def enqueue(a: int, b: int, c: int, _keep: np.ndarray = scalars) -> None:
            run(handle_of(), *head, a, *layout_a, b, *tail, c, *layout_c, count)

        batch.device.call(enqueue, (at_a, at_b, at_c))
        return True

    def syrk(self, uplo: str, product: Product, min_order: int) -> bool:
        """Compute a triangle of C for op(B) = op(A)ᵀ, if n·n·k ≥ ``min_order``³."""
        if not _is_large(product, min_order):
            return False
        _scalars, alpha, beta = product.scalars()
        _, n, depth = product.sizes
        about = UPLO[uplo], min(TRANS[product.trans[0]], 1), n, depth
        a, c = _place(product.a), _place(product.c)
        handle, run = self._handles.get_cublas_handle(), f"{product.letter}syrk"
        getattr(self._cublas, run)(handle, *about, alpha, *a, beta, *c)
        return True

    def getrf(self, a: MatrixBatch, pivots: MatrixBatch, info: Array, min_order: int) -> bool:
        """Factor P·A = L·U in place if m and n are at least ``min_order``; info as in cuSOLVER."""
        if a.wrapper != "native" or min(a.max_m, a.max_n) < min_order:
            return False
        letter, handle = _LETTER[a.dtype.char], self._handles.get_cusolver_handle()
        matrix = tuple(int(a.locator[name]) for name in ("m", "n", "a", "ld"))
        entries = getattr(self._cusolver, f"{letter}getrf_bufferSize")(handle, *matrix)
        work = a.device.xp.empty(entries, a.dtype)
        results = int(pivots.locator["a"]), a.device.pointer(info)
        getattr(self._cusolver, f"{letter}getrf")(handle, *matrix, work.data.ptr, *results)
        return True


def vendor_of(device: Device) -> Vendor | None:
    """Return the libraries for arrays of a device; None if the device is emulated."""
    return _vendor() if device.cuda else None


@cache
def _vendor() -> Vendor:
    return Vendor()


def _is_large(product: Product, min_order: int) -> bool:
    work, single = prod(product.sizes), product.c.batch.wrapper == "native"
    return single and product.sizes[2] > 0 and work >= min_order**3


def _place(operand: Submatrix) -> tuple[int, int]:
    """Return address and leading dimension of a window of a single matrix."""
    batch, ld = operand.batch, int(operand.batch.ld[0])
    return int(batch.locator["a"]) + (operand.i + operand.j * ld) * batch.dtype.itemsize, ld


def _places(operand: Submatrix) -> tuple[int, int, int]:
    """Return `_place` of the first matrix of a stack, and the stride to the next one."""
    return (*_place(operand), int(operand.batch.locator["stride"]))
