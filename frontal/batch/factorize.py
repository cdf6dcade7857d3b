"""The numeric factorization of many matrices of one pattern on the CPU: one compiled loop.

Threads take whole systems, one after the other, so that nothing that a system is computed from
depends on another, on the number of threads or on its place. There is no room for columns that
find no pivot in their front: a system that has some is left to the ordinary way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import phases
from .._jit import allocating, jit
from ..cpu.blas_limit import single_threaded_blas
from ..cpu.layout import Layout
from ..cpu.single import Numbers, Pattern, factorize_one, room_for
from ..cpu.team import INTERRUPT
from ..cpu.threads import run_team
from ..machine import CPU, thread_count
from ..method import CHOLESKY, LDLH, LDLT, LU, Method
from ..native import fetch_add
from ..symbolic.plan import front_flops
from ..symbolic.symbolic import Symbolic


@allocating
def _factorize_each(method, rest, top, pattern, numbers, systems, ticket):
    """Factorize systems until none is left that nobody has taken."""
    n, info = pattern.place.size, np.zeros(1, np.int32)
    scaled = np.empty(pattern.indices.size * method.pivots, numbers.values.dtype)
    null = np.empty(n, np.bool_)
    while ticket[INTERRUPT] == 0:
        t = fetch_add(ticket, phases.WORD, 1)
        if t >= systems.size:
            break
        i = systems[t]
        of = method, rest, top, pattern, numbers, i, True, scaled, null, info
        numbers.outcome[i] = factorize_one(*of)


@jit
def _run_cholesky(rest, top, pattern, numbers, systems, ticket):
    _factorize_each(CHOLESKY, rest, top, pattern, numbers, systems, ticket)


@jit
def _run_lu(rest, top, pattern, numbers, systems, ticket):
    _factorize_each(LU, rest, top, pattern, numbers, systems, ticket)


@jit
def _run_ldlt(rest, top, pattern, numbers, systems, ticket):
    _factorize_each(LDLT, rest, top, pattern, numbers, systems, ticket)


@jit
def _run_ldlh(rest, top, pattern, numbers, systems, ticket):
    _factorize_each(LDLH, rest, top, pattern, numbers, systems, ticket)


_RUN: dict[Method, Callable[..., None]] = {
    CHOLESKY: _run_cholesky,
    LU: _run_lu,
    LDLT: _run_ldlt,
    LDLH: _run_ldlh,
}


def on_threads(run: Callable[[np.ndarray], None], systems: int, flops: float) -> None:
    """Work of so many operations on systems: ``run(ticket)`` on each of some threads."""
    ticket = np.zeros(phases.STATE_SIZE, np.int64)

    def member(_: int) -> None:
        with single_threaded_blas():
            run(ticket)

    threads = 1 if flops <= CPU.least_flops else min(thread_count(), systems)
    if threads <= 1:
        member(0)
    else:
        run_team(member, threads, ticket, systems, None)


def factorize(
    symbolic: Symbolic, layout: Layout, pattern: Pattern, numbers: Numbers, systems: np.ndarray
) -> None:
    """Factorize the systems of these numbers: panels, pivots, scaling and outcome.

    Parameters
    ----------
    symbolic : Symbolic
    layout : Layout
        For one thread.
    pattern : Pattern
    numbers : Numbers
    systems : int64 array
    """
    plan, method = symbolic.plan, symbolic.method
    flops = method.panels * float(front_flops(plan.start, plan.pointer).sum()) * systems.size

    def run(ticket: np.ndarray) -> None:
        rest = room_for(symbolic, layout, numbers.panels.dtype)[1:]
        _RUN[method](rest, layout.top, pattern, numbers, systems, ticket)

    on_threads(run, systems.size, flops)
