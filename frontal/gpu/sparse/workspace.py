"""The memory of a factor, with its factorization, solver and scaling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ...numeric.backoff import Backoff
from ..runtime.array import Array
from ..runtime.device import Device
from .device_matrix import DeviceMatrix
from .factorize.equilibration import Equilibration
from .factorize.launches import Factorization
from .pattern import DevicePattern
from .solve.sweeps import DeviceSolver
from .storage import Examination, State, Storage, allocate


class PendingFactorization(NamedTuple):
    """A running factorization, with its matrix."""

    values: Array  # the caller's array
    matrix: DeviceMatrix
    tiny: float
    state: State


class Computes(Protocol):
    """A callable that factorizes, as `Factorization` does."""

    tiny: float
    values: Array

    def __call__(self, examination: Examination | None = None) -> State: ...


@dataclass
class FactorWorkspace(Storage):
    """The memory of a factor, and the objects that compute with it."""

    factorization: Computes | None = None  # overwrites the factor
    solver: DeviceSolver | None = None  # solves with the factor
    equilibration: Equilibration | None = None  # scales the values of the matrix
    begun: PendingFactorization | None = None  # launched before it was requested
    # by op(A): the `VectorSolver` that solves for one vector
    vector_solvers: dict[str, object] = field(default_factory=dict)
    backoff: Backoff = field(default_factory=Backoff)  # of factors in this memory

    def solver_of(self, pattern: DevicePattern) -> DeviceSolver:
        """Return the solver with the factor, created at the first call."""
        if self.solver is None:
            self.solver = self._new_solver(pattern)
        return self.solver

    def _new_solver(self, pattern: DevicePattern) -> DeviceSolver:
        return DeviceSolver(pattern, self)

    def room(self, pattern: DevicePattern, values: Array, separate_count: int) -> Array:
        """Return the memory for the values of a matrix during its factorization.

        It is the memory of `values` if `separate_count` is 0.
        """
        if not separate_count:
            return values
        # only the first factorization has them in its allocation
        if self.spare is None or self.spare.values.size != separate_count:
            room = pattern.device.xp.empty(separate_count, self.panels.dtype)
            self.spare = None if self.spare is None else self.spare._replace(values=room)
            return room
        return self.spare.values

    def factorization_of(self, pattern: DevicePattern, values: Array, tiny: float) -> Computes:
        """Return the factorization of the values in this array, created at the first call."""
        last = self.factorization
        if last is None or last.tiny != tiny or last.values is not values:
            last = self.factorization = self._new_factorization(pattern, values, tiny)
        return last

    def _new_factorization(self, pattern: DevicePattern, values: Array, tiny: float) -> Computes:
        return Factorization(pattern, self, values, tiny)

    def ready(self, pattern: DevicePattern, matrix: DeviceMatrix, tiny: float) -> Computes:
        """Return the factorization of a matrix, after copying its values to its memory."""
        matrix.settle(self)
        room = self.room(pattern, matrix.values, matrix.separate_count(self.panels.dtype))
        self.equilibration = matrix.scale(room, self.equilibration)
        if pattern.method.signed:
            self.signs = matrix.entries.signs(matrix.values, self.signs)
        return self.factorization_of(pattern, room, tiny)

    def renew_solver(self) -> None:
        """Reset the solver for a new factor."""
        if self.solver is not None:
            self.solver.renew()

    def copy(self, pattern: DevicePattern) -> FactorWorkspace:
        """Return a copy of the factor in other memory, without solver and factorization."""
        separate_count = self.spare.values.size if self.spare else 0
        twin = allocate(pattern, self.panels.dtype, FactorWorkspace, separate_count)
        end = max(pattern.layout(self.panels.dtype).places.panels, 1)
        pattern.device.copy(self.panels[:end], twin.panels[:end])
        self.copy_vectors(pattern.device, twin)
        return twin

    def copy_vectors(self, device: Device, twin: FactorWorkspace) -> None:
        """Copy all arrays except panels to the memory of another factor."""
        for source, target in (
            (self.pivots, twin.pivots),
            (self.largest, twin.largest),
            *zip(self.blocks or (), twin.blocks or (), strict=True),
        ):
            if source is not None and target is not None:
                device.copy(source, target)
        twin.values = None if self.values is None else self.values.copy()
