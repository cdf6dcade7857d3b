"""Entries of an inverse from the panels of a factor: memory and threads of the recurrence."""

from __future__ import annotations

import numpy as np

from ...backend.host_memory import require_available
from ...backend.protocol import HostFactor, panel_offsets
from ...compile import tile_queue
from ...errors import FactorMemoryError
from ...machine.resources import CPU, thread_count
from ...symbolic.phase import Symbolic
from ...symbolic.plan import Plan, front_flops
from ..blas import routines
from ..blas_limit import single_threaded_blas
from ..threads import run_team
from .entries import WantedEntries, needed_fronts
from .layout import InverseLayout
from .recurrence import run
from .workspace import PIVOT_SCRATCH, InverseWorkspace

_INLINE_FLOPS = CPU.least_flops  # of a factorization, up to which one thread works


def selected_entries(
    symbolic: Symbolic, host: HostFactor, wanted: WantedEntries, count: int
) -> np.ndarray:
    """Return entries of the inverse of the factorized matrix.

    Parameters
    ----------
    symbolic : Symbolic
        Symbolic phase of the factor, with fronts.
    host : HostFactor
        The factor, by panels, without replaced pivots.
    wanted : WantedEntries
        See `locate`.
    count : int
        Number of entries, those outside of all fronts included.

    Returns
    -------
    values : (count,) array
        Entries outside of all fronts are zero.

    Raises
    ------
    FactorMemoryError
        If the inverses of fronts do not fit; no memory has been allocated.
    """
    values = np.zeros(count, host.panels.dtype)
    plan = symbolic.plan
    threads = _threads(plan)
    layout = InverseLayout.for_plan(plan, threads)
    work = _workspace(symbolic, host, wanted, values, layout, threads)
    cut = layout.low, layout.root, layout.top

    def member(rank: int) -> None:
        with single_threaded_blas():
            run(work, *cut, rank == 0, rank)

    if threads == 1:
        member(0)
    else:
        run_team(member, threads, work.state, plan.parent.size, None)
    return values


def _threads(plan: Plan) -> int:
    flops = float(front_flops(plan.start, plan.pointer).sum())
    return 1 if flops <= _INLINE_FLOPS else thread_count()


def _workspace(
    symbolic: Symbolic,
    host: HostFactor,
    wanted: WantedEntries,
    values: np.ndarray,
    layout: InverseLayout,
    threads: int,
) -> InverseWorkspace:
    plan, method, dtype = symbolic.plan, symbolic.method, values.dtype
    k, m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
    scratch = PIVOT_SCRATCH + method.panels * int((k * m).max(initial=0))
    entries = layout.shared + threads * layout.per_thread
    required = (entries + threads * scratch) * dtype.itemsize
    require_available(required)
    try:
        arena, memory = np.empty(entries, dtype), np.empty(threads * scratch, dtype)
    except MemoryError as error:
        raise FactorMemoryError.from_error(error, required) from error
    return InverseWorkspace(
        plan=plan,
        routines=routines(dtype),
        panels=host.panels,
        pivots=host.pivots,
        subdiagonal=host.subdiagonal.astype(dtype, copy=False),
        panel=panel_offsets(plan, method),
        arena=arena,
        block=layout.block,
        local=layout.local,
        shared=layout.shared,
        per_thread=layout.per_thread,
        scratch=memory,
        scratch_size=scratch,
        states=needed_fronts(plan, wanted),
        wanted=wanted,
        values=values,
        state=tile_queue.closed_state(),
        two_panels=not method.one_triangle,
        unit=method.unit,
        indefinite=method.indefinite,
        conjugate=method.adjoint and method.one_triangle and dtype.kind == "c",
    )
