"""Kernels of system.cu, whose threads loop over positions, rows or entries."""

from __future__ import annotations

from ...runtime.limits import Limits
from ..structs import SYSTEM_THREADS

_RESIDENTS, _PROBING_RESIDENTS = (
    8,
    2,
)  # blocks of a multiprocessor, and where each has something to tell
_PLANES = 65535  # of any grid
_MAX_LANE_ENTRIES = 512  # entries for each thread of a team that ask for a larger team


def system_blocks(work: int, limits: Limits) -> int:
    """Blocks for so many threads, or as many as loop over them."""
    return max(1, min(-(-work // SYSTEM_THREADS), _RESIDENTS * limits.multiprocessors))


def planes(count: int) -> int:
    """Planes of blocks for so many systems, which loop over them where a grid has no more."""
    return max(1, min(count, _PLANES))


def probing_blocks(n: int, limits: Limits) -> int:
    """Blocks for n rows that leave numbers which others put together: no more than need be."""
    return max(1, min(-(-n // SYSTEM_THREADS), _PROBING_RESIDENTS * limits.multiprocessors))


def row_lanes(mean: int, longest: int) -> int:
    """Threads that read a row together, by the entries of rows."""
    lanes = 1 << min(max(mean.bit_length() - 1, 0), 5)
    return 32 if longest > _MAX_LANE_ENTRIES * lanes else lanes
