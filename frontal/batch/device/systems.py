"""Systems of one pattern on a GPU: a forest, factorized and swept as one block diagonal matrix.

Its kernels know nothing of systems; norms, errors and estimates are those of each one, and so are
the decisions to refine. What is not sound by them goes to the host, to be looked at one by one.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from ...backend.protocol import HostFactor, NumericFactor, panel_offsets
from ...cpu.small.one_system import SOUND, UNSURE, pattern_of
from ...factor.analyzed import Analyzed
from ...gpu.runtime import device as devices
from ...gpu.runtime.array import Array
from ...gpu.runtime.device import Device
from ...gpu.sparse.batch.small_trees import SmallTreeSolver
from ...gpu.sparse.batch.statistics import BatchStatistics
from ...gpu.sparse.factor import GpuFactor
from ...gpu.sparse.factorize.equilibration import Scales
from ...gpu.sparse.factorize.pivot_statistics import diagonal_there
from ...matrix.symmetry import is_hermitian
from ...symbolic.scaling import Scaling
from ..forest import forest
from ..input import Given
from ..per_system import pivot_ratios, scaled_each, slogdets
from ..substitute import Report
from ..systems import Answer
from .checks import BatchChecks
from .factorize import BatchExamination, ForestBackend
from .scaling import BatchEquilibration
from .solve import BatchSolutions, BatchSolver, nowhere, solved

_MAX_FOREST_ENTRIES = 1 << 28  # entries of the panels of a forest


class _ForestPart:
    """Some systems of a batch, in one forest.

    Attributes
    ----------
    values : (batch, nnz) device array
        By columns; what is written there is what is factorized.
    row, column : (batch, n) device arrays
        Scaling; None without.
    """

    def __init__(self, analysis: Analyzed, values: Given, device: Device) -> None:
        symbolic, count = analysis.symbolic, values.shape[0]
        self.analysis, self.symbolic, self.values = analysis, symbolic, values
        self._flat: Array = values.reshape(-1)
        self._offsets = panel_offsets(symbolic.plan, symbolic.method)
        of = self._pattern = pattern_of(analysis.symbolic, analysis.matching, self._offsets)
        self._device, self._backend = device, ForestBackend(forest(symbolic, count), device)
        self._factor: GpuFactor | None = None
        self._host: HostFactor | None = None
        self._equilibration = BatchEquilibration(of, symbolic.method.one_triangle, device)
        self.row: Given = None
        self.column: Given = None
        self._scales: Scales = None, None

    @cached_property
    def _solving(self) -> BatchSolver:
        pattern, count = self._backend.pattern, len(self.values)
        looks, judge = BatchStatistics(pattern, count), BatchChecks(self._device, count)
        return BatchSolver(count, looks, judge, SmallTreeSolver(pattern, count))

    @cached_property
    def _looking(self) -> BatchExamination:
        of, method, upload = self._pattern, self.symbolic.method, self._device.upload
        mirror = upload(of.mirror.astype(np.int32)) if method.one_triangle else None
        columns = upload(of.indptr.astype(np.int32)), upload(of.indices.astype(np.int32))
        own = upload(np.maximum(of.own, 0).astype(np.int32))
        alone = not method.indefinite and (not method.scaling or self._equilibration.fits)
        looks, judge = self._solving.looks, self._solving.judge
        return BatchExamination(method, looks, judge, self.values, columns, mirror, own, alone)

    def factorize(self) -> np.ndarray | int:
        """Factorize all of them; the outcome of each, or one of all."""
        even = self._scale() if self.symbolic.method.scaling else None
        of = self._flat, self._scales, self._factor, self._looking
        self._factor = self._backend.attempted(*of)
        self._host = None
        self._solving.renew()
        if not self._looking.judges:
            self._looking.verdict(self._ratios(), even)()
        self._device.wait()
        judge = self._solving.judge
        return self._device.download(judge.outcome) if judge.unsound else SOUND

    def _scale(self) -> Array | None:
        """Put factors for rows and columns of all systems in their place; which have some.

        None, if all do.
        """
        device, of, even = self._device, self._pattern, None
        if self._equilibration.fits:
            row, column = self._equilibration(self.values)
        else:
            given = device.download(self.values)
            given[~np.isfinite(given).all(axis=1)] = 0
            both = np.empty((2, len(given), self.symbolic.n))
            begin = of.row, of.column, self.symbolic.method.one_triangle, *both
            good = scaled_each(of.indptr, of.indices, given, *begin)
            even = device.upload(good.astype(np.uint8))
            row, column = (device.upload(factors) for factors in both)
        if self.row is None:
            self.row, self.column = row, column
            self._scales = row.reshape(-1), column.reshape(-1)
        else:  # where solves read them
            device.copy(row, self.row)
            device.copy(column, self.column)
        return even

    def _ratios(self) -> Array | None:
        """`Health.pivot_ratio` of each system, if pivots are not of order 1 alone."""
        coupling = self.factor.subdiagonal().reshape(len(self.values), -1)
        if not coupling.any():
            return None
        size = self._device.download(self._solving.looks.of_values)[0]
        coupling[~np.isfinite(size)] = 0
        pivots = diagonal_there(self.factor.pattern, self.factor.storage.panels)
        diagonal = self._device.download(pivots).reshape(coupling.shape)
        return self._device.upload(pivot_ratios(self.symbolic.method, diagonal, coupling))

    @property
    def factor(self) -> GpuFactor:
        """That of the forest."""
        if self._factor is None:
            raise RuntimeError("nothing was factorized")
        return self._factor

    def solve(self, trans: str, B: Given, asked: np.ndarray | None) -> BatchSolutions:
        """Solutions of those that are asked for, or of all."""
        return solved(self.factor, self._solving, trans, B, asked)

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
            *(host.pivots[own].copy(), 0, host.subdiagonal[own].copy(), np.empty(0, np.int32)),
        )
        values = self._device.download(self.values[i])
        hermitian = is_hermitian(symbolic.indptr, symbolic.indices, values)
        scaling = None
        if symbolic.method.scaling:
            one_of = self._device.download(self.row[i]), self._device.download(self.column[i])
            scaling = Scaling(*one_of)
        engine = self.analysis.on("cpu").engine
        return engine.from_host(one, symbolic.with_values(values, hermitian), scaling)


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
        most = min(
            _MAX_FOREST_ENTRIES // max(size, 1), np.iinfo(np.int32).max // max(symbolic.n, 1)
        )
        pieces = -(-count // max(most, 1))
        self._ends = np.linspace(0, count, pieces + 1).round().astype(np.int64)
        self._own = [slice(*pair) for pair in pairwise(self._ends.tolist())]
        self._parts = [_ForestPart(analysis, self.values[own], self._device) for own in self._own]
        self._n, self._count = symbolic.n, count

    def renew(self, systems: np.ndarray, values: Given) -> None:
        """See `systems.Engine`: into the same memory, where graphs read them."""
        if not self._device.holds(values):
            values = np.asarray(values, self.values.dtype)
        if systems.size < self._count:
            self.values[self._xp.asarray(systems)] = self._xp.asarray(values)
        elif self.values.size:
            self._device.copy(values, self.values)

    def factorize(self, systems: np.ndarray) -> np.ndarray:
        """See `systems.Engine`; others of a forest are computed anew, to the same bits."""
        outcome, asked = np.full(self._count, UNSURE, np.int64), self._asked(systems)
        for part, own in zip(self._parts, self._own, strict=True):
            if self._n and (asked is None or asked[own].any()):
                outcome[own] = part.factorize()
        return outcome if asked is None else outcome[systems]

    def _asked(self, systems: np.ndarray) -> np.ndarray | None:
        """A mask of systems; None for all."""
        if systems.size == self._count:
            return None
        asked = np.zeros(self._count, np.bool_)
        asked[systems] = True
        return asked

    def solve(self, trans: str, B: Given, systems: np.ndarray) -> Answer:
        """See `systems.Engine`; on the device."""
        asked, xp, found = self._asked(systems), self._xp, []
        for part, own in zip(self._parts, self._own, strict=True):
            of = None if asked is None or asked[own].all() else asked[own]
            if of is None or of.any():
                found.append(part.solve(trans, B[own] if B.shape[0] > 1 else B, of))
            else:
                size = of.size, B.shape[1], self._n
                found.append(nowhere(xp.full(size, np.nan, B.dtype)))
        if not found:
            found = [nowhere(xp.empty((0, B.shape[1], self._n), B.dtype))]
        if any(one.clean is not None for one in found):
            clean = [np.True_ if one.clean is None else one.clean for one in found]
            sure = [np.broadcast_to(c, len(one.X)) for c, one in zip(clean, found, strict=True)]
            systems = systems[~np.concatenate(sure)[systems]]
        else:
            systems = systems[:0]
        X = found[0].X if len(found) == 1 else xp.concatenate([one.X for one in found])
        return Answer(
            xp.ascontiguousarray(X), systems, lambda: _joined([f.report() for f in found])
        )

    def slogdet(self, systems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `systems.Engine`."""
        pairs = [part.slogdet() for part in self._parts]
        sign, value = (np.concatenate(one) for one in zip(*pairs, strict=True))
        return sign[systems], value[systems]

    def numeric(self, i: int) -> NumericFactor:
        """See `systems.Engine`; on the host."""
        place = int(np.searchsorted(self._ends, i, "right")) - 1
        return self._parts[place].numeric(i - int(self._ends[place]))


def _joined(reports: list[Report]) -> Report:
    """What is found of the systems of all parts."""
    if len(reports) == 1:
        return reports[0]
    return Report(*(np.concatenate(arrays) for arrays in zip(*reports, strict=True)))
