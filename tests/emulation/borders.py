"""Batches of matrices inside borders of NaN, on any device, that a kernel must leave alone.

>>> # frame = Frame(device, matrices, "vbatched"); kernel(frame.batch); frame.matrices()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from frontal.gpu.dense.operands import MatrixBatch

SIZES = (0, 1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 65, 129)
DTYPES = ("f4", "f8", "c8", "c16")
WRAPPERS = ("native", "batched", "pointers", "vbatched")
_POISON = 0xFF  # bytes of a NaN


class Frame:
    """Matrices on a device, with NaN before, after and between their columns.

    Parameters
    ----------
    matrices : list of host arrays of one dtype
        Of one size, unless ``wrapper`` is "vbatched"; "native" takes a single one.
    wrapper : {"native", "batched", "pointers", "vbatched"}
        "pointers" is the batched wrapper by an array of addresses.
    extra : int
        By how much leading dimensions are larger than needed; "vbatched" adds the matrix's index
        modulo 3, so that they differ in alignment too.
    pad : int
        Elements of NaN between matrices; odd, so that matrices begin at all alignments.

    Attributes
    ----------
    batch : MatrixBatch
        What kernels take.
    arrays : list of device arrays, column-major views
    """

    def __init__(
        self,
        device: Any,
        matrices: Sequence[np.ndarray],
        wrapper: str = "vbatched",
        extra: int = 3,
        pad: int = 37,
    ) -> None:
        self.device = device
        self._matrices = [np.asarray(a) for a in matrices]
        dtype = self._matrices[0].dtype if len(matrices) else np.dtype(np.float64)
        shapes = [a.shape for a in self._matrices]
        ld = [max(m, 1) + extra for m, _ in shapes]
        if wrapper == "vbatched":
            ld = [ld[b] + b % 3 for b in range(len(ld))]
        elif len(set(shapes)) > 1 or (wrapper == "native" and len(shapes) != 1):
            raise ValueError(f"the {wrapper} wrapper does not take these sizes: {shapes}")
        sizes = [step * n + pad for step, (_, n) in zip(ld, shapes, strict=True)]
        self._starts = pad + np.cumsum([0, *sizes])[:-1]
        self._ld, self._shapes = ld, shapes
        host = np.full((pad + sum(sizes)) * dtype.itemsize, _POISON, np.uint8).view(dtype)
        self._outside = np.ones(len(host), bool)
        for a, view, inside in zip(
            self._matrices, self._views(host), self._views(self._outside), strict=True
        ):
            view[...], inside[...] = a, False
        self._buffer = device.upload(host)
        self.arrays = self._views(self._buffer)
        batch = self._batch(wrapper, dtype, sum(sizes[:1]))
        self.batch = replace(batch, keep=(*batch.keep, self._buffer))

    def _views(self, buffer: Any) -> list[Any]:
        return [
            buffer[start : start + ld * n].reshape(n, ld).T[:m]
            for start, ld, (m, n) in zip(self._starts, self._ld, self._shapes, strict=True)
        ]

    def _batch(self, wrapper: str, dtype: np.dtype, stride: int) -> MatrixBatch:
        start, size = self.device.pointer(self._buffer), dtype.itemsize
        pointers = np.array([start + size * int(s) for s in self._starts], np.uint64)
        m, n = (np.array([s[axis] for s in self._shapes], np.int32) for axis in (0, 1))
        if wrapper == "vbatched":
            batch = MatrixBatch.of_sizes(
                self.device, dtype, pointers, m, n, np.array(self._ld, np.int32)
            )
        elif wrapper == "pointers":
            batch = MatrixBatch.of_pointers(
                self.device, dtype, self.device.upload(pointers), int(m[0]), int(n[0]), self._ld[0]
            )
        elif wrapper == "native":
            batch = MatrixBatch.from_array(self.device, self.arrays[0])
            batch.locator["ld"] = self._ld[0]
        else:
            batch = MatrixBatch.from_array(self.device, self._stack(stride))
            batch.locator["ld"] = self._ld[0]
        return batch

    def _stack(self, stride: int) -> Any:
        """All matrices as one array of three axes."""
        (m, n), ld, count = self._shapes[0], self._ld[0], len(self._shapes)
        first = int(self._starts[0])
        rows = self._buffer[first : first + count * stride].reshape(count, stride)
        return rows[:, : ld * n].reshape(count, n, ld).transpose(0, 2, 1)[:, :m]

    def matrices(self) -> list[np.ndarray]:
        """Return the matrices as they are now on the host; the borders must be as they were."""
        host = self.device.download(self._buffer)
        outside = host[self._outside].view(np.uint8)
        if not (outside == _POISON).all():
            element = np.flatnonzero(self._outside)[
                np.flatnonzero(outside != _POISON)[0] // host.itemsize
            ]
            raise AssertionError(self._place(int(element)))
        return [np.array(view) for view in self._views(host)]

    def _place(self, element: int) -> str:
        b = max(int(np.searchsorted(self._starts, element, "right")) - 1, 0)
        column, row = divmod(element - int(self._starts[b]), self._ld[b])
        return (
            f"written outside: matrix {b} of {self._shapes[b]}, leading dimension {self._ld[b]}, "
            f"row {row}, column {column}"
        )


def random(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Normal random numbers of any of the four scalars."""
    a = rng.standard_normal(tuple(shape))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(tuple(shape))
    return a.astype(dtype)


def op(a: np.ndarray, trans: str) -> np.ndarray:
    """Return a matrix, its transpose or its adjoint."""
    return {"N": a, "T": a.T, "C": a.conj().T, "H": a.conj().T}[trans]


def wide(a: np.ndarray) -> np.ndarray:
    """Return numbers in double precision."""
    return a.astype(np.promote_types(a.dtype, np.float64))


def shapes(wrapper: str, sizes: Sequence[Any]) -> Sequence[Any]:
    """Return the sizes that a wrapper takes: the first one, three of it, or all."""
    return {"native": sizes[:1], "vbatched": sizes}.get(wrapper, [sizes[0]] * 3)


def eps(dtype: Any) -> float:
    """Precision of a scalar's real part."""
    return float(np.finfo(np.dtype(dtype)).eps)


def mixed_sizes(rng: np.random.Generator, sizes: Sequence[int] = SIZES) -> list[int]:
    """All the sizes once, in an order that is not sorted."""
    return [int(size) for size in rng.permutation(np.array(sizes))]
