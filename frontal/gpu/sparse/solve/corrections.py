"""Refinement of a solution for one vector: each correction is one graph, and six numbers.

The steps and numbers are those of `factor.refine`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....numeric import refinement
from ....numeric.acceptance import ErrorLimits, judge, judge_for_correction
from ...runtime.array import Array
from ...runtime.device import Device
from .sweep_graph import SweepGraph
from .sweeps import SweepLaunches
from .system import DeviceSystem


class SolvedVector(NamedTuple):
    """A right-hand side, a solution and its residual, (n,) device arrays, with their norms.

    The norms are the first six of a device array: see `DeviceSystem.residual`.
    """

    b: Array
    x: Array
    r: Array
    norms: Array


class SolutionJudge(NamedTuple):
    """Limits of the errors of solutions; norms are the six numbers of `DeviceSystem.residual`."""

    by_component: bool
    limits: ErrorLimits

    def error(self, norms: list[float]) -> float:
        """Return the rowwise error, at least the precision; -1 if not `BackwardErrors.fine`."""
        fine = judge(norms[:5], norms[5], self.by_component, self.limits)[2]
        return max(norms[4], self.limits.eps) if fine else -1.0

    def normwise(self, norms: list[float]) -> float:
        """Return the normwise error."""
        return judge(norms[:5], norms[5], self.by_component, self.limits)[0]

    def for_correction(self, norms: list[float]) -> tuple[float, bool]:
        """Return the merit of a solution, and whether it is accepted."""
        verdict = judge(norms[:5], norms[5], self.by_component, self.limits)
        return judge_for_correction(verdict, norms[4], self.limits)


class VectorCorrections:
    """The `Refinable` solution of a `VectorSolver`, which is overwritten.

    Attributes
    ----------
    norms : list of float
        Norms of the present solution.
    accepted : bool
        The present solution needs no warning.
    """

    def __init__(
        self, device: Device, system: DeviceSystem, solved: SolvedVector, judge: SolutionJudge
    ) -> None:
        self._device, self._solved, self._judge = device, solved, judge
        n, dtype, xp = solved.x.shape[0], solved.x.dtype, device.xp
        norms = xp.empty(6, np.float64)
        self._trial = SolvedVector(solved.b, xp.empty(n, dtype), xp.empty(n, dtype), norms)
        self._trial_norms = device.staged(norms)
        self.norms: list[float] = []
        self.accepted = self._begun = False
        X, R, trial = (v.reshape(n, 1) for v in (solved.x, solved.r, self._trial.x))
        residual = system.residual(self._trial.x, solved.b, self._trial.r, norms)
        steps = [*system.solving(R, trial, norms, before=X), residual]
        self._graph = SweepGraph(device, norms, [*steps, self._trial_norms.fetch])

    @property
    def sweeps(self) -> list[SweepLaunches]:
        """The sweeps in the graph."""
        return self._graph.sweeps

    def begin(self) -> None:
        """Enqueue the first correction of a solution that is enqueued itself: for `improve`."""
        self._graph()

    def improve(self, norms: list[float], begun: bool = False) -> float:
        """Correct a solution with these norms; return its rowwise error, or -1 if not accepted.

        The first correction is computed already if it is `begun` and the device was waited for.
        """
        self.norms, self._begun = norms, begun
        merit, self.accepted = self._judge.for_correction(norms)
        if np.isfinite(merit):
            refinement.refine(self, None)
        return max(self.norms[4], self._judge.limits.eps) if self.accepted else -1.0

    def merit(self) -> np.ndarray:
        """See `Refinable`."""
        merit, self.accepted = self._judge.for_correction(self.norms)
        return np.array([merit])

    def correct(self) -> np.ndarray:
        """See `Refinable`; waits."""
        if not self._begun:
            self._graph()
            self._device.wait()
        self._begun = False
        return np.array([self._judge.for_correction(self._trial_norms.host.tolist())[0]])

    def accept(self, better: np.ndarray) -> None:
        """See `Refinable`."""
        if better.all():
            for new, old in zip(self._trial[1:], self._solved[1:], strict=True):
                self._device.copy(new, old[: new.size])
            self.norms = self._trial_norms.host.tolist()
