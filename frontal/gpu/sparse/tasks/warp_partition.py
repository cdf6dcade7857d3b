"""Partition of a system's fronts among the warps of a team: subtrees; the first has the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....symbolic.subtrees import split_subtrees
from ..layout.schedule import TILE


class WarpPartition(NamedTuple):
    """Fronts of each warp; index arrays are of int32."""

    # steps on the critical path: most steps of a warp plus those of the fronts above subtrees. Each
    # step takes about the same time.
    steps: int
    # (f,): fronts of each warp, children first, and then those above all subtrees
    order: np.ndarray
    # (team + 2,): start of each of these ranges in `order`, and the end of the last
    begins: np.ndarray
    top: np.ndarray  # (t,): pivot rows of the fronts above
    # (updates,): update rows; for all warps except the first, rows in `top` have separate places
    # behind the vector
    up: np.ndarray


def warp_partition(
    parent: np.ndarray, start: np.ndarray, pointer: np.ndarray, rows: np.ndarray, team: int
) -> WarpPartition:
    """Divide the fronts of a system among the warps of a team.

    Parameters
    ----------
    parent, start, pointer, rows : arrays
        See `Plan`, of that system.

    Examples
    --------
    >>> parent, start = np.array([2, 2, -1]), np.array([0, 1, 2, 3])
    >>> warp_partition(parent, start, np.array([0, 1, 2, 2]), np.array([2, 2]), 2).up
    array([2, 3], dtype=int32)
    """
    k, m = np.diff(start), np.diff(pointer)
    steps = -(-k // 8) * (1 - (-m // TILE))  # of a sweep; see front_trees.cu
    owner = np.zeros(k.size, np.int32)
    if team > 1:
        low, root, above = split_subtrees(parent, steps.astype(np.float64), team)
        before, load = np.append(0, np.cumsum(steps)), np.zeros(team, np.int64)
        for first, last in zip(low.tolist(), (root + 1).tolist(), strict=True):  # heaviest first
            warp = int(load.argmin())
            owner[first:last] = warp
            load[warp] += before[last] - before[first]
        owner[above] = team
    order = np.argsort(owner, kind="stable").astype(np.int32)
    begins = np.searchsorted(owner[order], np.arange(team + 2)).astype(np.int32)
    front = np.repeat(np.arange(k.size), k)
    top = np.flatnonzero(owner[front] == team)
    place = np.full(front.size, -1)
    place[top] = np.arange(top.size)
    warp, up = np.repeat(owner, m), rows.astype(np.int32)
    private = (warp > 0) & (warp < team) & (place[rows] >= 0)
    up[private] = front.size + (warp[private] - 1) * top.size + place[rows[private]]
    taken = np.bincount(owner, steps, team + 1).astype(np.int64)
    return WarpPartition(
        int(taken[:team].max() + taken[team]), order, begins, top.astype(np.int32), up
    )
