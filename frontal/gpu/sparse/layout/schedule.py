"""The time at which each front is factorized.

A level holds the fronts whose children are all in lower levels (as soon as possible). Small fronts
are factorized level by level; the tiles of all others are tasks, sorted by level and by groups of
fronts whose columns take turns. Groups with a few hundred tasks form an epoch: a task that reuses
memory waits for whole epochs (offsets.py). Levels with many small fronts have a launch each; the
small fronts above them share one launch, in which parents wait for children, if the tree of the
other fronts becomes lower by as many levels. Otherwise they are tiles like the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....compile.jit import jit
from ....numeric.method import Method
from ....symbolic.plan import Plan
from ..structs import FRONT_TILE as TILE

_GROUP = 512  # tiles of rows in a group of fronts whose columns take turns
_MIN_SOLO_TILES = 64  # tiles of rows from which on a single front keeps a device busy
_DEPTHS = 2, 3  # levels from the roots down in which such fronts may be factorized one by one
_MAX_MEMORY_RATIO = 0.97  # largest ratio of the memory with raised levels to that without
_MAX_SOLO_FRONTS = 16  # fronts, at most, to be raised: a forest of many systems keeps its levels
_EPOCH = 256  # tasks of an epoch, about
# Levels in a shared launch for each level of tiles that it saves. With pivots a small front takes
# longer than its share of a level of tiles: 18 to 45 us on an H200, Cholesky 6.
_MAX_CHAINED_LEVELS, _MAX_CHAINED_WITH_PIVOTS = 1, 0
_MIN_SAVED_LEVELS = 16  # least number of saved levels for which that is worth a launch
_MAX_CHAINED_ENTRIES = 1 << 20  # entries of their contribution blocks, which live together
_MAX_FOLLOWED_FRONTS = 512  # fronts of a level up to which the last diagonal tiles are followed too


@dataclass(frozen=True)
class Schedule:
    """Fronts by level, and the times at which they are factorized."""

    # (f,) bool: fronts that are factorized in one piece, with all their descendants
    small: np.ndarray
    level: np.ndarray  # (f,) int32: level of each front; small fronts come before all others
    small_levels: int  # levels of small fronts
    # launches of small fronts: one for each level, the last one for its own level and all above
    launches: int
    tiled: np.ndarray  # (t,) int64: fronts that are not small, by level and the largest first
    group: np.ndarray  # (t,) int64: group of each front in `tiled`
    # (f,) int32: time of each front: the launch of small ones, then epochs of the others
    time: np.ndarray

    @property
    def levels(self) -> int:
        """Number of levels."""
        return int(self.level.max(initial=-1)) + 1

    @property
    def chained(self) -> bool:
        """Return whether several levels share a launch."""
        return self.launches < self.small_levels

    @property
    def epochs(self) -> int:
        """Number of epochs of fronts that are not small."""
        return max(int(self.time.max(initial=-1)) + 1 - self.launches, 0)


def make_schedule(plan: Plan, method: Method, order: int = 0, fewest: int = 1) -> Schedule:
    """Compute the levels of an assembly tree.

    Parameters
    ----------
    plan : Plan
    method : Method
        With one triangle, only the lower half of contribution blocks is stored.
    order : int
        Largest number of rows of a small front, whose descendants must also be small.
    fewest : int
        From the first level with fewer small fronts on, all levels share one launch, or no fronts
        are small.

    Examples
    --------
    >>> import frontal
    >>> from frontal.numeric.method import CHOLESKY
    >>> from frontal.problems import poisson2d
    >>> plan = frontal.analyze(poisson2d(30)).plan
    >>> schedule = make_schedule(plan, CHOLESKY, 16)
    >>> bool((schedule.level[schedule.small] < schedule.small_levels).all())
    True
    """
    k, m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
    level, small, small_levels = _levels(plan.parent, k + m <= order)
    thin = np.flatnonzero(np.bincount(level[small], minlength=small_levels) < fewest)
    launches = small_levels
    if thin.size:  # deep trees have no launch for each level
        first = int(thin[0])
        cut = _levels(plan.parent, small & (level < first))
        saved = int(cut[0].max()) - cut[2] - int(level.max()) + small_levels
        blocks = contribution_entries(m[small & (level >= first)], method).sum()
        cholesky = method.square_root
        ratio = _MAX_CHAINED_LEVELS if cholesky else _MAX_CHAINED_WITH_PIVOTS
        lower = saved >= _MIN_SAVED_LEVELS and small_levels - first <= ratio * saved
        if lower and blocks <= _MAX_CHAINED_ENTRIES:
            launches = first + 1
        else:
            level, small, small_levels = cut
            launches = small_levels
    level = _staggered(plan.parent, level, small, k, m, method)
    return _scheduled(k, m, method, small, level, (int(small_levels), int(launches)))


def by_segments(
    schedule: Schedule, k: np.ndarray, m: np.ndarray, method: Method, segment: np.ndarray
) -> Schedule:
    """Return the schedule with separate levels for each segment; levels of small fronts come first.

    Each of these levels has a launch. `segment` (f,) has the segment of each front; a child's is
    not after its parent's.
    """
    small, segment, segments = schedule.small, segment.astype(np.int64), int(segment.max()) + 1
    levels, rest = schedule.small_levels, schedule.levels - schedule.small_levels
    tiled_level = levels * segments + rest * segment + schedule.level - levels
    level = np.where(small, levels * segment + schedule.level, tiled_level).astype(np.int32)
    small_levels = levels * segments, levels * segments
    return _scheduled(k, m, method, small, level, small_levels, segment)


def _scheduled(
    k: np.ndarray,
    m: np.ndarray,
    method: Method,
    small: np.ndarray,
    level: np.ndarray,
    small_levels: tuple[int, int],
    segment: np.ndarray | None = None,
) -> Schedule:
    """Return the schedule of fronts by level; `small_levels` are those levels, and launches."""
    tiled = np.flatnonzero(~small)
    tiled = tiled[np.lexsort((-k[tiled] * (k[tiled] + m[tiled]) ** 2, level[tiled]))]
    tiles = -(-k[tiled] // TILE) - (-m[tiled] // TILE)
    group = (np.cumsum(tiles) - tiles) // _GROUP
    launches = small_levels[1]
    time = np.minimum(level, max(launches - 1, 0))
    tasks = tiles * (tiles + 1) // 2 if method.one_triangle else tiles**2
    tiled_segment = np.zeros_like(group) if segment is None else segment[tiled]
    time[tiled] = launches + _epochs(level[tiled], group, tiled_segment, tasks)
    return Schedule(small, level, *small_levels, tiled, group, time)


def _epochs(
    level: np.ndarray, group: np.ndarray, segment: np.ndarray, tasks: np.ndarray
) -> np.ndarray:
    """Return the epoch of each front, in order: whole groups of one level, about _EPOCH tasks.

    Each segment begins with a new epoch.
    """
    begins = (np.diff(level, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0)
    before = np.maximum.accumulate(np.where(begins, np.cumsum(tasks) - tasks, 0))
    new_segment = np.diff(segment, prepend=segment[:1]) != 0
    return np.cumsum((np.diff(before // _EPOCH, prepend=0) != 0) | new_segment)


def by_time(time: np.ndarray) -> np.ndarray:
    """Return the fronts in the order of their times."""
    return np.argsort(time, kind="stable")


def contribution_entries(m: np.ndarray, method: Method) -> np.ndarray:
    """Return the entries of contribution blocks of orders m, as sparse/front.cuh lays them out."""
    if not method.one_triangle:
        return m * m
    full_tiles = m // TILE
    rest = m - full_tiles * TILE
    return TILE * full_tiles * m - TILE * TILE * full_tiles * (full_tiles - 1) // 2 + rest * rest


def followed_tiles(schedule: Schedule, k: np.ndarray, m: np.ndarray) -> np.ndarray:
    """Return the number of diagonal tiles of each front whose columns other tasks follow.

    They are all diagonal tiles that other diagonal tiles wait for; and on levels with few fronts
    also the last one, which update rows wait for. On levels with many fronts, clearing its messages
    costs more than their earlier arrival saves.
    """
    fronts = np.bincount(schedule.level[~schedule.small], minlength=schedule.levels)
    last = (fronts[schedule.level] < _MAX_FOLLOWED_FRONTS) & (m > 0)
    return np.where(schedule.small, 0, np.maximum(-(-k // TILE) - ~last, 0))


def message_entries(tiles: np.ndarray, method: Method) -> np.ndarray:
    """Return the entries of the messages of diagonal tiles; see sparse/front_tiles.cu."""
    return tiles * TILE * (method.panels * TILE + (TILE // 16 if method.indefinite else 0))


def _staggered(
    parent: np.ndarray,
    level: np.ndarray,
    small: np.ndarray,
    k: np.ndarray,
    m: np.ndarray,
    method: Method,
) -> np.ndarray:
    """Return levels in which large fronts at the top are raised if that saves memory.

    There is least room for contribution blocks when most panels are written: then few blocks should
    be alive together. Not for L D L^H, in which consecutive fronts would wait for diagonal tiles.
    """
    large = ~small & (k + m > TILE * (_MIN_SOLO_TILES - 1))
    if method.indefinite or not large.any():
        return level
    panels = k * (k + 1) // 2 + k * m if method.one_triangle else k * (k + 2 * m)
    blocks = contribution_entries(m, method)
    best, least = level, _needed(level, parent, panels, blocks)
    for depth in _DEPTHS:
        trial, raised = _one_by_one(parent, level, large, depth)
        needed = _needed(trial, parent, panels, blocks)
        if raised <= _MAX_SOLO_FRONTS and needed < _MAX_MEMORY_RATIO * least:
            best, least = trial, needed
    return best


def _needed(level: np.ndarray, parent: np.ndarray, panels: np.ndarray, blocks: np.ndarray) -> float:
    """Return the largest number of entries of written panels and live blocks over all levels."""
    dies, levels = np.where(parent >= 0, level[parent], level), int(level.max()) + 2
    written, born = (np.bincount(level, x, levels) for x in (panels, blocks))
    gone = np.bincount(dies + 1, blocks, levels)
    return float(np.cumsum(written + born - gone).max())


@jit
def _one_by_one(parent, level, large, top):
    """Return levels with one large front each near the roots, and the number of these fronts.

    They are the large fronts of the `top` levels from the roots down. Other fronts keep their
    levels; children still come before their parents.
    """
    depth = np.zeros(parent.size, np.int32)
    for s in range(parent.size - 1, -1, -1):
        if parent[s] >= 0:
            depth[s] = depth[parent[s]] + 1
    most = np.int32(-1)
    for s in range(parent.size):
        if depth[s] >= top or not large[s]:
            most = max(most, level[s])
    new_level, raised = level.copy(), 0
    for s in range(parent.size):
        if depth[s] < top and large[s]:
            raised += 1
            most = max(most + np.int32(1), new_level[s])
            new_level[s] = most
        if parent[s] >= 0:
            new_level[parent[s]] = max(new_level[parent[s]], new_level[s] + np.int32(1))
    return new_level, raised


@jit
def _levels(parent, fits):
    """Return heights over leaves, which fronts fit with all descendants, and levels of these."""
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
