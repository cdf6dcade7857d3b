"""Acceptance of factors and solutions of a batch, computed on the device.

The host downloads the numbers of rejected systems, and details only if one of them is not zero.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...gpu.runtime.array import NULL, Array
from ...gpu.runtime.device import Device
from ...gpu.runtime.graph import Launch
from ...gpu.runtime.structs import filled
from ...gpu.sparse import launch
from ...gpu.sparse.batch.statistics import BatchStatistics
from ...gpu.sparse.structs import FACTOR_LIMITS, SOLUTION_LIMITS
from ...numeric.acceptance import limits_of
from ...numeric.condition import MAX_SILENT_PRODUCT
from ...numeric.linear_system import eps_of
from ...numeric.method import Method
from ...numeric.thresholds import THRESHOLDS
from ..input import AnyArray
from ..substitute import BatchConditions

_MAX_UNSTABLE_ENTRIES = 40  # columns of L beyond `structs.LIMIT` that refinement can correct,
_MAX_GROWTH = 1e4  # if their largest modulus is at most this
_SUMMARY_ROWS = 3  # rows of results behind those of the right-hand sides: error, fine, clean


class CheckedSolutions(NamedTuple):
    """Results of judge_solutions."""

    results: AnyArray  # (k + 3, batch) float64: output of the kernel, see its comment
    # numbers of systems that need a correction, that have no condition number yet, and that may
    # need a warning
    poor: int
    unknown: int
    unclean: int

    @property
    def merit(self) -> AnyArray:
        """(k, batch): errors in units of the limit for refinement."""
        return self.results[:-_SUMMARY_ROWS]

    @property
    def error(self) -> AnyArray:
        """(batch,): largest normwise backward error; infinite if not finite."""
        return self.results[-3]

    @property
    def fine(self) -> AnyArray:
        """(batch,): no error needs a correction, and all norms have harmless exponents."""
        return self.results[-2] > 0

    @property
    def clean(self) -> AnyArray:
        """(batch,): the system needs no warning."""
        return self.results[-1] > 0


class BatchChecks:
    """Acceptance of the factors and solutions of a forest, for all systems together.

    Attributes
    ----------
    ratio : (batch,) device array of float64
        `Health.pivot_ratio` of the current factors.
    outcome : (batch,) device array of int32
        Outcome of each factorization, as `BatchArrays.outcome`.
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
        self._limits: dict[tuple[np.dtype, np.dtype], np.ndarray] = {}

    def begin(self) -> None:
        """Enqueue clearing of the counters."""
        self._device.clear(self._counts)

    def fetch(self) -> None:
        """Enqueue the copy of the counters to the host."""
        self._host_counts.fetch()

    @property
    def rejected(self) -> int:
        """Number of rejected factors; valid after a wait."""
        return int(self._host_counts.host[0])

    def factors(
        self,
        method: Method,
        dtype: np.dtype,
        statistics: BatchStatistics,
        ratios: Array | None = None,
        even: Array | None = None,
    ) -> Launch:
        """Return the launch that accepts or rejects factors by their statistics.

        `ratios` (batch,) are those of `Health.pivot_ratio`, for LDL^T with pivots that are not all
        1 x 1. `even` (batch,) uint8 marks systems with a usable scaling; None if all have one.
        """
        eps = eps_of(dtype)
        limits = filled(
            self._device,
            FACTOR_LIMITS,
            asymmetry=THRESHOLDS.symmetry * eps,
            pivot_ratio=eps**0.5,
            unstable_columns=_MAX_UNSTABLE_ENTRIES,
            growth=_MAX_GROWTH,
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
        """Accept or reject solutions by their errors; wait for the result.

        Parameters
        ----------
        sizes : (k, 5, batch) device array of float64
            Largest entries of B - op(A) X, X and B, componentwise and rowwise errors.
        norm : (batch,) device array of float64
            Infinity norms of op(A).
        which : int
            0 for A, 1 for A^T and A^H; see `BatchConditions`.
        asked : (batch,) device array of uint8, optional
            Systems to check; None for all.
        solution_condition : (batch,) device array of float64, optional
            Condition numbers of the individual solutions.
        types : two dtypes
            Scalar types of the factor and of the vectors.
        by_component : bool
            Correct large componentwise errors, too; as for `cpu.residual.measure`.
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
        """Counted condition numbers of A, and of A^T or A^H."""
        counted: AnyArray = self.known.counted
        return [counted[which] for which in range(2)]

    def _limits_of(self, factor: np.dtype, vectors: np.dtype) -> np.ndarray:
        if (factor, vectors) not in self._limits:
            limits = limits_of(factor, vectors)._asdict()
            limits |= {"silent": MAX_SILENT_PRODUCT, "warned": THRESHOLDS.warned}
            self._limits[factor, vectors] = filled(self._device, SOLUTION_LIMITS, **limits)
        return self._limits[factor, vectors]


def _or_null(array: Array | None) -> AnyArray:
    return NULL if array is None else array
