"""Launch choices for system.cu, whose threads loop over positions, rows or entries."""

from __future__ import annotations

from ...runtime.limits import Limits
from ..structs import SYSTEM_THREADS

_RESIDENTS, _PROBING_RESIDENTS = 8, 2  # blocks of a multiprocessor; if each outputs numbers
_PLANES = 65535  # largest gridDim.z
_MAX_LANE_ENTRIES = 512  # entries of a row for each thread; for longer rows a team is a warp


def system_blocks(work: int, limits: Limits) -> int:
    """Return the blocks for `work` threads, or fewer blocks whose threads loop."""
    return max(1, min(-(-work // SYSTEM_THREADS), _RESIDENTS * limits.multiprocessors))


def planes(count: int) -> int:
    """Return the planes of blocks for `count` systems; beyond the limit of a grid planes loop."""
    return max(1, min(count, _PLANES))


def probing_blocks(n: int, limits: Limits) -> int:
    """Return the blocks for n rows if each block outputs numbers to combine: few blocks."""
    return max(1, min(-(-n // SYSTEM_THREADS), _PROBING_RESIDENTS * limits.multiprocessors))


def row_lanes(mean: int, longest: int) -> int:
    """Return the threads that read a row together, by mean and largest entries of rows."""
    lanes = 1 << min(max(mean.bit_length() - 1, 0), 5)
    return 32 if longest > _MAX_LANE_ENTRIES * lanes else lanes
