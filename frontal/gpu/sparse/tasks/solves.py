"""Lists of tasks for forward and backward substitution, and the places of messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....compile.jit import inner, jit
from ....machine.threads import parallel_for
from ....symbolic.plan import Plan
from .. import structs
from ..layout.panels import Fronts, Listed
from ..layout.schedule import TILE

TASK = structs.SOLVE_TASK.dtype
# limits of fronts that a single warp processes, if a level has enough for Fronts.fewest blocks
_SMALL_ROWS, _SMALL_PIVOTS, _SMALL_ENTRIES = structs.SMALL_ROWS, TILE, 4096
_GROUP = 512  # tiles of rows in a group of fronts that take turns
_WARPS = structs.SOLVE_WARPS
_MAX_SUMMED_TILES = 8  # tiles of update rows summed by one task of the backward sweep
_NO_TASKS = np.zeros((0, 9), np.int32)  # for tasks that are single fronts


@dataclass(frozen=True)
class SolveTasks:
    """Tasks and messages of the fronts, for panels of one scalar type; on the host or a device."""

    # small fronts, children first; tasks of the larger fronts for each sweep
    small: Listed
    forward: Listed
    backward: Listed
    # start of the messages to each row of each front with children, and the end of those to its
    # last row
    message_pointer: Listed
    slots: Listed  # place of the message of each update row
    # number of rows of values between the sweeps, of messages, and of partial sums of TILE rows
    between: int
    messages: int
    partials: int
    # (t, 4), with pivots: first position, width, and first row within the front of each pivot tile
    pivot_tiles: Listed | None
    # (s, 2), with segments (see `Fronts`), which lie one after another: start and end of each
    # segment in the three lists
    extents: tuple[np.ndarray, ...] = ()


def solve_tasks(tree: Fronts, dtype: np.dtype) -> SolveTasks:
    """List the tasks of the solves for panels of this scalar type."""
    plan, segment, sweeps = tree.plan, tree.segment, tree.spent(sweep_tasks)
    pointer, slots = _messages(plan, sweeps.first)
    swept = tree.layout(dtype).swept  # last, since a thread may still be computing it
    ways = zip(sweeps.fronts, sweeps.tasks, strict=True)
    small, up, down = (_described(tree, swept, sweeps.between, *way) for way in ways)
    return SolveTasks(
        small,
        up,
        down,
        pointer,
        slots,
        int(sweeps.between[-1]),
        sweeps.messages,
        sweeps.partials,
        _pivot_tiles(plan.start) if tree.method.unit else None,
        () if segment is None else tuple(_extents(segment, x) for x in sweeps.fronts),
    )


class SweepTasks(NamedTuple):
    """Fields of `SolveTasks` that depend on the fronts alone, not on their rows or offsets."""

    fronts: tuple[np.ndarray, ...]  # front of each task: of small fronts, and of both sweeps
    # (t, 9): see `_list_forward`, `_list_backward`; empty for small fronts
    tasks: tuple[np.ndarray, ...]
    # start of the messages to each front, and of its values between the sweeps
    first: np.ndarray
    between: np.ndarray
    # see `SolveTasks`
    messages: int
    partials: int


def sweep_tasks(tree: Fronts) -> SweepTasks:
    """List the tasks of both sweeps, level by level."""
    k, m, segment = tree.k, tree.m, tree.segment
    small, level = tree.once(_small_fronts)
    if segment is not None:
        level = level + segment * (level.max(initial=0) + np.int32(1))
    order = np.lexsort((-k * (k + m), level))
    warp_fronts, tiled = order[small[order]], order[~small[order]]
    forward = _sorted(_list_forward(tiled, _grouped(tree, tiled), k, m, level), 1)
    tiled = tiled[::-1]
    backward, partials = _list_backward(
        tiled, _grouped(tree, tiled), k, m, level, _MAX_SUMMED_TILES
    )
    backward = _sorted(backward, -1)
    fronts = warp_fronts, *(x[:, 0].astype(np.int64) for x in (forward, backward))
    first, messages = tree.spent(_places_of_messages)
    tasks = _NO_TASKS, forward, backward
    return SweepTasks(fronts, tasks, first, tree.spent(_between), messages, int(partials))


def _grouped(tree: Fronts, fronts: np.ndarray) -> np.ndarray:
    """Return the group number of each front; the fronts of a group take turns."""
    tiles = tree.tiles[fronts]
    return (np.cumsum(tiles) - tiles) // _GROUP


def _extents(segment: np.ndarray, fronts: np.ndarray) -> np.ndarray:
    """Return start and end of each segment in a list sorted by segment, up or down."""
    mine = segment[fronts]
    counts = np.bincount(mine, minlength=int(segment[-1]) + 1)
    step = -1 if mine.size and mine[0] > mine[-1] else 1
    ends = np.cumsum(counts[::step])[::step]
    return np.stack([ends - counts, ends], axis=1)


def _small_fronts(tree: Fronts) -> tuple[np.ndarray, np.ndarray]:
    """Return which fronts a single warp processes, and the levels of all fronts."""
    parent = tree.plan.parent
    small, level = _levels(parent, fits_warp(tree))
    thin = np.flatnonzero(np.bincount(level[small]) < _WARPS * tree.fewest)
    if thin.size:
        small, level = _levels(parent, small & (level < thin[0]))
    return small, level


def fits_warp(tree: Fronts) -> np.ndarray:
    """Return which fronts are small enough for a single warp to solve with."""
    k, m = tree.k, tree.m
    return (k + m <= _SMALL_ROWS) & (k <= _SMALL_PIVOTS) & (k * (k + m) <= _SMALL_ENTRIES)


def all_tasks(tree: Fronts, dtype: np.dtype) -> np.ndarray:
    """Return all fronts in their order, each as one task of a warp, as rows of bytes."""
    none = np.zeros(tree.k.size, np.int64)  # a warp keeps its values between the sweeps
    return _described(tree, tree.layout(dtype).swept, none, np.arange(tree.k.size), _NO_TASKS)


def _between(tree: Fronts) -> np.ndarray:
    """Return the rows of values between the sweeps before those of each front, and their total.

    Fronts of a single warp keep these values in the place of right-hand sides.
    """
    small, _ = tree.once(_small_fronts)
    return np.append(0, np.cumsum(np.where(small, 0, tree.k)))


def counted_tasks(tree: Fronts) -> tuple[int, int, int, int]:
    """Return the number of tasks of small fronts, of both sweeps, and of partial sums."""
    small, _ = tree.once(_small_fronts)
    k, m = tree.k[~small], tree.m[~small]
    p, u = -(-k // TILE), -(-m // TILE)
    together = np.clip(2 * TILE // np.maximum(k, 1), 1, 4)
    partials = p * np.where(u > _MAX_SUMMED_TILES, -(-u // _MAX_SUMMED_TILES), 0)
    forward = int((p - (-u // together)).sum())
    return int(small.sum()), forward, int((p + partials).sum()), int(partials.sum())


def counted_rows(tree: Fronts) -> tuple[int, ...]:
    """Return the rows that a solve stores for each right-hand side: see `messages.message_rows`."""
    n, (*_, partials) = int(tree.plan.start[-1]), counted_tasks(tree)
    between, (_, messages) = tree.once(_between), tree.once(_places_of_messages)
    return int(between[-1]), max(messages, n), TILE * partials, n


def _sorted(tasks: np.ndarray, direction: int) -> np.ndarray:
    """Sort a list by level, group and turn."""
    order = np.lexsort((tasks[:, 8], tasks[:, 7], direction * tasks[:, 6]))
    return np.take(tasks, order, axis=0)


def _described(
    tree: Fronts,
    swept: np.ndarray,
    between: np.ndarray,
    fronts: np.ndarray,
    tasks: np.ndarray,
) -> np.ndarray:
    """Return the structs of tasks, as rows of bytes."""
    plan, out = tree.plan, np.zeros(fronts.size, TASK)
    _describe(fronts, tasks, swept, between, plan, rows_of_messages(plan), out)
    return out.view(np.uint8).reshape(-1, TASK.itemsize)


@jit
def _describe(fronts, tasks, swept, between, plan, base, out):
    start, pointer, child_pointer = plan.start, plan.pointer, plan.child_pointer
    for q in range(fronts.size):
        s, task = fronts[q], out[q]
        task.panel, task.pointer = swept[s], pointer[s]
        task.rows, task.y = base[s], between[s]
        task.start, task.k, task.m = start[s], start[s + 1] - start[s], pointer[s + 1] - pointer[s]
        task.has_children = child_pointer[s + 1] > child_pointer[s]
        if len(tasks):
            task.tile, task.count, task.first = tasks[q, 1], tasks[q, 2], tasks[q, 3]
            task.parts, task.partial = tasks[q, 4], tasks[q, 5]


@jit
def _levels(parent, fits):
    """Return which fronts fit a warp with all their descendants, and the heights of all fronts."""
    small, level = fits.copy(), np.zeros(parent.size, np.int32)
    for s in range(parent.size):  # children come before parents
        if parent[s] >= 0:
            level[parent[s]] = max(level[parent[s]], level[s] + np.int32(1))
            if not small[s]:
                small[parent[s]] = False
    return small, level


@inner
def _tiles_together(k):
    """Return the tiles of update rows that a task of the forward sweep processes."""
    return max(1, min(4, 2 * TILE // max(k, 1)))


@jit
def _list_forward(fronts, group, k, m, level):
    """Return front, tile, count, 0, 0, 0, level, group and turn of each tile of rows."""
    total = 0
    for s in fronts:
        u = -(-m[s] // TILE)
        total += -(-k[s] // TILE) + -(-u // _tiles_together(k[s]))
    out = np.zeros((total, 9), np.int32)
    at = 0
    for q in range(fronts.size):
        s = fronts[q]
        p = -(-k[s] // TILE)
        tiles, together = p + -(-m[s] // TILE), _tiles_together(k[s])
        i = 0
        while i < tiles:
            count = 1 if i < p else min(together, tiles - i)
            out[at, 0], out[at, 1], out[at, 2] = s, i, count
            out[at, 6], out[at, 7], out[at, 8] = level[s], group[q], i
            i += count
            at += 1
    return out


@jit
def _list_backward(fronts, group, k, m, level, most):
    """Return front, tile, count, first, parts, partial, level, group, turn; number of partial sums.

    If a front has more than `most` tiles of update rows, separate tasks each sum at most `most` of
    them.
    """
    total = 0
    for s in fronts:
        p, u = -(-k[s] // TILE), -(-m[s] // TILE)
        total += p * (1 + (-(-u // most) if u > most else 0))
    out = np.zeros((total, 9), np.int32)
    at, partials = 0, 0
    for q in range(fronts.size):
        s = fronts[q]
        p, u = -(-k[s] // TILE), -(-m[s] // TILE)
        parts = -(-u // most) if u > most else 0
        for t in range(p):
            for chunk in range(parts + 1):
                out[at, 0], out[at, 1] = s, t
                out[at, 6], out[at, 7] = level[s], group[q]
                if chunk < parts:
                    begin, end = chunk * u // parts, (chunk + 1) * u // parts
                    out[at, 2], out[at, 3], out[at, 5] = end - begin, p + begin, partials + chunk
                else:
                    out[at, 4], out[at, 5], out[at, 8] = parts, partials, p - t
                at += 1
            partials += parts
    return out, partials


def _places_of_messages(tree: Fronts) -> tuple[np.ndarray, int]:
    """Return the start of the messages to each front, and the number of places.

    Messages to fronts with only larger children are sent after all small fronts have read theirs,
    and share their places; not with segments, because each segment begins with its small fronts.
    """
    (small, _), first = tree.once(_small_fronts), np.empty(tree.k.size, np.int64)
    return first, int(
        _place_messages(tree.plan.parent, tree.plan.pointer, small, tree.segment is not None, first)
    )


@jit
def _place_messages(parent, pointer, small, segmented, first):
    counts, early = np.zeros(parent.size, np.int64), np.zeros(parent.size, np.bool_)
    for s in range(parent.size):
        if parent[s] >= 0:
            counts[parent[s]] += pointer[s + 1] - pointer[s]
            early[parent[s]] |= small[s]  # has a small child
    ends = np.zeros(3, np.int64)  # of messages to small fronts, to fronts after them, to others
    for s in range(parent.size):
        way = 0 if small[s] else 2 if segmented or early[s] else 1
        first[s] = ends[way]
        ends[way] += counts[s]
    shared = max(ends[0], ends[1])
    for s in range(parent.size):
        if not small[s] and (segmented or early[s]):
            first[s] += shared
    return shared + ends[2]


def rows_of_messages(plan: Plan) -> np.ndarray:
    """Return the start of each front's rows in the message list: k + m + 1 rows, with children."""
    rows = np.diff(plan.start) + np.diff(plan.pointer) + 1
    return np.append(0, np.cumsum(np.where(np.diff(plan.child_pointer) > 0, rows, 0)))


def _messages(plan: Plan, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the start of the messages to each row, and the place of each update row's message."""
    base = rows_of_messages(plan)
    begin, slots = np.zeros(int(base[-1]), np.int32), np.zeros(plan.relative.size, np.int32)
    most = int(np.diff(base).max(initial=0))

    def fill(first_front: int, last: int) -> None:
        taken = np.empty(most, np.int32)
        _fill_messages(base, plan, first, begin, slots, taken, first_front, last)

    parallel_for(fill, base)
    return begin, slots


@jit
def _fill_messages(base, plan, first, begin, slots, taken, first_front, last):
    """Place the messages to a range of fronts; those to one row in the order of extend-add."""
    pointer, relative = plan.pointer, plan.relative
    child_pointer, children = plan.child_pointer, plan.children
    for s in range(first_front, last):
        if base[s + 1] == base[s]:
            continue
        mine = begin[base[s] : base[s + 1] - 1]
        for q in range(child_pointer[s], child_pointer[s + 1]):
            for r in range(pointer[children[q]], pointer[children[q] + 1]):
                mine[relative[r]] += 1
        at = first[s]
        for row in range(mine.size):
            count = mine[row]
            mine[row] = taken[row] = at
            at += count
        begin[base[s + 1] - 1] = at
        for q in range(child_pointer[s], child_pointer[s + 1]):
            for r in range(pointer[children[q]], pointer[children[q] + 1]):
                slots[r] = taken[relative[r]]
                taken[relative[r]] += 1


def _pivot_tiles(start: np.ndarray) -> np.ndarray:
    k = np.diff(start).astype(np.int64)
    tiles = -(-k // TILE)
    front = np.repeat(np.arange(k.size), tiles)
    within = TILE * (np.arange(front.size) - np.repeat(np.cumsum(tiles) - tiles, tiles))
    out = np.zeros((front.size, 4), np.int32)
    out[:, 0], out[:, 2] = start[front] + within, within
    out[:, 1] = np.minimum(TILE, k[front] - within)
    return out
