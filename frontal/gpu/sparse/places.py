"""Where the parts of a factorization lie in one memory, each while it is needed.

Panels stay, in the order in which they are written. Contribution blocks live from their front's
time (schedule.py) to their parent's, and L·D in its front's time. They lie in memory of panels
that are written later, and beyond: what is alive with them is never below the end of the panels
that are written meanwhile. Messages of diagonal tiles lie behind all panels; they are cleared
before anything begins, and their place is free when their front is done. Whoever takes the place of
something waits for the epochs that its readers are in. Guermouche, L'Excellent, "Constructing
memory-minimizing schedules for multifrontal methods" (2006), have the same for one stack.
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
# pieces of all that find places of their own, and which come first: each is best once
_TRIES = (256, "life"), (256, "size"), (64, "life"), (256, "end")
_MANY = 4096  # with more that live at other times there is time for one order
_PARTS = 256  # parts of the messages, each of which becomes free at once
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
        Where the last panel ends, or soon after: where messages begin.
    messages : int
        All of these.
    entries : int
        All that is needed.
    """

    panel: np.ndarray
    block: np.ndarray
    product: np.ndarray
    need: np.ndarray
    panels: int
    messages: int
    entries: int


class Parts(NamedTuple):
    """Entries of what fronts need, 0 where they have none.

    Attributes
    ----------
    panels, blocks, products, messages : (f,) int64 arrays
        Of panels, contribution blocks, L·D, and messages of diagonal tiles.
    """

    panels: np.ndarray
    blocks: np.ndarray
    products: np.ndarray
    messages: np.ndarray


def place(
    schedule: Schedule,
    parent: np.ndarray,
    parts: Parts,
    room: int = 0,
    multiple: int = 1,
) -> Places:
    """Place what fronts need in one memory.

    Parameters
    ----------
    parent : (f,) int array
        Parent of each front, -1 for none.
    parts : Parts
    room : int
        Entries that may be taken although fewer would do, so that nobody waits for a place.
    multiple : int
        Of so many entries is where messages begin, and the end of all.
    """
    fronts, time = parent.size, schedule.time.astype(np.int64)
    panel, written = _written(time, parts.panels)
    dies = np.where(parent >= 0, time[parent], time)
    sizes = np.append(parts.blocks, parts.products)
    there = np.flatnonzero(sizes)
    front = there % max(fronts, 1)
    dies = np.where(there < fronts, dies[front], time[front])
    ends, messages = _up(written[-1], multiple), int(parts.messages.sum())
    given = written, schedule.small_levels, _taken(ends, parts.messages, time)
    found = packed(time[front], dies, sizes[there], given, room)
    offset, need = np.zeros(2 * fronts, np.int64), found.panel_waits[time]
    offset[there] = found.place
    np.maximum.at(need, front, found.waits)
    need = np.maximum(need - schedule.small_levels, 0).astype(np.int32)
    entries = _up(max(found.entries, ends + messages), multiple)
    return Places(panel, offset[:fronts], offset[fronts:], need, ends, messages, entries)


def _up(number: int, multiple: int) -> int:
    return -(-int(number) // multiple) * multiple


class Taken(NamedTuple):
    """Where parts of the messages end, the first where they begin, and times they are free from."""

    end: np.ndarray
    free: np.ndarray


_Given = tuple[np.ndarray, int, Taken]  # ends of panels, launches of small fronts, messages


def _taken(first: int, messages: np.ndarray, time: np.ndarray) -> Taken:
    there = np.flatnonzero(messages)[::-1]
    ends = np.append(0, np.cumsum(messages[there]))
    begins = np.flatnonzero(np.diff(ends[:-1] * _PARTS // max(int(ends[-1]), 1), prepend=-1))
    free = np.maximum.reduceat(time[there] + 1, begins) if begins.size else begins
    return Taken(first + ends[np.append(begins, there.size)], free)


class _Chunks(NamedTuple):
    """What has one beginning and end, in pieces that are not too large, in the order of places.

    Attributes
    ----------
    chunk, inside : (s,) int64 arrays
        Of each thing, its chunk and its place in that.
    first, last, length : (c,) int64 arrays
        When chunks begin and end, and their entries.
    in_time : bool
        Whether they are in the order of their beginnings.
    """

    chunk: np.ndarray
    inside: np.ndarray
    first: np.ndarray
    last: np.ndarray
    length: np.ndarray
    in_time: bool


class Packing(NamedTuple):
    """Places, what waits for what, and the end of all."""

    place: np.ndarray
    waits: np.ndarray
    panel_waits: np.ndarray
    entries: int


def packed(
    first: np.ndarray, last: np.ndarray, size: np.ndarray, given: _Given, room: int
) -> Packing:
    """Place what lives from `first` to `last`: by the best of some orders, if it matters.

    It does not for what fits into `room` at once. With some time between two owners of a place, if
    that takes hardly more.
    """
    name = first * (int(last.max(initial=0)) + 1) + last
    sorting, enough = np.argsort(name, kind="stable"), max(room, int(given[2].end[-1]))
    few = np.count_nonzero(np.diff(name[sorting])) < _MANY
    one, *others = _TRIES if few else _TRIES[-1:]

    def tried(pieces: int, before: str) -> tuple[Packing, _Chunks]:
        chunks = _chunks(name, sorting, first, last, size, pieces, before)
        return _fit(chunks, given, 0, 0, waits=False), chunks

    best, chunks = tried(*one)
    if best.entries > enough and others:
        alone = thread_count() < len(_TRIES)
        with ExitStack() as over:
            begun = [over.enter_context(Ahead(partial(tried, *x), now=alone)) for x in others]
            found = [one.result() for one in begun]
        best, chunks = min([(best, chunks), *found], key=lambda one: one[0].entries)
    least = max(best.entries, enough)
    apart = _fit(chunks, given, _SLACK, least)
    return _fit(chunks, given, 0, 0) if apart.entries > _BEYOND * least else apart


def _fit(chunks: _Chunks, given: _Given, slack: int, limit: int, waits: bool = True) -> Packing:
    """Find places; without `waits` nothing is told of these, which takes as long."""
    begin, wait = np.zeros((2, chunks.first.size), np.int64)
    panel_waits = np.zeros(given[0].size - 1, np.int64)
    things, found = (chunks.first, chunks.last, chunks.length), (begin, wait, panel_waits)
    written, launches, taken = given
    of = *things, written, launches, taken.end, taken.free, slack, limit, *found
    entries = int(_first_fit(*of) if chunks.in_time else _fit_each(*of, waits))
    place = chunks.inside + begin[chunks.chunk]
    return Packing(place, wait[chunks.chunk], panel_waits, entries)


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
    before: str,
) -> _Chunks:
    """Make chunks of what has one name, and put them in an order.

    They go by their beginnings and ends, or the largest first: in entries, or these times how long
    they live.
    """
    piece = np.cumsum(size[sorting]) * pieces // max(int(size.sum()), 1)
    begins = (np.diff(name[sorting], prepend=-1) != 0) | (np.diff(piece, prepend=-1) != 0)
    chunk = np.empty(name.size, np.int64)
    chunk[sorting] = np.cumsum(begins) - 1
    first, last = first[sorting][begins], last[sorting][begins]
    inside, length = np.zeros(name.size, np.int64), np.zeros(first.size, np.int64)
    _stack(chunk, size, length, inside)
    if before == "end":
        order = np.lexsort((-length, last, first))
    else:
        order = np.lexsort((first, -length * (last - first + 1 if before == "life" else 1)))
    turn = np.empty_like(order)
    turn[order] = np.arange(order.size)
    return _Chunks(turn[chunk], inside, first[order], last[order], length[order], before == "end")


@jit
def _stack(chunk, size, lengths, offset):
    """Place what has the same chunk one after the other in it; lengths begin as zeros."""
    for s in range(chunk.size):
        offset[s] = lengths[chunk[s]]
        lengths[chunk[s]] += size[s]


@jit
def _fit_each(
    first, last, length, written, launches, taken, taken_until, slack, limit, place, wait,
    panel_wait, waits,
):  # fmt: skip
    """The same in any order: each as low as it fits among all before that live with it."""
    fixed, count = taken_until.size, taken_until.size + first.size
    # those that are placed, by where they begin; looked at again and again, one after the other
    begin, end, born, dies = np.zeros((4, count), np.int64)
    begin[:fixed], end[:fixed] = taken[:-1], taken[1:]
    dies[:fixed] = taken_until - 1
    top = low = high = np.int64(0)
    for c in range(first.size):
        for unused in range(slack, -1, -1):
            until = last[c] + (unused if last[c] >= launches else 0)
            of = begin, end, born, dies, fixed + c, first[c], until, launches, unused
            low = _lowest_gap(*of, written[min(until + 1, panel_wait.size)], length[c])
            high = low + length[c]
            if high <= limit:
                break
        top, place[c] = max(top, high), low
        q = fixed + c
        while q > 0 and begin[q - 1] > low:
            begin[q], end[q], born[q], dies[q] = begin[q - 1], end[q - 1], born[q - 1], dies[q - 1]
            q -= 1
        begin[q], end[q], born[q], dies[q] = low, high, first[c], last[c]
    for c in range(first.size if waits else 0):
        low, high = place[c], place[c] + length[c]
        wait[c] = _last_before(begin, end, dies, low, high, first[c])
        for t in range(last[c] + 1, panel_wait.size):
            if written[t] < high and low < written[t + 1]:
                panel_wait[t] = max(panel_wait[t], last[c] + 1)
    return top


@inner
def _lowest_gap(begin, end, born, dies, count, first, until, launches, unused, low, length):
    """Where the first gap of this length begins among those that live at the same time."""
    for q in range(count):
        if end[q] > low:
            if begin[q] - low >= length:
                break
            other = dies[q] + (unused if dies[q] >= launches else 0)
            if born[q] <= until and first <= other:
                low = end[q]
    return low


@inner
def _last_before(begin, end, dies, low, high, first):
    """When the last one that dies before `first` is over, of those in a piece of memory."""
    found = np.int64(0)
    for q in range(np.searchsorted(begin, high)):
        if (low < end[q]) & (dies[q] < first):
            found = max(found, dies[q] + 1)
    return found


@jit
def _first_fit(
    first, last, length, written, launches, taken, taken_until, slack, limit, place, wait,
    panel_wait,
):  # fmt: skip
    """Place chunks in the order of their beginnings, as low as they fit; the end of all.

    The memory is a list of segments, which nobody reads any more from a time on that is kept in
    `free`; the last one has no end. What a chunk or the panels of a time have to wait for is the
    latest of those of their segments. After a launch nothing waits: there is no slack; nor where a
    chunk would end beyond `limit` with it. Messages are there from the beginning.
    """
    begin, free = np.zeros((2, 2 * first.size + taken.size + 2), np.int64)
    count, top, c = 1, np.int64(0), 0
    for s in range(taken.size):
        begin[count] = taken[s]
        free[count] = taken_until[s] if s < taken_until.size else np.int64(0)
        count += 1
    for t in range(panel_wait.size):
        panel_wait[t] = _latest(begin, free, count, written[t], written[t + 1])
        while c < first.size and first[c] == t:
            if length[c]:
                end = np.int64(0)
                for unused in range(slack, -1, -1):
                    if end == 0 or end > limit:
                        meanwhile = last[c] + (unused if last[c] >= launches else 0)
                        low = written[min(meanwhile + 1, panel_wait.size)]
                        place[c] = _lowest(begin, free, count, low, length[c], t, launches, unused)
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
