"""List of tasks of front_tiles.cu: the tiles of fronts that are not small, in their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._jit import jit
from ...parts import in_parts
from ..runtime.array import Array
from . import structs
from .fronts import Fronts, narrow
from .schedule import TILE

UPPER = structs.PART_BIT
_LARGE, _WIDE, _SQUARE = 48, 4, 16  # see _order; tiles


@dataclass(frozen=True)
class Tasks:
    """Tasks of front_tiles.cu on the device.

    Attributes
    ----------
    count : int
        Number of tasks.
    list : device array (count, 4)
        Front, i, j and epoch (with the part) of each.
    begin, source, place : device arrays
        Entries of A by task: extents, positions among the values, places in the tile.
    epoch_count : device array
        Tasks of each epoch.
    left : device array (pieces, 4)
        See `left_of_diagonals`.
    first_sent : device array
        See `first_sent`.
    """

    count: int
    list: Array
    begin: Array
    source: Array
    place: Array
    epoch_count: Array
    left: Array
    first_sent: Array


def tile_tasks(tree: Fronts) -> Tasks:
    """List the tiles of all fronts that are not small, each after those that it needs."""
    schedule, upload = tree.schedule, tree.device.upload
    epoch = schedule.time - schedule.small_levels
    given = schedule.tiled, schedule.group, tree.k, tree.m, epoch, tree.method.one_triangle
    tasks = np.empty((_list_tiles(*given, np.empty((0, 5), np.int32)), 5), np.int32)
    _list_tiles(*given, tasks)
    counts = np.bincount(tasks[:, 3] % UPPER, minlength=schedule.epochs)
    tasks = np.ascontiguousarray(tasks[:, :4])[_order(tree, tasks)]
    begin, source, place = _entries_of_tasks(tree, tasks)
    return Tasks(
        len(tasks),
        upload(tasks),
        upload(begin),
        upload(source),
        upload(place),
        upload(counts.astype(np.int32)),
        upload(left_of_diagonals(tree)),
        upload(first_sent(tree).astype(np.int32)),
    )


def tasks_of(tree: Fronts) -> np.ndarray:
    """Tasks of each front, if it is not small."""
    tiles = tree.tiles
    return tiles * (tiles + 1) // 2 if tree.method.one_triangle else tiles * tiles


def left_of_diagonals(tree: Fronts) -> np.ndarray:
    """Pieces of rows left of diagonal tiles, one at least of each: front, tile, first column, 0."""
    front = np.repeat(np.arange(len(tree.k)), np.where(tree.schedule.small, 0, tree.pivot_tiles))
    tile = _counted(front)
    pieces = np.maximum(-(-tile * TILE // structs.PIVOT_COLUMNS), 1)
    front, tile = np.repeat(front, pieces), np.repeat(tile, pieces)
    first = _counted(front * (int(tile.max(initial=0)) + 1) + tile) * structs.PIVOT_COLUMNS
    return np.stack([front, tile, first, np.zeros_like(first)], axis=1).astype(np.int32)


def _counted(names: np.ndarray) -> np.ndarray:
    """Number of each entry among those like it, which lie together."""
    begins = np.flatnonzero(np.diff(names, prepend=-1))
    return np.arange(names.size) - np.repeat(begins, np.diff(np.append(begins, names.size)))


def first_sent(tree: Fronts) -> np.ndarray:
    """Numbers of diagonal tiles that others follow: in each front and those after it, and 0.

    So those of the last front come first, and what is behind them becomes free for others.
    """
    return np.append(0, np.cumsum(tree.followed[::-1]))[::-1]


def _order(tree: Fronts, tasks: np.ndarray) -> np.ndarray:
    """Order of tasks: by level, group of fronts, and within by columns from the left.

    Tiles that are under way together shall share their operands in the cache: large fronts go by
    _WIDE columns of L together, row after row, and by squares of _SQUARE tiles of the contribution
    block. In other fronts what all wait for, the diagonal tile, comes first in its column; without
    LU, where the tile left of it goes on with it, in that one's.
    """
    places = np.empty((4, len(tasks)), np.int32)
    _turns(tasks, tree.tiles, tree.pivot_tiles, tree.method.one_triangle, places)
    return _sorted_by(tree.schedule.level[tasks[:, 0]], tasks[:, 4], *places)


@jit
def _turns(tasks, all_tiles, all_pivots, one_triangle, out):
    """By what tasks of a group are ordered, see `_order`: of each four numbers, the first first."""
    for t in range(len(tasks)):
        s, i, j = tasks[t, 0], tasks[t, 1], tasks[t, 2]
        tiles, pivots = all_tiles[s], all_pivots[s]
        large, contributes = tiles >= _LARGE, j >= pivots
        column, urgent = j, i == j
        if one_triangle:  # a diagonal tile is worked on by (i, i) and then (i, i - 1)
            if urgent and not contributes:
                column = max(j - 1, 0)
            urgent = i <= column + 1 and i < pivots
        if contributes:
            square = _SQUARE if large else 1
            out[0, t] = -(-pivots // (_WIDE if large else 1)) + (j - pivots) // square
            out[1, t] = i // _SQUARE if large else 0
        else:
            out[0, t] = column // (_WIDE if large else 1)
            out[1, t] = i if large else not urgent
        out[2, t] = column if large else i
        out[3, t] = -j


def _sorted_by(*keys: np.ndarray) -> np.ndarray:
    """Stable order by these keys, the first before all others: as one number if there is room.

    By the first two keys they are in order already.
    """
    key, bits = np.zeros(keys[0].size, np.int64), 0
    for given in keys:
        values = given - given.min(initial=0)
        width = int(values.max(initial=0)).bit_length()
        key, bits = (key << width) + values, bits + width
    width = key.size.bit_length()
    if bits + width > 63:
        return np.lexsort(keys[::-1])
    key = (key << width) + np.arange(key.size)
    runs = np.flatnonzero((np.diff(keys[0]) != 0) | (np.diff(keys[1]) != 0)) + 1
    ends, order = np.concatenate([[0], runs, [key.size]]), np.empty(key.size, np.int64)

    def sort(first: int, last: int) -> None:
        begin, end = ends[first], ends[last]
        order[begin:end] = begin + np.argsort(key[begin:end])

    in_parts(sort, ends)
    return order


@jit
def _list_tiles(fronts, group, k, m, epoch, one_triangle, out):
    """Count the tasks; where there is room, their fronts, i, j, epoch and part, and groups."""
    at = 0
    for q in range(fronts.size):
        s = fronts[q]
        pivots, updates = -(-k[s] // TILE), -(-m[s] // TILE)
        tiles = pivots + updates
        for j in range(tiles):
            contributes = j >= pivots
            i = pivots if contributes and not one_triangle else j
            while i < tiles:
                if at < len(out):
                    out[at, 0], out[at, 1], out[at, 2], out[at, 4] = s, i, j, group[q]
                    out[at, 3] = epoch[s]
                at += 1
                i += 1
            if not one_triangle and not contributes:
                for i in range(j + 1, tiles):
                    if at < len(out):
                        out[at, 0], out[at, 1], out[at, 2], out[at, 4] = s, i, j, group[q]
                        out[at, 3] = epoch[s] + UPPER
                    at += 1
    return at


def _entries_of_tasks(tree: Fronts, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Extents, sources and places of the entries of A that belong to each task."""
    plan, fronts = tree.plan, np.flatnonzero(~tree.schedule.small)
    offset = np.zeros(len(tree.k) + 1, np.int64)  # of a front's tiles with pivot columns
    tables = tree.method.panels * tree.tiles * tree.pivot_tiles
    np.cumsum(np.where(tree.schedule.small, 0, tables), out=offset[1:])
    task_of = np.empty(offset[-1], np.int32)
    _name_tasks(tasks, offset, tree.tiles, tree.pivot_tiles, task_of)
    begin = np.zeros(len(tasks) + 1, np.int64)
    ends = np.append(0, np.cumsum(np.diff(plan.entry_pointer)[fronts]))
    count = int(ends[-1])
    task, given = np.empty(count, np.int32), np.empty(count, np.int32)
    where = fronts, ends, tree.k, tree.tiles, offset, plan.entry_pointer, plan.row, plan.column
    in_parts(lambda *part: _places(*where, task_of, task, given, begin, *part), ends)
    np.cumsum(begin, out=begin)
    kind = narrow(plan.source)
    source, place, free = np.empty(count, kind), np.empty(count, np.uint16), begin[:-1].copy()
    of = fronts, ends, plan.entry_pointer, plan.source, task, given, free, source, place
    in_parts(lambda *part: _sort_by_task(*of, *part), ends)
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
def _places(
    fronts, ends, k, tiles, offset, entry_pointer, row, column, task_of, task, place, begin,
    first, last,
):  # fmt: skip
    """Task of each entry of A, and its place in the tile; counts the entries of each in `begin`.

    Tiles above the diagonal are kept transposed, in the part of U.
    """
    for f in range(first, last):
        s, at = fronts[f], ends[f]
        pivot_tiles = -(-k[s] // TILE)
        for e in range(entry_pointer[s], entry_pointer[s + 1]):
            r, c, upper = np.int64(row[e]), np.int64(column[e]), 0
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
def _sort_by_task(
    fronts, ends, entry_pointer, source, task, given, free, sorted_source, place, first, last
):
    """Put entries in the order of their tasks, from where these are `free`, then of the plan."""
    for f in range(first, last):
        s, at = fronts[f], ends[f]
        for e in range(entry_pointer[s], entry_pointer[s + 1]):
            q = free[task[at]]
            free[task[at]] += 1
            sorted_source[q], place[q] = source[e], given[at]
            at += 1
