"""Packing of blocks with limited lifetimes into one memory, beside panels that stay.

A live block never lies below the end of the panels written during its life. A block that reuses
memory waits until the previous owner is over. Guermouche, L'Excellent, "Constructing
memory-minimizing schedules for multifrontal methods" (2006), do the same for one stack.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import numpy as np

from ....compile.jit import inner, jit
from ....machine.resources import thread_count
from ....machine.threads import BackgroundTask

SLACK = 1  # epochs for which a place stays unused if there is room, so that no task waits for it
# number of pieces placed separately, and their order: each is the best for some matrix
_ATTEMPTS = (256, "life"), (256, "size"), (64, "life"), (256, "end")
_MAX_SEARCHED_INTERVALS = 4096  # distinct lifetimes; with more, only one order is tried
_MAX_EXCESS_RATIO = 1.01  # largest ratio of the end of a packing with SLACK to the allowed end
_SLACK_RATIO = 1.14  # of the allowed end to the least known one, within `Slack.most`


class Slack(NamedTuple):
    """Entries that may be used although fewer would do, so that no task waits for memory."""

    few: int = 0  # entries that may be used in any case
    most: int = 0  # limit of entries up to `_SLACK_RATIO` times the least number known


NO_SLACK = Slack()


class Taken(NamedTuple):
    """Parts of the messages' memory: the start and all ends, and the times they are free from.

    No block uses a part before its time.
    """

    end: np.ndarray
    free: np.ndarray


# starts and end of panels, number of launches of small fronts, messages
Constraints = tuple[np.ndarray, int, Taken]


class _Chunks(NamedTuple):
    """Blocks with one lifetime, in pieces of limited size, in the order of their placement."""

    # (s,) int64: of each block, its chunk and its offset in the chunk
    chunk: np.ndarray
    inside: np.ndarray
    # (c,) int64: first and last time of each chunk, and its entries
    first: np.ndarray
    last: np.ndarray
    length: np.ndarray
    in_time: bool  # whether the chunks are in the order of their first times


class Packing(NamedTuple):
    """Offsets, times to wait for, and the end of the memory."""

    place: np.ndarray
    waits: np.ndarray
    panel_waits: np.ndarray
    entries: int


def packed(
    first: np.ndarray, last: np.ndarray, size: np.ndarray, constraints: Constraints, room: Slack
) -> Packing:
    """Place blocks that live from `first` to `last`, by the best of several orders.

    Only one order is tried if the first one fits into `room`. Consecutive owners of a place are
    separated in time if there is room for that or it takes little more memory.

    Parameters
    ----------
    first, last, size : (s,) int64 arrays
        Times, both included, and entries.
    constraints : tuple
        Start of the panels of each time, with the end of the last ones; number of times that are
        launches, after which no task waits; and memory in use at the beginning.
    room : Slack
    """
    name = first * (int(last.max(initial=0)) + 1) + last
    sorting = np.argsort(name, kind="stable")
    lower_bound = max(int(constraints[0][-1]), int(constraints[2].end[-1]))
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
    """Assign offsets; `waits=False` skips the dependency output, which doubles the time."""
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
    """Group blocks with one name into chunks, and sort the chunks.

    The order is that of first and last times, or by decreasing size: entries, or entries times
    lifetime.
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
    """Place the blocks of a chunk one after another; `lengths` is zero on entry."""
    for s in range(chunk.size):
        offset[s] = lengths[chunk[s]]
        lengths[chunk[s]] += size[s]


@jit
def _fit_each(
    first, last, length, written, launches, taken, taken_until, slack, limit, place, wait,
    panel_wait, waits,
):  # fmt: skip
    """Place chunks in any order: each at the lowest gap among earlier chunks that live with it."""
    fixed, count = taken_until.size, taken_until.size + first.size
    # placed blocks, sorted by their start; scanned once for every chunk
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
    """Return the start of the first gap of this length among blocks that live at the same time."""
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
    """Return the time when all owners of an interval of memory that die before `first` are over."""
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
    """Place chunks in the order of their first times, as low as possible; return the end of all.

    The memory is a list of segments; `free` is the time from which a segment is no longer read. The
    last segment has no end. A chunk, or the panels of a time, waits for the latest of the times of
    its segments. After a launch nothing waits, so there is no slack; nor is there any if it would
    move the end of a chunk beyond `limit`. Memory in `taken` is in use from the beginning.
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
    """Return the time from which all of an interval is free."""
    latest, j = np.int64(0), _segment(begin, count, low)
    while low < high and j < count and begin[j] < high:
        latest = max(latest, free[j])
        j += 1
    return latest


@inner
def _segment(begin, count, place):
    """Return the segment that contains a place."""
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
    """Return the start of the first interval of this length from `low` on that is free at t."""
    where = low
    for j in range(_segment(begin, count, low), count):
        if free[j] + (slack if free[j] > launches else 0) > t:
            where = begin[j + 1]  # the last segment is always free
        elif j + 1 == count or begin[j + 1] - where >= length:
            break
    return where


@inner
def _occupy(begin, free, count, low, high, until):
    """Make an interval one segment that is free from `until` on; return the number of segments."""
    a = _segment(begin, count, low)
    b = _segment(begin, count, high)  # the first segment beyond the interval, or the one it splits
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
