"""Assembly of a front: entries of A and the contribution blocks of its children."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import inner
from ..numeric.method import Method
from ..symbolic.plan import Plan
from .axpy import add, add_row, add_scattered, clear
from .blas import Routines


class Delays(NamedTuple):
    """Columns that find no sound pivot in their front and go up to its parent.

    Columns (and for LU rows) are named by their positions in the elimination order of the plan.

    Attributes
    ----------
    received : (f,) int32 array
        Columns that each front takes over from its children; they come before its own.
    eliminated : (f,) int32 array
        Columns of each front, in its final order, that it could eliminate; the others go up.
    listed : (f,) int64 array
        Where the names of the columns of a front begin in `names`, and behind them those of its
        rows for LU; -1 for a front that keeps all of its columns and no others, in their order but
        for the interchanges in `HostWorkspace.pivots`.
    names : int32 array
        ~name where the pivot is null.
    allowed : bool
        Delay columns; else replace their pivots.
    """

    received: np.ndarray
    eliminated: np.ndarray
    listed: np.ndarray
    names: np.ndarray
    allowed: bool


class HostWorkspace(NamedTuple):
    """Everything that a factorization reads and writes.

    Attributes
    ----------
    method : Method
        Compiled code is specialized on it.
    plan : Plan
    routines : Routines
    values : array of the scalar type
        Entries of A, in the order of the user's matrix.
    panels : array of the scalar type
        The panels of all fronts, then room for those of fronts that take columns over.
    pivots : (n,) int32 array
        Row interchanges, local to each front, for LDL^H the order of its columns; empty for a
        method without pivots.
    arena : array of the scalar type
        Contribution blocks: a part shared by all threads, then one part for each thread.
    panel : (f + 1,) int64 array
        As in `Layout`, but for the panels of fronts that take columns over.
    block, local, shared, per_thread
        As in `Layout`.
    scratch, turn : array of the scalar type, int32 array
        Room for each thread, one part after the other.
    scratch_size : int
        Entries of a thread's part of `scratch`.
    delays : Delays
    state : int64
        Shared words of the team, see `team`.
    """

    method: Method
    plan: Plan
    routines: Routines
    values: np.ndarray
    panels: np.ndarray
    pivots: np.ndarray
    arena: np.ndarray
    panel: np.ndarray
    block: np.ndarray
    local: np.ndarray
    shared: int
    per_thread: int
    scratch: np.ndarray
    turn: np.ndarray
    scratch_size: int
    delays: Delays
    state: np.ndarray


@inner
def shape(work, s):
    """Pivot columns k, those taken over included, and update rows m of front s."""
    plan = work.plan
    k = np.int64(plan.start[s + 1] - plan.start[s])
    if work.method.pivots:
        k += work.delays.received[s]
    return k, plan.pointer[s + 1] - plan.pointer[s]


@inner
def received_columns(work, s):
    """Columns that front s takes over from its children."""
    return np.int64(work.delays.received[s]) if work.method.pivots else np.int64(0)


@inner
def block_offset(work, s, rank):
    """Where the contribution block of front s is, which thread `rank` works on."""
    return work.block[s] + (work.shared + rank * work.per_thread if work.local[s] else 0)


@inner
def _position(ascending, value):
    """Number of entries below `value`, by bisection."""
    low, high = 0, ascending.size
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def add_column(out, base, relative, first, source, origin):
    """out[base + relative[i]] += source[origin + i] for i >= first; relative ascends."""
    size = relative.size
    if size == first:
        return
    shift = relative[first] - first
    if relative[size - 1] - (size - 1) == shift:  # consecutive rows
        add(out, base + shift + first, source, origin + first, size - first)
    else:
        add_scattered(out, base, relative, first, source, origin)


@inner
def _extend_add(work, s, c, low, high, rank):
    """Add child c's contribution block where it falls on columns [low, high) of front s."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    behind = received_columns(work, s)  # a column of the plan comes after so many others
    panel = work.panel[s] + behind
    upper = work.panel[s] + k * (k + m) + behind * m
    block = block_offset(work, s, rank) - k * m - k + behind
    relative = plan.relative[plan.pointer[c] : plan.pointer[c + 1]]
    size = relative.size
    origin = block_offset(work, c, rank)
    inner = _position(relative, k - behind)  # rows before it are pivot rows of s
    for j in range(_position(relative, low - behind), size):
        column = np.int64(relative[j]) + behind
        if column >= high:
            break
        above = j if work.method.one_triangle else 0
        if column < k:
            add_column(panels, panel + column * (k + m), relative, above, arena, origin + j * size)
            continue
        if not work.method.one_triangle:
            add_row(panels, upper + column - k, m, relative, inner, arena, origin + j * size)
            above = inner
        add_column(arena, block + column * m, relative, above, arena, origin + j * size)


@inner
def assemble(work, s, tile, size, rank):
    """Set columns of front s, `size` from tile * size on, to the sum of its children's blocks."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    low, high = tile * size, min((tile + 1) * size, k + m)
    first, last = plan.child_pointer[s], plan.child_pointer[s + 1]
    panel = work.panel[s]
    clear(panels, panel + min(low, k) * (k + m), (min(high, k) - min(low, k)) * (k + m))
    if not work.method.one_triangle and high > k:
        upper = panel + k * (k + m) - k
        for i in range(k):
            clear(panels, upper + i * m + max(low, k), high - max(low, k))
    if last > first:
        block = block_offset(work, s, rank) - k * m - k
        for j in range(max(low, k), high):
            top = j if work.method.one_triangle else k
            clear(arena, block + j * m + top, k + m - top)
    for p in range(first, last):
        _extend_add(work, s, np.int64(plan.children[p]), low, high, rank)


@inner
def add_entries(work, s):
    """Add the entries of A that front s owns to its panels."""
    plan, panels, values = work.plan, work.panels, work.values
    k, m = shape(work, s)
    behind = received_columns(work, s)
    panel = work.panel[s]
    first, last = plan.entry_pointer[s], plan.entry_pointer[s + 1]
    source, row, column = plan.source[first:last], plan.row[first:last], plan.column[first:last]
    for e in range(last - first):
        i, j = np.int64(row[e]) + behind, np.int64(column[e]) + behind
        where = panel + j * (k + m) + i
        if not work.method.one_triangle and j >= k:  # U12 is kept transposed
            where = panel + k * (k + m) - k + i * m + j
        panels[where] += values[source[e]]
