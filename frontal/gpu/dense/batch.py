"""A batch of column-major matrices on a device, as kernels take it: native, batched, vbatched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_NATIVE = np.dtype([("a", "u8"), ("m", "i4"), ("n", "i4"), ("ld", "i4")], align=True)
_BATCHED = np.dtype(
    [("a", "u8"), ("p", "u8"), ("stride", "i8"), ("m", "i4"), ("n", "i4"), ("ld", "i4")], align=True
)
_VBATCHED = np.dtype([("p", "u8"), ("m", "u8"), ("n", "u8"), ("ld", "u8")], align=True)


@dataclass(frozen=True)
class Batch:
    """Where the matrices of a batch lie, on the host and as the locator struct of the kernels.

    Attributes
    ----------
    wrapper : {"native", "batched", "vbatched"}
        The suffix of the entry points that take ``locator``.
    locator : numpy.ndarray, 0-d, structured
        The struct ``Native``, ``Batched`` or ``Vbatched`` of ``common/matrix.cuh``.
    m, n, ld : int32 arrays (count,), on the host
        Rows, columns and leading dimension of each matrix.
    """

    device: Any
    dtype: np.dtype
    wrapper: str
    locator: np.ndarray
    m: np.ndarray
    n: np.ndarray
    ld: np.ndarray
    keep: tuple[Any, ...] = ()  # device arrays that the locator points into

    @property
    def count(self) -> int:
        """Number of matrices."""
        return len(self.m)

    @property
    def max_m(self) -> int:
        """Rows of the tallest matrix; 0 for no matrices."""
        return int(self.m.max(initial=0))

    @property
    def max_n(self) -> int:
        """Columns of the widest matrix; 0 for no matrices."""
        return int(self.n.max(initial=0))

    @classmethod
    def of(cls, device: Any, arrays: Any) -> Batch:
        """Describe one 2-D array, one 3-D array, or a list of 2-D arrays; columns contiguous."""
        if isinstance(arrays, (list, tuple)):
            return cls._of_list(device, arrays)
        if arrays.ndim == 2:
            (m, n), ld = arrays.shape, leading_dimension(arrays)
            locator = np.array((device.pointer(arrays), m, n, ld), dtype=_NATIVE)
            return cls._same(device, arrays, "native", locator, 1, (m, n, ld))
        count, m, n = arrays.shape
        ld, stride = leading_dimension(arrays), arrays.strides[0] // arrays.itemsize
        locator = np.array((device.pointer(arrays), 0, stride, m, n, ld), dtype=_BATCHED)
        return cls._same(device, arrays, "batched", locator, count, (m, n, ld))

    @classmethod
    def of_pointers(cls, device: Any, dtype: Any, pointers: Any, m: int, n: int, ld: int) -> Batch:
        """Describe matrices of one size by a device array of their addresses (uint64)."""
        locator = np.array((0, device.pointer(pointers), 0, m, n, ld), dtype=_BATCHED)
        sizes = (np.full(len(pointers), size, np.int32) for size in (m, n, ld))
        return cls(device, np.dtype(dtype), "batched", locator, *sizes, keep=(pointers,))

    @classmethod
    def of_sizes(
        cls,
        device: Any,
        dtype: Any,
        pointers: Any,
        m: np.ndarray,
        n: np.ndarray,
        ld: np.ndarray,
    ) -> Batch:
        """Describe matrices of different sizes by host arrays of addresses and sizes."""
        sizes = [np.asarray(size, np.int32) for size in (m, n, ld)]
        table = device.upload(np.concatenate(sizes))
        addresses = device.upload(np.asarray(pointers, np.uint64))
        step = table.itemsize * len(sizes[0])
        start = device.pointer(table)
        locator = np.array(
            (device.pointer(addresses), start, start + step, start + 2 * step), dtype=_VBATCHED
        )
        return cls(device, np.dtype(dtype), "vbatched", locator, *sizes, keep=(addresses, table))

    @classmethod
    def _of_list(cls, device: Any, arrays: Sequence[Any]) -> Batch:
        pointers = np.array([device.pointer(a) for a in arrays], np.uint64)
        m, n = (np.array([a.shape[axis] for a in arrays], np.int32) for axis in (0, 1))
        ld = np.array([leading_dimension(a) for a in arrays], np.int32)
        dtype = arrays[0].dtype if len(arrays) else np.dtype(np.float64)
        batch = cls.of_sizes(device, dtype, pointers, m, n, ld)
        object.__setattr__(batch, "keep", (*batch.keep, *arrays))
        return batch

    @classmethod
    def _same(
        cls, device: Any, array: Any, wrapper: str, locator: np.ndarray, count: int, size: tuple
    ) -> Batch:
        sizes = (np.full(count, value, np.int32) for value in size)
        return cls(device, array.dtype, wrapper, locator, *sizes, keep=(array,))


def leading_dimension(array: Any) -> int:
    """Return the leading dimension of the last two axes, which must be column-major.

    Raises
    ------
    ValueError
        If the columns are not contiguous, or overlap.
    """
    m, n = array.shape[-2:]
    if array.size == 0:  # whose strides mean nothing
        return max(m, 1)
    row, column = (stride // array.itemsize for stride in array.strides[-2:])
    if m > 1 and row != 1:
        raise ValueError("a matrix of a batch must have contiguous columns (order='F')")
    if n <= 1:
        return max(column, m, 1) if m <= 1 or column >= m else max(m, 1)
    if column < m:
        raise ValueError(f"columns overlap: {column} elements apart, {m} rows")
    return max(column, 1)
