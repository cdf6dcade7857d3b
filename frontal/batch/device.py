"""Systems of one pattern on a GPU: a forest, factorized and swept as one block diagonal matrix.

Its kernels know nothing of systems; norms, errors and estimates are those of each one, and so are
the decisions to refine. What is not sound by them goes to the host, to be looked at one by one.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from ..accuracy import eps_of
from ..factor.analyzed import Analyzed
from ..gpu.sparse.backend import GpuBackend
from ..gpu.sparse.factor import GpuFactor
from ..gpu.sparse.matrix import DeviceMatrix
from ..method import LARGEST, tiny_pivot
from ..protocol import HostFactor, NumericFactor, panel_offsets
from ..symbolic.scaling import Scaling
from ..symmetry import ROUNDING, is_hermitian
from .device_solve import solved
from .each import looked_at, pivot_ratios, scaled_each, slogdets
from .factorize import NOT_FINITE, SOUND, UNSURE
from .forest import forest
from .host import pattern_of
from .substitute import UNKNOWN, Known, Report

_MOST = 1 << 28  # entries of the panels of a forest
_FEW, _GROWTH = 40, 1e4  # entries of L above 1/u, and their size, that refinement answers for


class _Forest(GpuBackend):
    """A backend for block diagonal matrices of which some blocks may have no factor."""

    def attempted(
        self, values: np.ndarray, scaling: Scaling | None, before: GpuFactor | None
    ) -> GpuFactor:
        """The factor of all blocks that have one."""
        dtype = np.dtype(values.dtype)
        with self._lists(dtype):
            matrix = DeviceMatrix(self.entries, values, scaling, None, there=False, hermitian=False)
            tiny = tiny_pivot(dtype, self.symbolic.method)
            storage, outcome = self._compute(matrix, dtype, tiny, before)
        return GpuFactor(matrix, storage, outcome.replaced, outcome.examined)


class _Part:
    """Some systems of a batch, in one forest.

    Attributes
    ----------
    outcome, ratio, norms, row, column
        As of `factorize.Numbers`.
    """

    def __init__(self, analysis: Analyzed, values: np.ndarray) -> None:
        symbolic, count = analysis.symbolic, values.shape[0]
        self.analysis, self.symbolic, self.values = analysis, symbolic, values
        self._offsets = panel_offsets(symbolic.plan, symbolic.method)
        self._pattern = pattern_of(analysis, self._offsets)
        self._backend = _Forest(forest(symbolic, count))
        self._factor: GpuFactor | None = None
        self._host: HostFactor | None = None
        scaled = symbolic.n * symbolic.method.scaling
        self.row, self.column = np.empty((2, count, scaled))
        self.norms, self.ratio = np.empty((count, 2)), np.full(count, np.nan)
        self.known = Known.nothing(count)

    def factorize(self) -> np.ndarray:
        """Factorize all of them; the outcome of each."""
        values, method, of = self.values, self.symbolic.method, self._pattern
        finite = np.isfinite(values).all(axis=1)
        given = values if finite.all() else np.where(finite[:, None], values, 0)
        eps = eps_of(values.dtype)
        kind = of.mirror, method.one_triangle, method.adjoint, ROUNDING * eps
        good = looked_at(of.indptr, of.indices, given, *kind, self.norms)
        scaling = None
        if method.scaling:
            begin = of.row, of.column, method.one_triangle
            good &= scaled_each(of.indptr, of.indices, given, *begin, self.row, self.column)
            scaling = Scaling(self.row.reshape(-1), self.column.reshape(-1))
        self._factor = self._backend.attempted(given.reshape(-1), scaling, self._factor)
        self._host = None
        outcome = np.where(finite, self._outcome(eps), NOT_FINITE)
        return np.where(finite & ~good, UNSURE, outcome)

    def _outcome(self, eps: float) -> np.ndarray:
        """What pivots tell of each system."""
        factor, shape, method = self.factor, (len(self.values), -1), self.symbolic.method
        diagonal, coupling = factor.diagonal().reshape(shape), factor.coupling()
        coupling = coupling.reshape(shape) if coupling.size else coupling
        before, of = self.ratio, (self.values, self._pattern)
        self.ratio = pivot_ratios(method, diagonal, coupling, *of)
        with np.errstate(all="ignore"):
            alike = (self.ratio <= 10 * before) & (before <= 10 * self.ratio)
            self.known.decade[:, ~alike] = UNKNOWN
            outcome = np.where(self.ratio >= eps**0.5, SOUND, UNSURE)
        if not method.pivots:
            bad = ~(np.real(diagonal) > 0)
            return np.where(bad.any(axis=1), 1 + np.argmax(bad, axis=1), outcome)
        largest = factor.pattern.device.download(factor.storage.largest).reshape(shape)
        weak = ~(largest <= LARGEST)
        bears = (weak.sum(axis=1) <= _FEW) & (~weak | (largest <= _GROWTH)).all(axis=1)
        return np.where(bears, outcome, UNSURE)

    @property
    def factor(self) -> GpuFactor:
        """That of the forest."""
        if self._factor is None:
            raise RuntimeError("nothing was factorized")
        return self._factor

    def solve(self, trans: str, B: np.ndarray) -> tuple[np.ndarray, Report]:
        """Solutions of all of them."""
        return solved(self.factor, self.norms, self.known, trans, B)

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Of all of them."""
        shape, factor = (len(self.values), -1), self.factor
        pivots = factor.pivots.reshape(shape) if factor.pivots.size else np.empty((1, 0))
        diagonal = factor.diagonal().reshape(shape)
        with np.errstate(all="ignore"):
            return slogdets(self.symbolic, diagonal, pivots, (self.row, self.column))

    def numeric(self, i: int) -> NumericFactor:
        """A copy of the factor of one of them on the host."""
        host = self._host = self._host or self.factor.to_host()
        symbolic, n, size = self.symbolic, self.symbolic.n, int(self._offsets[-1])
        own = slice(i * n, (i + 1) * n)
        one = HostFactor(
            host.panels[i * size : (i + 1) * size].copy(),
            *(host.pivots[own].copy(), 0, host.coupling[own].copy(), np.empty(0, np.int32)),
        )
        values = self.values[i]
        hermitian = is_hermitian(symbolic.indptr, symbolic.indices, values)
        scaling = None
        if symbolic.method.scaling:
            scaling = Scaling(self.row[i].copy(), self.column[i].copy())
        engine = self.analysis.on("cpu").engine
        return engine.restored(one, symbolic.with_values(values, hermitian), scaling)


class DeviceSystems:
    """See `systems.Engine`.

    Parameters
    ----------
    analysis : Analyzed
    values : (batch, nnz) array
        By columns, on the host; those that later factorizations read too.
    """

    def __init__(self, analysis: Analyzed, values: np.ndarray) -> None:
        symbolic, count = analysis.symbolic, values.shape[0]
        size = int(panel_offsets(symbolic.plan, symbolic.method)[-1])
        most = min(_MOST // max(size, 1), np.iinfo(np.int32).max // max(symbolic.n, 1))
        pieces = -(-count // max(most, 1))
        self._ends = np.linspace(0, count, pieces + 1).round().astype(np.int64)
        self._parts = [
            _Part(analysis, values[first:last]) for first, last in pairwise(self._ends.tolist())
        ]
        self._n, self._count = symbolic.n, count

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

    def solve(self, trans: str, B: np.ndarray, systems: np.ndarray) -> tuple[np.ndarray, Report]:
        """See `systems.Engine`."""
        X = np.full((self._count, B.shape[1], self._n), np.nan, B.dtype)
        report, asked = Report.empty(self._count), np.zeros(self._count, np.bool_)
        asked[systems] = True
        for part, own in self._places():
            if not asked[own].any():
                continue
            x, found = part.solve(trans, B[own] if B.shape[0] > 1 else B)
            X[own] = np.where(asked[own][:, None, None], x, np.nan)
            for whole, one in zip(report, found, strict=True):
                whole[own] = one
        report.clean[~asked] = False
        return X, report

    def slogdet(self, systems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `systems.Engine`."""
        pairs = [part.slogdet() for part in self._parts]
        sign, value = (np.concatenate(one) for one in zip(*pairs, strict=True))
        return sign[systems], value[systems]

    def numeric(self, i: int) -> NumericFactor:
        """See `systems.Engine`; on the host."""
        place = int(np.searchsorted(self._ends, i, "right")) - 1
        return self._parts[place].numeric(i - int(self._ends[place]))
