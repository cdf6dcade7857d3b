"""A tree cut into segments, which are processed one after another.

A segment is a range of fronts in postorder, so that children are in the segment of their parents or
in an earlier one. The panels of two segments lie on the device, and all live contribution blocks:
where these are large, segments are small.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....compile.jit import jit
from ....symbolic.plan import Plan
from ..layout.offsets import Parts

MAX_SEGMENTS = 128  # segments; more do not shrink the memory of the largest front
_STEP = 0.95  # ratio of the memory budgets of consecutive trials


def segmentations(plan: Plan, parts: Parts) -> Iterator[np.ndarray]:
    """Yield the segment of each front, (f,) int32, of partitions; those with the fewest come first.

    Segments ascend, and there are at most `MAX_SEGMENTS`. A tree of one front is one segment.
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
    """Return the entries of live contribution blocks at each front, with fronts in order."""
    entries, alive = np.zeros(blocks.size, np.int64), np.int64(0)
    for s in range(blocks.size):
        alive += blocks[s]
        entries[s] = alive
        for q in range(child_pointer[s], child_pointer[s + 1]):
            alive -= blocks[children[q]]
    return entries


@jit
def _cut(panels, alive, messages, budget):
    """Cut segments that fit into `budget` entries, with a second one of that size and live blocks.

    A front that does not fit is a segment of its own.
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
