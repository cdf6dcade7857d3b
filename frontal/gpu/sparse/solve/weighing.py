"""Weights of a solution for one vector beside those of other solutions, by one graph.

Their ratios bound the solution's own condition number: see `factor.condition_bounds`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...runtime.array import Array
from ...runtime.device import Device
from ...runtime.graph import CapturedLaunches
from .corrections import SolvedVector
from .probes import extremes_of
from .system import DeviceSystem


class SolutionWeighing:
    """Ratios of the weights of a solution to `count` references, all in the same arrays each time.

    It refers to the matrix, but neither to a factor nor to its storage.
    """

    def __init__(
        self, device: Device, system: DeviceSystem, solved: SolvedVector, count: int
    ) -> None:
        n, xp, kernels = solved.x.shape[0], device.xp, system.condition
        self._device = device
        self._given: list[Array | None] = [None] * count
        self._references = [xp.empty(n, np.float64) for _ in range(count)]
        weights, scale = xp.empty(n, np.float64), xp.empty((2, 1), np.float64)
        ratios, extremes = kernels.comparing(weights, self._references)
        self._extremes = device.staged(extremes)
        scaling = kernels.scaling(solved.norms, scale)
        weighing = kernels.weighing(solved.x, solved.b, scale, weights)
        steps = [weighing, *ratios, self._extremes.fetch]
        self._graph = CapturedLaunches(device, scaling, steps)

    def compare_with(self, references: Sequence[Array]) -> None:
        """Use these (n,) weights from now on; copies of them are kept while they are the same."""
        for place, reference in enumerate(references):
            if reference is not self._given[place]:
                self._device.copy(reference, self._references[place])
                self._given[place] = reference

    def __call__(self) -> None:
        """Enqueue the graph, after that of the solution."""
        self._graph()

    def ratios(self) -> list[tuple[float, float]]:
        """Return least and largest ratio of the weights to each reference; after waiting."""
        return extremes_of(self._extremes.host)
