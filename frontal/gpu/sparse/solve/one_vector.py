"""Solutions for single right-hand sides by one graph, which includes the steps around the sweeps.

For a small system the launches, and the work of the host between them, cost more than the sweeps.
Here the host copies a vector, launches one graph, and checks six numbers; each correction is one
more graph. In unusual cases the general path (`DeviceSystem`) solves the system.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ...._typing import Untyped
from ....machine.lockfree_property import cached_property
from ....numeric.acceptance import limits_of
from ....numeric.condition import CERTIFIED, ESTIMATED, KNOWN, PROBABLE_FRACTION, enough
from ....numeric.linear_system import FastSolution, MeasuredSolution, Vectors
from ...runtime.array import Array, PinnedMirror
from ...runtime.device import Device
from ...runtime.graph import Launch
from .condition_estimate import WeightedProbes
from .corrections import SolutionJudge, SolvedVector, VectorCorrections
from .rows import Resident
from .sweep_graph import SweepGraph
from .sweeps import SweepLaunches
from .system import DeviceSystem, bound_of, errors_of
from .weighing import SolutionWeighing

# unknowns; for more the saving is negligible, and the vectors would take memory
MAX_GRAPH_UNKNOWNS = 1 << 15


class SystemSource(Resident, Protocol):
    """A matrix on the device, and its systems."""

    def system(self, trans: str, dtype: np.dtype) -> DeviceSystem:
        """Return the system of op(A) for vectors of a scalar type."""
        ...


class _ConditionGraph(NamedTuple):
    """Estimator of a condition number, and the numbers that the graph has copied to the host."""

    weighed: WeightedProbes
    first: PinnedMirror

    def norm(self, enough: float) -> float:
        """See `WeightedProbes.quick`; call it after waiting for the graph."""
        return self.weighed.quick(enough, self.first.host)


class _VectorGraph(SweepGraph):
    """The graph of a solve, and the condition number that it estimates, if any."""

    def __init__(
        self,
        device: Device,
        norms: Array,
        steps: list[Launch | SweepLaunches | Callable[[], object]],
        estimate: _ConditionGraph | None,
    ) -> None:
        super().__init__(device, norms, steps)
        self.estimate = estimate

    def __call__(self) -> None:
        """Launch the graph."""
        super().__call__()
        if self.estimate is not None:
            self.estimate.weighed.note()


class VectorSolver:
    """Solver of op(A) x = b for a vector b, by the kernels of `DeviceSystem`.

    It refers to arrays of a factor, but neither to the factor nor to its storage, which owns this
    solver.

    Attributes
    ----------
    alive : bool
        All memory that it uses still exists.
    """

    def __init__(self, factor: SystemSource, trans: str) -> None:
        self._solver = factor.storage.solver_of(factor.entries.pattern)
        self._read = _read_of(factor)
        self._dtype, self._device = np.dtype(factor.values.dtype), factor.entries.device
        self._shape = (factor.entries.n,)
        limits = limits_of(self._dtype, self._dtype)
        self._judge = SolutionJudge(factor.scales[0] is not None, limits)
        xp, n = self._device.xp, factor.entries.n
        # second columns: right-hand side and solution for a certificate
        self._B, self._X = (xp.empty((n, 2), self._dtype, order="F") for _ in range(2))
        self._b, self._x, self._r = self._B[:, 0], self._X[:, 0], xp.empty(n, self._dtype)
        norms = self._all_norms = xp.empty(8, np.float64)
        self._solved = SolvedVector(self._b, self._x, self._r, norms)
        self._norms, self._trans = self._device.staged(norms), trans
        self._runs: dict[int, _VectorGraph | None] = {}  # by the kind of condition number
        self._corrections: VectorCorrections | None = None
        self._expects_correction = False  # the last solution needed one
        self._weighings: dict[int, SolutionWeighing] = {}  # by the number of references

    def _build(self, factor: SystemSource, how: int) -> _VectorGraph | None:
        """Return the graph of a solve, error measurement and condition number, or None."""
        system, norms = factor.system(self._trans, self._dtype), self._all_norms
        count = 2 if how == CERTIFIED else 1
        B, X, estimate = self._B[:, :count], self._X[:, :count], None
        if how == ESTIMATED:
            probing = system.ready_probing()
            if probing is None:
                return None
            sums = self._device.xp.empty(self._shape, np.float64)
            weighed = WeightedProbes(probing, sums)
            estimate = _ConditionGraph(weighed, self._device.staged(weighed.first))
            residual = system.residual(self._x, self._b, self._r, norms, sums)
            steps = [*system.probed(probing, B, X, norms), residual]
            steps += [weighed.turn, estimate.first.fetch]
        else:
            residual = system.residual(self._x, self._b, self._r, norms)
            steps = [*system.solving(B, X, norms), residual]
        if how == CERTIFIED:
            steps.insert(0, system.summing(self._B[:, 1]))
            steps.append(system.certifying(self._X[:, 1], norms[6:]))
        return _VectorGraph(self._device, norms, [*steps, self._norms.fetch], estimate)

    @classmethod
    def for_factor(cls, factor: SystemSource, trans: str) -> VectorSolver | None:
        """Return the solver of a factor, perhaps of an earlier factor in the same memory.

        None for many unknowns, or if vectors are not of the scalar type of the factor.
        """
        storage = factor.storage
        if (
            not 0 < factor.entries.n <= MAX_GRAPH_UNKNOWNS
            or factor.values.dtype != storage.panels.dtype
        ):
            return None
        solver = storage.vector_solvers.get(trans)
        fits = isinstance(solver, cls) and solver.alive and _same(solver._read, _read_of(factor))
        if isinstance(solver, cls) and fits:
            return solver
        solver = storage.vector_solvers[trans] = cls(factor, trans)
        return solver

    @property
    def alive(self) -> bool:
        used = [run for run in self._runs.values() if run is not None]
        return all(map(self._has, used)) and (not self._corrections or self._has(self._corrections))

    def _has(self, used: _VectorGraph | VectorCorrections) -> bool:
        return all(self._solver.has(sweeps) for sweeps in used.sweeps)

    @cached_property
    def _sent(self) -> PinnedMirror:
        return self._device.staged(self._b)

    @cached_property
    def _fetched(self) -> PinnedMirror:
        return self._device.staged(self._x)

    def __call__(
        self, b: Untyped, how: int, factor: SystemSource, references: Sequence[Array | None] = ()
    ) -> FastSolution | None:
        """Return x with its error and condition number; None unless b is a plain vector.

        The error is negative if x needs a warning or a scaled system. For `how` and `references`
        see `NumericFactor.solve_fast`.
        """
        device = self._device
        on_device = type(b) is not np.ndarray
        if on_device and not device.holds(b):
            return None
        if b.shape != self._shape or b.dtype != self._dtype or not b.flags.c_contiguous:
            return None
        if device.capturing():
            return None
        if how not in self._runs:
            self._runs[how] = self._build(factor, how)
        run = self._runs[how]
        if run is None:
            return None
        if on_device:
            device.copy(b, self._b)
        else:
            self._sent.host[...] = b
            self._sent.send()
        weighing = self._weighing_beside(factor, references) if references else None
        x, error, sizes = self._solution(run, how == KNOWN, factor, on_device, weighing)
        found = FastSolution(x, error, measured=partial(self._measured, sizes))
        if weighing is not None and 0 < sizes[1] < np.inf:
            found = found._replace(normwise=self._judge.normwise(sizes), ratios=weighing.ratios())
        if how == CERTIFIED:
            bound = bound_of(*self._norms.host.tolist()[6:])
            return found._replace(condition=bound if bound < np.inf else -1.0, certified=True)
        if run.estimate is None or error < 0:
            return found
        condition = run.estimate.norm(PROBABLE_FRACTION * enough(self._dtype))
        return found._replace(condition=condition)

    def _solution(
        self,
        run: _VectorGraph,
        alone: bool,
        factor: SystemSource,
        on_device: bool,
        weighing: SolutionWeighing | None,
    ) -> tuple[Vectors, float, list[float]]:
        """Return the solution, its error and its norms; waits.

        If the last solution needed a correction, and the graph does nothing but solve, the first
        correction of this one is enqueued at once.
        """
        corrections = self._ready_corrections() if alone and self._expects_correction else None
        x = None
        run()
        if corrections is None:
            x = self._weighed(on_device, weighing)
        else:
            corrections.begin()
            self._device.wait()
        norms = self._norms.host.tolist()[:6]
        error = self._judge.error(norms)
        self._expects_correction = error < 0 and bool(np.isfinite(norms).all())
        if self._expects_correction:
            error, norms = self._corrected(factor, norms, corrections is not None)
        if x is None or self._expects_correction:
            x = self._weighed(on_device, weighing)
        return x, error, norms

    def _weighed(self, on_device: bool, weighing: SolutionWeighing | None) -> Vectors:
        """Return a copy of the solution, and weigh it; waits."""
        if weighing is not None:
            weighing()
        return self._received(on_device)

    def _weighing_beside(
        self, factor: SystemSource, references: Sequence[Array | None]
    ) -> SolutionWeighing:
        """Return the weighing of solutions, prepared for these references."""
        system, count = factor.system(self._trans, self._dtype), len(references)
        if count not in self._weighings:
            made = SolutionWeighing(self._device, system, self._solved, count)
            self._weighings[count] = made
        weighing = self._weighings[count]
        weighing.compare_with([system.kept_row_sums if one is None else one for one in references])
        return weighing

    def _measured(self, norms: list[float]) -> MeasuredSolution:
        """Return the last solution and its errors, by its norms."""
        errors = errors_of(np.array(norms), self._judge.by_component, self._judge.limits)
        return MeasuredSolution(self._X[:, :1], self._B[:, :1], errors)

    def _received(self, on_device: bool) -> Vectors:
        """Return a copy of the solution, on the device or on the host; waits."""
        device = self._device
        if on_device:
            x = device.xp.empty(self._shape, self._dtype)  # while the device computes
            device.copy(self._x, x)
            device.wait()
            return x
        self._fetched.fetch()
        device.wait()
        return self._fetched.host.copy()

    def _ready_corrections(self) -> VectorCorrections | None:
        """Return the corrections, if they were made and their memory still exists."""
        ready = self._corrections is not None and self._has(self._corrections)
        return self._corrections if ready else None

    def _corrected(
        self, factor: SystemSource, norms: list[float], begun: bool
    ) -> tuple[float, list[float]]:
        """Correct the solution with these norms; return its error, or -1, and its norms.

        See `VectorCorrections.improve` for `begun`.
        """
        corrections = self._ready_corrections()
        if corrections is None:
            system = factor.system(self._trans, self._dtype)
            corrections = VectorCorrections(self._device, system, self._solved, self._judge)
            self._corrections = corrections
        return corrections.improve(norms, begun), corrections.norms


def _read_of(factor: Resident) -> tuple[bool, tuple[Array | None, ...]]:
    """Return the data of a factor outside its storage that launches read."""
    return factor.hermitian, (factor.values, *factor.scales)


def _same(
    first: tuple[bool, tuple[Array | None, ...]], second: tuple[bool, tuple[Array | None, ...]]
) -> bool:
    return first[0] == second[0] and all(a is b for a, b in zip(first[1], second[1], strict=True))
