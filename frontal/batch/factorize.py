"""Numeric factorization of many matrices of one pattern on the CPU: one compiled loop.

Each thread takes whole systems one after the other, so a factor depends neither on other systems
nor on the number of threads or its position. Pivots are not delayed: a system with a column that
finds no pivot in its front is handled by `Factor`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..compile import tile_queue
from ..compile.atomics import fetch_add
from ..compile.jit import allocating, jit
from ..cpu.blas import Routines, routines
from ..cpu.blas_limit import single_threaded_blas
from ..cpu.by_reference import reference
from ..cpu.layout import HostLayout
from ..cpu.shared_state import INTERRUPT
from ..cpu.small.one_system import (
    EntryPattern,
    SystemArrays,
    factorize_system,
    for_system,
    one_thread_workspace,
)
from ..cpu.threads import run_team
from ..machine.resources import CPU, thread_count
from ..numeric.method import CHOLESKY, LDLH, LDLT, LU, SIGNED_LDLH, Method
from ..symbolic.phase import Symbolic
from ..symbolic.plan import Plan, front_flops


class BatchArrays(NamedTuple):
    """The arrays of all systems; one row for each system.

    Attributes
    ----------
    values : (batch, nnz) array
    panels, pivots, subdiagonal : arrays
        As of a `HostFactor`.
    row, column : (batch, n) float64 arrays
        Scaling; (batch, 0) for a method without.
    outcome : (batch,) int64 array
        `ACCEPTED`, `UNSURE`, `NOT_FINITE`, or the failed column of Cholesky, counted from 1.
    ratio : (batch,) float64 array
        See `Health.pivot_ratio`.
    norms : (batch, 2) float64 array
        Infinity norms and 1-norms.
    """

    values: np.ndarray
    panels: np.ndarray
    pivots: np.ndarray
    subdiagonal: np.ndarray
    row: np.ndarray
    column: np.ndarray
    outcome: np.ndarray
    ratio: np.ndarray
    norms: np.ndarray


class SharedPlan(NamedTuple):
    """What `_factorize_each` reads for all systems.

    Attributes
    ----------
    plan : Plan
    routines : Routines
    layout : (array, array, int)
        See `one_thread_workspace`.
    top : int32 array
        See `factorize_system`.
    pattern : EntryPattern
    """

    plan: Plan
    routines: Routines
    layout: tuple[np.ndarray, np.ndarray, int]
    top: np.ndarray
    pattern: EntryPattern


@allocating
def _factorize_each(method, shared, numbers, systems, ticket):
    """Factorize systems taken by `ticket` until none is left."""
    pattern, dtype = shared.pattern, numbers.values.dtype
    n, info, statistics = pattern.place.size, np.zeros(1, np.int32), np.empty(3)
    scaled, null = np.empty(pattern.indices.size * method.pivots, dtype), np.empty(n, np.bool_)
    empty = one_thread_workspace(method, shared.plan, shared.routines, shared.layout, dtype)
    while ticket[INTERRUPT] == 0:
        t = fetch_add(ticket, tile_queue.WORD, 1)
        if t >= systems.size:
            break
        i = systems[t]
        values, coupling = numbers.values[i], numbers.subdiagonal[i]
        front_values = scaled if method.pivots else values
        work = for_system(empty, front_values, numbers.panels[i], numbers.pivots[i])
        system = SystemArrays(values, coupling, numbers.row[i], numbers.column[i], statistics)
        numbers.outcome[i] = factorize_system(
            reference(work), reference(pattern), reference(system), shared.top, True, null, info
        )
        numbers.ratio[i], numbers.norms[i, 0] = statistics[0], statistics[1]
        numbers.norms[i, 1] = statistics[2]


@jit
def _run_cholesky(shared, numbers, systems, ticket):
    _factorize_each(CHOLESKY, shared, numbers, systems, ticket)


@jit
def _run_lu(shared, numbers, systems, ticket):
    _factorize_each(LU, shared, numbers, systems, ticket)


@jit
def _run_ldlt(shared, numbers, systems, ticket):
    _factorize_each(LDLT, shared, numbers, systems, ticket)


@jit
def _run_ldlh(shared, numbers, systems, ticket):
    _factorize_each(LDLH, shared, numbers, systems, ticket)


@jit
def _run_signed(shared, numbers, systems, ticket):
    _factorize_each(SIGNED_LDLH, shared, numbers, systems, ticket)


_RUN: dict[Method, Callable[..., None]] = {
    CHOLESKY: _run_cholesky,
    LU: _run_lu,
    LDLT: _run_ldlt,
    LDLH: _run_ldlh,
    SIGNED_LDLH: _run_signed,
}


def on_threads(run: Callable[[np.ndarray], None], systems: int, flops: float) -> None:
    """Call ``run(ticket)`` on each of the threads that `systems` and `flops` are worth."""
    ticket = np.zeros(tile_queue.STATE_SIZE, np.int64)

    def member(_: int) -> None:
        with single_threaded_blas():
            run(ticket)

    threads = 1 if flops <= CPU.least_flops else min(thread_count(), systems)
    if threads <= 1:
        member(0)
    else:
        run_team(member, threads, ticket, systems, None)


def factorize(
    symbolic: Symbolic,
    layout: HostLayout,
    pattern: EntryPattern,
    numbers: BatchArrays,
    systems: np.ndarray,
) -> None:
    """Factorize systems: panels, pivots, scaling and outcome are written to `numbers`.

    Parameters
    ----------
    symbolic : Symbolic
    layout : HostLayout
        For one thread.
    pattern : EntryPattern
    numbers : BatchArrays
    systems : int64 array
    """
    plan, method = symbolic.plan, symbolic.method
    flops = method.panels * float(front_flops(plan.start, plan.pointer).sum()) * systems.size

    blocks = layout.panel, layout.block, max(1, layout.shared + layout.per_thread)
    blas = routines(numbers.panels.dtype)
    shared = SharedPlan(plan, blas, blocks, layout.top, pattern)

    def run(ticket: np.ndarray) -> None:
        _RUN[method](shared, numbers, systems, ticket)

    on_threads(run, systems.size, flops)
