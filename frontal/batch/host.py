"""The engine of a batch on the CPU: compiled loops factorize and solve its systems."""

from __future__ import annotations

import numpy as np

from ..backend.host_memory import require_available
from ..backend.protocol import HostFactor
from ..cpu.factor import CpuFactor
from ..cpu.finalize import FactorPlan
from ..cpu.layout import HostLayout
from ..cpu.small.one_system import UNSURE, pattern_of
from ..factor.analyzed import Analyzed
from ..matrix.symmetry import is_hermitian
from ..symbolic.scaling import Scaling
from . import substitute
from .factorize import BatchArrays, factorize
from .per_system import slogdets
from .substitute import BatchConditions
from .systems import Answer


class HostSystems:
    """The engine of the CPU; see `systems.Engine`.

    Parameters
    ----------
    analysis : Analyzed
    values : (batch, nnz) array
        By columns; not copied.
    """

    on_device = False

    def __init__(self, analysis: Analyzed, values: np.ndarray) -> None:
        self.values = values
        self.analysis, self.symbolic = analysis, analysis.symbolic
        plan, method = self.symbolic.plan, self.symbolic.method
        self._layout = HostLayout.for_plan(plan, method, 1)
        self._pattern = pattern_of(self.symbolic, analysis.matching, self._layout.panel)
        self._place = FactorPlan(self.symbolic, self._layout.panel, "batch")
        count, n, size = values.shape[0], self.symbolic.n, int(self._layout.panel[-1])
        require_available(count * size * values.dtype.itemsize)
        self.numbers = BatchArrays(
            values=values,
            panels=np.empty((count, max(1, size)), values.dtype),
            pivots=np.empty((count, n * method.pivots), np.int32),
            subdiagonal=np.empty((count, n * method.indefinite), values.dtype),
            row=np.empty((count, n * method.scaling)),
            column=np.empty((count, n * method.scaling)),
            outcome=np.full(count, UNSURE, np.int64),
            ratio=np.full(count, np.nan),
            norms=np.empty((count, 2)),
        )
        self._known, self._vectors = BatchConditions.empty(count), values.dtype

    def renew(self, systems: np.ndarray, values: np.ndarray) -> None:
        """See `systems.Engine`."""
        self.values[systems] = values

    def factorize(self, systems: np.ndarray) -> np.ndarray:
        """See `systems.Engine`."""
        for known in self._known:
            known[:, systems] = np.nan
        factorize(self.symbolic, self._layout, self._pattern, self.numbers, systems)
        return self.numbers.outcome[systems]

    def solve(self, trans: str, B: np.ndarray, systems: np.ndarray) -> Answer:
        """See `systems.Engine`."""
        if B.dtype != self._vectors:  # stored condition numbers hold for one precision
            self._known, self._vectors = BatchConditions.empty(len(self.values)), B.dtype
        X, report = substitute.solve(
            self.symbolic,
            self._layout.panel,
            self._pattern,
            self.numbers,
            self._known,
            trans,
            B,
            systems,
        )
        return Answer(X, systems[~report.clean[systems]], lambda: report)

    def slogdet(self, systems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `systems.Engine`."""
        numbers, symbolic = self.numbers, self.symbolic
        diagonal = numbers.panels[systems[:, None], self._pattern.place]
        scales = numbers.row[systems], numbers.column[systems]
        return slogdets(symbolic, diagonal, numbers.pivots[systems], scales)

    def numeric(self, i: int) -> CpuFactor:
        """See `systems.Engine`."""
        numbers, symbolic, empty = self.numbers, self.symbolic, np.empty(0, np.int32)
        values = numbers.values[i]
        hermitian = is_hermitian(symbolic.indptr, symbolic.indices, values)
        panels = numbers.panels[i, : int(self._layout.panel[-1])]
        host = HostFactor(panels, numbers.pivots[i], 0, numbers.subdiagonal[i], empty)
        scaling = None
        if symbolic.method.scaling:
            scaling = Scaling(numbers.row[i], numbers.column[i])
        return CpuFactor(symbolic.with_values(values, hermitian), host, scaling, self._place)
