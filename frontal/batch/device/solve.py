"""Solutions of the systems of a forest on a GPU, refined and judged each for itself."""

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
from ...numeric.thresholds import THRESHOLDS, margin_of
from ..input import Given
from ..substitute import Report
from .checks import BatchChecks, CheckedSolutions

_STEPS = THRESHOLDS.corrections


@dataclass
class BatchSolver:
    """What solves for systems of a forest, and what stays known of them between solves.

    Attributes
    ----------
    measures : dict
        By whether op(A) is not A: its infinity norms (batch,) on the device, and what finds them.
    measured : set
        Those that are of the factors as they are.
    known : set of int
        By 0 for A itself, else 1: condition numbers are those of the factors as they are.
    certifies : bool
        No certificate of a condition number has failed.
    precision : float
        Of the vectors that condition numbers are known for; 0 before any.
    probes : dict
        By scalar type, what estimates begin with.
    """

    count: int
    looks: BatchStatistics
    judge: BatchChecks
    trees: SmallTreeSolver
    measures: dict[bool, tuple[Array, Launch]] = field(default_factory=dict)
    measured: set[bool] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    certifies: bool = True
    precision: float = 0.0
    probes: dict[np.dtype, Array] = field(default_factory=dict)

    def begin(self, dtype: np.dtype) -> None:
        """Forget condition numbers for vectors of another precision than these."""
        if self.precision not in (0.0, eps_of(dtype)):
            self.judge.known.counted[...] = np.nan
            self.known.clear()
        self.precision = eps_of(dtype)

    def renew(self) -> None:
        """Take note of other values."""
        self.measured.clear()
        self.known.clear()

    def norms(self, factor: GpuFactor, trans: str) -> Array:
        """Infinity norms of op(A); nothing waits."""
        side = trans != "N"
        if side not in self.measures:
            values: Given = factor.values
            rows = factor.system(trans, factor.dtype).rows
            self.measures[side] = self.looks.norms(rows, values.reshape(self.count, -1))
        found, measure = self.measures[side]
        if side not in self.measured:
            measure()
            self.measured.add(side)
        return found


class BatchSolutions(NamedTuple):
    """Solutions, and what is told of them if somebody asks.

    Attributes
    ----------
    X : (batch, k, n) array
        On the device.
    clean : (batch,) bool array, or None
        Which need no word; None if all do not that were meant.
    report : callable
        What is found of all systems.
    """

    X: Given
    clean: np.ndarray | None
    report: Callable[[], Report]


class _ForestSolution(NamedTuple):
    """Solutions (batch * n, k), their residuals, and sizes; see `BatchChecks.solutions`."""

    X: Array
    R: Array
    sizes: Given


class _ForestSystem:
    """op(A) X = B for vectors (batch * n, k) on the device.

    Parameters
    ----------
    factor : GpuFactor
    solving : BatchSolver
    trans : {"N", "T", "H"}
    dtype : numpy.dtype
        Of the vectors.
    asked : (batch,) device array of uint8, optional
        Systems that are meant.
    """

    def __init__(
        self,
        factor: GpuFactor,
        solving: BatchSolver,
        trans: str,
        dtype: np.dtype,
        asked: Given,
    ) -> None:
        alike = dtype == factor.dtype and not factor.entries.long
        self._trees = solving.trees if alike and solving.trees.suits(dtype) else None
        self.factor, self.count, self.trans, self.dtype = factor, solving.count, trans, dtype
        self.device, self.eps, self.asked = factor.entries.device, eps_of(dtype), asked
        self.xp: Given = self.device.xp
        self.by_component = factor.scales[0] is not None
        self._solving, self.which = solving, int(trans != "N")
        self.known = solving.judge.known
        self._norm = solving.norms(factor, trans)
        self._order = factor.entries.n // max(solving.count, 1)

    @cached_property
    def system(self) -> DeviceSystem:
        """What solves for vectors of all systems."""
        return self.factor.system(self.trans, self.dtype)

    def by_system(self, V: Array) -> Given:
        """Vectors as (k, batch, n)."""
        return V.T.reshape(V.shape[1], self.count, -1)

    def largest(self, V: Array) -> Given:
        """Largest modulus of each vector of each system, (k, batch)."""
        return self.xp.abs(self.by_system(V)).max(axis=2).astype(np.float64)

    def certified(self, B: Array) -> _ForestSolution | None:
        """Solutions with certificates as condition numbers; None if none are to be tried."""
        solving, trees = self._solving, self._trees
        if trees is None or not solving.certifies or self.which in solving.known:
            return None
        if self.asked is not None or B.shape[1] > 1 or not trees.certifies(self.dtype):
            return None
        bound: Given = self.known.counted[self.which]
        found = _ForestSolution(*trees.solved(self.factor, self.trans, B, None, B, bound))
        self.known.condition[self.which] = bound
        return found

    def solved(self, given: Array, before: Array | None, B: Array) -> _ForestSolution:
        """`before` plus solutions for `given`, and what is measured of them."""
        if self._trees is not None:
            return _ForestSolution(*self._trees.solved(self.factor, self.trans, given, before, B))
        system = self.system
        X = system.solve(given) if before is None else system.corrected(before, given)
        R, norms = system.sizes(X, B, self.count)
        sizes: Given = norms[:-1].reshape(B.shape[1], 5, self.count)
        return _ForestSolution(X, R, sizes)

    @property
    def first_probes(self) -> Given:
        """The vectors that estimates begin with, (2, batch * n); made once."""
        made, n = self._solving.probes, self._order
        if self.dtype not in made:
            first = np.empty((2, n))
            begin(first)
            block = np.tile(first[:, None], (1, self.count, 1)).reshape(2, -1)
            made[self.dtype] = self.device.upload(block.astype(self.dtype))
        return made[self.dtype]

    @cached_property
    def row_sums(self) -> Given:
        """Row sums of |op(A)|, (batch, n) float64."""
        sums: Given = self.system.row_sums()
        return sums.reshape(self.count, -1)

    def judged(self, found: _ForestSolution, own: Array | None = None) -> CheckedSolutions:
        """What sizes say of solutions, and their own condition numbers; waits."""
        of = found.sizes, self._norm, self.which, self.asked, own, (self.factor.dtype, self.dtype)
        return self._solving.judge.solutions(*of, self.by_component)

    def chosen(
        self, better: Given, trial: _ForestSolution, other: _ForestSolution
    ) -> _ForestSolution:
        """What is of `trial` where `better` (k, batch), and of the other elsewhere."""
        xp, mask = self.xp, better[:, :, None]
        X, R = (
            xp.where(mask, self.by_system(a), self.by_system(b)).reshape(len(better), -1).T
            for a, b in zip(trial[:2], other[:2], strict=True)
        )
        sizes = xp.where(better[:, None], trial.sizes, other.sizes)
        return _ForestSolution(X, R, sizes)


def solved(
    factor: GpuFactor, solving: BatchSolver, trans: str, B: Given, asked: np.ndarray | None = None
) -> BatchSolutions:
    """Solve systems of a forest.

    Parameters
    ----------
    factor : GpuFactor
    solving : BatchSolver
        Of these factors; changed.
    trans : {"N", "T", "H"}
    B : (batch, k, n) or (1, k, n) array
        On the host or on the device.
    asked : (batch,) bool array, optional
        Systems that are meant; solutions of others are NaN, and nothing is known of them.
    """
    count, (k, n) = solving.count, B.shape[1:]
    device, xp = factor.entries.device, factor.entries.device.xp
    if not (count and k and n):
        return BatchSolutions(xp.empty((count, k, n), B.dtype), None, lambda: _nothing(count))
    meant: Given = None if asked is None else device.upload(asked.astype(np.uint8))
    solving.begin(np.dtype(B.dtype))
    of = _ForestSystem(factor, solving, trans, np.dtype(B.dtype), meant)
    with np.errstate(all="ignore"):
        rhs = _vectors(xp, xp.asarray(B), count)
        found = certified = of.certified(rhs)
        if found is None:
            found = of.solved(rhs, None, rhs)
        judged, steps = of.judged(found), None
        if judged.poor:
            found, judged, steps = _refined(of, rhs, found, judged)
        if judged.unknown or (certified is not None and judged.unclean):
            solving.certifies &= certified is None
            _estimate(of)
            judged = of.judged(found)
        solving.known.add(of.which)
        own = None
        if judged.unclean > judged.poor:
            own = _condition(of, _weights(of, rhs, found))
            judged = of.judged(found, own)
        X = of.by_system(found.X).transpose(1, 0, 2)
        if meant is not None:
            X = xp.where(meant[:, None, None] > 0, X, np.nan).astype(B.dtype)
    clean = device.download(judged.clean) if judged.unclean or meant is not None else None
    return BatchSolutions(X, clean, lambda: _report(of, judged, steps, own))


def nowhere(X: Given) -> BatchSolutions:
    """Systems of which none is meant."""
    return BatchSolutions(X, np.zeros(len(X), np.bool_), lambda: Report.empty(len(X)))


def _nothing(count: int) -> Report:
    """Of systems without unknowns, or without right-hand sides."""
    report = Report.empty(count)
    report.error[:], report.clean[:] = 0.0, True
    return report


def _vectors(xp: Given, B: Given, count: int) -> Array:
    """Right-hand sides (batch or 1, k, n) as vectors (batch * n, k)."""
    k, n = B.shape[1:]
    if k == 1 and B.shape[0] == count and B.flags.c_contiguous:
        return B.reshape(1, -1).T
    whole = xp.broadcast_to(B, (count, k, n)).transpose(1, 0, 2)
    return xp.ascontiguousarray(whole).reshape(k, -1).T


def _report(of: _ForestSystem, judged: CheckedSolutions, steps: Given, own: Given) -> Report:
    """What was found of each system, on the host."""
    download = of.device.download
    condition = of.known.condition[of.which] if own is None else own
    condition = np.where(download(judged.fine), download(condition), np.nan)
    taken = np.zeros(of.count, np.int64) if steps is None else download(steps)
    return Report(download(judged.error), taken, condition, download(judged.clean))


def _refined(
    of: _ForestSystem, B: Array, found: _ForestSolution, judged: CheckedSolutions
) -> tuple[_ForestSolution, CheckedSolutions, Given]:
    """Corrections of those systems that are not good enough, while they help; and how many."""
    xp = of.xp
    active, steps = xp.ones(of.count, np.bool_), xp.zeros(of.count, np.int64)
    for _ in range(_STEPS):
        merit = judged.merit
        active &= (merit > 1).any(axis=0)
        if not active.any():
            break
        trial = of.solved(found.R, found.X, B)
        trial_merit = of.judged(trial).merit
        better = (trial_merit < merit) & active
        active &= (better & (trial_merit <= merit / 2)).any(axis=0)
        found = of.chosen(better, trial, found)
        steps += better.any(axis=0)
        judged = of.judged(found)
    return found, judged, steps


def _estimate(of: _ForestSystem) -> None:
    """Find the condition number of each system, for all right-hand sides."""
    made: Given = _condition(of, of.row_sums)
    counted = margin_of(of.dtype) * made
    roundoff = eps_of(of.factor.dtype)
    if roundoff > of.eps:
        counted = of.xp.where(made * roundoff > THRESHOLDS.single, np.inf, counted)
    if of.asked is not None:
        made = of.xp.where(of.asked > 0, made, of.known.condition[of.which])
        counted = of.xp.where(of.asked > 0, counted, of.known.counted[of.which])
    of.known.condition[of.which], of.known.counted[of.which] = made, counted


def _weights(of: _ForestSystem, B: Array, found: _ForestSolution) -> Given:
    """Weights (batch, n) of the condition numbers of solutions."""
    xp, solution = of.xp, found.sizes[:, 1]
    error = xp.maximum(found.sizes[:, 4].max(axis=0), of.eps)
    used = (solution > 0) & xp.isfinite(solution)
    scale = xp.where(used, 1 / xp.where(used, solution, 1), 0)
    weights: Given = of.system.weighted(found.X, B, xp.concatenate([scale, 1 / error[None]]))
    return weights.reshape(of.count, -1)


def _condition(of: _ForestSystem, weight: Given) -> Given:
    """As `numeric.one_norm` does it: one block of two vectors for all systems."""
    xp = of.xp
    one, other = ("N", "H") if of.trans == "N" else ("H", "N")
    Y: Given = of.by_system(of.factor.system(other, of.dtype).solve(of.first_probes.T))
    moduli: Given = xp.abs(Y)
    sums = (weight * moduli).sum(axis=2).max(axis=0)
    signs = weight * xp.where(moduli > 0, Y / xp.where(moduli > 0, moduli, 1), 1)
    signs = xp.ascontiguousarray(signs.astype(of.dtype)).reshape(2, -1)
    gains = of.largest(of.factor.system(one, of.dtype).solve(signs.T)).max(axis=0)
    found = xp.maximum(sums, gains)
    return xp.where(xp.isnan(found), np.inf, found)
