"""Operands of drivers: batches of column-major matrices on a device, their windows and subsets.

Kernels take a batch by one of three wrappers: native (a single matrix), batched (matrices of one
size) or vbatched (of different sizes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..runtime.array import NULL, Array, Value
from ..runtime.device import Device
from . import launch
from .structs import BATCHED, NATIVE, VBATCHED, WINDOW
from .worklists import uploaded

ALL_ROWS = 1 << 30  # rows or columns of a window: no bound
TRANS = {"N": 0, "T": 1, "C": 2}  # as in kernels and in cuBLAS
UPLO = {"L": 0, "U": 1}


Matrices = Array | Sequence[Array]  # one (2-D), a stack (3-D), or a list of many sizes


@dataclass(frozen=True)
class MatrixBatch:
    """Addresses and sizes of a batch, on the host and as the locator struct of the kernels."""

    device: Device
    dtype: np.dtype
    wrapper: str  # suffix of entry points that take `locator`: "native", "batched" or "vbatched"
    locator: np.ndarray  # the struct Native, Batched or Vbatched of common/structs.cuh
    m: np.ndarray  # rows of each matrix, int32, on the host
    n: np.ndarray  # columns
    ld: np.ndarray  # leading dimensions
    keep: tuple[Array, ...] = ()  # device arrays that the locator points into
    places: np.ndarray | None = None  # addresses of a user's list, on the host

    @property
    def count(self) -> int:
        """Number of matrices."""
        return len(self.m)

    @property
    def max_m(self) -> int:
        """Rows of the tallest matrix; 0 for an empty batch."""
        return int(self.m.max(initial=0))

    @property
    def max_n(self) -> int:
        """Columns of the widest matrix; 0 for an empty batch."""
        return int(self.n.max(initial=0))

    @classmethod
    def from_array(cls, device: Device, arrays: Array) -> MatrixBatch:
        """Describe one 2-D array or one 3-D array, with contiguous columns."""
        *counts, m, n = arrays.shape
        address, ld = device.pointer(arrays), leading_dimension(arrays)
        if counts:
            stride, wrapper = arrays.strides[0] // arrays.itemsize, "batched"
            locator = np.array((address, 0, stride, m, n, ld), dtype=BATCHED.dtype)
        else:
            counts, wrapper = [1], "native"
            locator = np.array((address, m, n, ld), dtype=NATIVE.dtype)
        sizes = (np.full(counts, size, np.int32) for size in (m, n, ld))
        return cls(device, arrays.dtype, wrapper, locator, *sizes, keep=(arrays,))

    @classmethod
    def of_pointers(
        cls, device: Device, dtype: npt.DTypeLike, pointers: Array, m: int, n: int, ld: int
    ) -> MatrixBatch:
        """Describe matrices of one size by a device array of their addresses (uint64)."""
        locator = np.array((0, device.pointer(pointers), 0, m, n, ld), dtype=BATCHED.dtype)
        sizes = (np.full(len(pointers), size, np.int32) for size in (m, n, ld))
        return cls(device, np.dtype(dtype), "batched", locator, *sizes, keep=(pointers,))

    @classmethod
    def of_sizes(
        cls,
        device: Device,
        dtype: npt.DTypeLike,
        pointers: np.ndarray,
        m: np.ndarray,
        n: np.ndarray,
        ld: np.ndarray,
    ) -> MatrixBatch:
        """Describe matrices of different sizes by host arrays of addresses and sizes."""
        addresses = device.upload(np.asarray(pointers, np.uint64))
        return cls.at(device, dtype, addresses, (m, n, ld))

    @classmethod
    def at(
        cls,
        device: Device,
        dtype: npt.DTypeLike,
        addresses: Array,
        sizes: tuple[np.ndarray, np.ndarray, np.ndarray],
        keep: tuple = (),
        places: np.ndarray | None = None,
    ) -> MatrixBatch:
        """Describe matrices by a device array of addresses, and m, n, ld on the host."""
        numbers = np.array(sizes, np.int32)  # uploaded once for each content
        table = device.stays(uploaded(device, numbers))
        start, step = device.pointer(table), numbers[0].nbytes
        fields = device.pointer(addresses), start, start + step, start + 2 * step
        locator, keep = np.array(fields, dtype=VBATCHED.dtype), (addresses, table, *keep)
        return cls(device, np.dtype(dtype), "vbatched", locator, *numbers, keep=keep, places=places)

    def run(
        self,
        entry: str,
        grid: Sequence[int],
        threads: Sequence[int],
        arguments: Sequence[Value],
        shared: int = 0,
        file: str = "",
        /,
        **constants: int,
    ) -> None:
        """Launch the variant of an entry for this batch; default: of the file named after it."""
        name = f"{entry}_{self.wrapper}"
        kernel = self.device.kernel(file or f"{entry}.cu", name, self.dtype, **constants)
        kernel(grid, threads, arguments, shared)


def placed(device: Device, flat: Array, offsets: np.ndarray) -> Array:
    """Return the addresses of offsets in bytes in memory: uint64, on the device."""
    to = device.xp.empty(len(offsets), np.uint64)
    return _by_entries(device, "list_places", flat, offsets.astype(np.int64), to)


def upload_table(device: Device, values: Array, members: np.ndarray, to: Array) -> None:
    """Assign to[members] = values on the device, both int32."""
    _by_entries(device, "list_put", values, members.astype(np.int32), to)


def _by_entries(device: Device, entry: str, source: Array, numbers: np.ndarray, to: Array) -> Array:
    """Launch an entry of lists.cu; return its output."""
    count = len(numbers)
    if count:
        indices = uploaded(device, numbers)
        kernel = device.kernel("lists.cu", entry, np.float64)
        grid, threads = launch.copies.entries(count)
        kernel((grid,), (threads,), (source, indices, to, np.int32(count)))
    return to


def leading_dimension(array: Array) -> int:
    """Return the leading dimension of the last two axes, which must be column-major.

    Raises
    ------
    ValueError
        If the columns are not contiguous, or overlap.
    """
    m, n = array.shape[-2:]
    if array.size == 0:  # strides are meaningless
        return max(m, 1)
    row, column = (stride // array.itemsize for stride in array.strides[-2:])
    if m > 1 and row != 1:
        raise ValueError("a matrix of a batch must have contiguous columns (order='F')")
    if n <= 1:
        return max(column, m, 1) if m <= 1 or column >= m else max(m, 1)
    if column < m:
        raise ValueError(f"columns overlap: {column} elements apart, {m} rows")
    return max(column, 1)


@dataclass(frozen=True)
class Submatrix:
    """Rows from i and columns from j of each matrix of a batch, at most m×n of them."""

    batch: MatrixBatch
    i: int = 0
    j: int = 0
    m: int = ALL_ROWS
    n: int = ALL_ROWS

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the window, by matrix."""
        return np.minimum(np.maximum(self.batch.m - self.i, 0), self.m)

    @cached_property
    def cols(self) -> np.ndarray:
        """Columns of the window, by matrix."""
        return np.minimum(np.maximum(self.batch.n - self.j, 0), self.n)

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray]:
        """The batch's locator and the struct ``Window``, as kernels take an operand."""
        return self.batch.locator, self.window

    @property
    def window(self) -> np.ndarray:
        """The struct ``Window`` of common/structs.cuh."""
        return np.array((self.i, self.j, self.m, self.n), dtype=WINDOW.dtype)

    def at(self, i: int, j: int, m: int = ALL_ROWS, n: int = ALL_ROWS) -> Submatrix:
        """Return the window from (i, j) of this window on."""
        return Submatrix(self.batch, self.i + i, self.j + j, min(m, self.m - i), min(n, self.n - j))


Operand = MatrixBatch | Submatrix


class SourceBatch(NamedTuple):
    """Matrices that are only read; ``turned``: the operands are their transposes."""

    batch: MatrixBatch
    turned: bool = False


def read_and_written(
    a: MatrixBatch, source: SourceBatch | None
) -> tuple[tuple[np.ndarray, np.ndarray], dict[str, int]]:
    """Return the locators of input and output, and INTO of common/matrix.cuh."""
    if source is None:
        return (a.locator, a.locator), {}
    return (source.batch.locator, a.locator), {"INTO": 1 + source.turned}


def op_sizes(operand: Submatrix, trans: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of op(A)."""
    return (operand.rows, operand.cols) if trans == "N" else (operand.cols, operand.rows)


def trans_code(trans: str, dtype: np.dtype) -> int:
    """Return the enumerator of Trans; for real types "C" is "T", so that kernels are shared."""
    return TRANS[trans] if dtype.kind == "c" else min(TRANS[trans], 1)


def without_depth(operand: Submatrix, trans: str, axis: int) -> Submatrix:
    """Trim op(A) to no columns (axis 1) or no rows (axis 0)."""
    return replace(operand, n=0) if (axis == 1) == (trans == "N") else replace(operand, m=0)


def require(names: str, *pairs: tuple[np.ndarray, np.ndarray]) -> None:
    for sizes, expected in pairs:
        if not np.array_equal(sizes, expected):
            wrong = np.flatnonzero(sizes != expected)
            k = int(wrong[0])
            raise ValueError(
                f"sizes of {names} differ: {sizes[k]} and {expected[k]} in matrix {k} "
                f"({len(wrong)} of {len(sizes)} matrices)"
            )


def operands(*batches: Operand) -> list[Submatrix]:
    """Return all operands as windows of batches of one wrapper and one count."""
    submatrices = [x if isinstance(x, Submatrix) else Submatrix(x) for x in batches]
    kinds = {part.batch.wrapper for part in submatrices}
    count = max(part.batch.count for part in submatrices)
    if len(kinds) == 1 and all(part.batch.count == count for part in submatrices):
        return submatrices
    wrapper = "vbatched" if "vbatched" in kinds else "batched"
    return [replace(part, batch=_converted(part.batch, wrapper, count)) for part in submatrices]


def _converted(batch: MatrixBatch, wrapper: str, count: int) -> MatrixBatch:
    """Describe a batch by a more general wrapper; a single matrix is repeated ``count`` times."""
    if batch.wrapper == wrapper and batch.count == count:
        return batch
    if batch.count not in (1, count):
        raise ValueError(f"batches of {batch.count} and {count} matrices cannot be combined")
    old, sizes = batch.locator, [np.resize(x, count) for x in (batch.m, batch.n, batch.ld)]
    names = old.dtype.names or ()
    stride = int(old["stride"]) if "stride" in names and batch.count == count else 0
    if batch.wrapper == "vbatched" or ("p" in names and old["p"]):
        raise ValueError(
            "a batch of pointers on the device and another kind of batch cannot be combined"
        )
    if wrapper == "vbatched":
        first, step = int(old["a"]), stride * batch.dtype.itemsize
        pointers = first + step * np.arange(count, dtype=np.uint64)
        converted = MatrixBatch.of_sizes(batch.device, batch.dtype, pointers, *sizes)
    else:
        locator = np.array((old["a"], 0, stride, *(x[0] for x in sizes)), dtype=BATCHED.dtype)
        m, n, ld = sizes
        converted = MatrixBatch(batch.device, batch.dtype, "batched", locator, m, n, ld)
    return replace(converted, keep=(*converted.keep, *batch.keep))


# --- subsets of a batch --------------------------------------------------------------------------


def subset(a: MatrixBatch, members: np.ndarray) -> MatrixBatch:
    """Return some matrices of a batch of different sizes, in the order of ``members``."""
    device = a.device
    to = device.xp.empty(len(members), np.uint64)
    addresses = _by_entries(device, "list_take", a.keep[0], members.astype(np.int32), to)
    sizes = a.m[members], a.n[members], a.ld[members]
    return MatrixBatch.at(device, a.dtype, addresses, sizes, a.keep)


def order_list(a: MatrixBatch, members: np.ndarray) -> Value:
    """Return the matrices of the blocks, on the device; null for the order of the batch."""
    if a.wrapper != "vbatched":
        return NULL
    return uploaded(a.device, members.astype(np.int32))
