"""Memory of the inverses of fronts, placed by lifetime.

The inverse of a front is the (k + m) by (k + m) block of the inverse of A in its rows and columns.
It lives from its computation until its last child has gathered from it, so the schedule is that of
the contribution blocks backwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner, jit
from ...symbolic.plan import Plan
from ..layout import allocate_interval, cut_tree, release_interval


class InverseLayout(NamedTuple):
    """Offsets of the inverses of fronts in arenas, for a number of threads.

    Attributes
    ----------
    low, root, top : int32 arrays
        See `HostLayout`; here the fronts above the subtrees come first.
    block : (f,) int64 array
        Offset of each inverse in its arena.
    local : (f,) bool array
        Whether the front is in a subtree, and its inverse in the arena of a thread.
    shared, per_thread : int
        Entries of the shared arena, and of each thread's.
    """

    low: np.ndarray
    root: np.ndarray
    top: np.ndarray
    block: np.ndarray
    local: np.ndarray
    shared: int
    per_thread: int

    @classmethod
    def for_plan(cls, plan: Plan, threads: int) -> InverseLayout:
        """Lay out the inverses of all fronts, from the roots down."""
        low, root, top = cut_tree(plan, threads)
        block, local, shared, per_thread = lay_out_inverses(plan, low, root, top)
        return cls(low, root, top, block, local, int(shared), int(per_thread))


@inner
def _order(plan, s):
    """Return the number of rows of front s."""
    rows = plan.start[s + 1] - plan.start[s] + plan.pointer[s + 1] - plan.pointer[s]
    return np.int64(rows)


@inner
def _visit(plan, s, block, lasting, start, size, count):
    """Allocate the inverse of front s, then free those that no front gathers from any more.

    Return the number of free intervals, and the end of the used entries before any were freed.
    """
    order, above = _order(plan, s), np.int64(plan.parent[s])
    if order > 0:
        block[s] = allocate_interval(start, size, count, order * order)
    used = start[count - 1]  # the start of the endless interval
    if order > 0 and plan.child_pointer[s] == plan.child_pointer[s + 1]:
        count = release_interval(start, size, count, block[s], order * order)
    if above >= 0 and not lasting[above] and plan.children[plan.child_pointer[above]] == s:
        count = release_interval(start, size, count, block[above], _order(plan, above) ** 2)
    return count, used


@jit
def lay_out_inverses(plan, low, root, top):
    """Return the offset of each front's inverse, first fit by lifetime, and sizes of the arenas.

    The fronts of a subtree use the arena of the thread that works on it. Threads work on subtrees
    last: the inverses above their roots are not freed before.

    Parameters
    ----------
    plan : Plan
    low, root, top : int32 arrays
        The cut of `split_subtrees`.

    Returns
    -------
    block, local, shared, per_thread
        See `InverseLayout`.
    """
    fronts = plan.parent.size
    block, local = np.zeros(fronts, np.int64), np.zeros(fronts, np.bool_)
    lasting = np.zeros(fronts, np.bool_)
    start, size = np.zeros(fronts + 2, np.int64), np.zeros(fronts + 2, np.int64)
    endless, shared, per_thread = np.int64(1) << 62, np.int64(0), np.int64(0)
    for t in range(root.size):
        above = plan.parent[root[t]]
        if above >= 0:
            lasting[above] = True
    start[0], size[0], count = np.int64(0), endless, np.int64(1)
    for i in range(top.size - 1, -1, -1):
        s = np.int64(top[i])
        count, used = _visit(plan, s, block, lasting, start, size, count)
        shared = max(shared, used)
    for t in range(root.size):
        start[0], size[0], count = np.int64(0), endless, np.int64(1)
        for s in range(np.int64(root[t]), np.int64(low[t]) - 1, -1):
            local[s] = True
            count, used = _visit(plan, s, block, lasting, start, size, count)
            per_thread = max(per_thread, used)
    return block, local, shared, per_thread
