"""Task list of front_tiles.cu: the tiles of fronts that are not small, in their order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from ....compile.jit import inner, jit
from ....machine.threads import parallel_for
from .. import structs
from ..layout.panels import Fronts, Listed, narrow
from ..layout.schedule import TILE, by_time

UPPER = structs.PART_BIT
_MIN_LARGE_TILES, _WIDE, _SQUARE = 48, 4, 16  # see _in_order; tiles
_BITS = 63  # bits of a sort key


@dataclass(frozen=True)
class Tasks:
    """Tasks of front_tiles.cu: arrays of the host, or of a device."""

    count: int  # number of tasks
    list: Listed  # (count, 4): front, i, j and epoch (with the part) of each task
    # entries of A by task: extents, positions among the values, positions in the tile
    begin: Listed
    source: Listed
    place: Listed
    epoch_count: Listed  # tasks of each epoch
    row_pieces: Listed  # (pieces, 4): see `left_of_diagonals`
    first_sent: Listed  # (f, 2): see `first_sent`


def tile_tasks(tree: Fronts) -> Tasks:
    """List the tiles of all fronts that are not small, each tile after those it depends on."""
    tasks, counts, row_pieces, sent = tree.spent(tiles_in_order)
    return Tasks(len(tasks), tasks, *_entries_of_tasks(tree, tasks), counts, row_pieces, sent)


def tiles_in_order(tree: Fronts) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return `list`, `epoch_count`, `row_pieces` and `first_sent` of `Tasks`: no entries needed."""
    schedule = tree.schedule
    epoch = schedule.time - schedule.launches
    ends = np.append(0, np.cumsum(counted_tiles(tree)[schedule.tiled]))
    counts = np.bincount(epoch[schedule.tiled], np.diff(ends), schedule.epochs)
    row_pieces, sent = left_of_diagonals(tree), first_sent(tree)
    return _in_order(tree, ends, epoch), counts.astype(np.int32), row_pieces, sent


def counted_tiles(tree: Fronts) -> np.ndarray:
    """Return the number of tasks of each front, provided that it is not small."""
    tiles = tree.tiles
    return tiles * (tiles + 1) // 2 if tree.method.one_triangle else tiles * tiles


def left_of_diagonals(tree: Fronts) -> np.ndarray:
    """Return pieces of the rows left of diagonal tiles: front, tile, first column, 0.

    Each diagonal tile has at least one piece.
    """
    front = np.repeat(np.arange(len(tree.k)), np.where(tree.schedule.small, 0, tree.pivot_tiles))
    tile = _counted(front)
    pieces = np.maximum(-(-tile * TILE // structs.PIVOT_COLUMNS), 1)
    front, tile = np.repeat(front, pieces), np.repeat(tile, pieces)
    first = _counted(front * (int(tile.max(initial=0)) + 1) + tile) * structs.PIVOT_COLUMNS
    return np.stack([front, tile, first, np.zeros_like(first)], axis=1).astype(np.int32)


def _counted(names: np.ndarray) -> np.ndarray:
    """Return the index of each entry in its run of equal entries."""
    begins = np.flatnonzero(np.diff(names, prepend=-1))
    return np.arange(names.size) - np.repeat(begins, np.diff(np.append(begins, names.size)))


def first_sent(tree: Fronts) -> np.ndarray:
    """Return the index of each front's first tile with followers, and the number of such tiles.

    They are diagonal tiles that other tiles follow while they are factorized. Fronts are numbered
    in the order of their times.
    """
    order = by_time(tree.schedule.time)
    count, first = tree.followed, np.empty(order.size, np.int64)
    first[order] = np.cumsum(count[order]) - count[order]
    return np.stack([first, count], axis=1).astype(np.int32)


def _in_order(tree: Fronts, ends: np.ndarray, epoch: np.ndarray) -> np.ndarray:
    """Return tasks by level, group of fronts, and within a group by columns from the left.

    Tiles that are computed at the same time should share their operands in the cache: large fronts
    are traversed by _WIDE columns of L together, row after row, and by squares of _SQUARE tiles of
    the contribution block. In other fronts the diagonal tile, for which all others wait, comes
    first in its column; without LU, task (i, i - 1) completes it, and task (i, i) comes first in
    column i - 1. The tasks of front `Schedule.tiled[q]` begin at `ends[q]`, before those of a group
    are sorted.
    """
    schedule, total = tree.schedule, int(ends[-1])
    fronts = schedule.tiled
    others = (np.diff(schedule.level[fronts]) != 0) | (np.diff(schedule.group) != 0)
    runs = np.concatenate([[0], np.flatnonzero(others) + 1, [fronts.size]])
    extents = ends[runs]
    first = np.repeat(extents[:-1], np.diff(runs))
    # a sort key has the task's index in its group in its low bits
    digits = (2 * int(tree.tiles.max(initial=0)) + 1).bit_length()
    task_bits = int(np.diff(extents).max(initial=0)).bit_length()
    keys, listed = np.empty(total, np.int64), np.empty((total, 4), np.int32)
    wide = 4 * digits + task_bits > _BITS  # fronts of millions of rows
    sizes = tree.pivot_tiles, tree.tiles, epoch, tree.method.one_triangle
    bits = digits, 0 if wide else task_bits
    parallel_for(partial(_list_tiles, fronts, ends, first, *sizes, *bits, keys, listed), ends)
    tasks = np.empty_like(listed)

    def sort_groups(a: int, b: int) -> None:
        for begin, end in pairwise(extents[a : b + 1].tolist()):
            if wide:
                order = np.argsort(keys[begin:end], kind="stable")
            else:
                keys[begin:end].sort()
                order = keys[begin:end] & ((1 << task_bits) - 1)
            # not by indexing, which holds the GIL
            np.take(listed[begin:end], order, axis=0, out=tasks[begin:end], mode="clip")

    parallel_for(sort_groups, extents)
    return tasks


@inner
def _key(tiles, pivots, i, j, one_triangle, digits):
    """Return the sort key of a task of a front, see `_in_order`: four numbers of `digits` bits."""
    large, contributes = tiles >= _MIN_LARGE_TILES, j >= pivots
    column, urgent = j, i == j
    if one_triangle:  # a diagonal tile is computed by (i, i) and then (i, i - 1)
        if urgent and not contributes:
            column = max(j - 1, 0)
        urgent = i <= column + 1 and i < pivots
    if contributes:
        first = -(-pivots // (_WIDE if large else 1)) + (j - pivots) // (_SQUARE if large else 1)
        second = i // _SQUARE if large else 0
    else:
        first = column // (_WIDE if large else 1)
        second = i if large else (0 if urgent else 1)
    key = (np.int64(first) << digits) + second
    key = (key << digits) + (column if large else i)
    return (key << digits) + (1 << digits) - 1 - j


@jit
def _list_tiles(
    fronts, ends, first_of_group, all_pivots, all_tiles, epoch, one_triangle, digits, bits, keys,
    out, first, last,
):  # fmt: skip
    """List the tasks of a range of fronts: front, i, j, epoch and part; and their sort keys."""
    for q in range(first, last):
        s, at = fronts[q], ends[q]
        tiles, pivots = all_tiles[s], all_pivots[s]
        for j in range(tiles):
            contributes = j >= pivots
            begin = pivots if contributes and not one_triangle else j
            parts = 1 if one_triangle or contributes else 2
            for upper in range(parts):
                for i in range(begin + upper, tiles):
                    out[at, 0], out[at, 1], out[at, 2] = s, i, j
                    out[at, 3] = epoch[s] + upper * UPPER
                    key = _key(tiles, pivots, i, j, one_triangle, digits)
                    keys[at] = (key << bits) + (at - first_of_group[q] if bits else 0)
                    at += 1


def _entries_of_tasks(tree: Fronts, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return extents, sources and places of the entries of A that belong to each task."""
    plan, fronts = tree.plan, np.flatnonzero(~tree.schedule.small)
    offset = np.zeros(len(tree.k) + 1, np.int64)  # start of each front's tiles with pivot columns
    tables = tree.method.panels * tree.tiles * tree.pivot_tiles
    np.cumsum(np.where(tree.schedule.small, 0, tables), out=offset[1:])
    task_of = np.empty(offset[-1], np.int32)
    _name_tasks(tasks, offset, tree.tiles, tree.pivot_tiles, task_of)
    begin = np.zeros(len(tasks) + 1, np.int64)
    ends = np.append(0, np.cumsum(np.diff(plan.entry_pointer)[fronts]))
    count = int(ends[-1])
    task, entry_place = np.empty(count, np.int32), np.empty(count, np.int32)
    inputs = fronts, ends, tree.k, tree.tiles, offset, plan, task_of
    parallel_for(partial(_places, *inputs, task, entry_place, begin), ends)
    np.cumsum(begin, out=begin)
    kind = narrow(plan.source)
    source, place, free = np.empty(count, kind), np.empty(count, np.uint16), begin[:-1].copy()
    sort = partial(_sort_by_task, fronts, ends, plan, task, entry_place, free, source, place)
    parallel_for(sort, ends)
    return begin.astype(kind), source, place


@jit
def _name_tasks(tasks, offset, tiles, pivot_tiles, task_of):
    """Number the tasks whose tiles have pivot columns: by front, part, row and column of tiles."""
    for t in range(len(tasks)):
        s, i, j = tasks[t, 0], tasks[t, 1], tasks[t, 2]
        if j < pivot_tiles[s]:
            upper = tasks[t, 3] // UPPER
            task_of[offset[s] + (upper * tiles[s] + i) * pivot_tiles[s] + j] = t


@jit
def _places(fronts, ends, k, tiles, offset, plan, task_of, task, place, begin, first, last):
    """Compute the task and the position in the tile of each entry of A; count entries in `begin`.

    Tiles above the diagonal are stored transposed, in the part of U.
    """
    for f in range(first, last):
        s, at = fronts[f], ends[f]
        pivot_tiles = -(-k[s] // TILE)
        for e in range(plan.entry_pointer[s], plan.entry_pointer[s + 1]):
            r, c, upper = np.int64(plan.row[e]), np.int64(plan.column[e]), 0
            if c >= k[s] or (r < k[s] and r // TILE < c // TILE):
                r, c, upper = c, r, 1
            if r < k[s]:
                i, inside = r // TILE, r % TILE
            else:
                i, inside = pivot_tiles + (r - k[s]) // TILE, (r - k[s]) % TILE
            t = task_of[offset[s] + (upper * tiles[s] + i) * pivot_tiles + c // TILE]
            task[at], place[at] = t, inside + TILE * (c % TILE)
            begin[t + 1] += 1
            at += 1


@jit
def _sort_by_task(fronts, ends, plan, task, entry_place, free, source, place, first, last):
    """Sort entries by task, from the task's `free` position on, then in the order of the plan."""
    for f in range(first, last):
        s, at = fronts[f], ends[f]
        for e in range(plan.entry_pointer[s], plan.entry_pointer[s + 1]):
            q = free[task[at]]
            free[task[at]] += 1
            source[q], place[q] = plan.source[e], entry_place[at]
            at += 1
