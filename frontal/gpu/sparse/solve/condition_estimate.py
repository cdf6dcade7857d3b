"""Condition numbers in few steps: probes in the columns of sweeps, beside a right-hand side.

The kernels are those of condition.cu for `structs.PROBES` vectors. Sweeps for as many right-hand
sides and one more take hardly longer than for one, and steps are enqueued one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....numeric.condition import BOUND
from ...runtime.array import NULL, Array, Value
from ...runtime.graph import Launch
from .. import launch
from ..factorize.entries import PatternEntries
from ..structs import PROBES
from .sweeps import DeviceSolver, SweepLaunches

WIDTH = 1 + PROBES  # right-hand sides of sweeps


class Order(NamedTuple):
    """Where entries of vectors come from, or go to, at an end of the sweeps.

    Attributes
    ----------
    place : device array (n,) of int32
    scale : device array (n,), or None
    conjugate : int32
        Whether entries are conjugated.
    """

    place: Array
    scale: Array | None
    conjugate: np.int32

    @property
    def arguments(self) -> tuple[Value, ...]:
        """As kernels take them."""
        return *self.places, self.conjugate

    @property
    def places(self) -> tuple[Value, Value]:
        """The same for what is real."""
        return self.place, NULL if self.scale is None else self.scale


class Ends(NamedTuple):
    """What is around sweeps that solve with op(A).

    Attributes
    ----------
    enter, leave : Order
        Before and after the sweeps.
    transposed : bool
        The sweeps are those of the transpose.
    """

    enter: Order
    leave: Order
    transposed: bool


class ConditionProbes:
    """Estimates || |op(A)^-1| w || by the products of op(A)^-1 and its adjoint with few vectors.

    As `one_norm` does, with three vectors in place of two, and two turns in place of three, which
    is no worse.

    Parameters
    ----------
    entries : PatternEntries
    solver : DeviceSolver
    own, adjoint : Ends
        Of op(A), but for conjugates, and of its adjoint; vectors are of the scalar type of A.

    Attributes
    ----------
    blocks, all_blocks : int
        Of kernels that leave numbers, and of others.
    """

    def __init__(
        self, entries: PatternEntries, solver: DeviceSolver, direct: Ends, adjoint: Ends
    ) -> None:
        self._solver, self.direct, self.adjoint = solver, direct, adjoint
        self.n, self.device, self._dtype = entries.n, entries.device, solver.dtype
        self.blocks, self.all_blocks = (
            blocks(self.n, self.device.limits)
            for blocks in (launch.probing_blocks, launch.system_blocks)
        )
        self._begun: object = None  # the turn of the sweeps that products with A^-H come from
        self._owner: object = None  # whose right-hand sides are there, and since which turn

    @property
    def beside(self) -> bool:
        """Whether the probes that come first are solved for by the sweeps of op(A)."""
        return self.direct.transposed == self.adjoint.transposed

    def sweeps(self) -> SweepLaunches:
        """Those of the adjoint for all probes, when all that is needed is prepared."""
        self._sweeps(self.direct)
        return self._sweeps(self.adjoint)

    def _sweeps(self, ends: Ends) -> SweepLaunches:
        return self._solver.sweeps(WIDTH, ends.transposed)

    def entering(self, alone: bool) -> Launch:
        """What makes the vectors to begin with right-hand sides; see `begin`."""
        arguments = np.int32(alone), self._sweeps(self.adjoint).vectors
        return self.launching(
            "begin", *self.adjoint.enter.places, *arguments, blocks=self.all_blocks
        )

    def begin(self) -> None:
        """Enqueue the products with A^-H alone."""
        self.entering(alone=True)()
        self.sweep(self.adjoint)
        self.note()

    def note(self) -> None:
        """Take note of products with A^-H that the last sweeps have made."""
        self._begun = self._sweeps(self.adjoint).turn

    def begun(self) -> None:
        """Have the products with A^-H, which are made if anything came between."""
        if self._begun != self._sweeps(self.adjoint).turn:
            self.begin()

    def gives(self, owner: object) -> None:
        """Take note of right-hand sides, behind the last sweeps, of weights of an owner."""
        self._owner = owner, self._sweeps(self.direct).turn

    def has(self, owner: object) -> bool:
        """Whether its right-hand sides are still there."""
        return self._owner == (owner, self._sweeps(self.direct).turn)

    def launching(
        self, name: str, *arguments: Value, count: int | None = None, blocks: int | None = None
    ) -> Launch:
        """A kernel of condition.cu, whose blocks leave numbers unless it has other `blocks`."""
        kernel = self.device.kernel("condition.cu", f"condition_{name}", self._dtype)
        converted = np.int32(self.n if count is None else count), *arguments
        return Launch(kernel, blocks or self.blocks, launch.SYSTEM_THREADS, converted)

    def sweep(self, ends: Ends) -> None:
        """Enqueue solutions for all vectors."""
        self._sweeps(ends)()


class WeightedProbes:
    """The numbers that come of probes for weights (n,), which are enqueued one after the other.

    Attributes
    ----------
    first : device array (PROBES, blocks)
        What `bound_by` is told, when `turn` has left it.
    turn : Launch
        What makes right-hand sides of the first products with A^-H.
    """

    def __init__(self, probing: ConditionProbes, weights: Array) -> None:
        self._probing, self._weights = probing, weights
        sweeps = probing.sweeps()
        self._vectors, self._solution = sweeps.vectors, sweeps.solution
        self._numbers = probing.device.xp.empty((4 * PROBES, probing.blocks), np.float64)
        self.first = self._numbers[:PROBES]
        self.turn = self._turning(self.first)
        self._largest = np.nan

    def begin(self) -> None:
        """Enqueue the first turn, and what comes before it unless that has been begun."""
        self._probing.begun()
        self.turn()
        self.note()

    def note(self) -> None:
        """Take note of the first turn, if somebody else enqueues it."""
        self._probing.gives(self)

    def bound_by(self, first: np.ndarray) -> float:
        """See `numeric.condition.BOUND`, of which there are `PROBES` vectors."""
        return BOUND * self._probing.n * float(self._sums(first).max())

    def quick(self, enough: float, first: np.ndarray | None = None) -> float:
        """A bound that is no more than `enough`, or what `norm` finds; waits.

        A caller that has `first` on the host already gives it.
        """
        bound = self.bound_by(self._probing.device.download(self.first) if first is None else first)
        return bound if bound <= enough else self.norm()

    def norm(self) -> float:
        """The norm, estimated from below in one turn; not finite where it is none; waits."""
        probing, gains = self._probing, self._numbers[PROBES : 3 * PROBES]
        if not probing.has(self):
            self.begin()
        probing.sweep(probing.direct)
        probing.launching("reach", *probing.direct.leave.places, self._solution, gains)()
        first, gains = np.split(probing.device.download(self._numbers[: 3 * PROBES]), [PROBES])
        self._largest = float(np.max([self._by_block(gains)[:, :PROBES].max(), *self._sums(first)]))
        return self._largest

    def better(self) -> float:
        """The same in two turns, right behind `norm`; waits."""
        probing, gains, sums = (
            self._probing,
            self._numbers[PROBES : 3 * PROBES],
            self._numbers[3 * PROBES :],
        )
        rows = probing.device.xp.empty(PROBES, np.int32)
        probing.launching("choose", gains, rows, count=probing.blocks, blocks=1)()
        arguments = *probing.adjoint.enter.places, rows, self._vectors
        probing.launching("units", *arguments, blocks=probing.all_blocks)()
        probing.sweep(probing.adjoint)
        self._turning(sums)()
        return float(np.max([self._largest, *self._sums(probing.device.download(sums))]))

    def _sums(self, numbers: np.ndarray) -> np.ndarray:
        """Sums over the blocks."""
        return self._by_block(numbers).sum(axis=0)

    def _by_block(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers that each block has left."""
        return numbers.reshape(self._probing.blocks, -1)

    def _turning(self, sums: Array) -> Launch:
        """What makes solutions of the adjoint right-hand sides."""
        solved, entered = self._probing.adjoint.leave, self._probing.direct.enter
        arguments = *solved.arguments, entered.conjugate
        return self._probing.launching(
            "turn", *arguments, self._weights, self._solution, self._vectors, sums
        )
