"""The GPU backend: all fronts of an assembly tree by a few launches of persistent kernels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import FactorMemoryError
from ...matrix import Canonical
from ...method import tiny_pivot
from ...protocol import HostFactor, NumericFactor, PivotFailure, Progress
from ...symbolic.matching import Matching
from ...symbolic.scaling import Scaling
from ...symbolic.symbolic import Symbolic
from ..runtime import device as devices
from ..runtime.array import Array
from ..runtime.device import Device
from . import storage as memory
from .entries import Entries
from .factor import GpuFactor
from .footprint import footprint
from .health import exactly_hermitian, quoting_memory
from .matrix import DeviceMatrix
from .pattern import Pattern
from .prepared import Prepared, begin_kernels
from .storage import Outcome

_MUCH, _ROW = 4, 1 << 10  # times the panels and the pattern, and bytes a row: more than all takes


class GpuBackend:
    """See `protocol.Backend`.

    Parameters
    ----------
    symbolic : Symbolic
    device : Device, optional
        The current one, if not given.
    """

    fallback: str | None = "cpu"

    def __init__(self, symbolic: Symbolic, device: Device | None = None) -> None:
        self._device = devices.device_of() if device is None else device
        self.symbolic, self.device = symbolic, self._device.name

    @cached_property
    def pattern(self) -> Pattern:
        """The fronts on the device."""
        return Pattern(self._device, self.symbolic.plan, self.symbolic.method)

    @cached_property
    def entries(self) -> Entries:
        """The pattern of A on the device."""
        return Entries(self.symbolic, self.pattern)

    def factorize(
        self,
        values: Any,
        scaling: Scaling | None,
        *,
        there: bool = False,
        hermitian: bool = False,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        delaying: bool = True,
        dtype: np.dtype | None = None,
        tiny: float | None = None,
    ) -> GpuFactor:
        """See `protocol.Backend`; pivots below `tiny` are replaced, if columns go on elsewhere."""
        dtype = np.dtype(values.dtype if dtype is None else dtype)
        before = previous if isinstance(previous, GpuFactor) else None
        with self._lists(dtype, before, values.dtype):
            scales = before.scales if before is not None and before.scaling is scaling else None
            matrix = DeviceMatrix(
                self.entries, values, scaling, scales, there=there, hermitian=hermitian
            )
            least = tiny_pivot(dtype, self.symbolic.method) if tiny is None else tiny
            storage, outcome = self._compute(matrix, dtype, least, before)
        if there and exactly_hermitian(self.symbolic.method, dtype, outcome.examined):
            matrix.hermitian = self.entries.nnz > 0
        fronts = len(self.pattern.k)
        if progress:
            progress("factorization", fronts, fronts)
        if outcome.failure is not None:
            raise PivotFailure(outcome.failure)
        return GpuFactor(matrix, storage, outcome.replaced, outcome.examined)

    @contextmanager
    def _lists(self, dtype: np.dtype, before: GpuFactor | None, values: np.dtype) -> Iterator[None]:
        """Begin the lists of tasks; none is at work any more where that leads nowhere."""
        with quoting_memory(self._device, lambda: self._needed(dtype, values)):
            try:
                if not self._has_memory(before, dtype):  # where all has begun
                    self._require(dtype, values)
                    begin_kernels(self.pattern, dtype)
                    self.pattern.begin(dtype)
                yield
            except BaseException:
                self.pattern.finish()
                raise

    def _compute(
        self,
        matrix: DeviceMatrix,
        dtype: np.dtype,
        tiny: float,
        before: GpuFactor | None,
        examined: bool = True,
    ) -> tuple[Prepared, Outcome]:
        """Factorize, in the memory of the factor before if that fits; waits for the outcome."""
        pattern = self.pattern
        if before is not None and self._has_memory(before, dtype):
            storage = before.storage
        else:
            storage = Prepared(**vars(memory.allocate(pattern, dtype, matrix.apart(dtype))))
        matrix.settle(storage)
        room = storage.room(pattern, matrix.values, matrix.apart(dtype))
        matrix.put_scaled(room)
        examination = matrix.examination if examined else None
        state = storage.factorization_of(pattern, room, tiny)(examination)
        if storage.solver is not None:
            storage.solver.renew()
        return storage, state.read()

    def _has_memory(self, before: GpuFactor | None, dtype: np.dtype) -> bool:
        """Whether a factor has the memory for another one."""
        return before is not None and before.pattern is self.pattern and before.dtype == dtype

    def _needed(self, dtype: np.dtype, values: np.dtype) -> int:
        """Bytes that a factor takes, beside what is there of its pattern."""
        told = self.memory(dtype, values, 1)
        return told["total"] - (told["index"] if "arrays" in vars(self.pattern) else 0)

    def _require(self, dtype: np.dtype, values: np.dtype) -> None:
        """Raise if there is too little memory, before any is taken; to count takes time, too."""
        available, symbolic = self._device.free_memory(), self.symbolic
        panels, others = self.pattern.most
        much = _MUCH * (panels * dtype.itemsize + symbolic.indices.nbytes) + _ROW * symbolic.n
        if available < much + (others + memory.working(self.pattern, dtype)) * dtype.itemsize:
            needed = self._needed(dtype, values)
            if needed > available:
                raise FactorMemoryError(needed, available)

    def memory(self, dtype: np.dtype, values: np.dtype, rhs: int) -> dict[str, int]:
        """Bytes on the device, see `footprint`."""
        return footprint(self.symbolic, self.pattern, dtype, values, rhs)

    def at_once(
        self, matrix: Canonical, matching: Matching | None, previous: NumericFactor | None
    ) -> None:
        """See `protocol.Backend`: values on the host are moved first."""

    def values_on_host(self, values: Array) -> np.ndarray:
        """See `protocol.Backend`."""
        return self._device.download(values)

    def restored(
        self, factor: HostFactor, matrix: Canonical, scaling: Scaling | None
    ) -> NumericFactor:
        """See `protocol.Backend`: only hosts take factors that were computed elsewhere."""
        raise TypeError("a factor goes from a GPU to the host, and not back")
