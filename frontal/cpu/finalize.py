"""The result of a factorization in the form of a plan, which is amended if columns moved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backend.protocol import HostFactor, panel_offsets
from ..compile.jit import allocating, brief, inner, jit
from ..symbolic.delayed_plan import Elimination, renumber, replan_delayed
from ..symbolic.phase import Symbolic
from .assembly import HostWorkspace
from .shared_state import PERTURBED


class FactorPlan(NamedTuple):
    """The plan of a factor.

    Attributes
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Offset of the panels of each front.
    device : str
    """

    symbolic: Symbolic
    panel: np.ndarray
    device: str


def finalize(place: FactorPlan, work: HostWorkspace) -> tuple[FactorPlan, HostFactor]:
    """Return the plan of a factor, and the factor.

    Parameters
    ----------
    place : FactorPlan
        The plan of the factorization.
    work : HostWorkspace
        The workspace after the factorization.
    """
    symbolic, delays = place.symbolic, work.delays
    plan, method, n = symbolic.plan, symbolic.method, symbolic.n
    panels, replaced = work.panels, int(work.state[PERTURBED])
    if panels.size > place.panel[-1] > 0:
        panels = panels[: place.panel[-1]]
    if not method.pivots:
        coupling = np.zeros(n * method.indefinite, panels.dtype)
        return place, HostFactor(panels, work.pivots, replaced, coupling)
    if not _as_planned(plan.start, delays.eliminated, delays.listed):
        return _finalize_moved(place, work, replaced)
    if not method.indefinite:
        return place, HostFactor(panels, work.pivots, replaced, np.empty(0, panels.dtype))
    coupling, null = np.zeros(n, panels.dtype), np.zeros(n, np.bool_)
    finalize_in_place(plan, delays, place.panel, panels, work.pivots, coupling, null)
    nulls = np.flatnonzero(null).astype(np.int32)
    return place, HostFactor(panels, work.pivots, replaced, coupling, nulls)


@brief
def _as_planned(start, eliminated, listed):
    """Return whether each front has eliminated its own columns, in their order."""
    good = True
    for s in range(listed.size):
        good &= eliminated[s] == start[s + 1] - start[s] and listed[s] < 0
    return good


def _finalize_moved(
    place: FactorPlan, work: HostWorkspace, replaced: int
) -> tuple[FactorPlan, HostFactor]:
    """Run `finalize` if columns are not in the fronts of the plan or not in their order."""
    symbolic = place.symbolic
    plan, method, n = symbolic.plan, symbolic.method, symbolic.n
    columns, rows, interchanges = np.empty((3, n), np.int32)
    count, null = np.empty(plan.parent.size, np.int32), np.zeros(n, np.bool_)
    late = np.zeros(plan.parent.size + 1, np.int64)
    k = np.diff(plan.start) + work.delays.received
    np.cumsum(k - work.delays.eliminated, out=late[1:])
    late_columns, late_rows = np.empty((2, int(late[-1])), np.int32)
    outcome = Elimination(count, columns, rows, late, late_columns, late_rows)
    _record_elimination(
        plan, work.delays, work.pivots, method.one_triangle, outcome, interchanges, null
    )
    new = renumber(symbolic, outcome)
    replanned = replan_delayed(symbolic, outcome, new)
    offset = panel_offsets(replanned.plan, method)
    panels = np.zeros(max(1, int(offset[-1])), work.panels.dtype)
    coupling = np.zeros(n if method.indefinite else 0, panels.dtype)
    old = work.panel, work.panels, k
    _pack(plan, method.one_triangle, old, outcome, new, offset, panels, coupling)
    nulls = np.flatnonzero(null).astype(np.int32)
    place = FactorPlan(replanned, offset, place.device)
    return place, HostFactor(panels, interchanges, replaced, coupling, nulls)


@inner
def _as_interchanges(order, at, place):
    """Replace an order of 0..k-1 by the sequence of exchanges that produces it, in place."""
    for j in range(order.size):
        at[j] = place[j] = j
    for j in range(order.size):
        p = place[order[j]]  # its current position
        occupant = at[j]
        at[p], place[occupant] = occupant, p
        order[j] = p


@inner
def _widest(plan, received):
    widest = 0
    for s in range(plan.parent.size):
        widest = max(widest, plan.start[s + 1] - plan.start[s] + received[s])
    return widest


@jit
def finalize_in_place(plan, delays, offset, panels, pivots, coupling, null):
    """Replace the orders of LDL^H by exchanges; write its subdiagonal and its null pivots."""
    at, place = np.empty((2, _widest(plan, delays.received)), np.int32)
    for s in range(plan.parent.size):
        first, last = plan.start[s], plan.start[s + 1]
        if last - first == 1:  # hubs have thousands of such leaves
            if pivots[first] < 0:
                pivots[first], null[first] = 0, True
            continue
        ld = last - first + plan.pointer[s + 1] - plan.pointer[s]
        for j in range(last - first):
            if j > 0:
                coupling[first + j - 1] = panels[offset[s] + j * ld + j - 1]
        order = pivots[first:last]
        _unmark(order, null[first:last])
        if not _is_identity(order):
            _as_interchanges(order, at, place)


@inner
def _is_identity(order):
    good = True
    for j in range(order.size):
        good &= order[j] == j
    return good


@inner
def _unmark(order, null):
    """Remove the marks of null pivots from `order`, and set their entries of `null`."""
    for j in range(order.size):
        if order[j] < 0:
            order[j], null[j] = ~order[j], True


@jit
def _record_elimination(plan, delays, pivots, one_triangle, outcome, interchanges, null):
    """Fill an `Elimination`, the interchanges inside fronts, and the flags of null pivots."""
    at, place = np.empty((2, _widest(plan, delays.received)), np.int32)
    stamp, number = np.full(interchanges.size, -1, np.int32), np.empty(interchanges.size, np.int32)
    first = 0
    for s in range(plan.parent.size):
        begin, planned = plan.start[s], plan.start[s + 1] - plan.start[s]
        k, done, listed = planned + delays.received[s], delays.eliminated[s], delays.listed[s]
        outcome.counts[s] = done
        last = first + done
        columns, rows = outcome.columns[first:last], outcome.rows[first:last]
        order = interchanges[first:last]
        late = outcome.late_pointer[s]
        if listed < 0 and done == k:
            for j in range(k):
                columns[j] = rows[j] = begin + j
                order[j] = pivots[begin + j]
            if one_triangle:
                _unmark(order, null[first:last])
                _as_interchanges(order, at, place)
            first = last
            continue
        for j in range(k):
            name = delays.names[listed + j] if listed >= 0 else pivots[begin + j]
            absent = name < 0
            name = ~name if absent else name
            name = name if listed >= 0 else begin + name
            row = name if one_triangle else delays.names[listed + k + j]
            if j < done:
                columns[j], rows[j], order[j], null[first + j] = name, row, j, absent
            else:
                outcome.late_columns[late + j - done] = name
                outcome.late_rows[late + j - done] = row
        if not one_triangle:
            _arrange_rows(s, columns, rows, order, stamp, number)
            _as_interchanges(order, at, place)
        first = last


@allocating
def _arrange_rows(s, columns, rows, order, stamp, number):
    """Move rows of a front to columns of the same name, if present; write their order."""
    k = rows.size
    original = rows.copy()
    for j in range(k):
        stamp[original[j]] = s
        number[original[j]] = -1
    for j in range(k):
        if stamp[columns[j]] == s:
            rows[j], number[columns[j]] = columns[j], j
        else:
            rows[j] = -1
    free = 0
    for j in range(k):
        if number[original[j]] < 0:
            while rows[free] >= 0:
                free += 1
            rows[free], number[original[j]] = original[j], free
    for j in range(k):
        order[j] = number[original[j]]


@jit
def _pack(plan, one_triangle, old, outcome, new, offset, out, coupling):
    """Copy eliminated columns and rows from the panels of one plan to those of another."""
    panel, panels, columns = old
    to, place = np.empty((2, new.column.size), np.int64)
    for s in range(plan.parent.size):
        f, done, k = new.front[s], np.int64(outcome.counts[s]), np.int64(columns[s])
        if f < 0:
            continue
        updates = plan.rows[plan.pointer[s] : plan.pointer[s + 1]]
        late = slice(outcome.late_pointer[s], outcome.late_pointer[s + 1])
        rows = new.rows[new.pointer[f] : new.pointer[f + 1]]
        m = rows.size
        old_ld, ld = k + updates.size, done + m
        for i in range(m):
            place[rows[i]] = i
        _places(place, outcome.late_rows[late], updates, new.row, to)
        for j in range(done):
            begin, end = panel[s] + j * old_ld, offset[f] + j * ld
            out[end : end + done] = panels[begin : begin + done]
            for i in range(old_ld - done):
                out[end + done + to[i]] = panels[begin + done + i]
            if one_triangle and j > 0:
                coupling[new.start[f] + j - 1] = panels[begin + j - 1]
        if one_triangle:
            continue
        _places(place, outcome.late_columns[late], updates, new.column, to)
        for j in range(done):
            begin, end = panel[s] + k * old_ld + j * updates.size, offset[f] + done * ld + j * m
            for i in range(k - done):
                out[end + to[i]] = panels[panel[s] + (done + i) * old_ld + j]
            for i in range(updates.size):
                out[end + to[k - done + i]] = panels[begin + i]


@inner
def _places(place, late, updates, position, to):
    """Write the positions in a front of its late rows and of its update rows."""
    for i in range(late.size):
        to[i] = place[position[late[i]]]
    for i in range(updates.size):
        to[late.size + i] = place[position[updates[i]]]
