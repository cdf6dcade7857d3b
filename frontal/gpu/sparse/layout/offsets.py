"""Offsets of the blocks of a factorization in one memory, each block while it is needed.

Panels stay, in the order in which they are written. Contribution blocks live from their front's
time (schedule.py) to their parent's, and L·D in its front's time. They lie in memory of panels that
are written later, and beyond (interval_packing.py). So do messages of diagonal tiles, which are
cleared before the factorization begins, in the order of their fronts' times; their memory is free
when their front is done. A front that reuses memory waits for the epochs of its readers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import interval_packing
from .interval_packing import NO_SLACK, Slack, Taken, packed
from .schedule import Schedule, by_time

_PARTS = 256  # parts of the messages, each with one time at which it becomes free


class Places(NamedTuple):
    """Offsets in the memory of a factorization, in entries."""

    # (f,) int64: of each front's panels, its contribution block, and its L·D
    panel: np.ndarray
    block: np.ndarray
    product: np.ndarray
    # (f,) int32: epochs that must be over before a front writes; 0 for small fronts, whose launches
    # are in stream order
    need: np.ndarray
    panels: int  # end of the last panel, rounded up
    # start of the messages, and their number of entries
    sent: int
    messages: int
    entries: int  # entries of the whole memory


class Parts(NamedTuple):
    """Entries that fronts need, 0 for none."""

    # (f,) int64: of panels, contribution blocks, L·D, and messages of diagonal tiles
    panels: np.ndarray
    blocks: np.ndarray
    products: np.ndarray
    messages: np.ndarray


def place(
    schedule: Schedule,
    parent: np.ndarray,
    parts: Parts,
    room: Slack = NO_SLACK,
    multiple: int = 1,
) -> Places:
    """Place the blocks of fronts in one memory.

    The start of messages, the end of panels and the end of the memory are rounded up to a
    `multiple`.
    """
    fronts, time = parent.size, schedule.time.astype(np.int64)
    panel, written = _written(time, parts.panels)
    dies = np.where(parent >= 0, time[parent], time)
    sizes = np.append(parts.blocks, parts.products)
    used = np.flatnonzero(sizes)
    front = used % max(fronts, 1)
    dies = np.where(used < fronts, dies[front], time[front])
    ends, messages = _up(written[-1], multiple), int(parts.messages.sum())
    taken = _taken(parts.messages, time, written, multiple)
    constraints = written, schedule.launches, taken
    packing = packed(time[front], dies, sizes[used], constraints, room)
    offset, need = np.zeros(2 * fronts, np.int64), packing.panel_waits[time]
    offset[used] = packing.place
    np.maximum.at(need, front, packing.waits)
    need = np.maximum(need - schedule.launches, 0).astype(np.int32)
    entries = _up(max(packing.entries, ends, int(taken.end[-1])), multiple)
    sent = int(taken.end[0])
    return Places(panel, offset[:fronts], offset[fronts:], need, ends, sent, messages, entries)


def _up(number: int, multiple: int) -> int:
    return -(-int(number) // multiple) * multiple


def _taken(messages: np.ndarray, time: np.ndarray, written: np.ndarray, multiple: int) -> Taken:
    """Return the memory of messages, at the lowest possible offset.

    The messages of a front lie behind panels that are written before it is done, or soon after.
    """
    order = by_time(time)
    order = order[messages[order] > 0]
    if not order.size:
        return Taken(np.zeros(1, np.int64), order)
    ends, time = np.append(0, np.cumsum(messages[order])), time[order]
    behind = written[np.minimum(time + 1 + interval_packing.SLACK, written.size - 1)]
    first = _up((behind - ends[:-1]).max(), multiple)
    begins = np.flatnonzero(np.diff(ends[:-1] * _PARTS // ends[-1], prepend=-1))
    free = np.maximum.reduceat(time + 1, begins)
    return Taken(first + ends[np.append(begins, order.size)], free)


def _written(time: np.ndarray, panels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets of panels in the order of their times, and the end of all before each time."""
    order, panel = by_time(time), np.zeros(time.size, np.int64)
    panel[order] = np.cumsum(panels[order]) - panels[order]
    written = np.zeros(int(time.max(initial=-1)) + 2, np.int64)
    np.add.at(written, time + 1, panels)
    return panel, np.cumsum(written)
