"""The factors of the systems of a forest on a GPU, and what looks at each of them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...gpu.runtime.array import Array
from ...gpu.sparse.backend import GpuBackend
from ...gpu.sparse.batch.statistics import BatchStatistics
from ...gpu.sparse.device_matrix import DeviceMatrix
from ...gpu.sparse.factor import GpuFactor
from ...gpu.sparse.factorize.entries import PatternEntries
from ...gpu.sparse.factorize.equilibration import Scales
from ...gpu.sparse.factorize.launches import Examination
from ...gpu.sparse.pattern import DevicePattern
from ...gpu.sparse.storage import FactorizationOutcome, PivotBlocks
from ...machine.lockfree_property import cached_property
from ...numeric.method import Method, tiny_pivot
from .checks import BatchChecks

_NOTHING = FactorizationOutcome(None, 0, np.zeros(6), beyond=False)


class ForestBackend(GpuBackend):
    """A backend for block diagonal matrices of which some blocks may have no factor."""

    @cached_property
    def entries(self) -> PatternEntries:
        """See `GpuBackend`; blocks are read by positions that are those of the first one, too."""
        return PatternEntries(self.symbolic, self.pattern, searching=False)

    def attempted(
        self, values: Array, scales: Scales, before: GpuFactor | None, looking: Examination
    ) -> GpuFactor:
        """The factor of all blocks that have one, of values on the device, where they stay.

        What is `looking` at it is launched with it, and tells of each block; nothing waits.
        """
        dtype = np.dtype(values.dtype)
        of = {"values": values, "scaling": None, "scales": scales}
        given = partial(DeviceMatrix, **of, there=True, hermitian=False, kept=True)
        tiny = tiny_pivot(dtype, self.symbolic.method)
        with self._telling(dtype, dtype):
            before = self._with_memory(before, dtype)
            factor = self._compute(given, dtype, dtype, tiny, before, looking)
        factor.learn(_NOTHING, examined=False)
        return factor


@dataclass
class BatchExamination:
    """What looks at the values and the pivots of all systems, as an `Examination`.

    A graph keeps it: it keeps neither a factor nor its storage.

    Attributes
    ----------
    values : device array (batch, nnz)
        By columns; always the same.
    columns, mirror, own : device arrays
        See `BatchStatistics`.
    judges : bool
        It is enough for a verdict.
    """

    method: Method
    looks: BatchStatistics
    judge: BatchChecks
    values: Array
    columns: tuple[Array, Array]
    mirror: Array | None
    own: Array
    judges: bool

    def __call__(
        self,
        pattern: DevicePattern,
        panels: Array,
        d: PivotBlocks | None,
        largest: Array | None,
        values: Array,
        found: Array,
        again: bool,
        columns: tuple[int, int] | None = None,
    ) -> Callable[[], object]:
        """See `DeviceMatrix.examination`."""
        launches: list[Callable[[], object]] = [
            self.looks.at_values(self.values, self.columns, self.mirror),
            self.looks.at_pivots(panels, largest, self.values, self.own),
        ]
        if self.judges:
            launches.append(self.verdict())
        return partial(_all, launches)

    def verdict(
        self, ratios: Array | None = None, even: Array | None = None
    ) -> Callable[[], object]:
        """What judges factors, and brings numbers of systems; see `BatchChecks.factors`."""
        judge, dtype = self.judge, np.dtype(self.values.dtype)
        verdict = judge.factors(self.method, dtype, self.looks, ratios, even)
        return partial(_all, [judge.begin, verdict, judge.fetch])


def _all(launches: list[Callable[[], object]]) -> None:
    for one in launches:
        one()
