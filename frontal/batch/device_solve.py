"""Solutions of the systems of a forest on a GPU, refined and judged each for itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..accuracy import COMPONENTWISE, NORMWISE, borders, eps_of
from ..gpu.runtime.array import Array
from ..gpu.sparse.entries import Entries
from ..gpu.sparse.equilibration import Scales
from ..gpu.sparse.factor import GpuFactor
from ..gpu.sparse.prepared import Prepared
from ..gpu.sparse.system import DeviceSystem
from ..gpu.sparse.trees import Trees
from .input import Given
from .judged import Judged, Sizes, judge
from .substitute import Known, Report

_STEPS = 5  # as for systems on the host
_SMALL = {4: 1e-3, 8: 1e-5}  # by bytes of a real number: errors that are far from 0.01


@dataclass
class _Moduli:
    """What `DeviceSystem` reads of a factor, with the moduli of its matrix."""

    entries: Entries
    values: Array
    scales: Scales
    hermitian: bool
    storage: Prepared


class _Forest:
    """op(A) X = B for vectors (batch * n, k) on the device.

    Parameters
    ----------
    factor : GpuFactor
    count : int
        Number of systems.
    norms : dict
        By transposition: infinity norms of op(A_i), if they are known; they are from now on.
    trans : {"N", "T", "H"}
    dtype : numpy.dtype
        Of the vectors.
    trees : Trees, optional
        What solves for each system by itself.
    """

    def __init__(
        self,
        factor: GpuFactor,
        count: int,
        norms: dict[bool, np.ndarray],
        trans: str,
        dtype: np.dtype,
        trees: Trees | None,
    ) -> None:
        self._trees = trees if dtype == factor.dtype and not factor.entries.long else None
        self.factor, self.count, self.trans, self.dtype = factor, count, trans, dtype
        self.device, self.eps = factor.entries.device, eps_of(dtype)
        self.xp: Given = self.device.xp
        self.system = factor.system(trans, dtype)
        self.small = _SMALL[np.finfo(dtype).dtype.itemsize]
        accepted = NORMWISE * self.eps, COMPONENTWISE * self.eps
        self._limits = np.array((*accepted, *borders(factor.dtype, dtype)))
        self.badly_scaled = factor.scales[0] is not None
        self._moduli: DeviceSystem | None = None
        if (trans != "N") not in norms:
            zero = self.xp.zeros((factor.symbolic.n, 1), dtype)
            norms[trans != "N"] = self.largest(self.magnitude(zero + 1, zero))[0, 0]
        self.norm = norms[trans != "N"]

    def by_system(self, V: Array) -> Given:
        """Vectors as (k, batch, n)."""
        return V.T.reshape(V.shape[1], self.count, -1)

    def largest(self, *vectors: Array) -> np.ndarray:
        """Largest modulus of each vector of each system, (k, batch) for each of these arrays."""
        xp = self.xp
        found = [xp.abs(self.by_system(V)).max(axis=2).astype(np.float64) for V in vectors]
        return self.device.download(xp.stack(found))

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

    def solved(self, given: Array, before: Array | None, B: Array) -> tuple[Array, Array, Sizes]:
        """`before` plus solutions for `given`, and what `measure` says of them."""
        if self._trees is None:
            system = self.system
            X = system.solve(given) if before is None else system.corrected(before, given)
            return X, *self.measure(X, B)
        X, R, sizes = self._trees.solved(self.factor, self.trans, given, before, B)
        component = sizes[3]
        if self.badly_scaled:
            component[~np.isfinite(component)] = np.inf
        else:
            component[:] = 0
        return X, R, Sizes(sizes[0], sizes[1], sizes[2], component)

    def measure(self, X: Array, B: Array) -> tuple[Array, Sizes]:
        """Residuals, and sizes of them and of vectors."""
        R = self.system.measure(X, B)[0]
        if not self.badly_scaled:
            found = self.largest(R, X, B)
            return R, Sizes(found[0], found[1], found[2], np.zeros_like(found[0]))
        size = self.xp.abs(R)
        part = self.xp.where(size > 0, size / self.magnitude(X, B), 0)
        found = self.largest(R, X, B, part)
        component = np.where(np.isfinite(found[3]), found[3], np.inf)
        return R, Sizes(found[0], found[1], found[2], component)

    def judged(self, sizes: Sizes) -> Judged:
        """What sizes say of solutions."""
        return judge(sizes, self.norm, self._limits)

    def chosen(self, better: np.ndarray, trial: Array, X: Array) -> Array:
        """Vectors of `trial` where `better` (k, batch), else of X."""
        mask = self.device.upload(np.ascontiguousarray(better))[:, :, None]
        found = self.xp.where(mask, self.by_system(trial), self.by_system(X))
        return found.reshape(X.shape[1], -1).T


def solved(
    factor: GpuFactor,
    count: int,
    norms: dict[bool, np.ndarray],
    known: Known,
    trans: str,
    B: Given,
    trees: Trees | None = None,
) -> tuple[Given, Report]:
    """Solve all systems of a forest.

    Parameters
    ----------
    factor : GpuFactor
    count : int
    norms, known
        Of these factors; changed.
    trans : {"N", "T", "H"}
    B : (batch, k, n) or (1, k, n) array
        On the host or on the device.
    trees : Trees, optional
        What solves for each system by itself.

    Returns
    -------
    X : (batch, k, n) array
        On the device.
    report : Report
    """
    k, n = B.shape[1:]
    report, xp = Report.empty(count), factor.entries.device.xp
    if not (count and k and n):
        report.error[:], report.clean[:] = 0.0, True
        return xp.empty((count, k, n), B.dtype), report
    of = _Forest(factor, count, norms, trans, np.dtype(B.dtype), trees)
    whole = xp.broadcast_to(xp.asarray(B), (count, k, n)).transpose(1, 0, 2)
    rhs = xp.ascontiguousarray(whole).reshape(k, -1).T
    with np.errstate(all="ignore"):
        X, R, sizes, judged = _refined(of, rhs, report)
        condition = _estimated(of, X, rhs, R, sizes, judged, known)
        report.error[:], clean = judged.error, judged.fine
        report.condition[:] = np.where(clean, condition, np.nan)
        report.clean[:] = clean & (condition * np.maximum(report.error, of.eps) <= of.small)
    return of.by_system(X).transpose(1, 0, 2), report


def _refined(of: _Forest, B: Array, report: Report) -> tuple[Array, Array, Sizes, Judged]:
    """Solutions, and corrections of those systems that are not good enough while they help."""
    X, R, sizes = of.solved(B, None, B)
    judged = of.judged(sizes)
    merit, active = judged.merit, np.ones(of.count, np.bool_)
    for _ in range(_STEPS):
        active &= (merit > 1).any(axis=0)
        if not active.any():
            return X, R, sizes, judged
        trial, after, found = of.solved(R, X, B)
        trial_merit = of.judged(found).merit
        better = (trial_merit < merit) & active
        halved = (better & (trial_merit <= merit / 2)).any(axis=0)
        X, R = of.chosen(better, trial, X), of.chosen(better, after, R)
        sizes = Sizes(*(np.where(better, a, b) for a, b in zip(found, sizes, strict=True)))
        judged = of.judged(sizes)
        merit = judged.merit
        report.steps[better.any(axis=0)] += 1
        active &= halved
    return X, R, sizes, judged


def _estimated(
    of: _Forest, X: Array, B: Array, R: Array, sizes: Sizes, judged: Judged, known: Known
) -> np.ndarray:
    """Condition numbers of the solutions of each system, from before or made anew for all."""
    which = int(of.trans != "N")
    if (np.abs(known.decade[which] - judged.decade) <= 1).all():
        return known.condition[which]
    found = _condition(of, X, B, R, sizes.solution, np.maximum(judged.error, of.eps))
    found = np.where((sizes.solution > 0).any(axis=0), found, 0.0)
    known.condition[which], known.decade[which] = found, judged.decade
    return found


def _condition(
    of: _Forest, X: Array, B: Array, R: Array, solution: np.ndarray, error: np.ndarray
) -> np.ndarray:
    """As `substitute` does it: one block of two vectors for all systems."""
    xp, count, n = of.xp, of.count, X.shape[0] // of.count
    size: Given = of.device.upload(np.ascontiguousarray(solution))[:, :, None]
    least = of.device.upload(error)[:, None]
    weight = (of.by_system(of.magnitude(X, B)) + xp.abs(of.by_system(R)) / least) / size
    weight = xp.where(size > 0, weight, 0).max(axis=0)
    j = np.arange(n)
    growing = (1 + j / max(n - 1, 1)) / (1.5 * n)
    first = np.stack([np.full(n, 1 / n), np.where(j % 2, -growing, growing)])
    block = np.tile(first[:, None], (1, count, 1)).reshape(2, -1).astype(of.dtype)
    one, other = ("N", "H") if of.trans == "N" else ("H", "N")
    Y: Given = of.by_system(of.factor.system(other, of.dtype).solve(of.device.upload(block).T))
    moduli: Given = xp.abs(Y)
    sums = of.device.download((weight * moduli).sum(axis=2).max(axis=0))
    signs = weight * xp.where(moduli > 0, Y / xp.where(moduli > 0, moduli, 1), 1)
    signs = xp.ascontiguousarray(signs.astype(of.dtype)).reshape(2, -1)
    gains = of.largest(of.factor.system(one, of.dtype).solve(signs.T))[0].max(axis=0)
    found = np.maximum(sums, gains)
    return np.where(np.isnan(found), np.inf, found)
