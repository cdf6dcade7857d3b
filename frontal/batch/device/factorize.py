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

_UNEXAMINED_OUTCOME = FactorizationOutcome(None, 0, np.zeros(6), beyond=False)


class ForestBackend(GpuBackend):
    """A backend for block diagonal matrices of which some blocks may have no factor."""

    @cached_property
    def entries(self) -> PatternEntries:
        """See `GpuBackend`; blocks are read by positions that are those of the first one, too."""
        return PatternEntries(self.symbolic, self.pattern, searching=False)

    def attempted(
        self, values: Array, scales: Scales, before: GpuFactor | None, examination: Examination
    ) -> GpuFactor:
        """The factor of all blocks that have one, of values on the device, where they stay.

        The `examination` is launched with it, and tells of each block; nothing waits.
        """
        dtype = np.dtype(values.dtype)
        arguments = {"values": values, "scaling": None, "scales": scales}
        make_matrix = partial(
            DeviceMatrix, **arguments, on_device=True, hermitian=False, borrowed=True
        )
        tiny = tiny_pivot(dtype, self.symbolic.method)
        with self._telling(dtype, dtype):
            before = self._with_memory(before, dtype)
            factor = self._compute(make_matrix, dtype, dtype, tiny, before, examination)
        factor.learn(_UNEXAMINED_OUTCOME, examined=False)
        return factor


@dataclass
class BatchExamination:
    """What looks at the values and the pivots of all systems, as an `Examination`.

    A graph keeps it: it keeps neither a factor nor its storage.

    Attributes
    ----------
    values : device array (batch, nnz)
        By columns; always the same.
    columns, mirror, diagonal_entries : device arrays
        See `BatchStatistics`.
    sufficient : bool
        It is enough for a verdict.
    """

    method: Method
    statistics: BatchStatistics
    checks: BatchChecks
    values: Array
    columns: tuple[Array, Array]
    mirror: Array | None
    diagonal_entries: Array
    sufficient: bool

    def __call__(
        self,
        pattern: DevicePattern,
        panels: Array,
        d: PivotBlocks | None,
        largest: Array | None,
        values: Array,
        numbers: Array,
        repeated: bool,
        columns: tuple[int, int] | None = None,
    ) -> Callable[[], object]:
        """See `DeviceMatrix.examination`."""
        launches: list[Callable[[], object]] = [
            self.statistics.at_values(self.values, self.columns, self.mirror),
            self.statistics.at_pivots(panels, largest, self.values, self.diagonal_entries),
        ]
        if self.sufficient:
            launches.append(self.verdict())
        return partial(_all, launches)

    def verdict(
        self, ratios: Array | None = None, even: Array | None = None
    ) -> Callable[[], object]:
        """What judges factors, and brings numbers of systems; see `BatchChecks.factors`."""
        checks, dtype = self.checks, np.dtype(self.values.dtype)
        verdict = checks.factors(self.method, dtype, self.statistics, ratios, even)
        return partial(_all, [checks.begin, verdict, checks.fetch])


def _all(launches: list[Callable[[], object]]) -> None:
    for launch in launches:
        launch()
