"""The engine of a batch on a GPU: a forest, factorized and solved as one block diagonal matrix.

The kernels do not distinguish systems. Norms, errors, condition estimates and the decision to
refine are made per system, and rejected systems are handled by `Factor` one by one.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from ...backend.protocol import HostFactor, NumericFactor, panel_offsets
from ...cpu.small.one_system import ACCEPTED, UNSURE, pattern_of
from ...factor.analyzed import Analyzed
from ...gpu.runtime import device as devices
from ...gpu.runtime.array import Array
from ...gpu.runtime.device import Device
from ...gpu.sparse.batch.small_trees import SmallTreeSolver
from ...gpu.sparse.batch.statistics import BatchStatistics
from ...gpu.sparse.factor import GpuFactor
from ...gpu.sparse.factorize.equilibration import Scales
from ...gpu.sparse.factorize.pivot_statistics import device_diagonal
from ...matrix.symmetry import is_hermitian
from ...symbolic.scaling import Scaling
from ..forest import forest
from ..input import AnyArray
from ..per_system import pivot_ratios, scaled_each, slogdets
from ..substitute import Report
from ..systems import Answer
from .checks import BatchChecks
from .factorize import BatchExamination, ForestBackend
from .scaling import BatchEquilibration
from .solve import BatchSolutions, BatchSolver, solved, unsolved

_MAX_FOREST_ENTRIES = 1 << 28  # panel entries of one forest


class _ForestPart:
    """Systems of a batch that form one forest.

    Attributes
    ----------
    values : (batch, nnz) device array
        By columns; read by each factorization.
    row, column : (batch, n) device arrays
        Scaling; None before the first, and for a method without.
    """

    def __init__(self, analysis: Analyzed, values: AnyArray, device: Device) -> None:
        symbolic, count = analysis.symbolic, values.shape[0]
        self.analysis, self.symbolic, self.values = analysis, symbolic, values
        self._flat: Array = values.reshape(-1)
        self._offsets = panel_offsets(symbolic.plan, symbolic.method)
        pattern = self._pattern = pattern_of(analysis.symbolic, analysis.matching, self._offsets)
        self._device, self._backend = device, ForestBackend(forest(symbolic, count), device)
        self._factor: GpuFactor | None = None
        self._host: HostFactor | None = None
        self._equilibration = BatchEquilibration(pattern, symbolic.method.one_triangle, device)
        self.row: AnyArray = None
        self.column: AnyArray = None
        self._scales: Scales = None, None

    @cached_property
    def _solver(self) -> BatchSolver:
        pattern, count = self._backend.pattern, len(self.values)
        statistics, checks = BatchStatistics(pattern, count), BatchChecks(self._device, count)
        return BatchSolver(count, statistics, checks, SmallTreeSolver(pattern, count))

    @cached_property
    def _examination(self) -> BatchExamination:
        pattern, method, upload = self._pattern, self.symbolic.method, self._device.upload
        mirror = upload(pattern.mirror.astype(np.int32)) if method.one_triangle else None
        columns = upload(pattern.indptr.astype(np.int32)), upload(pattern.indices.astype(np.int32))
        diagonal_entries = upload(np.maximum(pattern.diagonal, 0).astype(np.int32))
        sufficient = not method.indefinite and (not method.scaling or self._equilibration.fits)
        statistics, checks = self._solver.statistics, self._solver.checks
        return BatchExamination(
            method, statistics, checks, self.values, columns, mirror, diagonal_entries, sufficient
        )

    def factorize(self) -> np.ndarray | int:
        """Factorize all systems; return the outcome of each, or one for all."""
        even = self._scale() if self.symbolic.method.scaling else None
        self._factor = self._backend.attempted(
            self._flat, self._scales, before=self._factor, examination=self._examination
        )
        self._host = None
        self._solver.renew()
        if not self._examination.sufficient:
            self._examination.verdict(self._ratios(), even)()
        self._device.wait()
        checks = self._solver.checks
        return self._device.download(checks.outcome) if checks.rejected else ACCEPTED

    def _scale(self) -> Array | None:
        """Compute the scaling of all systems; return which are usable.

        Return None if all are.
        """
        device, pattern, even = self._device, self._pattern, None
        if self._equilibration.fits:
            row, column = self._equilibration(self.values)
        else:
            host_values = device.download(self.values)
            host_values[~np.isfinite(host_values).all(axis=1)] = 0
            both = np.empty((2, len(host_values), self.symbolic.n))
            good = scaled_each(
                pattern.indptr,
                pattern.indices,
                host_values,
                pattern.row,
                pattern.column,
                self.symbolic.method.one_triangle,
                *both,
            )
            even = device.upload(good.astype(np.uint8))
            row, column = (device.upload(factors) for factors in both)
        if self.row is None:
            self.row, self.column = row, column
            self._scales = row.reshape(-1), column.reshape(-1)
        else:  # solves read this memory
            device.copy(row, self.row)
            device.copy(column, self.column)
        return even

    def _ratios(self) -> Array | None:
        """Return `Health.pivot_ratio` of each system; None if all pivots are 1 x 1."""
        coupling = self.factor.subdiagonal().reshape(len(self.values), -1)
        if not coupling.any():
            return None
        size = self._device.download(self._solver.statistics.of_values)[0]
        coupling[~np.isfinite(size)] = 0
        pivots = device_diagonal(self.factor.pattern, self.factor.storage.panels)
        diagonal = self._device.download(pivots).reshape(coupling.shape)
        return self._device.upload(pivot_ratios(self.symbolic.method, diagonal, coupling))

    @property
    def factor(self) -> GpuFactor:
        """The factor of the forest."""
        if self._factor is None:
            raise RuntimeError("no system has been factorized")
        return self._factor

    def solve(self, trans: str, B: AnyArray, asked: np.ndarray | None) -> BatchSolutions:
        """Return solutions of the systems in `asked`, or of all."""
        return solved(self.factor, self._solver, trans, B, asked)

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Return signs and log-moduli of the determinants of all systems."""
        shape, factor = (len(self.values), -1), self.factor
        pivots = factor.pivots.reshape(shape) if factor.pivots.size else np.empty((1, 0))
        diagonal = factor.diagonal().reshape(shape)
        with np.errstate(all="ignore"):
            scales = [self._device.download(x) for x in (self.row, self.column) if x is not None]
            return slogdets(self.symbolic, diagonal, pivots, scales)

    def numeric(self, i: int) -> NumericFactor:
        """Return the factor of one system, copied to the host."""
        host = self._host = self._host or self.factor.to_host()
        symbolic, n, size = self.symbolic, self.symbolic.n, int(self._offsets[-1])
        columns = slice(i * n, (i + 1) * n)
        single = HostFactor(
            panels=host.panels[i * size : (i + 1) * size].copy(),
            pivots=host.pivots[columns].copy(),
            perturbed=0,
            subdiagonal=host.subdiagonal[columns].copy(),
            nulls=np.empty(0, np.int32),
        )
        values = self._device.download(self.values[i])
        hermitian = is_hermitian(symbolic.indptr, symbolic.indices, values)
        scaling = None
        if symbolic.method.scaling:
            download = self._device.download
            scaling = Scaling(download(self.row[i]), download(self.column[i]))
        engine = self.analysis.on("cpu").engine
        return engine.from_host(single, symbolic.with_values(values, hermitian), scaling)


class DeviceSystems:
    """The engine of a GPU; see `systems.Engine`.

    Parameters
    ----------
    analysis : Analyzed
    values : (batch, nnz) array
        By columns; copied to the device if on the host.
    """

    on_device = True

    def __init__(self, analysis: Analyzed, values: AnyArray) -> None:
        symbolic, count = analysis.symbolic, values.shape[0]
        self._device = devices.device_of()
        self._xp: AnyArray = self._device.xp
        self.values: AnyArray = self._xp.asarray(values)
        size = int(panel_offsets(symbolic.plan, symbolic.method)[-1])
        max_systems = min(
            _MAX_FOREST_ENTRIES // max(size, 1), np.iinfo(np.int32).max // max(symbolic.n, 1)
        )
        pieces = -(-count // max(max_systems, 1))
        self._ends = np.linspace(0, count, pieces + 1).round().astype(np.int64)
        self._slices = [slice(*pair) for pair in pairwise(self._ends.tolist())]
        self._parts = [
            _ForestPart(analysis, self.values[members], self._device) for members in self._slices
        ]
        self._n, self._count = symbolic.n, count

    def renew(self, systems: np.ndarray, values: AnyArray) -> None:
        """See `systems.Engine`; values keep their address, which graphs read."""
        if not self._device.holds(values):
            values = np.asarray(values, self.values.dtype)
        if systems.size < self._count:
            self.values[self._xp.asarray(systems)] = self._xp.asarray(values)
        elif self.values.size:
            self._device.copy(values, self.values)

    def factorize(self, systems: np.ndarray) -> np.ndarray:
        """See `systems.Engine`; other systems of a forest are recomputed, with the same bits."""
        outcome, asked = np.full(self._count, UNSURE, np.int64), self._asked(systems)
        for forest_part, members in zip(self._parts, self._slices, strict=True):
            if self._n and (asked is None or asked[members].any()):
                outcome[members] = forest_part.factorize()
        return outcome if asked is None else outcome[systems]

    def _asked(self, systems: np.ndarray) -> np.ndarray | None:
        """Return a mask of systems; None for all."""
        if systems.size == self._count:
            return None
        asked = np.zeros(self._count, np.bool_)
        asked[systems] = True
        return asked

    def solve(self, trans: str, B: AnyArray, systems: np.ndarray) -> Answer:
        """See `systems.Engine`; on the device."""
        asked, xp, solutions = self._asked(systems), self._xp, []
        for forest_part, members in zip(self._parts, self._slices, strict=True):
            mask = None if asked is None or asked[members].all() else asked[members]
            if mask is None or mask.any():
                solutions.append(
                    forest_part.solve(trans, B[members] if B.shape[0] > 1 else B, mask)
                )
            else:
                size = mask.size, B.shape[1], self._n
                solutions.append(unsolved(xp.full(size, np.nan, B.dtype)))
        if not solutions:
            solutions = [unsolved(xp.empty((0, B.shape[1], self._n), B.dtype))]
        if any(s.clean is not None for s in solutions):
            clean = [np.True_ if s.clean is None else s.clean for s in solutions]
            sure = [np.broadcast_to(c, len(s.X)) for c, s in zip(clean, solutions, strict=True)]
            systems = systems[~np.concatenate(sure)[systems]]
        else:
            systems = systems[:0]
        X = solutions[0].X if len(solutions) == 1 else xp.concatenate([s.X for s in solutions])
        return Answer(
            xp.ascontiguousarray(X), systems, lambda: _joined([f.report() for f in solutions])
        )

    def slogdet(self, systems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `systems.Engine`."""
        pairs = [forest_part.slogdet() for forest_part in self._parts]
        sign, value = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        return sign[systems], value[systems]

    def numeric(self, i: int) -> NumericFactor:
        """See `systems.Engine`; on the host."""
        place = int(np.searchsorted(self._ends, i, "right")) - 1
        return self._parts[place].numeric(i - int(self._ends[place]))


def _joined(reports: list[Report]) -> Report:
    """Return the reports of all forests as one."""
    if len(reports) == 1:
        return reports[0]
    return Report(*(np.concatenate(arrays) for arrays in zip(*reports, strict=True)))
