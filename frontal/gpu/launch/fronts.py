"""Kernels that work through the fronts of an assembly tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .cholesky import block_ld
from .limits import Limits
from .products import Tile


@dataclass(frozen=True)
class TilesPlan:
    """Blocks of front_tiles.cu that a multiprocessor holds, and their shared memory."""

    residents: int
    shared: int


def front_tiles(dtype: Any, symmetric: bool, limits: Limits) -> TilesPlan:
    """Choose the launch of front_tiles.cu: slices or a tile, the assembled tile, and scratch.

    LU takes another tile, for the inverse of U.
    """
    dtype = np.dtype(dtype)
    along = not symmetric and dtype.char in "dD"
    slices = Tile(0, 64, 64, 8, 4).elements(dtype, (False, along))
    tile = 64 * block_ld(dtype, 64)
    scratch = 64
    if not symmetric:  # reciprocals, that tile, and LuTile
        scratch += 64 + tile + -(-(512 + 16 * dtype.itemsize + 16) // dtype.itemsize)
    shared = (max(slices, tile) + tile + scratch) * dtype.itemsize
    most = 1 if dtype.char == "D" else 3 if symmetric else 2
    fit = limits.shared_multiprocessor // (shared + 2816)  # with what the kernel declares itself
    return TilesPlan(max(min(most, fit), 1), shared)
