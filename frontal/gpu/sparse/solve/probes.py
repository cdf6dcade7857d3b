"""Estimates of condition numbers on the device: the vectors of `linear_system.Probes`.

The kernels are in condition.cu. A step has one small download.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....numeric.linear_system import Gains
from ...runtime.array import Array, Value
from ...runtime.graph import Launch
from .. import launch
from ..factorize.entries import PatternEntries
from .rows import OperatorRows


class ConditionKernels:
    """Kernels that read op(A), for vectors (n, k) in its precision or in double precision."""

    def __init__(self, entries: PatternEntries, rows: OperatorRows, dtype: np.dtype) -> None:
        self.n, self.device, self.dtype = entries.n, entries.device, dtype
        self._rows, self._values = rows, np.dtype(rows.values.dtype)
        flags = {"WIDE": dtype.itemsize > self._values.itemsize, "LONG": entries.long}
        self._constants = {name: 1 for name, value in flags.items() if value}

    def launch(
        self, name: str, blocks: int | tuple[int, int, int], *arguments: Value | int
    ) -> None:
        """Enqueue a kernel."""
        kernel = self.device.kernel(
            "condition.cu", f"condition_{name}", self._values, **self._constants
        )
        converted = tuple(np.int32(x) if isinstance(x, int) else x for x in arguments)
        Launch(kernel, blocks, launch.SYSTEM_THREADS, converted)()

    def weights(self, X: Array, B: Array, scale: Array) -> Array:
        """Return weights of the rows of op(A), (n,) float64; see `DeviceSystem.weighted`."""
        limits, lanes, count = self.device.limits, self._rows.lanes, scale.shape[1]
        order = self.n // count
        row_weights = self.device.xp.empty(self.n, np.float64)
        grid = launch.system_blocks(order * lanes, limits), 1, launch.planes(count)
        sizes = order, count, X.shape[1], lanes
        self.launch("weights", grid, *sizes, *self._rows.arguments, X, B, scale, row_weights)
        return row_weights

    def row_sums(self) -> Array:
        """Return the sums of the rows of |op(A)|, (n,) float64."""
        lanes, sums = self._rows.lanes, self.device.xp.empty(self.n, np.float64)
        blocks = launch.system_blocks(self.n * lanes, self.device.limits)
        self.launch("row_sums", blocks, self.n, lanes, *self._rows.arguments, sums)
        return sums

    def ratios(self, weights: Array, references: Sequence[Array]) -> list[tuple[float, float]]:
        """Return least and largest ratio of weights to each reference, NaN if one is NaN; waits."""
        blocks = launch.probing_blocks(self.n, self.device.limits)
        extremes = self.device.xp.empty((len(references), blocks, 2), np.float64)
        for k, reference in enumerate(references):
            self.launch("ratios", blocks, self.n, weights, reference, extremes[k])
        by_block = self.device.download(extremes)
        return [(float(one[:, 0].min()), float(one[:, 1].max())) for one in by_block]


class DeviceProbes:
    """See `Probes`; the device is prepared for `width` right-hand sides."""

    complete = False

    def __init__(self, kernels: ConditionKernels, width: int, weights: Array) -> None:
        self.n, self.width = kernels.n, width
        self._kernels, self._weights = kernels, weights
        self._xp, self._download = kernels.device.xp, kernels.device.download
        self._blocks = launch.system_blocks(self.n, kernels.device.limits)

    def first(self) -> Array:
        """See `Probes`."""
        return self.units(-1, -1)

    def units(self, first: int, second: int) -> Array:
        """See `Probes`."""
        X = self._xp.empty((self.n, 2), self._kernels.dtype, order="F")
        self._kernels.launch("vectors", self._blocks, self.n, first, second, X)
        return X

    def signs(self, Y: Array) -> tuple[np.ndarray, Array]:
        """See `Probes`; waits."""
        sums = self._xp.empty((self._blocks, 2), np.float64)
        self._kernels.launch("signs", self._blocks, self.n, self._weights, Y, sums)
        return self._download(sums).sum(axis=0), Y

    def gains(self, Z: Array, X: Array) -> Gains:
        """See `Probes`; waits."""
        output = self._xp.empty((self._blocks, 8), np.float64)
        self._kernels.launch("gains", self._blocks, self.n, Z, X, output)
        numbers = self._download(output)
        size, row = numbers[:, :2].ravel(), numbers[:, 2:4].ravel()
        dots = numbers[:, 4:].sum(axis=0)
        moduli = np.hypot(dots[::2], dots[1::2])
        if not np.isfinite(moduli).all():  # a maximum ignores NaN
            return Gains(np.nan, (0, 0), moduli)
        first, second = np.lexsort((row, -size))[:2]
        return Gains(float(size[first]), (int(row[first]), int(row[second])), moduli)
