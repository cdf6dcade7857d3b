"""Lists of tasks for the fronts of a pattern: what the persistent kernels work through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._jit import jit
from .schedule import TILE

if TYPE_CHECKING:
    from .fronts import Pattern

_UPPER = 1 << 16  # PART_BIT of front_tiles.cu
_GROUP = 512  # tiles of rows of fronts whose columns take turns


@dataclass(frozen=True)
class Tasks:
    """Tasks of front_tiles.cu on the device.

    Attributes
    ----------
    count : int
        Number of tasks.
    list : device array (count, 4)
        Front, i, j and level (with the part) of each.
    begin, source, place : device arrays
        Entries of A by task: extents, positions among the values, places in the tile.
    level_count : device array
        Tasks of each level.
    fronts : device array
        The fronts that the tasks belong to.
    """

    count: int
    list: Any
    begin: Any
    source: Any
    place: Any
    level_count: Any
    fronts: Any


def tile_tasks(pattern: Pattern) -> Tasks:
    """List the tiles of all fronts that are not small, each after those that it needs."""
    plan, schedule, upload = pattern.plan, pattern.schedule, pattern.device.upload
    fronts = np.flatnonzero(~schedule.small)
    k, m = pattern.k[fronts], pattern.m[fronts]
    work = k * (k + m) ** 2
    fronts = fronts[np.lexsort((-work, schedule.level[fronts]))]
    tiles = np.diff(pattern.tile_row)[fronts]
    group = (np.cumsum(tiles) - tiles) // _GROUP
    tasks = _list_tiles(fronts, group, pattern.k, pattern.m, schedule.level, pattern.symmetric)
    tasks = tasks[
        np.lexsort((tasks[:, 1] != tasks[:, 2], tasks[:, 2], tasks[:, 4], tasks[:, 3] % _UPPER))
    ]
    tasks = np.ascontiguousarray(tasks[:, :4])
    begin, source, place = entries_of_tasks(pattern, tasks)
    counts = np.bincount(tasks[:, 3] % _UPPER, minlength=schedule.levels)
    return Tasks(
        len(tasks),
        upload(tasks),
        upload(begin),
        upload(source),
        upload(place),
        upload(counts.astype(np.int32)),
        upload(fronts.astype(np.int32)),
    )


@jit
def _list_tiles(fronts, group, k, m, level, symmetric):
    """Front, i, j, level and part, and group of each tile."""
    total = 0
    for s in fronts:
        p, u = -(-k[s] // TILE), -(-m[s] // TILE)
        half = p * (p + 1) // 2 + p * u
        total += half + (u * (u + 1) // 2 if symmetric else half - p + u * u)
    out = np.empty((total, 5), np.int32)
    at = 0
    for q in range(fronts.size):
        s = fronts[q]
        p, u = -(-k[s] // TILE), -(-m[s] // TILE)
        for j in range(p + u):
            for i in range(p + u):
                for part in range(2):
                    if part == 0 and i < j and (symmetric or j < p or i < p):
                        continue
                    if part == 1 and (symmetric or i <= j or j >= p):
                        continue
                    out[at, 0], out[at, 1], out[at, 2] = s, i, j
                    out[at, 3] = level[s] + part * _UPPER
                    out[at, 4] = group[q]
                    at += 1
    return out


def entries_of_tasks(
    pattern: Pattern, tasks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Extents, sources and places of the entries of A that belong to each task."""
    plan = pattern.plan
    keys, places = _places(
        pattern.k, pattern.m, plan.panel, plan.entry_pointer, plan.target, pattern.tile_row
    )
    part = tasks[:, 3].astype(np.int64) // _UPPER
    width = np.int64(keys[:, 1].max(initial=0)) + 1
    rows = pattern.tile_row[tasks[:, 0]] + tasks[:, 1].astype(np.int64)
    width = max(width, int(tasks[:, 2].max(initial=0)) + 1)
    names = (rows * width + tasks[:, 2]) * 2 + part
    order = np.argsort(names)
    wanted = (keys[:, 0] * width + keys[:, 1]) * 2 + keys[:, 2]
    found = np.minimum(np.searchsorted(names[order], wanted), max(len(names) - 1, 0))
    task = order[found] if len(names) else np.empty(0, np.int64)
    mine = np.flatnonzero(names[task] == wanted) if len(names) else task
    mine = mine[np.argsort(task[mine], kind="stable")]
    begin = np.zeros(len(tasks) + 1, np.int64)
    np.cumsum(np.bincount(task[mine], minlength=len(tasks)), out=begin[1:])
    return begin, plan.source[mine].astype(np.int64), places[mine]


@jit
def _places(k, m, panel, entry_pointer, target, tile_row):
    """Tile (row of tiles, column of tiles, part) of each entry of A, and its place there."""
    keys = np.empty((target.size, 3), np.int64)
    places = np.empty(target.size, np.int32)
    for s in range(k.size):
        order, pivot_tiles = k[s] + m[s], -(-k[s] // TILE)
        for e in range(entry_pointer[s], entry_pointer[s + 1]):
            offset = target[e] - panel[s]
            part = np.int64(0)
            if offset < k[s] * order:
                r, c = offset % order, offset // order
                if r < k[s] and r // TILE < c // TILE:
                    r, c, part = c, r, np.int64(1)
            else:
                offset -= k[s] * order
                r, c, part = k[s] + offset % m[s], offset // m[s], np.int64(1)
            if r < k[s]:
                i, row = r // TILE, r % TILE
            else:
                i, row = pivot_tiles + (r - k[s]) // TILE, (r - k[s]) % TILE
            keys[e, 0], keys[e, 1], keys[e, 2] = tile_row[s] + i, c // TILE, part
            places[e] = row + TILE * (c % TILE)
    return keys, places
