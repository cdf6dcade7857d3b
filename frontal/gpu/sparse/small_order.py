"""The order in which kernels take small fronts: by level, by rows, and the largest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .schedule import Schedule

_ORDERS = (64, 32, 16)  # rows of fronts of each class


class SmallFronts(NamedTuple):
    """The small fronts of a schedule, by level and class, the largest first.

    Attributes
    ----------
    fronts : (s,) int64 array
    first : list of int
        Where each level begins among them.
    counts : list of tuple of int
        Fronts of each level with up to 64, 32 and 16 rows.
    """

    fronts: np.ndarray
    first: list[int]
    counts: list[tuple[int, int, int]]


def small_fronts(schedule: Schedule, k: np.ndarray, m: np.ndarray) -> SmallFronts:
    """Put the small fronts in order.

    Parameters
    ----------
    k, m : (f,) int64 arrays
        Pivot columns and update rows of all fronts.
    """
    fronts = np.flatnonzero(schedule.small)
    k, m, level = k[fronts], m[fronts], schedule.level[fronts]
    kind = np.searchsorted([-rows for rows in _ORDERS], -(k + m), side="right") - 1
    order = np.lexsort((-k * (k + m) ** 2, kind, level))
    group = level.astype(np.int64) * len(_ORDERS) + kind
    shape = schedule.small_levels, len(_ORDERS)
    counts = np.bincount(group, minlength=shape[0] * shape[1]).reshape(shape)
    return SmallFronts(
        fronts[order],
        [0, *np.cumsum(counts.sum(axis=1)).tolist()],
        [(large, medium, few) for large, medium, few in counts.tolist()],
    )
