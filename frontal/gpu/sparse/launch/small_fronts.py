"""Launch choices for the kernels that factorize small fronts: of a level, or of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from ....numeric.method import Method
from ...dense.launch.cholesky import block_ld
from ...runtime.limits import Limits
from ..structs import SMALL_CHILDREN, SMALL_FRONT, SMALL_PANEL, SMALL_THREADS

FEWEST_BLOCKS = 32  # least number of blocks of a level that justifies a launch for its small fronts
_PANEL, _CHILDREN, _FRONT = SMALL_PANEL, SMALL_CHILDREN, SMALL_FRONT.dtype.itemsize
_RESIDENTS = 8  # blocks that registers allow on a multiprocessor
_CHAIN_RESIDENTS = 4  # the same for a block of front_chains.cu
_STATIC_SHARED = 1024  # bytes of shared memory that CUDA reserves


@dataclass(frozen=True)
class SmallLaunch:
    """A launch of front_small.cu for a range of fronts in the list of a level."""

    first: int  # index of its first front
    counts: tuple[int, int, int]  # fronts of up to 64, 32 and 16 rows
    # grid, threads of a block, and bytes of their shared memory
    blocks: int
    threads: int
    shared: int


def small_tile(dtype: npt.DTypeLike, method: Method, order: int) -> int:
    """Return the bytes of shared memory of a front of up to `order` rows (SmallTile)."""
    dtype = np.dtype(dtype)
    folds = order // _PANEL  # block columns, stored in pairs for Cholesky
    ld, warps = block_ld(dtype, order), max(order // 32, 1)
    folded = method.square_root
    if folded and folds > 1:
        folds, ld = folds // 2, ld + _PANEL
    real = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    scales = order * (real if folded else dtype.itemsize)
    elements = folds * _PANEL * ld + 2 * warps * _PANEL
    size = elements * dtype.itemsize + scales + _FRONT + 2 * warps * 16 + 3 * _CHILDREN * order
    return -(-size // 16) * 16


@cache
def small_order(method: Method, limits: Limits) -> int:
    """Return the rows of the largest fronts that fit in a block, for all scalar types."""
    return next(
        order
        for order in (64, 32, 16)
        if order == 16
        or small_tile(np.complex128, method, order) * (SMALL_THREADS // order) + _STATIC_SHARED
        <= limits.shared_block
    )


def small_fronts(
    dtype: npt.DTypeLike, method: Method, counts: tuple[int, int, int], limits: Limits
) -> list[SmallLaunch]:
    """Choose the launches of a level with `counts` fronts of up to 64, 32 and 16 rows.

    One launch if possible, so that few blocks wait for the last; two if the shared memory of large
    fronts would leave too few warps for many other fronts.
    """
    large, medium, small = counts
    others = -(-medium // 2) + -(-small // 4)
    residents = limits.shared_multiprocessor // (small_tile(dtype, method, 64) + _STATIC_SHARED)
    rounds = others / (max(residents, 1) * limits.multiprocessors)
    split = large and residents < _RESIDENTS and rounds > 4
    parts = [(large, 0, 0), (0, medium, small)] if split else [counts]
    out, first = [], 0
    for group in parts:
        shared = max(
            small_tile(dtype, method, order) * (SMALL_THREADS // order)
            for order, count in zip((64, 32, 16), group, strict=True)
            if count or not any(group)
        )
        blocks = group[0] + -(-group[1] // 2) + -(-group[2] // 4)
        if blocks:
            out.append(SmallLaunch(first, group, blocks, SMALL_THREADS, shared))
        first += sum(group)
    return out


def small_chains(
    dtype: npt.DTypeLike, method: Method, counts: Sequence[tuple[int, int, int]], limits: Limits
) -> tuple[int, int, int]:
    """Return blocks, threads of a block and bytes of its shared memory for levels in one launch.

    `counts` are those of `small_fronts` for each level. While half of the blocks compute a level,
    the others prepare the next one. More blocks would each fetch the instructions anew.
    """
    order = 64 if any(large for large, *_ in counts) else 32
    shared = small_tile(dtype, method, order)
    residents = min(limits.shared_multiprocessor // (shared + _STATIC_SHARED), _CHAIN_RESIDENTS)
    widest, total = max(map(sum, counts)), sum(map(sum, counts))
    return min(2 * widest, total, residents * limits.multiprocessors), SMALL_THREADS, shared
