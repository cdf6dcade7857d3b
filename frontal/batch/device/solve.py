"""Solutions of the systems of a forest on a GPU; each system is refined and checked by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...cpu.probes import begin
from ...gpu.runtime.array import Array
from ...gpu.runtime.graph import Launch
from ...gpu.sparse.batch.small_trees import SmallTreeSolver
from ...gpu.sparse.batch.statistics import BatchStatistics
from ...gpu.sparse.factor import GpuFactor
from ...gpu.sparse.solve.system import DeviceSystem
from ...numeric.linear_system import eps_of
from ...numeric.refinement import refine
from ...numeric.thresholds import THRESHOLDS, margin_of
from ..input import AnyArray
from ..substitute import Report
from .checks import BatchChecks, CheckedSolutions


@dataclass
class BatchSolver:
    """The solver of a forest, with the results that it reuses between solves."""

    count: int
    statistics: BatchStatistics
    checks: BatchChecks
    trees: SmallTreeSolver
    # for A (False), and A^T or A^H (True): infinity norms (batch,) on the device, and the launch
    # that computes them
    measures: dict[bool, tuple[Array, Launch]] = field(default_factory=dict)
    # keys of `measures` whose norms are those of the current factors
    measured: set[bool] = field(default_factory=set)
    # 0 for A, 1 for A^T and A^H: condition numbers are those of the current factors
    known: set[int] = field(default_factory=set)
    certifies: bool = True  # no certificate of a condition number has failed
    # eps of the vectors that condition numbers hold for; 0 before the first solve
    precision: float = 0.0
    # initial vectors of estimates by scalar type
    probes: dict[np.dtype, Array] = field(default_factory=dict)

    def begin(self, dtype: np.dtype) -> None:
        """Discard condition numbers if the precision of the vectors has changed."""
        if self.precision not in (0.0, eps_of(dtype)):
            self.checks.known.counted[...] = np.nan
            self.known.clear()
        self.precision = eps_of(dtype)

    def renew(self) -> None:
        """Discard norms and condition numbers: values are new."""
        self.measured.clear()
        self.known.clear()

    def norms(self, factor: GpuFactor, trans: str) -> Array:
        """Return the infinity norms of op(A) without waiting."""
        side = trans != "N"
        if side not in self.measures:
            values: AnyArray = factor.values
            rows = factor.system(trans, factor.dtype).rows
            self.measures[side] = self.statistics.norms(rows, values.reshape(self.count, -1))
        norms, measure = self.measures[side]
        if side not in self.measured:
            measure()
            self.measured.add(side)
        return norms


class BatchSolutions(NamedTuple):
    """Solutions, and their report on demand."""

    X: AnyArray  # (batch, k, n): on the device
    # (batch,) bool: systems that need no warning; None if that holds for all
    clean: np.ndarray | None
    report: Callable[[], Report]  # returns the `Report` of all systems


class _ForestSolution(NamedTuple):
    """Solutions (batch * n, k), their residuals and errors; see `BatchChecks.solutions`."""

    X: Array
    R: Array
    sizes: AnyArray


class _ForestSystem:
    """op(A) X = B for vectors (batch * n, k) on the device.

    `asked` (batch,) uint8 marks the systems to solve; None for all.
    """

    def __init__(
        self,
        factor: GpuFactor,
        solver: BatchSolver,
        trans: str,
        dtype: np.dtype,
        asked: AnyArray,
    ) -> None:
        compatible = dtype == factor.dtype and not factor.entries.long
        self._trees = solver.trees if compatible and solver.trees.suits(dtype) else None
        self.factor, self.count, self.trans, self.dtype = factor, solver.count, trans, dtype
        self.device, self.eps, self.asked = factor.entries.device, eps_of(dtype), asked
        self.xp: AnyArray = self.device.xp
        self.by_component = factor.scales[0] is not None
        self._solver, self.which = solver, int(trans != "N")
        self.known = solver.checks.known
        self._norm = solver.norms(factor, trans)
        self._order = factor.entries.n // max(solver.count, 1)

    @cached_property
    def system(self) -> DeviceSystem:
        """The solver for vectors of all systems."""
        return self.factor.system(self.trans, self.dtype)

    def by_system(self, V: Array) -> AnyArray:
        """Return vectors as (k, batch, n)."""
        return V.T.reshape(V.shape[1], self.count, -1)

    def largest(self, V: Array) -> AnyArray:
        """Return the largest modulus of each vector of each system, (k, batch)."""
        return self.xp.abs(self.by_system(V)).max(axis=2).astype(np.float64)

    def certified(self, B: Array) -> _ForestSolution | None:
        """Return solutions with certified condition numbers; None if not to be tried."""
        solver, trees = self._solver, self._trees
        if trees is None or not solver.certifies or self.which in solver.known:
            return None
        if self.asked is not None or B.shape[1] > 1 or not trees.certifies(self.dtype):
            return None
        bound: AnyArray = self.known.counted[self.which]
        solutions = _ForestSolution(*trees.solved(self.factor, self.trans, B, None, B, bound))
        self.known.condition[self.which] = bound
        return solutions

    def solved(self, rhs: Array, before: Array | None, B: Array) -> _ForestSolution:
        """Return `before` plus solutions for `rhs`, with residuals and errors."""
        if self._trees is not None:
            return _ForestSolution(*self._trees.solved(self.factor, self.trans, rhs, before, B))
        system = self.system
        X = system.solve(rhs) if before is None else system.corrected(before, rhs)
        R, norms = system.sizes(X, B, self.count)
        sizes: AnyArray = norms[:-1].reshape(B.shape[1], 5, self.count)
        return _ForestSolution(X, R, sizes)

    @property
    def first_probes(self) -> AnyArray:
        """Initial vectors of estimates, (2, batch * n); computed once."""
        probes, n = self._solver.probes, self._order
        if self.dtype not in probes:
            first = np.empty((2, n))
            begin(first)
            block = np.tile(first[:, None], (1, self.count, 1)).reshape(2, -1)
            probes[self.dtype] = self.device.upload(block.astype(self.dtype))
        return probes[self.dtype]

    @cached_property
    def row_sums(self) -> AnyArray:
        """Row sums of |op(A)|, (batch, n) float64."""
        sums: AnyArray = self.system.row_sums()
        return sums.reshape(self.count, -1)

    def checked(
        self, solutions: _ForestSolution, solution_condition: Array | None = None
    ) -> CheckedSolutions:
        """Check solutions by errors, and by their condition numbers if given; wait."""
        return self._solver.checks.solutions(
            solutions.sizes,
            self._norm,
            self.which,
            self.asked,
            solution_condition,
            types=(self.factor.dtype, self.dtype),
            by_component=self.by_component,
        )

    def chosen(
        self, better: AnyArray, trial: _ForestSolution, current: _ForestSolution
    ) -> _ForestSolution:
        """Return `trial` for columns that are `better`, (k, batch), and otherwise `current`."""
        xp, mask = self.xp, better[:, :, None]
        X, R = (
            xp.where(mask, self.by_system(a), self.by_system(b)).reshape(len(better), -1).T
            for a, b in zip(trial[:2], current[:2], strict=True)
        )
        sizes = xp.where(better[:, None], trial.sizes, current.sizes)
        return _ForestSolution(X, R, sizes)


def solved(
    factor: GpuFactor, solver: BatchSolver, trans: str, B: AnyArray, asked: np.ndarray | None = None
) -> BatchSolutions:
    """Solve systems of a forest, with B (batch, k, n) or (1, k, n) on the host or on the device.

    `solver` is updated. Solutions of systems that are not `asked`, a (batch,) mask or None for all,
    are NaN and not reported.
    """
    count, (k, n) = solver.count, B.shape[1:]
    device, xp = factor.entries.device, factor.entries.device.xp
    if not (count and k and n):
        return BatchSolutions(xp.empty((count, k, n), B.dtype), None, lambda: _empty_report(count))
    mask: AnyArray = None if asked is None else device.upload(asked.astype(np.uint8))
    solver.begin(np.dtype(B.dtype))
    forest = _ForestSystem(factor, solver, trans, np.dtype(B.dtype), mask)
    with np.errstate(all="ignore"):
        rhs = _vectors(xp, xp.asarray(B), count)
        solutions = certified = forest.certified(rhs)
        if solutions is None:
            solutions = forest.solved(rhs, None, rhs)
        checked, steps = forest.checked(solutions), None
        if checked.poor:
            refinement = _Refinement(forest, rhs, solutions, checked)
            steps = refine(refinement, None)
            solutions, checked = refinement.solutions, refinement.checked
        if checked.unknown or (certified is not None and checked.unclean):
            solver.certifies &= certified is None
            _estimate(forest)
            checked = forest.checked(solutions)
        solver.known.add(forest.which)
        solution_condition = None
        if checked.unclean > checked.poor:
            solution_condition = _condition(forest, _weights(forest, rhs, solutions))
            checked = forest.checked(solutions, solution_condition)
        X = forest.by_system(solutions.X).transpose(1, 0, 2)
        if mask is not None:
            X = xp.where(mask[:, None, None] > 0, X, np.nan).astype(B.dtype)
    clean = device.download(checked.clean) if checked.unclean or mask is not None else None
    return BatchSolutions(X, clean, lambda: _report(forest, checked, steps, solution_condition))


def unsolved(X: AnyArray) -> BatchSolutions:
    """Return the result for a forest without requested systems."""
    return BatchSolutions(X, np.zeros(len(X), np.bool_), lambda: Report.empty(len(X)))


def _empty_report(count: int) -> Report:
    """Return the report of systems without unknowns, or without right-hand sides."""
    report = Report.empty(count)
    report.error[:], report.clean[:] = 0.0, True
    return report


def _vectors(xp: AnyArray, B: AnyArray, count: int) -> Array:
    """Return right-hand sides (batch or 1, k, n) as vectors (batch * n, k)."""
    k, n = B.shape[1:]
    if k == 1 and B.shape[0] == count and B.flags.c_contiguous:
        return B.reshape(1, -1).T
    expanded = xp.broadcast_to(B, (count, k, n)).transpose(1, 0, 2)
    return xp.ascontiguousarray(expanded).reshape(k, -1).T


def _report(
    forest: _ForestSystem, checked: CheckedSolutions, steps: AnyArray, solution_condition: AnyArray
) -> Report:
    """Return the report of all systems, on the host."""
    download = forest.device.download
    condition = (
        forest.known.condition[forest.which] if solution_condition is None else solution_condition
    )
    condition = np.where(download(checked.fine), download(condition), np.nan)
    taken = np.zeros(forest.count, np.int64) if steps is None else download(steps)
    return Report(download(checked.error), taken, condition, download(checked.clean))


@dataclass
class _Refinement:
    """`Refinable` solutions of a forest, with the results of their check."""

    forest: _ForestSystem
    B: Array
    solutions: _ForestSolution
    checked: CheckedSolutions

    def merit(self) -> AnyArray:
        return self.checked.merit

    def correct(self) -> AnyArray:
        self._trial = self.forest.solved(self.solutions.R, self.solutions.X, self.B)
        return self.forest.checked(self._trial).merit

    def accept(self, better: AnyArray) -> None:
        self.solutions = self.forest.chosen(better, self._trial, self.solutions)
        self.checked = self.forest.checked(self.solutions)


def _estimate(forest: _ForestSystem) -> None:
    """Estimate the condition number of each system, for all right-hand sides."""
    condition: AnyArray = _condition(forest, forest.row_sums)
    counted = margin_of(forest.dtype) * condition
    roundoff = eps_of(forest.factor.dtype)
    if roundoff > forest.eps:
        counted = forest.xp.where(condition * roundoff > THRESHOLDS.single, np.inf, counted)
    if forest.asked is not None:
        condition = forest.xp.where(
            forest.asked > 0, condition, forest.known.condition[forest.which]
        )
        counted = forest.xp.where(forest.asked > 0, counted, forest.known.counted[forest.which])
    forest.known.condition[forest.which], forest.known.counted[forest.which] = condition, counted


def _weights(forest: _ForestSystem, B: Array, solutions: _ForestSolution) -> AnyArray:
    """Return the weights (batch, n) of the condition numbers of the solutions."""
    xp, x_norms = forest.xp, solutions.sizes[:, 1]
    error = xp.maximum(solutions.sizes[:, 4].max(axis=0), forest.eps)
    used = (x_norms > 0) & xp.isfinite(x_norms)
    scale = xp.where(used, 1 / xp.where(used, x_norms, 1), 0)
    weights: AnyArray = forest.system.weighted(
        solutions.X, B, xp.concatenate([scale, 1 / error[None]])
    )
    return weights.reshape(forest.count, -1)


def _condition(forest: _ForestSystem, weight: AnyArray) -> AnyArray:
    """Return estimates as in `numeric.one_norm`: one block of two vectors for all systems."""
    xp = forest.xp
    forward, adjoint = ("N", "H") if forest.trans == "N" else ("H", "N")
    Y: AnyArray = forest.by_system(
        forest.factor.system(adjoint, forest.dtype).solve(forest.first_probes.T)
    )
    moduli: AnyArray = xp.abs(Y)
    sums = (weight * moduli).sum(axis=2).max(axis=0)
    signs = weight * xp.where(moduli > 0, Y / xp.where(moduli > 0, moduli, 1), 1)
    signs = xp.ascontiguousarray(signs.astype(forest.dtype)).reshape(2, -1)
    gains = forest.largest(forest.factor.system(forward, forest.dtype).solve(signs.T)).max(axis=0)
    condition = xp.maximum(sums, gains)
    return xp.where(xp.isnan(condition), np.inf, condition)
