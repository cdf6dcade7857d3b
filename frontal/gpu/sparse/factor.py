"""A factor on the device, with its matrix and its solutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._typing import Untyped
from ...backend.protocol import Health, HostFactor
from ...matrix.canonical import Canonical, on_device, working_dtype
from ...matrix.exact import refuse_inexact
from ...matrix.value_map import ValueMap
from ...numeric.linear_system import FastSolution
from ...numeric.method import tiny_pivot
from ...symbolic.delayed_plan import movable
from ...symbolic.matching import Matching
from ...symbolic.phase import Symbolic
from ...symbolic.scaling import Scaling, ScalingRequest
from ..runtime.array import Array
from .device_matrix import DeviceMatrix, GivenValues
from .entry_products import entry_products
from .factorize import pivot_statistics
from .factorize.profile import FactorProfile, profile
from .solve.one_vector import VectorSolver
from .solve.rows import OtherValues
from .solve.system import DeviceSystem, widest
from .storage import FactorizationOutcome
from .structs import LIMIT
from .workspace import FactorWorkspace, PendingFactorization

_NONE = np.empty(0, np.int32)
_SMALL_PIVOT = 0.1  # pivots, relative to the largest entry of the matrix


class GpuFactor:
    """See `protocol.NumericFactor`.

    Attributes
    ----------
    outcome : FactorizationOutcome
        Result of the examination of the factor, set by `learn`.
    """

    backend, asynchronous, remeasures = "gpu", True, True

    outcome: FactorizationOutcome
    perturbed: int

    def __init__(self, matrix: DeviceMatrix, storage: FactorWorkspace) -> None:
        self.place, self.storage = matrix, storage
        self.entries, self.values, self.hermitian = matrix.entries, matrix.values, matrix.hermitian
        self.scales = matrix.scales
        self.symbolic, self.pattern = matrix.entries.symbolic, matrix.entries.pattern
        self.device, self.dtype = matrix.entries.device.name, np.dtype(storage.panels.dtype)
        self._systems: dict[tuple[str, np.dtype], DeviceSystem] = {}
        self._hopeful: bool | None = None  # not tried yet
        self._failed = False  # a solution had an error above rounding
        self._vector_solvers: dict[str, VectorSolver | None] = {}

    def learn(self, outcome: FactorizationOutcome, examined: bool = True) -> None:
        """Store the outcome; if it is not `examined`, the symmetry of the matrix stays unknown."""
        self.outcome, self.perturbed, statistics = outcome, outcome.replaced, outcome.examined
        self._examined, method = statistics, self.symbolic.method
        self._health = pivot_statistics.health_of(method, self.dtype, statistics)
        if (
            examined
            and self.place.on_device
            and pivot_statistics.exactly_hermitian(method, self.dtype, statistics)
        ):
            self.hermitian = self.place.hermitian = self.entries.nnz > 0

    @property
    def matrix_dtype(self) -> np.dtype:
        """See `NumericFactor`."""
        return np.dtype(self.values.dtype)

    @property
    def memory(self) -> int:
        """Bytes of the factor on the device."""
        return self.storage.nbytes

    @property
    def matrix(self) -> Canonical:
        """See `NumericFactor`."""
        return self.place.host

    @property
    def scaling(self) -> Scaling | None:
        """See `NumericFactor`; it may be downloaded."""
        return self.place.scaling

    @property
    def pivots(self) -> np.ndarray:
        """See `NumericFactor`."""
        if self.storage.pivots is None:
            return np.empty(0, np.int32)
        return self.pattern.device.download(self.storage.pivots) - 1

    @property
    def nulls(self) -> np.ndarray:
        """See `NumericFactor`."""
        return _NONE

    def subdiagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        blocks = self.storage.blocks
        if blocks is None:
            return np.empty(0, self.dtype)
        return self.pattern.device.download(blocks.subdiagonal)

    @property
    def largest_multiplier(self) -> float:
        """Largest entry of L for pivots that were searched in only part of their columns.

        Infinite if a pivot was replaced. For LU, and for large fronts, 0 if all are within `LIMIT`.
        """
        return float(self._examined[4])

    def growth_acceptable(self, few: int, growth: float) -> bool:
        """See `NumericFactor`; computed from the examination if that suffices."""
        if not self.outcome.beyond or self.symbolic.method.signed:
            return True
        count = int(self._examined[5:].view(np.int64)[0])
        if count <= few:
            bound = self._growth_at_most() if self.symbolic.method.indefinite else self.growth()
            if bound <= growth:
                return True
        failed = movable(self.symbolic, self.unstable_pivots)
        return not failed.size or (failed.size <= few and self.growth() <= growth)

    def _growth_at_most(self) -> float:
        """Return a bound of `growth` for L D L^H, from the large entries of L, D and the values."""
        d, size = self._examined[1:3].tolist()
        norm = size if self.scales[0] is None else 1.0
        largest = float(np.max([LIMIT, self.largest_multiplier, d]))  # NaN if one of them is NaN
        return largest / norm if norm else np.inf

    @property
    def unstable_pivots(self) -> np.ndarray:
        """Ascending positions of pivots that are too small for their columns.

        At these positions entries of L exceed 1/u = 100, or the pivot was replaced: the column
        belongs in the parent of its front. For LU, positions with large pivots are omitted if
        others exist: the rows of U of small pivots make later columns large that would not be large
        otherwise.
        """
        if self.storage.largest is None or self.largest_multiplier <= LIMIT:
            return np.empty(0, np.int32)
        largest = self.pattern.device.download(self.storage.largest)
        failed = np.flatnonzero(~(largest <= LIMIT)).astype(np.int32)
        if self.storage.blocks is None:
            small = np.abs(self.diagonal()[failed]) <= _SMALL_PIVOT * self._examined[2]
            failed = failed[small] if small.any() else failed
        return failed

    def health(self) -> Health:
        """See `NumericFactor`; computed on the device with the factorization."""
        return self._health

    def is_symmetric(self) -> bool:
        """See `NumericFactor`; computed on the device."""
        return pivot_statistics.is_symmetric(self.entries, self.values)

    def growth(self) -> float:
        """See `NumericFactor`."""
        values = self.values if self.values.dtype == self.dtype else self.values.astype(self.dtype)
        maxima = self.pattern.device.xp.zeros(2, np.float64)
        if self.entries.n:
            self._update_growth(values, maxima)
        largest, norm = self.pattern.device.download(maxima).tolist()
        size = norm if self.scales[0] is None else 1.0
        return largest / size if size else 0.0

    def _update_growth(self, values: Array, maxima: Array) -> None:
        """Enqueue `pivot_statistics.update_growth` for all columns."""
        storage, entries = self.storage, self.entries
        pivot_statistics.update_growth(
            self.pattern, storage.panels, (0, entries.n), entries, values, storage.blocks, maxima
        )

    def diagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        return pivot_statistics.diagonal(self.pattern, self.storage.panels)

    def to_host(self) -> HostFactor:
        """See `NumericFactor`."""
        end = self.pattern.layout(self.dtype).places.panels
        panels = self.pattern.to_host(self.pattern.device.download(self.storage.panels[:end]))
        return HostFactor(panels, self.pivots, self.perturbed, self.subdiagonal(), self.nulls)

    def copy(self) -> GpuFactor:
        """See `NumericFactor`."""
        storage = self.storage.copy(self.pattern)
        twin = type(self)(self.place.of_copy(storage), storage)
        twin.learn(self.outcome)
        return twin

    def free(self) -> None:
        """See `NumericFactor`: the memory returns to the pool of the device."""
        self.storage = FactorWorkspace(self.pattern.device.xp.empty(0, self.dtype), pivots=None)
        self._systems.clear()
        self._vector_solvers.clear()

    def refactorizer(self, symbolic: Symbolic, matching: Matching | None) -> None:
        """See `NumericFactor`: there is none on a GPU."""

    def begin(self, values: Array, scaling: ScalingRequest | None) -> None:
        """See `NumericFactor`; does nothing unless all launches are prepared for such values."""
        storage, factorization = self.storage, self.storage.factorization
        target, storage.begun = storage.values, None
        if (
            factorization is None
            or target is None
            or not values.dtype == target.dtype == self.dtype
        ):
            return
        matrix = DeviceMatrix(self.entries, GivenValues(values, scaling))
        try:
            state = storage.ready(self.pattern, matrix, factorization.tiny)(matrix.examination)
            storage.renew_solver()
        except MemoryError:
            return  # `factorize` tries again and reports the memory needed
        storage.begun = PendingFactorization(values, matrix, factorization.tiny, state)

    def begun(
        self, values: Array, scaling: Scaling | ScalingRequest | None, tiny: float
    ) -> PendingFactorization | None:
        """Return the pending factorization if it is for these values; it is returned only once."""
        begun, self.storage.begun = self.storage.begun, None
        if begun is None or begun.values is not values or begun.tiny != tiny:
            return None
        return begun if _same(begun.matrix.wanted, scaling) else None

    def profile(self) -> FactorProfile:
        """See `NumericFactor`."""
        return profile(
            self.pattern, self.place.scaled(self.dtype), tiny_pivot(self.dtype, self.pattern.method)
        )

    # --- vectors -----------------------------------------------------------------------------

    def block(self, b: Untyped) -> Array | None:
        """See `NumericFactor`.

        Raises
        ------
        ValueError, TypeError
            If the shapes do not fit, or for scalar types that BLAS does not support. While a graph
            is captured, also if b would have to be copied: the copy would be gone when the graph is
            launched.
        """
        device, n = self.entries.device, self.entries.n
        if not device.holds(b) and not on_device(b):
            return None
        b, work = device.xp.asarray(b), self.matrix_dtype
        if b.dtype != work:
            work = working_dtype(np.result_type(work, b.dtype), "b")
        if b.ndim not in (1, 2) or b.shape[0] != n:
            raise ValueError(
                f"b has shape {b.shape} and the matrix {(n, n)}: b must be ({n},) or ({n}, k)"
            )
        if (
            b.dtype != work
            or b.size > n * widest(n)
            or not b.flags.f_contiguous
            or work.kind != self.dtype.kind
        ):
            self._refuse_in_a_capture()
            refuse_inexact(b, "b")
        return device.xp.asfortranarray(b.reshape(n, 1) if b.ndim == 1 else b, dtype=work)

    def _refuse_in_a_capture(self) -> None:
        if self.entries.device.capturing():
            raise ValueError(
                "a graph is being captured, and b would have to be copied to memory that the graph "
                f"does not own. Try: b of {self.matrix_dtype} in Fortran order, with at "
                f"most {widest(self.entries.n)} columns"
            )

    def empty(self, k: int, dtype: np.dtype) -> Array:
        """See `NumericFactor`."""
        return self.entries.device.xp.empty((self.entries.n, k), dtype, order="F")

    def upload(self, B: np.ndarray) -> Array:
        """See `NumericFactor`."""
        return self.entries.device.upload(B.T).T

    def download(self, X: Array) -> np.ndarray:
        """See `NumericFactor`."""
        return self.entries.device.download(X.T).T

    def system(self, trans: str, dtype: np.dtype) -> DeviceSystem:
        """See `NumericFactor`."""
        key = trans, dtype
        if key not in self._systems:
            self._systems[key] = DeviceSystem(self, trans, dtype)
        return self._systems[key]

    def solve_fast(
        self, b: object, trans: str, how: int, references: Sequence[Array | None] = ()
    ) -> FastSolution | None:
        """See `NumericFactor`."""
        alone = getattr(b, "shape", None) == (self.entries.n,)  # not a block
        if self._hopeful is None:
            self._hopeful = self.storage.backoff.should_try()
        if not (alone and self._hopeful):
            return None
        solver = self._vector_solvers.get(trans)
        if solver is None or not solver.alive:
            solver = self._vector_solvers[trans] = VectorSolver.for_factor(self, trans)
        solution = None if solver is None else solver(b, how, self, references)
        if solution is not None and not solution.error >= 0:
            self._hopeful, self._failed, solution = False, True, None
            self.storage.backoff.record_failure()
        return solution

    def expect(self, trans: str) -> None:
        """See `NumericFactor`."""
        self._hopeful = not self._failed

    def condition_fast(self, trans: str, how: int) -> None:
        """See `NumericFactor`: on a GPU it is computed only together with a solution."""

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        device = self.pattern.device
        solution = device.upload(np.ascontiguousarray(x.T)).T
        self.sweep_on_device(solution, transposed)
        x[...] = device.download(solution)

    def sweep_on_device(self, x: Array, transposed: bool) -> None:
        """Overwrite a device array (n, w) as `sweep` does; nothing waits."""
        method = self.pattern.method
        conjugate = transposed and method.transpose_is_conjugate and self.dtype.kind == "c"
        if conjugate:
            x[...] = x.conj()
        self.storage.solver_of(self.pattern).solve(x, transposed and not method.one_triangle)
        if conjugate:
            x[...] = x.conj()

    # --- derivatives -------------------------------------------------------------------------

    def entry_products(
        self, order: ValueMap, R: Array, C: Array, diagonal: float, beside: float
    ) -> Array:
        """See `NumericFactor`."""
        return entry_products(self.entries, order, R, C, diagonal, beside)

    def residual_with(self, values: Array, X: Array, B: Array, trans: str) -> Array:
        """See `NumericFactor`."""
        others = OtherValues(self.entries, values, self.scales, False, self.storage)
        return DeviceSystem(others, trans, np.dtype(X.dtype)).sizes(X, B)[0]

    # --- new values --------------------------------------------------------------------------

    def device_values(self, A: Untyped, order: ValueMap) -> tuple[Array, ValueMap] | None:
        """See `NumericFactor`."""
        return self.entries.values_of(A, order)


def _same(request: ScalingRequest | None, scaling: Scaling | ScalingRequest | None) -> bool:
    """Return whether both scalings are the same request, or both are None."""
    if request is None or not isinstance(scaling, ScalingRequest):
        return request is scaling
    return request.matching is scaling.matching and request.plain == scaling.plain
