"""Which fronts are worked on together, and where their contribution blocks lie meanwhile.

A level holds the fronts whose children are all in lower levels (as soon as possible). A
contribution block lives from its front's level to its parent's; those with the same life lie in one
chunk, and chunks are placed first fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._jit import jit
from ..plan import Plan


@dataclass(frozen=True)
class Schedule:
    """Fronts by level, and places of what lives from a front to its parent.

    Attributes
    ----------
    levels : list of int32 arrays
        Fronts of each level, from the leaves up, those of most work first.
    block : (f,) int64 array
        Offset of each front's contribution block, in entries.
    vector : (f,) int64 array
        Offset of each front's part of a right-hand side, in rows.
    blocks, vectors : int
        Size of both arenas.
    """

    levels: list[np.ndarray]
    block: np.ndarray
    vector: np.ndarray
    blocks: int
    vectors: int


def make_schedule(plan: Plan) -> Schedule:
    """Lay out the levels of an assembly tree.

    Examples
    --------
    >>> import frontal
    >>> from frontal.problems import poisson2d
    >>> plan = frontal.analyze(poisson2d(30)).plan
    >>> schedule = make_schedule(plan)
    >>> sum(len(level) for level in schedule.levels) == plan.parent.size
    True
    """
    level = _levels(plan.parent)
    k, m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
    order = np.lexsort((-(k * (k + m) ** 2), level))
    counts = np.bincount(level, minlength=0)
    levels = np.split(order.astype(np.int32), np.cumsum(counts)[:-1]) if level.size else []
    last = np.where(plan.parent >= 0, level[plan.parent], level)
    block, blocks = _lay_out(level, last, m * m)
    vector, vectors = _lay_out(level, last, m)
    return Schedule(levels, block, vector, blocks, vectors)


@jit
def _levels(parent):
    """Height of each front over its farthest leaf; children come before parents."""
    level = np.zeros(parent.size, np.int32)
    for s in range(parent.size):
        p = parent[s]
        if p >= 0 and level[p] <= level[s]:
            level[p] = level[s] + 1
    return level


def _lay_out(first: np.ndarray, last: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, int]:
    """Place what lives from level `first` through level `last`; offsets and the space in all."""
    offset = np.zeros(size.size, np.int64)
    if not size.any():
        return offset, 0
    count = int(last.max()) + 1
    chunk = first.astype(np.int64) * count + last
    order = np.argsort(chunk, kind="stable")
    names, starts = np.unique(chunk[order], return_index=True)
    ends = np.cumsum(size[order])
    inside = ends - size[order]
    lengths = np.diff(np.append(inside[starts], ends[-1]))
    places, total = _first_fit(names // count, names % count, lengths)
    chunk_of = np.searchsorted(names, chunk[order])
    offset[order] = inside - inside[starts][chunk_of] + places[chunk_of]
    return offset, total


def _first_fit(first: np.ndarray, last: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, int]:
    """Place intervals of time and space, in the order of their beginnings, as low as they fit."""
    places = np.zeros(first.size, np.int64)
    alive: list[tuple[int, int, int]] = []  # place, end, last level; by place
    for i in range(first.size):
        alive = sorted(x for x in alive if x[2] >= first[i])
        where = 0
        for begin, end, _ in alive:
            if begin - where >= length[i]:
                break
            where = max(where, end)
        places[i] = where
        alive.append((where, where + int(length[i]), int(last[i])))
    return places, int((places + length).max())
