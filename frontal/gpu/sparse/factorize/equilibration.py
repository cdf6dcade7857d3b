"""Scalings computed on the device: the launches of equilibrate.cu."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....symbolic.equilibrate import ONE_BITS, SWEEPS, exponents, mean_exponents
from ....symbolic.scaling import UNEVEN, ScalingRequest, wants_matching
from ...runtime.array import NULL, Array, Value
from ...runtime.device import Device
from ...runtime.graph import CapturedLaunches, Launch
from .. import launch
from .entries import PatternEntries

Scales = tuple[Array, Array] | tuple[None, None]
KERNELS = "equilibrate.cu"  # a file that does not depend on the method


def scaled(
    entries: PatternEntries, scales: tuple[Array, Array], values: Array, out: Array
) -> Launch:
    """Return the launch that writes scaled values to `out`, of their type or single precision."""
    outcome = entries.device.xp.zeros(2, np.int64)
    return _Kernels(entries, values, out).launch("values", *scales, values, out, outcome)


class Equilibration:
    """Scaling of the values in one array into another, repeated for new values.

    The output has the same scalar type or its single precision. The object refers to the arrays
    that it reads and writes, but neither to a matrix nor to a storage.

    Attributes
    ----------
    scales : two device arrays (n,)
        Of rows and columns; one array if both are equal.
    """

    def __init__(
        self, entries: PatternEntries, wanted: ScalingRequest, values: Array, out: Array
    ) -> None:
        self._matching = None if wanted.plain else wanted.matching
        self._last = wanted.plain or wanted.matching is not None
        self._values, self._out, self._entries = values, out, entries
        device, length = entries.device, (entries.n,)
        double, numbers = np.dtype(np.float64), (2 + max(4, SWEEPS),)
        kinds = (length, double), (length, double), (numbers, np.dtype(np.int64))
        row, column, outcome = device.empties(kinds)  # cleared by each call
        self._outcome, self._kernels = device.staged(outcome[:2]), _Kernels(entries, values, out)
        if entries.pattern.method.one_triangle:
            self.scales = row, row
            launches = self._scale_symmetric(row, column, outcome[2:])
        else:
            self.scales = row, column
            launches = self._scale_rows_columns(row, column, outcome[2:])
        launches.append(self._kernels.launch("values", *self.scales, values, out, outcome))
        clear = partial(_clear, device, outcome, self.scales[0])
        self._run = CapturedLaunches(device, clear, [*launches, self._outcome.fetch])

    def _scale_symmetric(self, scale: Array, scratch: Array, far: Array) -> list[Launch]:
        """Return launches that alternate between two arrays of exponents, and end in `scale`."""
        begin: Value = NULL
        if self._matching is not None:
            means = mean_exponents(self._matching.row_scale, self._matching.col_scale)
            begin = self._entries.device.upload(means)
        launches, kernels = [], self._kernels
        for turn in range(SWEEPS):
            to = scratch if (SWEEPS - turn) % 2 else scale
            launches.append(kernels.launch("sweep", self._values, begin, to, far, np.int32(turn)))
            begin = to
        return [*launches, kernels.by_rows("mean", begin, scale)]

    def _scale_rows_columns(self, row: Array, column: Array, extremes: Array) -> list[Launch]:
        row_begin: Value = NULL
        column_begin: Value = NULL
        if self._matching is not None:
            scales = self._matching.row_scale, self._matching.col_scale
            row_begin, column_begin = self._entries.device.uploads([*map(exponents, scales)])
        kernels, values = self._kernels, self._values
        return [
            kernels.launch("rows", values, row_begin, column_begin, row),
            kernels.launch("columns", values, row_begin, column_begin, row, column, extremes),
            kernels.by_rows("powers", row_begin, row, column, extremes),
        ]

    def fits(self, wanted: ScalingRequest, values: Array, out: Array) -> bool:
        """Return whether this object does the requested scaling of these arrays."""
        matching = None if wanted.plain else wanted.matching
        last = wanted.plain or matching is not None
        same = matching is self._matching and last == self._last
        return same and values is self._values and out is self._out

    def __call__(self) -> None:
        """Enqueue all launches; nothing waits for the device."""
        self._run()

    @property
    def uneven(self) -> bool:
        """Return whether `scaling_of` begins with a matching instead; the device was waited for."""
        far, under = self._outcome.host.tolist()
        if self._last or far <= UNEVEN * self._values.size:
            return False
        least = (ONE_BITS - np.int64(under)).view(np.float64)
        return wants_matching(float(least), self._values.dtype)


def _clear(device: Device, *arrays: Array) -> None:
    for array in arrays:
        device.clear(array)


class _Kernels:
    """Kernels of equilibrate.cu for two scalar types: of values and of their scaled values."""

    def __init__(self, entries: PatternEntries, values: Array, out: Array) -> None:
        self._entries, self._dtype = entries, values.dtype
        named = {"NARROW": out.dtype != values.dtype, "LONG": entries.long}
        self._constants = {name: 1 for name, value in named.items() if value}

    def launch(self, name: str, *arguments: Value) -> Launch:
        """Return a launch of a kernel that reads the entries, column by column."""
        entries = self._entries
        return self._launch(name, entries.n * entries.lanes, *entries.columns, *arguments)

    def by_rows(self, name: str, *arguments: Value) -> Launch:
        """Return a launch of a kernel whose threads own rows."""
        return self._launch(name, self._entries.n, np.int32(self._entries.n), *arguments)

    def _launch(self, name: str, threads: int, *arguments: Value) -> Launch:
        device = self._entries.device
        kernel = device.kernel(KERNELS, f"equilibrate_{name}", self._dtype, **self._constants)
        blocks = launch.system_blocks(threads, device.limits)
        return Launch(kernel, blocks, launch.SYSTEM_THREADS, arguments)
