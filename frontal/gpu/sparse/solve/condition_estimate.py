"""Condition numbers in few steps: probes in the columns of sweeps, beside a right-hand side.

The kernels are those of condition.cu for `structs.PROBES` vectors. Sweeps for `PROBES` + 1
right-hand sides take hardly longer than for one, and steps are enqueued one after another.
"""

from __future__ import annotations

import numpy as np

from ....numeric.condition import BOUND
from ...runtime.array import Array, Value
from ...runtime.graph import Launch
from .. import launch
from ..factorize.entries import PatternEntries
from ..structs import PROBES
from .rows import Ends
from .sweeps import ColumnBlock, DeviceSolver, SweepLaunches


class ConditionProbes:
    """Estimator of || |op(A)^-1| w || by products of op(A)^-1 and its adjoint with few vectors.

    It works as `one_norm` does, with three vectors instead of two, and two steps instead of three,
    which is as accurate. `direct` is op(A), up to conjugation, and `adjoint` its adjoint; vectors
    are of the scalar type of A.

    Attributes
    ----------
    blocks, all_blocks : int
        Blocks of kernels that output numbers for each block, and of other kernels.
    """

    def __init__(
        self, entries: PatternEntries, solver: DeviceSolver, direct: Ends, adjoint: Ends
    ) -> None:
        self._solver, self.direct, self.adjoint = solver, direct, adjoint
        self.n, self.device, self._dtype = entries.n, entries.device, solver.dtype
        self.blocks = launch.probing_blocks(self.n, self.device.limits)
        self.all_blocks = launch.system_blocks(self.n, self.device.limits)
        self._begun: object = None  # turn of the sweeps that computed the products with A^-H
        self._owner: object = None  # owner of the present right-hand sides, and their turn

    @property
    def beside(self) -> bool:
        """Return whether the first probes are solved for by the sweeps of op(A)."""
        return self.direct.transposed == self.adjoint.transposed

    def sweeps(self) -> SweepLaunches:
        """Prepare all sweeps; return those of the adjoint for all probes."""
        self._sweeps(self.direct)
        return self._sweeps(self.adjoint)

    def _sweeps(self, ends: Ends) -> SweepLaunches:
        return self._solver.sweeps(launch.PROBING_WIDTH, ends.transposed)

    def entering(self, alone: bool) -> Launch:
        """Return the launch that makes the first vectors right-hand sides; see `begin`."""
        arguments = *self.adjoint.enter.places, np.int32(alone), self._sweeps(self.adjoint).vectors
        return self.launching("begin", *arguments, blocks=self.all_blocks)

    def begin(self) -> None:
        """Enqueue the products with A^-H, without a right-hand side beside them."""
        self.entering(alone=True)()
        self.sweep(self.adjoint)
        self.note()

    def note(self) -> None:
        """Record that the last sweeps computed the products with A^-H."""
        self._begun = self._sweeps(self.adjoint).turn

    def begun(self) -> None:
        """Enqueue the products with A^-H unless they are still valid."""
        if self._begun != self._sweeps(self.adjoint).turn:
            self.begin()

    def gives(self, owner: object) -> None:
        """Record that right-hand sides with an owner's weights follow the last sweeps."""
        self._owner = owner, self._sweeps(self.direct).turn

    def has(self, owner: object) -> bool:
        """Return whether an owner's right-hand sides are still valid."""
        return self._owner == (owner, self._sweeps(self.direct).turn)

    def launching(
        self, name: str, *arguments: Value, count: int | None = None, blocks: int | None = None
    ) -> Launch:
        """Return a launch of condition.cu; by default its blocks output numbers."""
        kernel = self.device.kernel("condition.cu", f"condition_{name}", self._dtype)
        converted = np.int32(self.n if count is None else count), *arguments
        return Launch(kernel, blocks or self.blocks, launch.SYSTEM_THREADS, converted)

    def sweep(self, ends: Ends) -> None:
        """Enqueue the solution for all vectors."""
        self._sweeps(ends)()


class WeightedProbes:
    """Results of probes for weights (n,), enqueued one after another.

    Attributes
    ----------
    first : device array (PROBES, blocks)
        Input of `bound_by`, written by `turn`.
    turn : Launch
        Makes right-hand sides of the first products with A^-H.
    """

    def __init__(self, probing: ConditionProbes, weights: Array) -> None:
        self._probing, self._weights = probing, weights
        sweeps = probing.sweeps()
        self._vectors, self._solution = sweeps.vectors, sweeps.solution
        self._numbers = probing.device.xp.empty((4 * PROBES, probing.blocks), np.float64)
        self.first = self._numbers[:PROBES]
        self.turn = self._turning(self.first)
        self._largest, self._turned = np.nan, False

    def begin(self) -> None:
        """Enqueue the first turn, and the products before it unless they are valid."""
        self._probing.begun()
        self.turn()
        self.note()

    def note(self) -> None:
        """Record the first turn, if it was enqueued by others."""
        self._probing.gives(self)

    def bound_by(self, first: np.ndarray) -> float:
        """Return the bound of `numeric.condition.BOUND`, the largest of `PROBES` vectors."""
        return BOUND * self._probing.n * float(self._sums(first).max())

    def quick(self, enough: float, first: np.ndarray | None = None) -> float:
        """Return a bound of at most `enough`, or else `norm`; waits.

        `first` is the attribute `first`, if it is already on the host.
        """
        bound = self.bound_by(self._probing.device.download(self.first) if first is None else first)
        return bound if bound <= enough else self.norm()

    def norm(self) -> float:
        """Return the norm, estimated from below in one step; it may not be finite; waits."""
        probing, gains = self._probing, self._numbers[PROBES : 3 * PROBES]
        if not probing.has(self):
            self.begin()
        probing.sweep(probing.direct)
        probing.launching("reach", *probing.direct.leave.places, self._solution, gains)()
        first, gains = np.split(probing.device.download(self._numbers[: 3 * PROBES]), [PROBES])
        self._largest = float(np.max([self._by_block(gains)[:, :PROBES].max(), *self._sums(first)]))
        return self._largest

    def better(self) -> float:
        """Return the norm estimated in two steps; call it immediately after `norm`; waits."""
        probing, numbers = self._probing, self._numbers
        gains, sums = numbers[PROBES : 3 * PROBES], numbers[3 * PROBES :]
        rows = probing.device.xp.empty(PROBES, np.int32)
        probing.launching("choose", gains, rows, count=probing.blocks, blocks=1)()
        places = probing.adjoint.enter.places
        probing.launching("units", *places, rows, self._vectors, blocks=probing.all_blocks)()
        probing.sweep(probing.adjoint)
        self._turning(sums)()
        self._turned = True
        return float(np.max([self._largest, *self._sums(probing.device.download(sums))]))

    def products(self) -> ColumnBlock:
        """Return the sweeps with op(A)^-1 S w for the signs S of the last step's probes.

        Call it immediately after `norm` or `better`.
        """
        if self._turned:
            self._probing.sweep(self._probing.direct)
        return self._probing.sweeps()

    def _sums(self, numbers: np.ndarray) -> np.ndarray:
        """Return the sums over the blocks."""
        return self._by_block(numbers).sum(axis=0)

    def _by_block(self, numbers: np.ndarray) -> np.ndarray:
        """Return the numbers that each block output, one row for each."""
        return numbers.reshape(self._probing.blocks, -1)

    def _turning(self, sums: Array) -> Launch:
        """Return the launch that turns solutions of the adjoint into right-hand sides."""
        solved, entered = self._probing.adjoint.leave, self._probing.direct.enter
        vectors = self._weights, self._solution, self._vectors, sums
        return self._probing.launching("turn", *solved.arguments, entered.conjugate, *vectors)
