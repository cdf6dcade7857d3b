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
    ) -> Launch:
        """Return the launch of a kernel."""
        kernel = self.device.kernel(
            "condition.cu", f"condition_{name}", self._values, **self._constants
        )
        converted = tuple(np.int32(x) if isinstance(x, int) else x for x in arguments)
        return Launch(kernel, blocks, launch.SYSTEM_THREADS, converted)

    def weights(self, X: Array, B: Array, scale: Array) -> Array:
        """Return weights of the rows of op(A), (n,) float64; see `DeviceSystem.weighted`."""
        row_weights = self.device.xp.empty(self.n, np.float64)
        self.weighing(X, B, scale, row_weights)()
        return row_weights

    def weighing(self, X: Array, B: Array, scale: Array, row_weights: Array) -> Launch:
        """Return the launch that writes the result of `weights`."""
        limits, lanes, count = self.device.limits, self._rows.lanes, scale.shape[1]
        order = self.n // count
        grid = launch.system_blocks(order * lanes, limits), 1, launch.planes(count)
        sizes = order, count, X.size // self.n, lanes
        return self.launch("weights", grid, *sizes, *self._rows.arguments, X, B, scale, row_weights)

    def scaling(self, norms: Array, scale: Array) -> Launch:
        """Return the launch that writes the scale of `weights` for a solution with norms."""
        return self.launch("scale", 1, np.float64(np.finfo(self.dtype).eps), norms, scale)

    def row_sums(self) -> Array:
        """Return the sums of the rows of |op(A)|, (n,) float64."""
        lanes, sums = self._rows.lanes, self.device.xp.empty(self.n, np.float64)
        blocks = launch.system_blocks(self.n * lanes, self.device.limits)
        self.launch("row_sums", blocks, self.n, lanes, *self._rows.arguments, sums)()
        return sums

    def ratios(self, weights: Array, references: Sequence[Array]) -> list[tuple[float, float]]:
        """Return least and largest ratio of weights to each reference, NaN if one is NaN; waits."""
        launches, extremes = self.comparing(weights, references)
        for one in launches:
            one()
        return extremes_of(self.device.download(extremes))

    def comparing(self, weights: Array, references: Sequence[Array]) -> tuple[list[Launch], Array]:
        """Return the launches of `ratios`, and their output for `extremes_of`."""
        blocks = launch.probing_blocks(self.n, self.device.limits)
        extremes = self.device.xp.empty((len(references), blocks, 2), np.float64)
        launches = [
            self.launch("ratios", blocks, self.n, weights, reference, extremes[k])
            for k, reference in enumerate(references)
        ]
        return launches, extremes


def extremes_of(by_block: np.ndarray) -> list[tuple[float, float]]:
    """Return the results of `ConditionKernels.ratios` from the numbers of the blocks."""
    least, largest = by_block[:, :, 0].min(axis=1), by_block[:, :, 1].max(axis=1)
    return list(zip(least.tolist(), largest.tolist(), strict=True))


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
        self._kernels.launch("vectors", self._blocks, self.n, first, second, X)()
        return X

    def signs(self, Y: Array) -> tuple[np.ndarray, Array]:
        """See `Probes`; waits."""
        sums = self._xp.empty((self._blocks, 2), np.float64)
        self._kernels.launch("signs", self._blocks, self.n, self._weights, Y, sums)()
        return self._download(sums).sum(axis=0), Y

    def gains(self, Z: Array, X: Array) -> Gains:
        """See `Probes`; waits."""
        output = self._xp.empty((self._blocks, 8), np.float64)
        self._kernels.launch("gains", self._blocks, self.n, Z, X, output)()
        numbers = self._download(output)
        size, row = numbers[:, :2].ravel(), numbers[:, 2:4].ravel()
        dots = numbers[:, 4:].sum(axis=0)
        moduli = np.hypot(dots[::2], dots[1::2])
        if not np.isfinite(moduli).all():  # a maximum ignores NaN
            return Gains(np.nan, (0, 0), moduli)
        first, second = np.lexsort((row, -size))[:2]
        return Gains(float(size[first]), (int(row[first]), int(row[second])), moduli)
