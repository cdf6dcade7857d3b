"""Launch choices for system.cu, whose threads loop over positions, rows or entries."""

from __future__ import annotations

from ...runtime.limits import Limits
from ..structs import SYSTEM_THREADS

_RESIDENTS, _PROBING_RESIDENTS = 8, 2  # blocks of a multiprocessor; if each outputs numbers
_PLANES = 65535  # largest gridDim.z
_MAX_LANE_ENTRIES = 8  # entries of a row for each thread; longer rows may have more threads
_RESIDENT_THREADS = 1 << 18  # threads that run at once on a large GPU
_WARP = 32


def system_blocks(work: int, limits: Limits) -> int:
    """Return the blocks for `work` threads, or fewer blocks whose threads loop."""
    return max(1, min(-(-work // SYSTEM_THREADS), _RESIDENTS * limits.multiprocessors))


def planes(count: int) -> int:
    """Return the planes of blocks for `count` systems; beyond the limit of a grid planes loop."""
    return max(1, min(count, _PLANES))


def probing_blocks(n: int, limits: Limits) -> int:
    """Return the blocks for n rows if each block outputs numbers to combine: few blocks."""
    return max(1, min(-(-n // SYSTEM_THREADS), _PROBING_RESIDENTS * limits.multiprocessors))


def row_lanes(n: int, mean: int, longest: int) -> int:
    """Return the threads that read a row together, by the mean and largest entries of n rows.

    If there are twice as many, the longest row takes fewer steps, and all rows together take more.
    The result determines the order of sums, and is the same for all devices.
    """
    lanes = 1 << min(max(mean.bit_length() - 1, 0), 5)
    while lanes < _WARP and longest > _MAX_LANE_ENTRIES * lanes:
        if longest / (2 * lanes) <= n * lanes / _RESIDENT_THREADS:
            break
        lanes *= 2
    return lanes
