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
    """Delayed columns, which have no stable pivot in their front and move to its parent.

    Columns (and for LU rows) are named by their positions in the elimination order of the plan.

    Attributes
    ----------
    received : (f,) int32 array
        Number of columns that each front receives from its children; they precede its own.
    eliminated : (f,) int32 array
        Number of columns that each front eliminates, first in its final order; it delays the rest.
    listed : (f,) int64 array
        Offset in `names` of the names of a front's columns, followed for LU by those of its rows;
        -1 for a front that eliminates exactly its own columns, in their order except for the
        interchanges in `HostWorkspace.pivots`.
    names : int32 array
        Names of columns and rows; ~name if the pivot is null.
    allowed : bool
        Whether columns are delayed; else their pivots are replaced.
    """

    received: np.ndarray
    eliminated: np.ndarray
    listed: np.ndarray
    names: np.ndarray
    allowed: bool


class HostWorkspace(NamedTuple):
    """All data that a factorization reads and writes.

    Attributes
    ----------
    method : Method
        Compiled code is specialized on it.
    plan : Plan
    routines : Routines
    values : array of the scalar type
        Entries of A, in the order of the canonical matrix.
    panels : array of the scalar type
        The panels of all fronts, then storage for those of fronts that receive columns.
    pivots : (n,) int32 array
        Row interchanges, local to each front; for LDL^H the order of its columns. Empty for a
        method without pivots.
    arena : array of the scalar type
        Contribution blocks: a part shared by all threads, then one part for each thread.
    panel : (f + 1,) int64 array
        See `HostLayout`; other offsets for fronts that receive columns.
    block, local, shared, per_thread
        See `HostLayout`.
    scratch, turn : array of the scalar type, int32 array
        Scratch of each thread, one part after the other.
    scratch_size : int
        Entries of a thread's part of `scratch`.
    delays : Delays
    state : int64 array
        Shared words of the team, see `shared_state`.
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
    """Return pivot columns k, received ones included, and update rows m of front s."""
    plan = work.plan
    k = np.int64(plan.start[s + 1] - plan.start[s])
    if work.method.pivots:
        k += work.delays.received[s]
    return k, plan.pointer[s + 1] - plan.pointer[s]


@inner
def received_columns(work, s):
    """Return the number of columns that front s receives from its children."""
    return np.int64(work.delays.received[s]) if work.method.pivots else np.int64(0)


@inner
def block_offset(work, s, rank):
    """Return the offset in the arena of the block of front s, on which thread `rank` works."""
    return work.block[s] + (work.shared + rank * work.per_thread if work.local[s] else 0)


@inner
def _position(ascending, value):
    """Return the number of entries below `value`, by bisection."""
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
    """Compute out[base + relative[i]] += source[origin + i] for i >= first; relative ascends."""
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
    """Add child c's contribution block to columns [low, high) of front s."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    behind = received_columns(work, s)  # received columns precede those of the plan
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
        if not work.method.one_triangle and j >= k:  # U12 is stored transposed
            where = panel + k * (k + m) - k + i * m + j
        panels[where] += values[source[e]]
