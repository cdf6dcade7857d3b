"""Assembly of a front: entries of A and the contribution blocks of its children."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import inner
from ..method import Method
from ..symbolic.plan import Plan
from .blas import Routines


class Work(NamedTuple):
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
        The panels of all fronts.
    pivots : (n,) int32 array
        Row interchanges, local to each front; empty for a method without pivots.
    tiny : float
        Pivots that are less than this of their columns are replaced.
    arena : array of the scalar type
        Contribution blocks: a part shared by all threads, then one part for each thread.
    panel, block, local
        As in `Layout`.
    state : int64
        Shared words of the team, see `team`.
    """

    method: Method
    plan: Plan
    routines: Routines
    values: np.ndarray
    panels: np.ndarray
    pivots: np.ndarray
    tiny: float
    arena: np.ndarray
    panel: np.ndarray
    block: np.ndarray
    local: np.ndarray
    state: np.ndarray


@inner
def shape(work, s):
    """Pivot columns k and update rows m of front s."""
    plan = work.plan
    return np.int64(plan.start[s + 1] - plan.start[s]), plan.pointer[s + 1] - plan.pointer[s]


@inner
def block_offset(work, s, own):
    """Where the contribution block of front s is; `own` is where the thread's part begins."""
    return work.block[s] + own if work.local[s] else work.block[s]


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
def _add_column(out, base, relative, first, source, origin):
    """out[base + relative[i]] += source[origin + i] for i >= first; relative ascends."""
    size = relative.size
    if size == first:
        return
    shift = relative[first] - first
    if relative[size - 1] - (size - 1) == shift:  # consecutive rows: a plain vector sum
        for i in range(first, size):
            out[base + shift + i] += source[origin + i]
    else:
        for i in range(first, size):
            out[base + np.int64(relative[i])] += source[origin + i]


@inner
def _extend_add(work, s, c, low, high, own):
    """Add child c's columns that fall on columns [low, high) of front s."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    panel = work.panel[s]
    upper = panel + k * (k + m)
    block = block_offset(work, s, own) - k * m - k
    relative = plan.relative[plan.pointer[c] : plan.pointer[c + 1]]
    size = relative.size
    origin = block_offset(work, c, own)
    inner = _position(relative, k)  # rows before it are pivot rows of s
    for j in range(_position(relative, low), size):
        column = np.int64(relative[j])
        if column >= high:
            break
        above = j if work.method.one_triangle else 0
        if column < k:
            _add_column(panels, panel + column * (k + m), relative, above, arena, origin + j * size)
            continue
        if not work.method.one_triangle:
            for i in range(inner):
                where = upper + np.int64(relative[i]) * m + column - k
                panels[where] += arena[origin + j * size + i]
            above = inner
        _add_column(arena, block + column * m, relative, above, arena, origin + j * size)


@inner
def assemble(work, s, tile, size, own):
    """Set columns of front s, `size` from tile * size on, to the sum of its children's blocks."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    low, high = tile * size, min((tile + 1) * size, k + m)
    first, last = plan.child_pointer[s], plan.child_pointer[s + 1]
    panel = work.panel[s]
    panels[panel + min(low, k) * (k + m) : panel + min(high, k) * (k + m)] = 0
    if not work.method.one_triangle and high > k:
        upper = panel + k * (k + m) - k
        for i in range(k):
            panels[upper + i * m + max(low, k) : upper + i * m + high] = 0
    if last > first:
        block = block_offset(work, s, own) - k * m - k
        for j in range(max(low, k), high):
            top = j if work.method.one_triangle else k
            arena[block + j * m + top : block + j * m + k + m] = 0
    for p in range(first, last):
        _extend_add(work, s, np.int64(plan.children[p]), low, high, own)


@inner
def add_entries(work, s):
    """Add the entries of A that front s owns to its panels."""
    plan, panels, values = work.plan, work.panels, work.values
    k, m = shape(work, s)
    panel = work.panel[s]
    first, last = plan.entry_pointer[s], plan.entry_pointer[s + 1]
    source, row, column = plan.source[first:last], plan.row[first:last], plan.column[first:last]
    for e in range(last - first):
        i, j = np.int64(row[e]), np.int64(column[e])
        where = panel + j * (k + m) + i
        if not work.method.one_triangle and j >= k:  # U12 is kept transposed
            where = panel + k * (k + m) - k + i * m + j
        panels[where] += values[source[e]]
