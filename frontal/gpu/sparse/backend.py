"""The GPU backend: all fronts of an assembly tree by a few launches of persistent kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...cpu import backend as cpu
from ...method import Method
from ...protocol import NumericFactor, PivotFailure, Progress
from ...symbolic.plan import Plan
from . import factorize as front_factor
from . import health as life
from .factorize import Examination, Storage
from .pattern import Pattern
from .substitute import Solver, Sweeps


class GpuFactor:
    """Panels on the device; see `backend.NumericFactor`.

    Attributes
    ----------
    told : (4,) float64 array or None
        What was found when the factor was examined; see `life.Health`.
    """

    def __init__(
        self, pattern: Pattern, storage: Storage, perturbed: int, told: np.ndarray | None
    ) -> None:
        self.pattern, self.storage, self.perturbed, self.told = pattern, storage, perturbed, told

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors."""
        return self.storage.panels.dtype

    @property
    def pivots(self) -> np.ndarray:
        """Row interchanges on the host."""
        if self.storage.pivots is None:
            return np.empty(0, np.int32)
        return self.pattern.device.download(self.storage.pivots) - 1

    @property
    def panels(self) -> np.ndarray:
        """The panels on the host."""
        return self.pattern.to_host(self.pattern.device.download(self.storage.panels))

    @property
    def nbytes(self) -> int:
        """Bytes of the factor on the device."""
        return self.storage.nbytes

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of L or U, in elimination order, on the host."""
        return life.diagonal(self.pattern, self.storage.panels)

    def growth(self, pointer: Any, values: Any, lanes: int) -> tuple[float, float]:
        """Largest part of an entry of the factors, and the 1-norm of A, given by columns."""
        return life.growth(self.pattern, self.storage.panels, pointer, values, lanes)

    def copy(self) -> GpuFactor:
        """Return a factor on the device that shares no memory with this one."""
        kept = (self.storage.panels, self.storage.inverses, self.storage.pivots)
        storage = Storage(*(None if array is None else array.copy() for array in kept))
        return GpuFactor(self.pattern, storage, self.perturbed, self.told)

    def free(self) -> None:
        """Give the memory back to the pool of the device; this is no factor any more."""
        self.storage = Storage(None, None, None)

    def to_cpu(self) -> cpu.CpuFactor:
        """Return the same factor on the host."""
        return cpu.CpuFactor(
            self.pattern.plan, self.pattern.method, self.panels, self.pivots, self.perturbed
        )

    def __reduce__(self) -> Any:
        """Pickles and copies hold the factor on the host."""
        host = self.to_cpu()
        return cpu.CpuFactor, (host.plan, host.method, host.panels, host.pivots, host.perturbed)

    def solve(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        device = self.pattern.device
        solution = device.upload(np.ascontiguousarray(x.T)).T
        self.solve_on_device(solution, transposed)
        x[...] = device.download(solution)

    def solve_on_device(self, x: Any, transposed: bool) -> None:
        """The same for a device array (n, w); nothing waits."""
        conjugate = transposed and self.pattern.method.one_triangle and self.dtype.kind == "c"
        if conjugate:
            x[...] = x.conj()
        self._solver.solve(x, transposed and not self.pattern.method.one_triangle)
        if conjugate:
            x[...] = x.conj()

    def blocks(self, total: int, flip: bool) -> Iterator[tuple[slice, Sweeps]]:
        """See `front_solve.Solver`."""
        return self._solver.blocks(total, flip)

    @property
    def _solver(self) -> Solver:
        if self.storage.solver is None:
            self.storage.solver = Solver(self.pattern, self.storage)
        return self.storage.solver


class GpuBackend:
    """See `backend.Backend`."""

    name = "gpu"

    def __init__(self, device: Any = None) -> None:
        if device is None:
            from ..runtime.device import device_of

            device = device_of()
        self._device = device
        self.device = device.name

    def upload(self, plan: Plan, method: Method) -> None:
        """See `Backend`."""
        self.pattern = Pattern(self._device, plan, method)

    def factorize(
        self,
        values: Any,
        tiny: float,
        progress: Progress | None,
        previous: NumericFactor | None = None,
        examination: Examination | None = None,
    ) -> NumericFactor:
        """See `Backend`; values may be on the device, where they stay.

        Parameters
        ----------
        examination : callable, optional
            As for `front_factor.factorize`; what it finds becomes `GpuFactor.told`.
        """
        pattern, fronts = self.pattern, len(self.pattern.k)
        if isinstance(previous, GpuFactor) and previous.dtype == values.dtype:
            storage = previous.storage
        else:
            storage = front_factor.allocate(pattern, values.dtype)
        state = front_factor.factorize(pattern, storage, values, tiny, examination)
        if storage.solver is not None:
            storage.solver.renew()
        outcome = state.read()
        if progress:
            progress("factorization", fronts, fronts)
        if outcome.failure is not None:
            raise PivotFailure(outcome.failure)
        told = None if examination is None else outcome.told
        return GpuFactor(pattern, storage, outcome.replaced, told)
