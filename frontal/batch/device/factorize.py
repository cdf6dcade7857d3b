"""Factorization of a forest on a GPU, and the statistics of each of its systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...gpu.runtime.array import Array
from ...gpu.sparse.backend import GpuBackend
from ...gpu.sparse.batch.statistics import BatchStatistics
from ...gpu.sparse.device_matrix import GivenValues
from ...gpu.sparse.factor import GpuFactor
from ...gpu.sparse.factorize.entries import PatternEntries
from ...gpu.sparse.factorize.equilibration import Scales
from ...gpu.sparse.storage import ComputedFactor, Examination, FactorizationOutcome
from ...machine.lockfree_property import cached_property
from ...numeric.method import Method, tiny_pivot
from .checks import BatchChecks

_UNEXAMINED_OUTCOME = FactorizationOutcome(None, 0, np.zeros(6), beyond=False)


class ForestBackend(GpuBackend):
    """The GPU backend for block diagonal matrices, some of whose blocks may lack a factor."""

    @cached_property
    def entries(self) -> PatternEntries:
        """See `GpuBackend`; the matrix is read without a search for transposed entries."""
        return PatternEntries(self.symbolic, self.pattern, searching=False)

    def attempted(
        self, values: Array, scales: Scales, before: GpuFactor | None, examination: Examination
    ) -> GpuFactor:
        """Factorize values on the device without a copy; blocks without a factor are ignored.

        The `examination`, which reports on each block, is launched too. Does not wait.
        """
        dtype = np.dtype(values.dtype)
        given = GivenValues(values, None, scales, borrowed=True)
        tiny = tiny_pivot(dtype, self.symbolic.method)
        with self._reporting_errors(dtype, dtype):
            before = self._with_memory(before, dtype)
            factor = self._compute(given, dtype, tiny, before, examination)
        factor.learn(_UNEXAMINED_OUTCOME, examined=False)
        return factor


@dataclass
class BatchExamination:
    """Statistics of the values and pivots of all systems, as an `Examination`.

    A graph holds a reference to it, so it references neither a factor nor its storage.
    """

    method: Method
    statistics: BatchStatistics
    checks: BatchChecks
    values: Array  # (batch, nnz): by columns; always the same memory
    # as for `BatchStatistics.at_values` and `BatchStatistics.at_pivots`
    columns: tuple[Array, Array]
    mirror: Array | None
    diagonal_entries: Array
    sufficient: bool  # the statistics suffice to accept or reject each factor

    def __call__(self, factor: ComputedFactor) -> Callable[[], object]:
        """Return the launches; see `DeviceMatrix.examination`."""
        launches: list[Callable[[], object]] = [
            self.statistics.at_values(self.values, self.columns, self.mirror),
            self.statistics.at_pivots(
                factor.panels, factor.largest, self.values, self.diagonal_entries
            ),
        ]
        if self.sufficient:
            launches.append(self.verdict())
        return partial(_all, launches)

    def verdict(
        self, ratios: Array | None = None, even: Array | None = None
    ) -> Callable[[], object]:
        """Return launches that accept or reject factors and download the number of rejects."""
        checks, dtype = self.checks, np.dtype(self.values.dtype)
        verdict = checks.factors(self.method, dtype, self.statistics, ratios, even)
        return partial(_all, [checks.begin, verdict, checks.fetch])


def _all(launches: list[Callable[[], object]]) -> None:
    for launch in launches:
        launch()
