"""A tree cut into segments, which are worked on one after another.

A segment is some fronts that follow each other in postorder, so that children are in the same
segment as their parents or in an earlier one. Of two segments panels lie on the device, and all
contribution blocks that are alive: where these are large, segments are small.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....compile.jit import jit
from ....symbolic.plan import Plan
from ..layout.offsets import Parts

MAX_SEGMENTS = 128  # segments: more are no smaller in what counts, their largest fronts
_STEP = 0.95  # of the memory that segments are cut for, from one trial to the next


def segmentations(plan: Plan, parts: Parts) -> Iterator[np.ndarray]:
    """Cut the tree in some ways, those with the fewest segments first.

    If there is nothing to be cut, it is one segment.

    Parameters
    ----------
    plan : Plan
    parts : Parts
        Entries of what fronts need.

    Yields
    ------
    (f,) int32 array
        Segment of each front, ascending; no more than `MAX_SEGMENTS`.
    """
    alive = _alive(parts.blocks, plan.child_pointer, plan.children) + parts.products
    budget = 2.0 * (parts.panels.sum() + alive.max(initial=0))
    before = np.zeros(plan.parent.size, np.int32)
    if plan.parent.size == 1:
        yield before
    while budget > 1:
        segment = _cut(parts.panels, alive, parts.messages, int(budget))
        if segment[-1] >= MAX_SEGMENTS:
            return
        if not np.array_equal(segment, before):
            yield segment
        before, budget = segment, _STEP * budget


@jit
def _alive(blocks, child_pointer, children):
    """Entries of contribution blocks that are alive at each front, worked on one by one."""
    entries, alive = np.zeros(blocks.size, np.int64), np.int64(0)
    for s in range(blocks.size):
        alive += blocks[s]
        entries[s] = alive
        for q in range(child_pointer[s], child_pointer[s + 1]):
            alive -= blocks[children[q]]
    return entries


@jit
def _cut(panels, alive, messages, budget):
    """Segments that fit into so many entries with another one alike and what is alive meanwhile.

    As far as single fronts do.
    """
    segment = np.zeros(panels.size, np.int32)
    count, panel_entries, most, sent = np.int32(0), np.int64(0), np.int64(0), np.int64(0)
    for s in range(panels.size):
        most, sent = max(most, alive[s]), sent + messages[s]
        if panel_entries > 0 and 2 * (panel_entries + panels[s]) + most + sent > budget:
            count, panel_entries, most, sent = (
                count + np.int32(1),
                np.int64(0),
                alive[s],
                messages[s],
            )
        panel_entries += panels[s]
        segment[s] = count
    return segment
