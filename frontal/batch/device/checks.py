"""Factors and solutions of many systems, judged on the device where what they are judged by is.

The host waits for a few numbers of systems, and asks for more where they are not zero.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...gpu.runtime.array import NULL, Array
from ...gpu.runtime.device import Device
from ...gpu.runtime.graph import Launch
from ...gpu.sparse import launch
from ...gpu.sparse.batch.statistics import BatchStatistics
from ...numeric.backward_error import limits_of
from ...numeric.condition import MAX_SILENT_PRODUCT
from ...numeric.linear_system import eps_of
from ...numeric.method import Method
from ...numeric.thresholds import THRESHOLDS
from ..input import AnyArray
from ..substitute import BatchConditions

_MAX_UNSTABLE_ENTRIES = 40  # entries of L above 1/u that refinement corrects,
_MAX_GROWTH = 1e4  # if the largest is below this
_SUMMARY_ROWS = 3  # of what is found of solutions, behind those of right-hand sides


class CheckedSolutions(NamedTuple):
    """What is known of solutions.

    Attributes
    ----------
    results : (k + 3, batch) device array of float64
        As judge_solutions leaves it.
    poor, unknown, unclean : int
        How many systems need a correction, have no condition number yet, and may need a warning.
    """

    results: AnyArray
    poor: int
    unknown: int
    unclean: int

    @property
    def merit(self) -> AnyArray:
        """(k, batch): errors in units of what is good enough."""
        return self.results[:-_SUMMARY_ROWS]

    @property
    def error(self) -> AnyArray:
        """(batch,): largest normwise backward error; infinite for what is no number."""
        return self.results[-3]

    @property
    def fine(self) -> AnyArray:
        """(batch,): errors are what rounding costs, and sizes away from borders of the exponent."""
        return self.results[-2] > 0

    @property
    def clean(self) -> AnyArray:
        """(batch,): and the error of the solution is far from what is warned of."""
        return self.results[-1] > 0


class BatchChecks:
    """What judges the systems of a forest, all at once.

    Attributes
    ----------
    ratio : (batch,) device array of float64
        `Health.pivot_ratio` of the last factors.
    outcome : (batch,) device array of int32
        `Numbers.outcome` of them.
    known : BatchConditions
        On the device.
    """

    def __init__(self, device: Device, count: int) -> None:
        self._device, self._count, xp = device, count, device.xp
        self._counts: Array = xp.zeros(4, np.int32)
        self._host_counts = device.staged(self._counts)
        self._blocks = launch.system_blocks(count, device.limits)
        condition, counted = BatchConditions.empty(count)
        arrays: tuple[AnyArray, AnyArray] = device.upload(condition), device.upload(counted)
        self.known = BatchConditions(*arrays)
        self.ratio: Array = device.upload(np.full(count, np.nan))
        self.outcome: Array = xp.zeros(count, np.int32)
        self._limits: dict[tuple[np.dtype, np.dtype], Array] = {}

    def begin(self) -> None:
        """Enqueue what makes ready for a verdict."""
        self._device.clear(self._counts)

    def fetch(self) -> None:
        """Enqueue what brings numbers of systems to the host."""
        self._host_counts.fetch()

    @property
    def rejected(self) -> int:
        """How many factors are not sound, when that was waited for."""
        return int(self._host_counts.host[0])

    def factors(
        self,
        method: Method,
        dtype: np.dtype,
        statistics: BatchStatistics,
        ratios: Array | None = None,
        even: Array | None = None,
    ) -> Launch:
        """What judges factors by what was seen of them.

        Parameters
        ----------
        dtype : numpy.dtype
            Of the values.
        ratios : (batch,) device array of float64, optional
            `Health.pivot_ratio`, where pivots are not of order 1 alone.
        even : (batch,) device array of uint8, optional
            Which systems have a scaling.
        """
        eps = eps_of(dtype)
        limits = self._device.upload(
            np.array((THRESHOLDS.symmetry * eps, eps**0.5, _MAX_UNSTABLE_ENTRIES, _MAX_GROWTH))
        )
        inputs = limits, statistics.of_values, statistics.of_pivots, *map(_or_null, (ratios, even))
        out = self.ratio, self.known.counted, self.outcome, self._counts
        kernel = self._device.kernel("batch_checks.cu", "judge_factors", np.float64)
        arguments = np.int32(self._count), np.int32(method.pivots), *inputs, *out
        return Launch(kernel, self._blocks, launch.SYSTEM_THREADS, arguments)

    def solutions(
        self,
        sizes: Array,
        norm: Array,
        which: int,
        asked: Array | None,
        solution_condition: Array | None,
        types: tuple[np.dtype, np.dtype],
        by_component: bool,
    ) -> CheckedSolutions:
        """Judge solutions by their sizes; waits.

        Parameters
        ----------
        sizes : (k, 5, batch) device array of float64
            Largest entries of B - op(A) X, X and B, componentwise and rowwise errors.
        norm : (batch,) device array of float64
            Infinity norms of op(A).
        which : int
            0 for A itself; see `BatchConditions`.
        asked : (batch,) device array of uint8, optional
            Systems that are meant.
        solution_condition : (batch,) device array of float64, optional
            Condition numbers of the solutions themselves.
        types : two dtypes
            Of the factor, and of vectors.
        by_component : bool
            As of `BackwardErrors`.
        """
        k = sizes.shape[0]
        results = self._device.xp.empty((k + _SUMMARY_ROWS, self._count), np.float64)
        inputs = _or_null(asked), self._sides[which], _or_null(solution_condition)
        arguments = self._limits_of(*types), sizes, norm, *inputs, results, self._counts
        numbers = np.int32(self._count), np.int32(k), np.int32(by_component)
        self.begin()
        self._kernel((self._blocks,), (launch.SYSTEM_THREADS,), (*numbers, *arguments))
        self.fetch()
        self._device.wait()
        return CheckedSolutions(results, *self._host_counts.host[:3].tolist())

    @cached_property
    def _kernel(self) -> AnyArray:
        return self._device.kernel("batch_checks.cu", "judge_solutions", np.float64)

    @cached_property
    def _sides(self) -> list[Array]:
        """Counted condition numbers, by op(A)."""
        counted: AnyArray = self.known.counted
        return [counted[which] for which in range(2)]

    def _limits_of(self, factor: np.dtype, vectors: np.dtype) -> Array:
        if (factor, vectors) not in self._limits:
            limits = np.array((*limits_of(factor, vectors), MAX_SILENT_PRODUCT, THRESHOLDS.warned))
            self._limits[factor, vectors] = self._device.upload(limits)
        return self._limits[factor, vectors]


def _or_null(array: Array | None) -> AnyArray:
    return NULL if array is None else array
