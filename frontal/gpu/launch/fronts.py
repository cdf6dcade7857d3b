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


def front_tiles(dtype: Any, limits: Limits) -> TilesPlan:
    """Choose the launch of front_tiles.cu: slices or two tiles, and the assembled tile."""
    dtype = np.dtype(dtype)
    product = Tile(0, 64, 64, 8 if dtype.char == "D" else 16, 3)
    tile = 64 * block_ld(dtype, 64) * dtype.itemsize
    shared = max(product.shared(dtype), 2 * tile + 64 * dtype.itemsize) + tile
    most = 1 if dtype.char == "D" else 2
    fit = limits.shared_multiprocessor // (shared + 5120)  # with what the kernel declares itself
    return TilesPlan(max(min(most, fit), 1), shared)
