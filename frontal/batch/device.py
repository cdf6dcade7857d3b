"""Systems of one pattern on a GPU: a forest, factorized and swept as one block diagonal matrix.

Its kernels know nothing of systems; norms, errors and estimates are those of each one, and so are
the decisions to refine. What is not sound by them goes to the host, to be looked at one by one.
"""

from __future__ import annotations

from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from ..accuracy import eps_of
from ..cpu.single import NOT_FINITE, SOUND, UNSURE, pattern_of
from ..factor.analyzed import Analyzed
from ..gpu.runtime import device as devices
from ..gpu.runtime.array import Array
from ..gpu.runtime.device import Device
from ..gpu.sparse.backend import GpuBackend
from ..gpu.sparse.equilibration import Scales
from ..gpu.sparse.factor import GpuFactor
from ..gpu.sparse.health import diagonal_there
from ..gpu.sparse.looks import Looks
from ..gpu.sparse.matrix import DeviceMatrix
from ..gpu.sparse.trees import Trees
from ..method import tiny_pivot
from ..protocol import HostFactor, NumericFactor, panel_offsets
from ..symbolic.scaling import Scaling
from ..symmetry import ROUNDING, is_hermitian
from .device_scaling import Equilibration
from .device_solve import solved
from .each import pivot_ratios, scaled_each, slogdets
from .forest import forest
from .input import Given
from .substitute import UNKNOWN, Known, Report

_MOST = 1 << 28  # entries of the panels of a forest
_FEW, _GROWTH = 40, 1e4  # entries of L above 1/u, and their size, that refinement answers for


class _Forest(GpuBackend):
    """A backend for block diagonal matrices of which some blocks may have no factor."""

    def attempted(self, values: Array, scales: Scales, before: GpuFactor | None) -> GpuFactor:
        """The factor of all blocks that have one; values are on the device."""
        dtype = np.dtype(values.dtype)
        of = {"values": values, "scaling": None, "scales": scales}
        given = partial(DeviceMatrix, **of, there=True, hermitian=False, kept=True)
        tiny = tiny_pivot(dtype, self.symbolic.method)
        before = self._with_memory(before, dtype)
        with self._telling(dtype, dtype):
            return self._compute(given, dtype, dtype, tiny, before, examined=False)


class _Part:
    """Some systems of a batch, in one forest.

    Attributes
    ----------
    row, column : (batch, n) device arrays
        Scaling; None without.
    ratio : (batch,) float64 array
        See `Health.pivot_ratio`.
    norms : dict
        By transposition: infinity norms, as far as they were asked for.
    """

    def __init__(self, analysis: Analyzed, values: Given, device: Device) -> None:
        symbolic, count = analysis.symbolic, values.shape[0]
        self.analysis, self.symbolic, self.values = analysis, symbolic, values
        self._offsets = panel_offsets(symbolic.plan, symbolic.method)
        of = self._pattern = pattern_of(analysis.symbolic, analysis.matching, self._offsets)
        self._device, self._backend = device, _Forest(forest(symbolic, count), device)
        given = of.mirror if symbolic.method.one_triangle else None
        self._mirror = None if given is None else device.upload(given.astype(np.int32))
        self._own = device.upload(np.maximum(of.own, 0).astype(np.int32))
        self._factor: GpuFactor | None = None
        self._host: HostFactor | None = None
        self._equilibration = Equilibration(of, symbolic.method.one_triangle, device)
        self.row: Given = None
        self.column: Given = None
        self.ratio, self.norms = np.full(count, np.nan), {}
        self.known = Known.nothing(count)

    def factorize(self) -> np.ndarray:
        """Factorize all of them; the outcome of each."""
        values, xp = self.values, self._device.xp
        size, gap = self._looks.of_values(values, self._mirror)
        finite = np.isfinite(size)
        given = values if finite.all() else xp.where(xp.asarray(finite)[:, None], values, 0)
        good = gap <= ROUNDING * eps_of(values.dtype) * size
        scales = self._scales(given, good) if self.symbolic.method.scaling else (None, None)
        self._factor = self._backend.attempted(given.reshape(-1), scales, self._factor)
        self._host, self.norms = None, {}
        outcome = np.where(finite, self._outcome(given), NOT_FINITE)
        return np.where(finite & ~good, UNSURE, outcome)

    def _scales(self, given: Given, good: np.ndarray) -> Scales:
        """Factors for rows and columns of all systems; those that have none are no more `good`."""
        device, of = self._device, self._pattern
        if self._equilibration.fits:
            self.row, self.column = self._equilibration(given)
        else:
            row, column = np.empty((2, len(given), self.symbolic.n))
            begin = of.row, of.column, self.symbolic.method.one_triangle, row, column
            good &= scaled_each(of.indptr, of.indices, device.download(given), *begin)
            self.row, self.column = device.upload(row), device.upload(column)
        return self.row.reshape(-1), self.column.reshape(-1)

    def _outcome(self, given: Given) -> np.ndarray:
        """What pivots tell of each system."""
        factor, method, before = self.factor, self.symbolic.method, self.ratio
        least, most, failed, weak, growth = self._looks.of_pivots(factor, given, self._own)
        coupling = factor.coupling()
        with np.errstate(all="ignore"):
            if coupling.any():
                pivots = diagonal_there(factor.pattern, factor.storage.panels)
                shape = len(given), -1
                of = self._device.download(pivots).reshape(shape), coupling.reshape(shape)
                self.ratio = pivot_ratios(method, *of)
            else:
                self.ratio = least / most if method.pivots else np.minimum(least, 1)
            alike = (self.ratio <= 10 * before) & (before <= 10 * self.ratio)
            self.known.decade[:, ~alike] = UNKNOWN
            outcome = np.where(self.ratio >= eps_of(given.dtype) ** 0.5, SOUND, UNSURE)
            if not method.pivots:
                return np.where(failed > 0, failed, outcome).astype(np.int64)
            return np.where((weak <= _FEW) & (growth <= _GROWTH), outcome, UNSURE)

    @property
    def factor(self) -> GpuFactor:
        """That of the forest."""
        if self._factor is None:
            raise RuntimeError("nothing was factorized")
        return self._factor

    @cached_property
    def _looks(self) -> Looks:
        return Looks(self._backend.pattern, len(self.values))

    @cached_property
    def _trees(self) -> Trees:
        """What solves for each of them by itself, if it suits."""
        return Trees(self._backend.pattern, len(self.values))

    def solve(self, trans: str, B: Given) -> tuple[Given, Report]:
        """Solutions of all of them."""
        trees = self._trees if self._trees.suits(self.factor.dtype) else None
        return solved(self.factor, len(self.values), self.norms, self.known, trans, B, trees)

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Of all of them."""
        shape, factor = (len(self.values), -1), self.factor
        pivots = factor.pivots.reshape(shape) if factor.pivots.size else np.empty((1, 0))
        diagonal = factor.diagonal().reshape(shape)
        with np.errstate(all="ignore"):
            scales = [self._device.download(x) for x in (self.row, self.column) if x is not None]
            return slogdets(self.symbolic, diagonal, pivots, scales)

    def numeric(self, i: int) -> NumericFactor:
        """A copy of the factor of one of them on the host."""
        host = self._host = self._host or self.factor.to_host()
        symbolic, n, size = self.symbolic, self.symbolic.n, int(self._offsets[-1])
        own = slice(i * n, (i + 1) * n)
        one = HostFactor(
            host.panels[i * size : (i + 1) * size].copy(),
            *(host.pivots[own].copy(), 0, host.coupling[own].copy(), np.empty(0, np.int32)),
        )
        values = self._device.download(self.values[i])
        hermitian = is_hermitian(symbolic.indptr, symbolic.indices, values)
        scaling = None
        if symbolic.method.scaling:
            one_of = self._device.download(self.row[i]), self._device.download(self.column[i])
            scaling = Scaling(*one_of)
        engine = self.analysis.on("cpu").engine
        return engine.restored(one, symbolic.with_values(values, hermitian), scaling)


class DeviceSystems:
    """See `systems.Engine`.

    Parameters
    ----------
    analysis : Analyzed
    values : (batch, nnz) array
        By columns, on the host or on the device; kept there.
    """

    on_device = True

    def __init__(self, analysis: Analyzed, values: Given) -> None:
        symbolic, count = analysis.symbolic, values.shape[0]
        self._device = devices.device_of()
        self._xp: Given = self._device.xp
        self.values: Given = self._xp.asarray(values)
        size = int(panel_offsets(symbolic.plan, symbolic.method)[-1])
        most = min(_MOST // max(size, 1), np.iinfo(np.int32).max // max(symbolic.n, 1))
        pieces = -(-count // max(most, 1))
        self._ends = np.linspace(0, count, pieces + 1).round().astype(np.int64)
        self._parts = [
            _Part(analysis, self.values[first:last], self._device)
            for first, last in pairwise(self._ends.tolist())
        ]
        self._n, self._count = symbolic.n, count

    def renew(self, systems: np.ndarray, values: Given) -> None:
        """See `systems.Engine`."""
        xp = self._xp
        if systems.size == self._count:  # no copy: the array is given away
            self.values = xp.asarray(values, self.values.dtype)
            for part, own in self._places():
                part.values = self.values[own]
        else:
            self.values[xp.asarray(systems)] = xp.asarray(values)

    def factorize(self, systems: np.ndarray) -> np.ndarray:
        """See `systems.Engine`; others of a forest are computed anew, to the same bits."""
        outcome = np.full(self._count, UNSURE, np.int64)
        asked = np.zeros(self._count, np.bool_)
        asked[systems] = True
        for part, own in self._places():
            if asked[own].any() and self._n:
                outcome[own] = part.factorize()
        return outcome[systems]

    def _places(self) -> list[tuple[_Part, slice]]:
        ends = self._ends.tolist()
        own = [slice(*pair) for pair in pairwise(ends)]
        return list(zip(self._parts, own, strict=True))

    def solve(self, trans: str, B: Given, systems: np.ndarray) -> tuple[Given, Report]:
        """See `systems.Engine`; on the device."""
        report, asked, xp = Report.empty(self._count), np.zeros(self._count, np.bool_), self._xp
        asked[systems] = True
        found = [xp.empty((0, B.shape[1], self._n), B.dtype)] * (not self._parts)
        for part, own in self._places():
            size = own.stop - own.start, B.shape[1], self._n
            if not asked[own].any():
                found.append(xp.full(size, np.nan, B.dtype))
                continue
            X, told = part.solve(trans, B[own] if B.shape[0] > 1 else B)
            if not asked[own].all():
                X = xp.where(xp.asarray(asked[own])[:, None, None], X, np.nan).astype(B.dtype)
            found.append(X)
            for whole, one in zip(report, told, strict=True):
                whole[own] = one
        report.clean[~asked] = False
        whole = found[0] if len(found) == 1 else xp.concatenate(found)
        return xp.ascontiguousarray(whole), report

    def slogdet(self, systems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `systems.Engine`."""
        pairs = [part.slogdet() for part in self._parts]
        sign, value = (np.concatenate(one) for one in zip(*pairs, strict=True))
        return sign[systems], value[systems]

    def numeric(self, i: int) -> NumericFactor:
        """See `systems.Engine`; on the host."""
        place = int(np.searchsorted(self._ends, i, "right")) - 1
        return self._parts[place].numeric(i - int(self._ends[place]))
