"""Solutions of the systems of a forest on a GPU, refined and judged each for itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..accuracy import eps_of
from ..gpu.runtime.array import Array
from ..gpu.runtime.graph import Launch
from ..gpu.sparse.entries import Entries
from ..gpu.sparse.equilibration import Scales
from ..gpu.sparse.factor import GpuFactor
from ..gpu.sparse.looks import Looks
from ..gpu.sparse.prepared import Prepared
from ..gpu.sparse.system import DeviceSystem
from ..gpu.sparse.trees import Trees
from .input import Given
from .judged import Judge, Judged
from .substitute import Report

_STEPS = 5  # as for systems on the host


@dataclass
class Solving:
    """What solves for systems of a forest, and what stays known of them between solves.

    Attributes
    ----------
    measures : dict
        By whether op(A) is not A: its infinity norms (batch,) on the device, and what finds them.
    measured : set
        Those that are of the factors as they are.
    """

    count: int
    looks: Looks
    judge: Judge
    trees: Trees
    measures: dict[bool, tuple[Array, Launch]] = field(default_factory=dict)
    measured: set[bool] = field(default_factory=set)

    def renew(self) -> None:
        """Take note of other values."""
        self.measured.clear()

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


class Solved(NamedTuple):
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


@dataclass
class _Moduli:
    """What `DeviceSystem` reads of a factor, with the moduli of its matrix."""

    entries: Entries
    values: Array
    scales: Scales
    hermitian: bool
    storage: Prepared


class _Found(NamedTuple):
    """Solutions (batch * n, k), their residuals, and sizes; see `Judge.solutions`."""

    X: Array
    R: Array
    sizes: Given


class _Forest:
    """op(A) X = B for vectors (batch * n, k) on the device.

    Parameters
    ----------
    factor : GpuFactor
    solving : Solving
    trans : {"N", "T", "H"}
    dtype : numpy.dtype
        Of the vectors.
    asked : (batch,) device array of uint8, optional
        Systems that are meant.
    """

    def __init__(
        self,
        factor: GpuFactor,
        solving: Solving,
        trans: str,
        dtype: np.dtype,
        asked: Given,
    ) -> None:
        alike = dtype == factor.dtype and not factor.entries.long
        self._trees = solving.trees if alike and solving.trees.suits(dtype) else None
        self.factor, self.count, self.trans, self.dtype = factor, solving.count, trans, dtype
        self.device, self.eps, self.asked = factor.entries.device, eps_of(dtype), asked
        self.xp: Given = self.device.xp
        self.badly_scaled = factor.scales[0] is not None
        self._moduli: DeviceSystem | None = None
        self._solving, self.which = solving, int(trans != "N")
        self.known = solving.judge.known
        self._norm = solving.norms(factor, trans)

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

    def magnitude(self, X: Array, B: Array) -> Given:
        """|A||X| + |B|, (batch * n, k): the residual of -|X| for the matrix of moduli."""
        factor, xp = self.factor, self.xp
        if self._moduli is None:
            given = _Moduli(
                entries=factor.entries,
                values=xp.abs(factor.values).astype(factor.values.dtype),
                scales=factor.scales,
                hermitian=False,
                storage=factor.storage,
            )
            self._moduli = DeviceSystem(given, self.trans, self.dtype)
        x, b = (xp.asfortranarray(V.astype(self.dtype)) for V in (-xp.abs(X), xp.abs(B)))
        return xp.real(self._moduli.measure(x, b)[0])

    def solved(self, given: Array, before: Array | None, B: Array) -> _Found:
        """`before` plus solutions for `given`, and what is measured of them."""
        if self._trees is not None:
            return _Found(*self._trees.solved(self.factor, self.trans, given, before, B))
        system = self.system
        X = system.solve(given) if before is None else system.corrected(before, given)
        R, _ = system.measure(X, B)
        sizes = [self.largest(V) for V in (R, X, B)]
        part = sizes[0]
        if self.badly_scaled:
            size: Given = self.xp.abs(R)
            part = self.largest(self.xp.where(size > 0, size / self.magnitude(X, B), 0))
        return _Found(X, R, self.xp.stack([*sizes, part], axis=1))

    def judged(self, found: _Found) -> Judged:
        """What sizes say of solutions; waits."""
        of = found.sizes, self._norm, self.which, self.asked, (self.factor.dtype, self.dtype)
        return self._solving.judge.solutions(*of, self.badly_scaled)

    def chosen(self, better: Given, trial: _Found, other: _Found) -> _Found:
        """What is of `trial` where `better` (k, batch), and of the other elsewhere."""
        xp, mask = self.xp, better[:, :, None]
        X, R = (
            xp.where(mask, self.by_system(a), self.by_system(b)).reshape(len(better), -1).T
            for a, b in zip(trial[:2], other[:2], strict=True)
        )
        sizes = xp.where(better[:, None], trial.sizes, other.sizes)
        return _Found(X, R, sizes)


def solved(
    factor: GpuFactor, solving: Solving, trans: str, B: Given, asked: np.ndarray | None = None
) -> Solved:
    """Solve systems of a forest.

    Parameters
    ----------
    factor : GpuFactor
    solving : Solving
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
        return Solved(xp.empty((count, k, n), B.dtype), None, lambda: _nothing(count))
    meant: Given = None if asked is None else device.upload(asked.astype(np.uint8))
    of = _Forest(factor, solving, trans, np.dtype(B.dtype), meant)
    with np.errstate(all="ignore"):
        rhs = _vectors(xp, xp.asarray(B), count)
        found = of.solved(rhs, None, rhs)
        judged, steps = of.judged(found), None
        if judged.poor:
            found, judged, steps = _refined(of, rhs, found, judged)
        if judged.strange:
            _estimate(of, rhs, found, judged)
            judged = of.judged(found)
        X = of.by_system(found.X).transpose(1, 0, 2)
        if meant is not None:
            X = xp.where(meant[:, None, None] > 0, X, np.nan).astype(B.dtype)
    clean = device.download(judged.clean) if judged.unclean or meant is not None else None
    return Solved(X, clean, lambda: _report(of, judged, steps))


def nowhere(X: Given) -> Solved:
    """Systems of which none is meant."""
    return Solved(X, np.zeros(len(X), np.bool_), lambda: Report.empty(len(X)))


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


def _report(of: _Forest, judged: Judged, steps: Given) -> Report:
    """What was found of each system, on the host."""
    download = of.device.download
    condition = np.where(download(judged.fine), download(of.known.condition[of.which]), np.nan)
    taken = np.zeros(of.count, np.int64) if steps is None else download(steps)
    return Report(download(judged.error), taken, condition, download(judged.clean))


def _refined(of: _Forest, B: Array, found: _Found, judged: Judged) -> tuple[_Found, Judged, Given]:
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


def _estimate(of: _Forest, B: Array, found: _Found, judged: Judged) -> None:
    """Make condition numbers of the solutions of each system anew."""
    solution = found.sizes[:, 1]
    made = _condition(of, found.X, B, found.R, solution, of.xp.maximum(judged.error, of.eps))
    made = of.xp.where((solution > 0).any(axis=0), made, 0.0)
    if of.asked is not None:
        made = of.xp.where(of.asked > 0, made, of.known.condition[of.which])
    of.known.condition[of.which], of.known.decade[of.which] = made, judged.decade


def _condition(of: _Forest, X: Array, B: Array, R: Array, solution: Given, error: Given) -> Given:
    """As `substitute` does it: one block of two vectors for all systems."""
    xp, count, n = of.xp, of.count, X.shape[0] // of.count
    size, least = solution[:, :, None], error[:, None]
    weight = (of.by_system(of.magnitude(X, B)) + xp.abs(of.by_system(R)) / least) / size
    weight = xp.where(size > 0, weight, 0).max(axis=0)
    j = np.arange(n)
    growing = (1 + j / max(n - 1, 1)) / (1.5 * n)
    first = np.stack([np.full(n, 1 / n), np.where(j % 2, -growing, growing)])
    block = np.tile(first[:, None], (1, count, 1)).reshape(2, -1).astype(of.dtype)
    one, other = ("N", "H") if of.trans == "N" else ("H", "N")
    Y: Given = of.by_system(of.factor.system(other, of.dtype).solve(of.device.upload(block).T))
    moduli: Given = xp.abs(Y)
    sums = (weight * moduli).sum(axis=2).max(axis=0)
    signs = weight * xp.where(moduli > 0, Y / xp.where(moduli > 0, moduli, 1), 1)
    signs = xp.ascontiguousarray(signs.astype(of.dtype)).reshape(2, -1)
    gains = of.largest(of.factor.system(one, of.dtype).solve(signs.T)).max(axis=0)
    found = xp.maximum(sums, gains)
    return xp.where(xp.isnan(found), np.inf, found)
