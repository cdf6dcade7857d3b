"""The CPU backend: threads that run compiled code without the GIL."""

from __future__ import annotations

import numpy as np

from ..errors import FactorMemoryError
from ..machine import CPU, available_memory, thread_count
from ..matrix import Canonical
from ..method import tiny_pivot
from ..protocol import HostFactor, NumericFactor, PivotFailure, Progress, panel_offsets
from ..symbolic.plan import front_flops
from ..symbolic.scaling import Scaling, scaled
from ..symbolic.symbolic import Symbolic
from . import team
from .assembly import Work
from .blas import routines
from .blas_limit import single_threaded_blas
from .factor import CpuFactor
from .factorize import run
from .layout import Layout
from .threads import run_team

_INLINE_FLOPS = CPU.least_flops
_UNCHECKED_BYTES = 1 << 24  # so little is taken without a look at the system's memory


class CpuBackend:
    """See `protocol.Backend`.

    Attributes
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Where the panels of each front begin.
    """

    fallback: str | None = None

    def __init__(self, symbolic: Symbolic) -> None:
        self.symbolic = symbolic
        self.threads = thread_count()
        self.device = f"{self.threads} thread" + "s" * (self.threads > 1)
        plan = symbolic.plan
        self.panel = panel_offsets(plan, symbolic.method)
        self._flops = float(front_flops(plan.start, plan.pointer).sum())
        self._layouts: dict[int, Layout] = {}

    def layout(self, threads: int) -> Layout:
        """Where everything lies for so many threads."""
        if threads not in self._layouts:
            plan, method = self.symbolic.plan, self.symbolic.method
            self._layouts[threads] = Layout.of(plan, method, threads)
        return self._layouts[threads]

    def factorize(
        self,
        values: np.ndarray,
        scaling: Scaling | None,
        *,
        there: bool = False,
        hermitian: bool = False,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        tiny: float | None = None,
    ) -> CpuFactor:
        """See `protocol.Backend`; pivots below `tiny` of their columns are replaced."""
        symbolic, given = self.symbolic, values
        plan, method = symbolic.plan, symbolic.method
        if scaling is not None:
            of = symbolic.indptr, symbolic.indices
            values = scaled(*of, values, scaling.row, scaling.column)
        values = np.require(values, requirements=["C", "W"])
        alone = self._flops <= _INLINE_FLOPS
        threads = 1 if alone else self.threads
        layout = self.layout(threads)
        blocks = layout.shared + threads * layout.own
        panels, arena = _storage(int(layout.panel[-1]), blocks, values.dtype, previous)
        state = np.zeros(team.STATE_SIZE, np.int64)
        state[team.FAILURE] = team.NO_FAILURE
        state[team.WORD] = team.CLOSED
        pivots = np.empty(plan.start[-1] if method.pivots else 0, np.int32)
        least = tiny_pivot(values.dtype) if tiny is None else tiny
        numbers = routines(values.dtype), values, panels, pivots, least, arena
        work = Work(method, plan, *numbers, layout.panel, layout.block, layout.local, state)

        cut = layout.low, layout.root, layout.top

        def member(rank: int) -> None:
            own = layout.shared + rank * layout.own
            with single_threaded_blas():
                run(work, *cut, rank == 0, own, np.zeros(1, np.int32))

        if alone:
            with single_threaded_blas():
                run(work, *cut, True, layout.shared, np.zeros(1, np.int32))
        else:
            run_team(member, threads, state, plan.parent.size, progress)
        if state[team.FAILURE] != team.NO_FAILURE:
            raise PivotFailure(int(state[team.FAILURE]) - 1)
        found = HostFactor(panels, pivots, int(state[team.PERTURBED]))
        factor = CpuFactor(symbolic.with_values(given, hermitian), found, scaling, self)
        factor.arena = arena if previous is not None else None
        return factor

    def values_on_host(self, values: np.ndarray) -> np.ndarray:
        """See `protocol.Backend`."""
        return values

    def restored(self, factor: HostFactor, matrix: Canonical, scaling: Scaling | None) -> CpuFactor:
        """See `protocol.Backend`."""
        return CpuFactor(matrix, factor, scaling, self)


def _storage(
    panels: int, blocks: int, dtype: np.dtype, previous: NumericFactor | None
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays for panels and contribution blocks, those of `previous` where they fit.

    Fresh pages cost as much as the arithmetic of a small front: the system clears each of them.

    Raises
    ------
    FactorMemoryError
        If they are larger than the memory that is left: nothing is begun that cannot end.
    """
    kept: list[np.ndarray | None] = [None, None]
    if isinstance(previous, CpuFactor):
        kept = [previous.panels, previous.arena]
    sizes = max(1, panels), max(1, blocks)
    fits = [a if a is not None and a.size >= n and a.dtype == dtype else None
            for a, n in zip(kept, sizes, strict=True)]  # fmt: skip
    required = sum(n for a, n in zip(fits, sizes, strict=True) if a is None) * dtype.itemsize
    available = available_memory() if required > _UNCHECKED_BYTES else None
    if available is not None and required > available:
        raise FactorMemoryError(required, available)
    first, second = (np.empty(n, dtype) if a is None else a
                     for a, n in zip(fits, sizes, strict=True))  # fmt: skip
    return first, second
