"""Where the parts of a factorization lie in one memory, each while it is needed.

Panels stay, in the order in which they are written. Contribution blocks live from their front's
time (schedule.py) to their parent's, and L·D in its front's time. They lie in memory of panels
that are written later, and beyond: what is alive with them is never below the end of the panels
that are written meanwhile. Whoever takes the place of something waits for the epochs that its
readers are in. Guermouche, L'Excellent, "Constructing memory-minimizing schedules for multifrontal
methods" (2006), have the same for one stack.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import numpy as np

from ..._jit import inner, jit
from ...machine import thread_count
from ...parts import Ahead
from .schedule import Schedule

_SLACK = 1  # epochs for which a place stays unused while there is room, so that nobody waits for it
# pieces of all that find places of their own, and whether the largest come first: each is best once
_TRIES = (64, True), (256, False), (1024, False), (256, True)
_BEYOND = 1.02  # times the least that is known: so that nobody waits


class Places(NamedTuple):
    """Offsets in the memory of a factorization, in entries.

    Attributes
    ----------
    panel, block, product : (f,) int64 arrays
        Of each front's panels, its contribution block, and its L·D.
    need : (f,) int32 array
        Epochs that must be over before a front writes; 0 for small ones, whose launches follow
        each other.
    panels : int
        Where the last panel ends, or soon after.
    entries : int
        All that is needed.
    """

    panel: np.ndarray
    block: np.ndarray
    product: np.ndarray
    need: np.ndarray
    panels: int
    entries: int


def place(
    schedule: Schedule,
    parent: np.ndarray,
    panels: np.ndarray,
    blocks: np.ndarray,
    products: np.ndarray,
    room: int = 0,
) -> Places:
    """Place panels, contribution blocks and L·D of these sizes.

    Parameters
    ----------
    parent : (f,) int array
        Parent of each front, -1 for none.
    panels, blocks, products : (f,) int64 arrays
        Entries of each front's; 0 where it has none.
    room : int
        Entries that may be taken although fewer would do, so that nobody waits for a place.
    """
    fronts, time = parent.size, schedule.time.astype(np.int64)
    panel, written = _written(time, panels)
    dies, sizes = np.where(parent >= 0, time[parent], time), np.append(blocks, products)
    there = np.flatnonzero(sizes)
    front = there % max(fronts, 1)
    dies = np.where(there < fronts, dies[front], time[front])
    ends = int(written[-1])
    found = _packed(time[front], dies, sizes[there], written, schedule.small_levels, room)
    offset, need = np.zeros(2 * fronts, np.int64), found.panel_waits[time]
    offset[there] = found.place
    np.maximum.at(need, front, found.waits)
    need = np.maximum(need - schedule.small_levels, 0).astype(np.int32)
    return Places(panel, offset[:fronts], offset[fronts:], need, ends, max(found.entries, ends))


class _Chunks(NamedTuple):
    """What has one beginning and end, in pieces that are not too large, in the order of places.

    Attributes
    ----------
    chunk, inside : (s,) int64 arrays
        Of each thing, its chunk and its place in that.
    first, last, length : (c,) int64 arrays
        When chunks begin and end, and their entries.
    """

    chunk: np.ndarray
    inside: np.ndarray
    first: np.ndarray
    last: np.ndarray
    length: np.ndarray


class _Packing(NamedTuple):
    """Places, what waits for what, and the end of all."""

    place: np.ndarray
    waits: np.ndarray
    panel_waits: np.ndarray
    entries: int


def _packed(
    first: np.ndarray,
    last: np.ndarray,
    size: np.ndarray,
    written: np.ndarray,
    launches: int,
    room: int,
) -> _Packing:
    """Place what lives from `first` to `last`: by the best of some orders, if it matters.

    It does not for what fits into `room` at once. With some time between two owners of a place, if
    that takes hardly more.
    """
    name = first * (int(last.max(initial=0)) + 1) + last
    sorting, enough = np.argsort(name, kind="stable"), max(room, int(written[-1]))

    def tried(pieces: int, largest: bool) -> tuple[_Packing, _Chunks]:
        chunks = _chunks(name, sorting, first, last, size, pieces, largest)
        return _fit(chunks, written, launches, 0, 0), chunks

    best, chunks = tried(*_TRIES[0])
    if best.entries > enough:
        alone = thread_count() < len(_TRIES)
        with ExitStack() as over:
            begun = [over.enter_context(Ahead(partial(tried, *x), now=alone)) for x in _TRIES[1:]]
            found = [one.result() for one in begun]
        best, chunks = min([(best, chunks), *found], key=lambda one: one[0].entries)
    least = max(best.entries, enough)
    apart = _fit(chunks, written, launches, _SLACK, least)
    return best if apart.entries > _BEYOND * least else apart


def _fit(chunks: _Chunks, written: np.ndarray, launches: int, slack: int, limit: int) -> _Packing:
    begin, waits = np.zeros((2, chunks.first.size), np.int64)
    panel_waits = np.zeros(written.size - 1, np.int64)
    given = chunks.first, chunks.last, chunks.length, written, launches, slack, limit
    entries = int(_first_fit(*given, begin, waits, panel_waits))
    place = chunks.inside + begin[chunks.chunk]
    return _Packing(place, waits[chunks.chunk], panel_waits, entries)


def _written(time: np.ndarray, panels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of panels in the order of their times, and the end of all before each time."""
    order, panel = np.argsort(time, kind="stable"), np.zeros(time.size, np.int64)
    panel[order] = np.cumsum(panels[order]) - panels[order]
    written = np.zeros(int(time.max(initial=-1)) + 2, np.int64)
    np.add.at(written, time + 1, panels)
    return panel, np.cumsum(written)


def _chunks(
    name: np.ndarray,
    sorting: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    size: np.ndarray,
    pieces: int,
    largest: bool,
) -> _Chunks:
    """Make chunks of what has one name, and put those that begin together in an order.

    They go by their ends, or the largest first: entries times how long they live.
    """
    piece = np.cumsum(size[sorting]) * pieces // max(int(size.sum()), 1)
    begins = (np.diff(name[sorting], prepend=-1) != 0) | (np.diff(piece, prepend=-1) != 0)
    chunk = np.empty(name.size, np.int64)
    chunk[sorting] = np.cumsum(begins) - 1
    first, last = first[sorting][begins], last[sorting][begins]
    inside, length = np.zeros(name.size, np.int64), np.zeros(first.size, np.int64)
    _stack(chunk, size, length, inside)
    order = np.lexsort((-length, -length * (last - first + 1) if largest else last, first))
    turn = np.empty_like(order)
    turn[order] = np.arange(order.size)
    return _Chunks(turn[chunk], inside, first[order], last[order], length[order])


@jit
def _stack(chunk, size, lengths, offset):
    """Place what has the same chunk one after the other in it; lengths begin as zeros."""
    for s in range(chunk.size):
        offset[s] = lengths[chunk[s]]
        lengths[chunk[s]] += size[s]


@jit
def _first_fit(first, last, length, written, launches, slack, limit, place, wait, panel_wait):
    """Place chunks in the order of their beginnings, as low as they fit; the end of all.

    The memory is a list of segments, which nobody reads any more from a time on that is kept in
    `free`; the last one has no end. What a chunk or the panels of a time have to wait for is the
    latest of those of their segments. After a launch nothing waits: there is no slack; nor where a
    chunk would end beyond `limit` with it.
    """
    begin, free = np.zeros((2, 2 * first.size + 2), np.int64)
    count, top, c = 1, np.int64(0), 0
    for t in range(panel_wait.size):
        panel_wait[t] = _latest(begin, free, count, written[t], written[t + 1])
        while c < first.size and first[c] == t:
            if length[c]:
                end = np.int64(0)
                for unused in (slack, 0):
                    if end == 0 or end > limit:
                        meanwhile = last[c] + (unused if last[c] >= launches else 0)
                        low = written[min(meanwhile + 1, panel_wait.size)]
                        where = begin, free, count, low, length[c], t, launches, unused
                        place[c] = _lowest(*where)
                        end = place[c] + length[c]
                wait[c] = _latest(begin, free, count, place[c], end)
                count = _occupy(begin, free, count, place[c], end, last[c] + 1)
                top = max(top, end)
            c += 1
    return top


@inner
def _latest(begin, free, count, low, high):
    """When all of a piece is free."""
    found, j = np.int64(0), _segment(begin, count, low)
    while low < high and j < count and begin[j] < high:
        found = max(found, free[j])
        j += 1
    return found


@inner
def _segment(begin, count, place):
    """The segment that has a place."""
    first, last = 0, count - 1
    while first < last:
        middle = (first + last + 1) // 2
        if begin[middle] <= place:
            first = middle
        else:
            last = middle - 1
    return first


@inner
def _lowest(begin, free, count, low, length, t, launches, slack):
    """Where the first piece of this length begins, not below `low`, that is free at time t."""
    where = low
    for j in range(_segment(begin, count, low), count):
        if free[j] + (slack if free[j] > launches else 0) > t:
            where = begin[j + 1]  # the last segment is free
        elif j + 1 == count or begin[j + 1] - where >= length:
            break
    return where


@inner
def _occupy(begin, free, count, low, high, until):
    """Make a piece one segment that is free from `until` on; the number of segments then."""
    a = _segment(begin, count, low)
    b = _segment(begin, count, high)  # which is no more a part of the piece
    splits, after = begin[b] < high, free[b]
    head = a + 1 if begin[a] < low else a
    tail = b + 1 if splits else b
    shift = head + (2 if splits else 1) - tail
    if shift > 0:
        for j in range(count - 1, tail - 1, -1):
            begin[j + shift], free[j + shift] = begin[j], free[j]
    else:
        for j in range(tail, count):
            begin[j + shift], free[j + shift] = begin[j], free[j]
    begin[head], free[head] = low, until
    if splits:
        begin[head + 1], free[head + 1] = high, after
    return count + shift
