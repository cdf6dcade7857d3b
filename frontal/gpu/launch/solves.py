"""Forward and backward substitution over the fronts of an assembly tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .limits import Limits

_TILE, _WARPS, _SMALL_LD = 64, 8, 132  # device/front_solve.cuh


@dataclass(frozen=True)
class SolvePlan:
    """Right-hand sides solved together, blocks that a multiprocessor holds, their shared memory."""

    width: int
    residents: int
    shared: int


def front_solve(dtype: Any, width: int, limits: Limits) -> SolvePlan:
    """Choose the launch of both sweeps for `width` right-hand sides or more."""
    size = np.dtype(dtype).itemsize
    width = min(1 << max(width - 1, 0).bit_length(), 8 if size < 16 else 4)
    tile = (_WARPS + 4) * _TILE * width + _TILE * (_TILE + 1)
    shared = max(tile, _WARPS * _SMALL_LD * width) * size
    residents = 3 if size * width <= 8 else 2
    fit = limits.shared_multiprocessor // (shared + 2560)  # with what the kernel declares itself
    return SolvePlan(width, max(min(residents, fit), 1), shared)
