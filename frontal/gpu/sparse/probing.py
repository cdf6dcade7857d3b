"""Condition numbers in few steps: probes in the columns of sweeps, beside a right-hand side.

The kernels are those of condition.cu for `structs.PROBES` vectors. Sweeps for as many right-hand
sides and one more take hardly longer than for one, and steps are enqueued one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..runtime.array import NULL, Array, Value
from ..runtime.graph import Launch
from . import launch
from .entries import Entries
from .structs import PROBES
from .substitute import Solver, Sweeps

WIDTH = 1 + PROBES  # right-hand sides of sweeps
_LEAST = 3  # of a vector to begin with, 1/n is up to so many times an entry


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


class Probing:
    """Estimates || |op(A)^-1| w || by the products of op(A)^-1 and its adjoint with few vectors.

    As `one_norm` does, with three vectors in place of two, and two turns in place of three, which
    is no worse.

    Parameters
    ----------
    entries : Entries
    solver : Solver
    own, adjoint : Ends
        Of op(A), but for conjugates, and of its adjoint; vectors are of the scalar type of A.

    Attributes
    ----------
    blocks, all_blocks : int
        Of kernels that leave numbers, and of others.
    """

    def __init__(self, entries: Entries, solver: Solver, own: Ends, adjoint: Ends) -> None:
        self._solver, self.own, self.adjoint = solver, own, adjoint
        self.n, self.device, self._dtype = entries.n, entries.device, solver.dtype
        self.blocks, self.all_blocks = (
            blocks(self.n, self.device.limits)
            for blocks in (launch.probing_blocks, launch.system_blocks)
        )
        self._begun: object = None  # the turn of the sweeps that products with A^-H come from

    @property
    def beside(self) -> bool:
        """Whether the probes that come first are solved for by the sweeps of op(A)."""
        return self.own.transposed == self.adjoint.transposed

    def sweeps(self) -> Sweeps:
        """Those of the adjoint for all probes, when all that is needed is prepared."""
        self._sweeps(self.own)
        return self._sweeps(self.adjoint)

    def _sweeps(self, ends: Ends) -> Sweeps:
        return self._solver.sweeps(WIDTH, ends.transposed)

    def begin(self, alone: bool) -> None:
        """Enqueue the products with A^-H; not `alone` they come with what has entered before."""
        sweeps = self._sweeps(self.adjoint)
        given = np.int32(alone), sweeps.vectors
        self.launch("begin", *self.adjoint.enter.places, *given, blocks=self.all_blocks)
        sweeps.enqueue()
        self._begun = sweeps.turn

    def begun(self) -> Sweeps:
        """The sweeps that have the products with A^-H, which are made if anything came between."""
        if self._begun != self._sweeps(self.adjoint).turn:
            self.begin(alone=True)
        self._begun = None
        return self._sweeps(self.adjoint)

    def launch(
        self, name: str, *arguments: Value, count: int | None = None, blocks: int | None = None
    ) -> None:
        """Enqueue a kernel of condition.cu, whose blocks leave numbers unless other `blocks` do."""
        kernel = self.device.kernel("condition.cu", f"condition_{name}", self._dtype)
        given = np.int32(self.n if count is None else count), *arguments
        Launch(kernel, blocks or self.blocks, launch.SYSTEM_THREADS, given)()

    def sweep(self, ends: Ends) -> None:
        """Enqueue solutions for all vectors."""
        self._sweeps(ends).enqueue()


class Weighed:
    """The numbers that come of probes for weights (n,), which are enqueued one after the other."""

    def __init__(self, probing: Probing, weights: Array) -> None:
        self._of, self._weights = probing, weights
        sweeps = probing.begun()
        self._vectors, self._solution = sweeps.vectors, sweeps.solution
        self._found = probing.device.xp.empty((4 * PROBES, probing.blocks), np.float64)
        self._turn(self._found[:PROBES])

    def bound(self) -> float:
        """A number that is smaller than the norm with a probability that is next to none; waits.

        It is less than δ times the norm with one of δ^3, whatever the matrix, and may be larger
        than it by the order (cf. Dixon, "Estimating extremal eigenvalues and condition numbers of
        matrices", 1983).
        """
        sums = self._of.device.download(self._found[:PROBES])
        return _LEAST * self._of.n * float(self._by_block(sums).sum(axis=0).max())

    def norm(self, turns: int) -> float:
        """The norm, estimated from below in one turn or two; not finite where it is none; waits."""
        of, gains = self._of, self._found[PROBES : 3 * PROBES]
        of.sweep(of.own)
        of.launch("reach", *of.own.leave.places, self._solution, gains)
        if turns == 2:
            rows = of.device.xp.empty(PROBES, np.int32)
            of.launch("choose", gains, rows, count=of.blocks, blocks=1)
            of.launch("units", *of.adjoint.enter.places, rows, self._vectors, blocks=of.all_blocks)
            of.sweep(of.adjoint)
            self._turn(self._found[3 * PROBES :])
        found = of.device.download(self._found)
        first, gains, last = np.split(found, (PROBES, 3 * PROBES))
        sums = [self._by_block(one).sum(axis=0) for one in (first, last)[:turns]]
        return float(np.max([self._by_block(gains)[:, :PROBES].max(), *np.concatenate(sums)]))

    def _by_block(self, found: np.ndarray) -> np.ndarray:
        """The numbers that each block has left."""
        return found.reshape(self._of.blocks, -1)

    def _turn(self, sums: Array) -> None:
        """Solutions of the adjoint become right-hand sides."""
        solved, given = self._of.adjoint.leave, self._of.own.enter
        of = *solved.arguments, given.conjugate
        self._of.launch("turn", *of, self._weights, self._solution, self._vectors, sums)
