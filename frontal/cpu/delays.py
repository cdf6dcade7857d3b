"""Delayed columns, without a stable pivot in their front: names, storage and assembly.

A delayed column moves to the parent, before the parent's own columns, with its row and the updates
already subtracted from both. The child stores it in its panels, behind its eliminated columns.
"""

from __future__ import annotations

import numpy as np

from ..compile.atomics import fetch_add
from ..compile.jit import inner, view
from .assembly import add_column, is_below_schur, received_columns, shape
from .shared_state import NAMES_END, PANELS_END

_REPLACED = 0.75  # pivots below eps to this power, relative to their column, are replaced
_LISTS = 3  # lists of a front of LU: columns, rows, and row interchanges


@view
def order_of(work, s):
    """Return the names of the columns of front s; without a list, their numbers in the front."""
    k, _ = shape(work, s)
    at = work.delays.listed[s]
    if at >= 0:
        return work.delays.names[at : at + k]
    first = np.int64(work.plan.start[s])
    return work.pivots[first : first + k]


@view
def rows_of(work, s):
    """Return the names of the rows of a front of LU that has a list."""
    k, _ = shape(work, s)
    at = work.delays.listed[s] + k
    return work.delays.names[at : at + k]


@view
def interchanges_of(work, s):
    """Return the array in which LU records the row interchanges of front s."""
    k, _ = shape(work, s)
    at = work.delays.listed[s]
    if at >= 0:
        return work.delays.names[at + 2 * k : at + 3 * k]
    first = np.int64(work.plan.start[s])
    return work.pivots[first : first + k]


@inner
def _name(work, c, j, of_rows):
    """Return the name of column (or row) j of front c, in its final order."""
    at = work.delays.listed[c]
    if at < 0:
        first = work.plan.start[c]
        return np.int32(first + work.pivots[first + j])
    k, _ = shape(work, c)
    return work.delays.names[at + (k if of_rows else 0) + j]


@inner
def make_list(work, s):
    """Allocate the lists of names of front s; return whether they fit."""
    k, _ = shape(work, s)
    delays = work.delays
    if delays.listed[s] >= 0:
        return True
    need = k if work.method.one_triangle else _LISTS * k
    at = fetch_add(work.state, NAMES_END, need)
    if at + need > delays.names.size:
        return False
    delays.listed[s] = at
    first, behind = work.plan.start[s], received_columns(work, s)
    for i in range(k - behind):
        delays.names[at + behind + i] = first + i
        if not work.method.one_triangle:
            delays.names[at + k + behind + i] = first + i
    return True


@inner
def receive(work, s):
    """Allocate panels and names for the columns that front s receives; return whether they fit."""
    plan, delays = work.plan, work.delays
    children = plan.children[plan.child_pointer[s] : plan.child_pointer[s + 1]]
    count = np.int64(0)
    for c in children:
        k, _ = shape(work, c)
        count += k - delays.eliminated[c]
    if count == 0:
        return True
    delays.received[s] = count
    k, m = shape(work, s)
    need = k * (k + work.method.panels * m)
    at = fetch_add(work.state, PANELS_END, need)
    if at + need > work.panels.size or not make_list(work, s):
        return False
    work.panel[s] = at
    columns = order_of(work, s)
    j = 0
    for c in children:
        kc, _ = shape(work, c)
        for i in range(np.int64(delays.eliminated[c]), kc):
            columns[j] = _name(work, c, i, False)
            if not work.method.one_triangle:
                rows_of(work, s)[j] = _name(work, c, i, True)
            j += 1
    return True


@inner
def add_delayed(work, s):
    """Add the columns that front s receives, and for LU the rows, to its panels."""
    plan, delays = work.plan, work.delays
    at = np.int64(0)
    for p in range(plan.child_pointer[s], plan.child_pointer[s + 1]):
        c = np.int64(plan.children[p])
        kc, _ = shape(work, c)
        first = np.int64(delays.eliminated[c])
        for j in range(first, kc):
            _add_delayed_column(work, s, c, first, j, at)
            if not work.method.one_triangle:
                _add_delayed_row(work, s, c, j, at + j - first)
        at += kc - first


@inner
def _add_delayed_column(work, s, c, first, j, at):
    plan, panels = work.plan, work.panels
    k, m = shape(work, s)
    kc, mc = shape(work, c)
    source = work.panel[c] + j * (kc + mc)
    target = work.panel[s] + (at + j - first) * (k + m)
    for i in range(j if work.method.one_triangle else first, kc):
        panels[target + at + i - first] += panels[source + i]
    relative = plan.relative[plan.pointer[c] : plan.pointer[c + 1]]
    add_column(panels, target + received_columns(work, s), relative, 0, panels, source + kc)


@inner
def _add_delayed_row(work, s, c, j, row):
    """Add row j of child c, right of its pivot columns, to a row of front s."""
    plan, panels = work.plan, work.panels
    k, m = shape(work, s)
    kc, mc = shape(work, c)
    behind = received_columns(work, s)
    source = work.panel[c] + kc * (kc + mc) + j * mc
    relative = plan.relative[plan.pointer[c] : plan.pointer[c + 1]]
    for i in range(mc):
        column = np.int64(relative[i]) + behind
        if column < k:
            panels[work.panel[s] + column * (k + m) + row] += panels[source + i]
        else:
            panels[work.panel[s] + k * (k + m) + row * m + column - k] += panels[source + i]


@inner
def must_finish(work, s):
    """Return whether front s cannot delay columns."""
    return work.plan.parent[s] < 0 or not work.delays.allowed or is_below_schur(work, s)


@inner
def replacement(work, s):
    """Return the least pivot of front s that is not replaced, relative to its column."""
    root = work.plan.parent[s] < 0
    return 0 * work.routines.reals[3] if root else work.routines.reals[3] ** _REPLACED
