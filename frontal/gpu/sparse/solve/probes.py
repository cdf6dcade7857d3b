"""Estimates of condition numbers on the device: the vectors of `linear_system.Probes`.

The kernels are in condition.cu. A step has one small download.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....numeric.linear_system import Gains
from ...runtime.array import Array, Kernel, Value
from .. import launch
from ..factorize.entries import PatternEntries


def _kernel(entries: PatternEntries, name: str, values: np.dtype, dtype: np.dtype) -> Kernel:
    """Return a kernel for values of a scalar type, and vectors of the same or double precision."""
    wide = {"WIDE": dtype.itemsize > values.itemsize, "LONG": entries.long}
    constants = {name: 1 for name, value in wide.items() if value}
    return entries.device.kernel("condition.cu", f"condition_{name}", values, **constants)


def weights(
    entries: PatternEntries,
    values: np.dtype,
    dtype: np.dtype,
    lanes: int,
    rows: Sequence[Value],
    X: Array,
    B: Array,
    scale: Array,
) -> Array:
    """Return weights of the rows of op(A), (n,) float64, for systems of one order; nothing waits.

    Parameters
    ----------
    entries : PatternEntries
        Of the matrix.
    values, dtype : numpy.dtype
        Scalar types of the matrix and of the vectors.
    lanes : int
        Threads that read a row of op(A) together.
    rows : sequence
        `OperatorRows.arguments`.
    X, B : device arrays (n, k)
    scale : device array (k + 1, count)
        See `DeviceSystem.weighted`.
    """
    device, k, count = entries.device, X.shape[1], scale.shape[1]
    order = entries.n // count
    row_weights = device.xp.empty(entries.n, np.float64)
    sizes = np.int32(order), np.int32(count), np.int32(k), np.int32(lanes)
    grid = launch.system_blocks(order * lanes, device.limits), 1, launch.planes(count)
    kernel = _kernel(entries, "weights", values, dtype)
    kernel(grid, (launch.SYSTEM_THREADS,), (*sizes, *rows, X, B, scale, row_weights))
    return row_weights


def row_sums(
    entries: PatternEntries, values: np.dtype, dtype: np.dtype, lanes: int, rows: Sequence[Value]
) -> Array:
    """Return the sums of the rows of |op(A)|, (n,) float64; see `weights` for the parameters."""
    device, n = entries.device, entries.n
    sums = device.xp.empty(n, np.float64)
    blocks = launch.system_blocks(n * lanes, device.limits)
    kernel = _kernel(entries, "row_sums", values, dtype)
    arguments = (np.int32(n), np.int32(lanes), *rows, sums)
    kernel((blocks,), (launch.SYSTEM_THREADS,), arguments)
    return sums


def ratios(
    entries: PatternEntries, values: np.dtype, dtype: np.dtype, weights: Array, reference: Array
) -> tuple[float, float]:
    """Return least and largest ratio of weights (n,) to `reference`, NaN if one is NaN; waits."""
    device, n = entries.device, entries.n
    blocks = launch.probing_blocks(n, device.limits)
    extremes = device.xp.empty((blocks, 2), np.float64)
    kernel = _kernel(entries, "ratios", values, dtype)
    kernel((blocks,), (launch.SYSTEM_THREADS,), (np.int32(n), weights, reference, extremes))
    least, most = device.download(extremes).T
    return float(least.min()), float(most.max())


class DeviceProbes:
    """See `Probes`.

    Parameters
    ----------
    entries : PatternEntries
        Of the matrix.
    values : numpy.dtype
        Scalar type of the matrix.
    dtype : numpy.dtype
        Scalar type of the vectors.
    width : int
        Right-hand sides for which the device is prepared.
    weights : device array (n,)
    """

    complete = False

    def __init__(
        self, entries: PatternEntries, values: np.dtype, dtype: np.dtype, width: int, weights: Array
    ) -> None:
        self.n, self._device, self._dtype = entries.n, entries.device, dtype
        self.width, self._weights = width, weights
        self._entries, self._values = entries, values
        self._blocks = launch.system_blocks(self.n, self._device.limits)

    def first(self) -> Array:
        """See `Probes`."""
        return self.units(-1, -1)

    def units(self, first: int, second: int) -> Array:
        """See `Probes`."""
        X = self._device.xp.empty((self.n, 2), self._dtype, order="F")
        self._launch("vectors", (np.int32(self.n), np.int32(first), np.int32(second), X))
        return X

    def signs(self, Y: Array) -> tuple[np.ndarray, Array]:
        """See `Probes`; waits."""
        sums = self._device.xp.empty((self._blocks, 2), np.float64)
        self._launch("signs", (np.int32(self.n), self._weights, Y, sums))
        return self._device.download(sums).sum(axis=0), Y

    def gains(self, Z: Array, X: Array) -> Gains:
        """See `Probes`; waits."""
        numbers = self._device.xp.empty((self._blocks, 8), np.float64)
        self._launch("gains", (np.int32(self.n), Z, X, numbers))
        numbers = self._device.download(numbers)
        size, row, dots = (
            numbers[:, :2].ravel(),
            numbers[:, 2:4].ravel(),
            numbers[:, 4:].sum(axis=0),
        )
        moduli = np.hypot(dots[::2], dots[1::2])
        if not np.isfinite(moduli).all():  # a maximum ignores NaN
            return Gains(np.nan, (0, 0), moduli)
        first, second = np.lexsort((row, -size))[:2]
        return Gains(float(size[first]), (int(row[first]), int(row[second])), moduli)

    def _launch(self, name: str, arguments: Sequence[Any]) -> None:
        kernel = _kernel(self._entries, name, self._values, self._dtype)
        kernel((self._blocks,), (launch.SYSTEM_THREADS,), arguments)
