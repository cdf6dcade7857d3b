"""The GPU backend: all fronts of an assembly tree by a few launches of persistent kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np

from ..._typing import Untyped
from ...backend.memory_limit import Memory
from ...backend.protocol import HostFactor, NumericFactor, PivotFailure, Progress
from ...errors import FactorMemoryError
from ...machine.threads import BackgroundTask
from ...matrix.canonical import Canonical
from ...matrix.value_map import ValueMap
from ...numeric.method import tiny_pivot
from ...symbolic.matching import Matching
from ...symbolic.phase import Symbolic
from ...symbolic.scaling import Scaling, ScalingRequest, scaling_of
from ..runtime import device as devices
from ..runtime.array import Array
from ..runtime.device import Device
from ..runtime.jit import SCALARS
from .device_matrix import DeviceMatrix, GivenValues
from .factor import GpuFactor
from .factorize.entries import PatternEntries
from .first_kernels import begin_kernels
from .footprint import footprint
from .layout.gathering import gathered
from .memory_choice import memory_report, resident_or_streamed
from .out_of_core import storage as streamed
from .out_of_core.factor import StreamedFactor
from .out_of_core.pattern import StreamedPattern
from .pattern import DevicePattern
from .storage import Examination, allocate
from .workspace import FactorWorkspace


class GpuBackend:
    """See `protocol.Backend`.

    Parameters
    ----------
    device : Device, optional
        By default the current device.
    expected : BackgroundTask, optional
        Creates the pattern before its first use.
    """

    fallback: str | None = "cpu"

    def __init__(
        self,
        symbolic: Symbolic,
        device: Device | None = None,
        expected: BackgroundTask[DevicePattern] | None = None,
    ) -> None:
        if symbolic.columns is not None:
            raise TypeError("an analysis by columns has no fronts for a GPU")
        self._device = devices.device_of() if device is None else device
        self.symbolic, self.device = symbolic, self._device.name
        self._expected = expected
        self._streamed: dict[np.dtype, StreamedPattern] = {}  # the latest of each scalar type
        self._begun: set[np.dtype] = set()  # scalar types whose lists and kernels are begun
        self._room_for: tuple[np.dtype, np.dtype] | None = None  # checked before allocation

    @cached_property
    def pattern(self) -> DevicePattern:
        """The fronts on the device."""
        if self._expected is None:
            plan = gathered(self.symbolic.plan)
            return DevicePattern(self._device, plan, self.symbolic.method)
        expected, self._expected = self._expected, None
        return expected.result()

    @property
    def is_current(self) -> bool:
        """Return whether the device of this backend is the current one."""
        return self._device is devices.device_of()

    @cached_property
    def entries(self) -> PatternEntries:
        """The pattern of A on the device."""
        return PatternEntries(self.symbolic, self.pattern)

    def factorize(
        self,
        values: Untyped,
        scaling: Scaling | ScalingRequest | None,
        *,
        on_device: bool = False,
        hermitian: bool = False,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        delaying: bool = True,
        dtype: np.dtype | None = None,
        memory: Memory = "device",
        tiny: float | None = None,
    ) -> GpuFactor:
        """See `protocol.Backend`; replaces pivots below `tiny` whose columns other fronts share."""
        dtype = np.dtype(values.dtype if dtype is None else dtype)
        before = previous if isinstance(previous, GpuFactor) else None
        before = self._with_memory(before, dtype)
        least = tiny_pivot(dtype, self.symbolic.method) if tiny is None else tiny
        begun = None if before is None or not on_device else before.begun(values, scaling, least)
        if before is not None and begun is not None:
            factor = factor_of(begun.matrix, before.storage)  # while the device computes
            factor.learn(begun.state.read())
        else:
            inputs = GivenValues(values, scaling, on_device=on_device, hermitian=hermitian)
            with self._reporting_errors(dtype, values.dtype):
                factor = self._compute(inputs, dtype, least, before, memory=memory)
        if factor.place.uneven and factor.health().finite:
            with self._reporting_errors(dtype, values.dtype):
                factor = self._matched(factor, least)
        if progress:
            fronts = self.symbolic.plan.parent.size
            progress("factorization", fronts, fronts)
        if factor.outcome.failure is not None:
            raise PivotFailure(factor.outcome.failure)
        return factor

    @contextmanager
    def _reporting_errors(self, dtype: np.dtype, values: np.dtype) -> Iterator[None]:
        """On an exception, wait for all background lists; give memory errors the required bytes."""
        try:
            yield
        except BaseException as error:
            self._room_for = None
            for begun in (self.pattern, *self._streamed.values()):
                begun.finish()
            if isinstance(error, MemoryError) and not isinstance(error, FactorMemoryError):
                needed = self._needed(dtype, values)  # the error of the device has no such number
                raise FactorMemoryError(needed, self._device.free_memory()) from error
            raise

    def _begin(self, dtype: np.dtype, values: np.dtype, memory: Memory) -> DevicePattern:
        """Begin the task lists and compile kernels, if there is memory for the factor."""
        pattern = self._within(dtype, values, memory)
        if pattern is not self.pattern or dtype not in self._begun:
            schedule = pattern.schedule
            few = bool(schedule.small.any()), schedule.chained
            begin_kernels(self._device, pattern.method, dtype, *few)
            pattern.begin(dtype)
        if pattern is self.pattern:
            self._begun.add(dtype)
        return pattern

    def _within(self, dtype: np.dtype, values: np.dtype, memory: Memory) -> DevicePattern:
        """Return the fronts that fit into the memory; raise before any allocation if none do."""
        if self._room_for == (dtype, values) and memory in ("auto", "device"):
            self._room_for = None
            return self.pattern
        fronts = resident_or_streamed(self.symbolic, self.pattern, dtype, values, memory)
        if isinstance(fronts, StreamedPattern):
            streamed.require_host(fronts, dtype)
            cached = self._streamed.get(dtype)
            if cached is not None and cached.is_like(fronts):
                return cached  # with its task lists
            self._streamed[dtype] = fronts
        return fronts

    def _compute(
        self,
        inputs: GivenValues,
        dtype: np.dtype,
        tiny: float,
        before: GpuFactor | None,
        examination: Examination | None = None,
        memory: Memory = "device",
    ) -> GpuFactor:
        """Factorize the given values, in the memory of `before` if it is not None; waits.

        With an `examination` other than the matrix's own, nothing waits, and `learn` is not called.
        """
        values = np.dtype(inputs.values.dtype)
        pattern = self._begin(dtype, values, memory) if before is None else self.pattern
        matrix = DeviceMatrix(self.entries, inputs)
        if before is None:  # before waiting for lists and offsets
            matrix.send()
            if pattern.light:
                self.entries.send_with_lists(dtype)
            else:
                pattern.send(self.entries.copy_bytes)
                self.entries.begin_copy()
        workspace = self._allocated(pattern, matrix, dtype) if before is None else before.storage
        state = workspace.ready(self.pattern, matrix, tiny)(examination or matrix.examination)
        if before is None:
            pattern.begin_solves(dtype)
        workspace.renew_solver()
        factor = factor_of(matrix, workspace)  # while the device computes
        if examination is None:
            factor.learn(state.read())
        return factor

    def _matched(self, factor: GpuFactor, tiny: float) -> GpuFactor:
        """Refactorize the same values with the scaling of a matching, computed on the host."""
        place = factor.place
        matrix, wanted = place.host, place.wanted or ScalingRequest()
        scaling = scaling_of(matrix, wanted, self.symbolic.method.one_triangle)
        inputs = GivenValues(place.values, scaling, hermitian=place.hermitian)
        return self._compute(inputs, factor.dtype, tiny, factor)

    def _allocated(
        self, pattern: DevicePattern, matrix: DeviceMatrix, dtype: np.dtype
    ) -> FactorWorkspace:
        separate_count = matrix.separate_count(dtype)
        if isinstance(pattern, StreamedPattern):
            return streamed.allocate(pattern, dtype, separate_count)
        return allocate(pattern, dtype, FactorWorkspace, separate_count, checked=True)

    def _with_memory(self, before: GpuFactor | None, dtype: np.dtype) -> GpuFactor | None:
        """Return a factor if its memory suits another factor of this type; else None."""
        if before is None or before.entries is not self.entries or before.dtype != dtype:
            return None
        return before

    def _needed(self, dtype: np.dtype, values: np.dtype) -> int:
        """Return the bytes of a factor, without index arrays that are already on the device."""
        parts = footprint(self.symbolic, self.pattern, dtype, values)
        return parts["total"] - parts["index"] * self.pattern.has_arrays

    def memory(
        self, dtype: np.dtype, values: np.dtype, rhs: int, memory: Memory = "device"
    ) -> dict[str, int]:
        """Return the bytes of a factor; see `memory_report`."""
        return memory_report(self.symbolic, self.pattern, dtype, values, rhs, memory)

    def factorize_fast(
        self, matrix: Canonical, matching: Matching | None, previous: NumericFactor | None
    ) -> None:
        """See `protocol.Backend`: on a GPU there is no fast path for values on the host."""

    def values_on_host(self, values: Array) -> np.ndarray:
        """See `protocol.Backend`."""
        return self._device.download(values)

    def device_values(self, A: Untyped) -> tuple[Array, ValueMap] | None:
        """See `protocol.Backend`."""
        if not hasattr(A, "format") or A.dtype not in SCALARS:
            return None
        dtype = np.dtype(A.dtype)
        with self._reporting_errors(dtype, dtype):
            self._begin(dtype, dtype, "device")  # before any allocation
            order = ValueMap.by_columns(self.symbolic.indices.size)
            result = self.entries.values_of(A, order)
            self._room_for = None if result is None else (dtype, dtype)
            return result

    def from_host(
        self, factor: HostFactor, matrix: Canonical, scaling: Scaling | None
    ) -> NumericFactor:
        """See `protocol.Backend`: only the CPU takes factors that were computed elsewhere."""
        raise TypeError("a factor can be copied from a GPU to the host, but not back")


def factor_of(matrix: DeviceMatrix, workspace: FactorWorkspace) -> GpuFactor:
    """Return the factor in a workspace."""
    if isinstance(workspace, streamed.StreamedWorkspace):
        return StreamedFactor(matrix, workspace)
    return GpuFactor(matrix, workspace)
