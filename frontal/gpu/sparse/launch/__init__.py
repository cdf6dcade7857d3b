"""Launch choices for fronts: pure functions of sizes, scalar type and the device's limits."""

# ruff: noqa: F401
from __future__ import annotations

from .fronts import TilesPlan, front_pivots, front_rows, front_tiles
from .small_fronts import (
    FEWEST_BLOCKS,
    SmallLaunch,
    small_chains,
    small_fronts,
    small_order,
    small_tile,
)
from .solves import (
    PROBING_WIDTH,
    SolvePlan,
    front_places,
    front_solve,
    front_solve_small,
    front_trees,
    solve_width,
    trees_ld,
)
from .system import SYSTEM_THREADS, planes, probing_blocks, row_lanes, system_blocks
