"""Places in one memory for what lives from one time to another, beside panels that stay.

What is alive is never below the end of the panels that are written meanwhile. Who takes the place
of something waits until it is over. Guermouche, L'Excellent, "Constructing memory-minimizing
schedules for multifrontal methods" (2006), have the same for one stack.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import numpy as np

from ....compile.jit import inner, jit
from ....machine.resources import thread_count
from ....machine.threads import BackgroundTask

SLACK = 1  # epochs for which a place stays unused while there is room, so that nobody waits for it
# pieces of all that find places of their own, and which come first: each is best once
_ATTEMPTS = (256, "life"), (256, "size"), (64, "life"), (256, "end")
_MAX_SEARCHED_INTERVALS = 4096  # with more that live at other times there is time for one order
_MAX_EXCESS_RATIO = 1.01  # times the least that is known: so that nobody waits,
_SLACK_RATIO = 1.14  # and where there is room


class Slack(NamedTuple):
    """Entries that may be taken although fewer would do, so that nobody waits for a place.

    Attributes
    ----------
    few : int
        So many in any case;
    most : int
        up to so many a little more than is needed.
    """

    few: int = 0
    most: int = 0


NO_SLACK = Slack()


class Taken(NamedTuple):
    """Where parts of a piece end, the first where it begins, and times they are free from.

    Nobody else has them before.
    """

    end: np.ndarray
    free: np.ndarray


Constraints = tuple[
    np.ndarray, int, Taken
]  # where panels begin, launches of small fronts, messages


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
    first: np.ndarray, last: np.ndarray, size: np.ndarray, constraints: Constraints, room: Slack
) -> Packing:
    """Place what lives from `first` to `last`: by the best of some orders, if it matters.

    It does not for what fits into `room` at once. With some time between two owners of a place, if
    there is room for that or it takes hardly more.

    Parameters
    ----------
    first, last, size : (s,) int64 arrays
        Times, both included, and entries.
    given : tuple
        Where the panels of each time begin, and the last ones end; times that are launches, after
        which nobody waits; and what is taken at first.
    room : Slack
    """
    name = first * (int(last.max(initial=0)) + 1) + last
    sorting, lower_bound = (
        np.argsort(name, kind="stable"),
        max(int(constraints[0][-1]), int(constraints[2].end[-1])),
    )
    few = np.count_nonzero(np.diff(name[sorting])) < _MAX_SEARCHED_INTERVALS
    first_attempt, *others = _ATTEMPTS if few else _ATTEMPTS[-1:]

    def tried(pieces: int, before: str) -> tuple[Packing, _Chunks]:
        chunks = _chunks(name, sorting, first, last, size, pieces, before)
        return _fit(chunks, constraints, 0, 0, waits=False), chunks

    best, chunks = tried(*first_attempt)
    if best.entries > max(lower_bound, room.few) and others:
        alone = thread_count() < len(_ATTEMPTS)
        with ExitStack() as over:
            begun = [
                over.enter_context(BackgroundTask(partial(tried, *x), now=alone)) for x in others
            ]
            trials = [one.result() for one in begun]
        best, chunks = min([(best, chunks), *trials], key=lambda one: one[0].entries)
    least = max(best.entries, lower_bound)
    most = max(least, room.few, min(room.most, int(_SLACK_RATIO * least)))
    for limit in sorted({most, least}, reverse=True):
        spaced = _fit(chunks, constraints, SLACK, limit)
        if spaced.entries <= _MAX_EXCESS_RATIO * most:
            return spaced
    return _fit(chunks, constraints, 0, 0)


def _fit(
    chunks: _Chunks, constraints: Constraints, slack: int, limit: int, waits: bool = True
) -> Packing:
    """Find places; without `waits` nothing is told of these, which takes as long."""
    begin, wait = np.zeros((2, chunks.first.size), np.int64)
    panel_waits = np.zeros(constraints[0].size - 1, np.int64)
    things, outputs = (chunks.first, chunks.last, chunks.length), (begin, wait, panel_waits)
    written, launches, taken = constraints
    arguments = *things, written, launches, taken.end, taken.free, slack, limit, *outputs
    entries = int(_first_fit(*arguments) if chunks.in_time else _fit_each(*arguments, waits))
    place = chunks.inside + begin[chunks.chunk]
    return Packing(place, wait[chunks.chunk], panel_waits, entries)


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
    for s in range(fixed if waits else 0):
        for t in range(taken_until[s], panel_wait.size):
            if written[t] < end[s] and begin[s] < written[t + 1]:
                panel_wait[t] = max(panel_wait[t], taken_until[s])
    top = low = high = np.int64(0)
    for c in range(first.size):
        for unused in range(slack, -1, -1):
            until = last[c] + (unused if last[c] >= launches else 0)
            arguments = begin, end, born, dies, fixed + c, first[c], until, launches, unused
            low = _lowest_gap(*arguments, written[min(until + 1, panel_wait.size)], length[c])
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
            released = dies[q] + (unused if dies[q] >= launches else 0)
            if born[q] <= until and first <= released:
                low = end[q]
    return low


@inner
def _last_before(begin, end, dies, low, high, first):
    """When the last one that dies before `first` is over, of those in a piece of memory."""
    latest = np.int64(0)
    for q in range(np.searchsorted(begin, high)):
        if (low < end[q]) & (dies[q] < first):
            latest = max(latest, dies[q] + 1)
    return latest


@jit
def _first_fit(
    first, last, length, written, launches, taken, taken_until, slack, limit, place, wait,
    panel_wait,
):  # fmt: skip
    """Place chunks in the order of their beginnings, as low as they fit; the end of all.

    The memory is a list of segments, which nobody reads any more from a time on that is kept in
    `free`; the last one has no end. What a chunk or the panels of a time have to wait for is the
    latest of those of their segments. After a launch nothing waits: there is no slack; nor where a
    chunk would end beyond `limit` with it. What is taken is there from the beginning.
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
    latest, j = np.int64(0), _segment(begin, count, low)
    while low < high and j < count and begin[j] < high:
        latest = max(latest, free[j])
        j += 1
    return latest


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
