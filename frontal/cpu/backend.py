"""The CPU backend: threads that run compiled code without the GIL."""

from __future__ import annotations

import sys

import numpy as np

from .._typing import Untyped
from ..backend.host_memory import available_for, require_available
from ..backend.memory_limit import Memory, byte_limit
from ..backend.protocol import (
    DelayFailure,
    HostFactor,
    NumericFactor,
    PivotFailure,
    Progress,
    SchurPivotFailure,
    panel_offsets,
)
from ..compile import tile_queue, workers
from ..errors import FactorMemoryError
from ..machine.resources import CPU, thread_count
from ..matrix.canonical import Canonical
from ..symbolic.matching import Matching
from ..symbolic.phase import Symbolic
from ..symbolic.plan import front_flops
from ..symbolic.scaling import Scaling, ScalingRequest, scaled, scaling_of
from . import shared_state
from .assembly import Delays, HostWorkspace
from .blas import routines
from .blas_limit import single_threaded_blas
from .factor import CpuFactor
from .factorize import run
from .finalize import FactorPlan, finalize
from .layout import HostLayout, footprint, has_schur_root, refuse_beyond
from .ldl import front as ldl
from .schur import columns_without_pivots, schur_block
from .signs import pivot_signs
from .small import warmup
from .small.factorize import MAX_SMALL_COLUMNS, MAX_SMALL_LU_COLUMNS, SmallFactorizer
from .small.warmup import CallCounter
from .threads import run_team

_INLINE_FLOPS = CPU.least_flops
# Extra panels for fronts that receive columns, in multiples of all panels. A factorization that
# needs more fails: more delays are better avoided.
_DELAYED_PANELS_RATIO = 2
_MIN_DELAYED_ENTRIES = 1 << 16  # entries, and names, for delayed columns; unused, they cost nothing
_NO_COLUMNS = np.empty(0, np.int32)
_often = CallCounter()  # factorizations of small systems
_NO_DELAYS = Delays(_NO_COLUMNS, _NO_COLUMNS, np.empty(0, np.int64), _NO_COLUMNS, True)
_INITIAL_STATE = tile_queue.closed_state()  # words of a team
_INITIAL_STATE[[shared_state.FAILURE, shared_state.WEAK]] = (
    shared_state.NO_FAILURE,
    shared_state.NO_UNSTABLE_PIVOT,
)


class CpuBackend:
    """See `protocol.Backend`.

    Attributes
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Offset of the panels of each front.
    """

    fallback: str | None = None

    def __init__(self, symbolic: Symbolic) -> None:
        self.symbolic = symbolic
        self.threads = thread_count()
        self.device = f"{self.threads} thread" + "s" * (self.threads > 1)
        plan = symbolic.plan
        self.panel = panel_offsets(plan, symbolic.method)
        self._flops = float(front_flops(plan.start, plan.pointer).sum())
        self._layouts: dict[int, HostLayout] = {}
        most = MAX_SMALL_COLUMNS if symbolic.method.one_triangle else MAX_SMALL_LU_COLUMNS
        self._small = 0 < symbolic.n <= most and self._flops <= _INLINE_FLOPS
        self._small = self._small and symbolic.schur is None
        self._small_factorizers: dict[np.dtype, SmallFactorizer] = {}
        self._factorizations = 0

    def layout(self, threads: int) -> HostLayout:
        """Return the layout of panels and contribution blocks for a number of threads."""
        if threads not in self._layouts:
            plan, method = self.symbolic.plan, self.symbolic.method
            last = has_schur_root(self.symbolic)
            self._layouts[threads] = HostLayout.for_plan(plan, method, threads, last)
        return self._layouts[threads]

    def factorize(
        self,
        values: np.ndarray,
        scaling: Scaling | ScalingRequest | None,
        *,
        on_device: bool = False,
        hermitian: bool = False,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        delaying: bool = True,
        dtype: np.dtype | None = None,
        memory: Memory = "auto",
    ) -> CpuFactor:
        """See `protocol.Backend`; `memory` limits the estimate of `footprint`."""
        symbolic, unscaled, alone = self.symbolic, values, self._flops <= _INLINE_FLOPS
        threads = 1 if alone else self.threads
        if byte_limit(memory) is not None:
            args = symbolic, np.dtype(dtype or values.dtype), values.dtype, threads
            refuse_beyond(footprint(*args)["total"], memory)
        workers.compile_for("cpu", symbolic.method.name, dtype or values.dtype)
        if isinstance(scaling, ScalingRequest):
            matrix = symbolic.with_values(unscaled, hermitian)
            scaling = scaling_of(matrix, scaling, symbolic.method.one_triangle)
        if scaling is not None:
            args = symbolic.indptr, symbolic.indices
            values = scaled(*args, values, scaling.row, scaling.column)
        values = _contiguous_values(values, dtype or values.dtype)
        layout = self.layout(threads)
        work = self._work(values, layout, threads, delaying, previous)
        cut, state = (layout.low, layout.root, layout.top), work.state

        def member(rank: int) -> None:
            with single_threaded_blas():
                run(work, *cut, rank == 0, rank, np.zeros(1, np.int32))

        if alone:
            with single_threaded_blas():
                run(work, *cut, True, 0, np.zeros(1, np.int32))
        else:
            run_team(member, threads, state, symbolic.plan.parent.size, progress)
        if state[shared_state.FAILURE] < shared_state.CRAMPED:
            raise SchurPivotFailure(columns_without_pivots(symbolic, work))
        if state[shared_state.FAILURE] == shared_state.CRAMPED:
            raise DelayFailure
        if state[shared_state.FAILURE] != shared_state.NO_FAILURE:
            raise PivotFailure(int(state[shared_state.FAILURE]) - 1)
        place, host_factor = finalize(FactorPlan(symbolic, self.panel, self.device), work)
        factor = CpuFactor(symbolic.with_values(unscaled, hermitian), host_factor, scaling, place)
        factor.schur = schur_block(symbolic, work, factor.nulls, place.symbolic.perm)
        if place.symbolic is symbolic:
            factor.storage, factor.arena = work.panels, work.arena if previous else None
        return factor

    def factorize_fast(
        self, matrix: Canonical, matching: Matching | None, previous: NumericFactor | None
    ) -> CpuFactor | None:
        """See `protocol.Backend`."""
        self._factorizations += 1
        if not (self._small and _often()) or self._factorizations <= warmup.GENERAL_FACTORIZATIONS:
            return None
        factorizer = self._small_factorizers.get(matrix.dtype)
        if factorizer is None or factorizer.matching is not matching:
            workers.compile_for("cpu", self.symbolic.method.name, matrix.dtype)
            place = FactorPlan(self.symbolic, self.panel, self.device)
            factorizer = SmallFactorizer(place, self.layout(1), matching, matrix.dtype)
            self._small_factorizers[matrix.dtype] = factorizer
        return factorizer(matrix, previous.storage if isinstance(previous, CpuFactor) else None)

    def _work(
        self,
        values: np.ndarray,
        layout: HostLayout,
        threads: int,
        delaying: bool,
        previous: NumericFactor | None,
    ) -> HostWorkspace:
        """Return the workspace of a factorization."""
        plan, method, dtype = self.symbolic.plan, self.symbolic.method, values.dtype
        size, fronts, n = int(layout.panel[-1]), plan.parent.size, self.symbolic.n
        least = min(_MIN_DELAYED_ENTRIES, 2 * n * n * fronts)  # delays never use more
        room = _DELAYED_PANELS_RATIO * size + least if method.pivots else 0
        blocks = layout.shared + threads * layout.per_thread
        panels, arena = _storage(size, room, blocks, dtype, previous)
        state = _INITIAL_STATE.copy()
        state[shared_state.PANELS_END] = size
        some, delays = method.pivots, _NO_DELAYS
        if some:
            delays = Delays(
                received=np.zeros(fronts, np.int32),
                eliminated=plan.start[1:] - plan.start[:-1],
                listed=np.full(fronts, -1, np.int64),
                names=np.empty(3 * n + least, np.int32),
                allowed=delaying,
            )
        scratch = ldl.SCRATCH_ENTRIES if method.indefinite else 0
        schur = 0 if self.symbolic.schur is None else self.symbolic.schur.size
        return HostWorkspace(
            method=method,
            plan=plan,
            routines=routines(dtype),
            values=values,
            panels=panels,
            pivots=np.empty(n * some, np.int32),
            arena=arena,
            panel=layout.panel.copy() if some else layout.panel,
            block=layout.block,
            local=layout.local,
            shared=layout.shared,
            per_thread=layout.per_thread,
            scratch=np.empty(scratch * threads, dtype),
            turn=np.empty(2 * ldl.BLOCK * threads, np.int32),
            scratch_size=scratch,
            delays=delays._replace(allowed=delaying),
            signs=pivot_signs(self.symbolic, values),
            schur=np.empty(schur * schur, dtype),
            state=state,
        )

    def values_on_host(self, values: np.ndarray) -> np.ndarray:
        """See `protocol.Backend`."""
        return values

    def device_values(self, A: Untyped) -> None:
        """See `protocol.Backend`: no values are on a device."""

    def from_host(
        self, factor: HostFactor, matrix: Canonical, scaling: Scaling | None
    ) -> CpuFactor:
        """See `protocol.Backend`."""
        return CpuFactor(
            matrix, factor, scaling, FactorPlan(self.symbolic, self.panel, self.device)
        )


def _contiguous_values(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return values as a writable contiguous array of a scalar type, copied if necessary."""
    flags = values.flags
    if values.dtype == dtype and flags.c_contiguous and flags.writeable:
        return values
    return np.require(values, dtype, requirements=["C", "W"])


def _storage(
    panels: int, room: int, blocks: int, dtype: np.dtype, previous: NumericFactor | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return arrays for panels and contribution blocks; those of `previous` are reused if they fit.

    Fresh pages cost as much as the arithmetic of a small front, as the system clears each page.
    The `room` behind the panels is not counted: few matrices use it.

    Raises
    ------
    FactorMemoryError
        If the arrays exceed the available memory; the factorization has not begun.
    """
    first = second = None
    if isinstance(previous, CpuFactor):
        first, second = previous.storage, previous.arena
    room = min(room, _spare(panels + blocks, dtype))
    first = first if _fits(first, max(1, panels + room), dtype) else None
    second = second if _fits(second, max(1, blocks), dtype) else None
    required = (panels * (first is None) + blocks * (second is None)) * dtype.itemsize
    require_available(required)
    try:
        first = _memory(panels + room, dtype) if first is None else first
        return first, _memory(blocks, dtype) if second is None else second
    except MemoryError as error:
        raise FactorMemoryError.from_error(error, required) from error


def _fits(array: np.ndarray | None, size: int, dtype: np.dtype) -> bool:
    return array is not None and array.size >= size and array.dtype == dtype


def _memory(size: int, dtype: np.dtype) -> np.ndarray:
    """Return an uninitialized array; for size 0 one zero, so that it has an address."""
    return np.empty(size, dtype) if size else np.zeros(1, dtype)


def _spare(entries: int, dtype: np.dtype) -> int:
    """Return the number of entries that remain available beside `entries`."""
    required = entries * dtype.itemsize
    available = available_for(required)
    return sys.maxsize if available is None else max(0, available - required) // dtype.itemsize
