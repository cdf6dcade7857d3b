"""When each front is worked on, and where its contribution block lies meanwhile.

A level holds the fronts whose children are all in lower levels (as soon as possible). A
contribution block lives from its front's level to its parent's, and one level longer, so that
fronts can go on while some of the level below them still read. Blocks with the same life lie in
one chunk, and chunks are placed first fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._jit import jit
from ...method import Method
from ...symbolic.plan import Plan
from .structs import FRONT_TILE as TILE

_DIRECT = 16  # names of chunks for each front, up to which all possible ones are listed


@dataclass(frozen=True)
class Schedule:
    """Fronts by level, and places of their contribution blocks.

    Attributes
    ----------
    small : (f,) bool array
        Fronts that are factored whole, those below them too.
    level : (f,) int32 array
        Level of each front; small fronts come before all others.
    small_levels : int
        Levels of small fronts.
    block : (f,) int64 array
        Offset of each front's contribution block, in entries.
    blocks : int
        Size of the arena of contribution blocks.
    product : (f,) int64 array
        With D, offset of L·D of each front that is not small, while it is worked on.
    products : int
        Size of the arena of these.
    """

    small: np.ndarray
    level: np.ndarray
    small_levels: int
    block: np.ndarray
    blocks: int
    product: np.ndarray
    products: int

    @property
    def levels(self) -> int:
        """Number of levels."""
        return int(self.level.max(initial=-1)) + 1


def make_schedule(plan: Plan, method: Method, order: int = 0, fewest: int = 1) -> Schedule:
    """Lay out the levels of an assembly tree.

    Parameters
    ----------
    plan : Plan
    method : Method
        With one triangle, only the lower half of contribution blocks is kept.
    order : int
        Fronts with up to so many rows, all below them alike, are small.
    fewest : int
        From the first level on that has fewer of them, none are.

    Examples
    --------
    >>> import frontal
    >>> from frontal.method import CHOLESKY
    >>> from frontal.problems import poisson2d
    >>> plan = frontal.analyze(poisson2d(30)).plan
    >>> schedule = make_schedule(plan, CHOLESKY, 16)
    >>> bool((schedule.level[schedule.small] < schedule.small_levels).all())
    True
    """
    k, m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
    level, small, small_levels = _levels(plan.parent, k + m <= order)
    thin = np.flatnonzero(np.bincount(level[small], minlength=small_levels) < fewest)
    if thin.size:  # from there on they are tasks, so that deep trees need no launch a level
        level, small, small_levels = _levels(plan.parent, small & (level < thin[0]))
    last = np.where(plan.parent >= 0, level[plan.parent], level) + 1
    block, blocks = _lay_out(level, last, contribution_entries(m, method))
    # Rows as in panels, whose leading dimension is at most this for all scalar types.
    rows = -(-k // 4) * 4 + -(-m // 4) * 4
    kept = k * rows if method.indefinite else np.zeros_like(k)
    product, products = _lay_out(level, level + 1, np.where(small, 0, kept))
    return Schedule(small, level, int(small_levels), block, blocks, product, products)


def contribution_entries(m: np.ndarray, method: Method) -> np.ndarray:
    """Entries of contribution blocks of these orders, as sparse/front.cuh lays them out."""
    if not method.one_triangle:
        return m * m
    whole = m // TILE
    rest = m - whole * TILE
    return TILE * whole * m - TILE * TILE * whole * (whole - 1) // 2 + rest * rest


@jit
def _levels(parent, fits):
    """Height of each front over its farthest leaf; which fit, and all below them too."""
    fronts = parent.size
    small = fits.copy()
    for s in range(fronts):  # children come before parents
        if not small[s] and parent[s] >= 0:
            small[parent[s]] = False
    level = np.zeros(fronts, np.int32)
    most = np.int32(0)
    for s in range(fronts):
        if small[s]:
            most = max(most, level[s] + np.int32(1))
            if parent[s] >= 0:
                level[parent[s]] = max(level[parent[s]], level[s] + np.int32(1))
    for s in range(fronts):
        if not small[s]:
            level[s] = max(level[s], most)
            if parent[s] >= 0:
                level[parent[s]] = max(level[parent[s]], level[s] + np.int32(1))
    return level, small, most


def _lay_out(first: np.ndarray, last: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, int]:
    """Place what lives from level `first` through level `last`; offsets and the space in all."""
    offset = np.zeros(size.size, np.int64)
    if not size.any():
        return offset, 0
    count = int(last.max()) + 1
    chunk = first.astype(np.int64) * count + last
    if count * count > _DIRECT * chunk.size:
        names, chunk = np.unique(chunk, return_inverse=True)
    else:
        known = np.zeros(count * count, np.bool_)
        known[chunk] = True
        names, chunk = np.flatnonzero(known), (np.cumsum(known) - 1)[chunk]
    lengths = np.zeros(names.size, np.int64)
    _stack(chunk, size, lengths, offset)
    places, total = _first_fit(names // count, names % count, lengths)
    return offset + places[chunk], total


@jit
def _stack(chunk, size, lengths, offset):
    """Place what has the same chunk one after the other in it; lengths begin as zeros."""
    for s in range(chunk.size):
        offset[s] = lengths[chunk[s]]
        lengths[chunk[s]] += size[s]


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
