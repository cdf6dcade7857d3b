"""Launch choices for the kernels of fronts as tasks of tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ....numeric.method import Method
from ...dense.launch.cholesky import block_ld
from ...dense.launch.products import Tile
from ...runtime.limits import Limits
from ..structs import FRONT_TILE, TILE_THREADS

_STATIC_SHARED = 2816  # bytes of static shared memory of the kernel, and of CUDA


@dataclass(frozen=True)
class TilesPlan:
    """Launch of front_tiles.cu."""

    # blocks of a multiprocessor, their threads, and bytes of their shared memory
    residents: int
    threads: int
    shared: int
    blocks: int  # blocks that the device holds
    two_inverses: bool  # LU: shared memory holds both inverses of a diagonal tile at once
    # number of parts of a block's memory in global memory, and their elements
    outside: int = 0
    workspace: int = 0

    @property
    def constants(self) -> dict[str, int]:
        """Constants of the kernel."""
        return {"OUTSIDE": self.outside} if self.outside else {}


@cache
def front_tiles(dtype: npt.DTypeLike, method: Method, limits: Limits) -> TilesPlan:
    """Choose the launch of front_tiles.cu: slices or a tile, the assembled tile, and scratch.

    LU uses another tile, for the inverse of U, if the number of resident blocks stays the same. If
    shared memory is too small, the assembled tile lies in global memory, or all parts except the
    scratch.
    """
    dtype = np.dtype(dtype)
    along = not method.one_triangle and dtype.char in "dD"
    slices = Tile(0, FRONT_TILE, FRONT_TILE, 8, 4).elements(dtype, (False, along))
    tile = FRONT_TILE * block_ld(dtype, FRONT_TILE)
    scratch = 64
    lu = 512 + 16 * dtype.itemsize + 16  # LuTile
    if not method.one_triangle:  # includes reciprocals
        scratch += 64 + -(-lu // dtype.itemsize)
    elif method.unit:  # LdlTile, or inverses of pivots
        ldl = 128 + -(-(3 * 256 + 96) // dtype.itemsize)  # LdlTile and ones
        inverses = 64 * (2 * dtype.itemsize + max(dtype.itemsize, 4))
        scratch += max(ldl, -(-inverses // dtype.itemsize))
    most = 1 if dtype.char == "D" else 3 if method.one_triangle else 2
    work = max(slices, tile)

    def plan(elements: int, outside: int = 0, workspace: int = 0, two: bool = False) -> TilesPlan:
        shared = (elements + scratch) * dtype.itemsize
        residents = max(min(most, limits.shared_multiprocessor // (shared + _STATIC_SHARED)), 1)
        blocks = residents * limits.multiprocessors
        return TilesPlan(residents, TILE_THREADS, shared, blocks, two, outside, workspace)

    plans = plan(work + tile), plan(work, 1, tile), plan(0, 2, work + tile)
    single = next(
        p for p in plans if p.outside == 2 or p.shared + _STATIC_SHARED <= limits.shared_block
    )
    two = plan(work + 2 * tile, two=True)
    wanted = not method.one_triangle and not single.outside and two.residents == single.residents
    return two if wanted and two.shared + _STATIC_SHARED <= limits.shared_block else single


def front_rows(pieces: int) -> tuple[int, int]:
    """Return blocks and threads of front_rows: a block for each piece of `left_of_diagonals`."""
    return pieces, TILE_THREADS


def front_pivots(pieces: int) -> tuple[int, int]:
    """Return blocks and threads of front_pivots, for the same list."""
    return pieces, FRONT_TILE
