"""Launch choices for forward and backward substitution over the fronts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from ...runtime.limits import Limits
from ..structs import FRONT_TILE, PROBES, SMALL_LD, SOLVE_WARPS

_STATIC_SHARED = 2560  # bytes of static shared memory of a kernel, and of CUDA

PROBING_WIDTH = 1 + PROBES  # right-hand sides of sweeps with the probes of condition.cu


@dataclass(frozen=True)
class SolvePlan:
    """Launch of the kernels of a sweep."""

    width: int  # right-hand sides solved together
    ahead: int  # sets of entries of the factor that a thread prefetches
    # blocks of a multiprocessor, their threads, and bytes of their shared memory
    residents: int
    threads: int
    shared: int
    blocks: int  # blocks that the device holds
    # inverses of tiles are read from global memory, because shared memory is too small
    in_place: bool = False
    team: int = 1  # warps for each system of a batch

    @property
    def constants(self) -> dict[str, int]:
        """Constants of the kernels."""
        constants = {"WIDTH": self.width, "AHEAD": self.ahead, "RESIDENTS": self.residents}
        constants |= {"IN_PLACE": 1} if self.in_place else {}
        return constants | ({"TEAM": self.team} if self.team > 1 else {})

    @property
    def teams(self) -> int:
        """Systems of a batch that a block processes at a time."""
        return self.threads // (32 * self.team)


def solve_width(dtype: npt.DTypeLike, width: int) -> int:
    """Return the number of right-hand sides solved together, given `width` or more."""
    return min(1 << max(width - 1, 0).bit_length(), 8 if np.dtype(dtype).itemsize < 16 else 4)


@cache
def front_solve(dtype: npt.DTypeLike, width: int, limits: Limits) -> SolvePlan:
    """Choose the launch for fronts that are not small, with `width` right-hand sides together."""
    size = np.dtype(dtype).itemsize
    vectors, inverse = (SOLVE_WARPS + 4) * FRONT_TILE * width, FRONT_TILE * (FRONT_TILE + 1)
    in_place = (vectors + inverse) * size + _STATIC_SHARED > limits.shared_block
    shared = (vectors if in_place else vectors + inverse) * size
    registers = size * width <= 16 and size < 16 and limits.capability < (10, 0)
    ahead = 2 if registers else 1  # sets of entries in registers
    return replace(_plan(width, ahead, 2, shared, limits), in_place=in_place)


@cache
def front_solve_small(dtype: npt.DTypeLike, width: int, limits: Limits) -> SolvePlan:
    """Choose the launch for small fronts, with `width` right-hand sides together."""
    size = np.dtype(dtype).itemsize
    warps, each = SOLVE_WARPS, SMALL_LD * width * size
    while warps > 1 and warps * each + _STATIC_SHARED > limits.shared_block:
        warps //= 2
    residents = 4 if size * width <= 8 else 3 if size * width <= 16 else 2
    return replace(_plan(width, 1, residents, warps * each, limits), threads=32 * warps)


def front_trees(
    dtype: npt.DTypeLike, width: int, n: int, limits: Limits, team: int = 1, rows: int = 0
) -> SolvePlan | None:
    """Choose the launch for systems of order n with only small fronts, a team for each.

    None if a vector does not fit in shared memory. `team` and `rows` are those of `trees_ld`.
    """
    size, room = np.dtype(dtype).itemsize, limits.shared_block - _STATIC_SHARED
    ld, width = trees_ld(n, team, rows) + team * SMALL_LD, solve_width(dtype, width)
    most = SOLVE_WARPS if team == 1 else 1  # systems of a block
    while (teams := room // (ld * width * size)) < most and width > 1:
        width //= 2
    if not teams:
        return None
    teams = min(teams, most)
    registers = (9, 0) <= limits.capability < (10, 0)  # others need more registers
    residents = 1 if size > 8 and width > 1 else 3 if size * width <= 8 and registers else 2
    if team > 1:
        residents = residents * SOLVE_WARPS // team
    plan = _plan(width, 1, residents, teams * ld * width * size, limits)
    return replace(plan, threads=32 * teams * team, team=team)


def trees_ld(n: int, team: int, rows: int) -> int:
    """Return the distance of vectors of order n in shared memory.

    It is even, so that parts of a warp are aligned. Each warp of a `team` except the first has
    additional `rows`.
    """
    used = n + (team - 1) * rows
    return used + used % 2


def front_places(tiles: int) -> tuple[int, int]:
    """Return blocks and threads of front_places: a warp for each tile of pivots."""
    return -(-tiles // SOLVE_WARPS), 32 * SOLVE_WARPS


def _plan(width: int, ahead: int, most: int, shared: int, limits: Limits) -> SolvePlan:
    """Return the plan with `most` blocks per multiprocessor, or as many as fit in shared memory."""
    residents = max(min(most, limits.shared_multiprocessor // (shared + _STATIC_SHARED)), 1)
    blocks = residents * limits.multiprocessors
    return SolvePlan(width, ahead, residents, 32 * SOLVE_WARPS, shared, blocks)
