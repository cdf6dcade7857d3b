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
from ..layout import allocate_interval, release_interval


class InverseLayout(NamedTuple):
    """Offsets of the inverses of fronts in one arena, and sizes of scratch, in entries.

    Attributes
    ----------
    block : (f,) int64 array
        Offset of each inverse.
    entries : int
        Entries of the arena.
    diagonal, below : int
        Entries of the largest pivot block, k k, and of the largest block below one, k m.
    """

    block: np.ndarray
    entries: int
    diagonal: int
    below: int

    @classmethod
    def for_plan(cls, plan: Plan) -> InverseLayout:
        """Lay out the inverses of all fronts, from the roots down."""
        k, m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
        block, entries = lay_out_inverses(plan)
        diagonal, below = (int(x.max(initial=0)) for x in (k * k, k * m))
        return cls(block, int(entries), diagonal, below)


@jit
def lay_out_inverses(plan):
    """Return the offset of each front's inverse, first fit by lifetime, and the arena's size.

    The inverse of a front without children is released at once: only its entries are read.
    """
    fronts = plan.parent.size
    block = np.zeros(fronts, np.int64)
    start, size = np.zeros(fronts + 2, np.int64), np.zeros(fronts + 2, np.int64)
    size[0], count, entries = np.int64(1) << 62, np.int64(1), np.int64(0)
    for s in range(fronts - 1, -1, -1):
        order = _order(plan, s)
        if order == 0:
            continue
        block[s] = allocate_interval(start, size, count, order * order)
        entries = max(entries, start[count - 1])  # the start of the endless interval
        if plan.child_pointer[s] == plan.child_pointer[s + 1]:
            count = release_interval(start, size, count, block[s], order * order)
        above = plan.parent[s]
        if above >= 0 and plan.children[plan.child_pointer[above]] == s:  # its last one to gather
            count = release_interval(start, size, count, block[above], _order(plan, above) ** 2)
    return block, entries


@inner
def _order(plan, s):
    """Return the number of rows of front s."""
    rows = plan.start[s + 1] - plan.start[s] + plan.pointer[s + 1] - plan.pointer[s]
    return np.int64(rows)
