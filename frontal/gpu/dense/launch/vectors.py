"""Launches of gemv: blocks and tiles."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...runtime.limits import Limits, power_of_two


@dataclass(frozen=True)
class GemvTuning:
    """Chip-dependent numbers of gemv."""

    threads: int = field(default=256, metadata={"choices": (128, 192, 256)})  # a block
    crossover: int = 256 << 10  # bytes of a matrix above which it is tiled
    tile: int = 256 << 10  # bytes of a tile of such a matrix
    warp: int = 8 << 10  # bytes of a matrix up to which one warp processes it
    waves: int = 4  # least blocks a multiprocessor; with fewer, sums are split
    unroll: int = field(default=4, metadata={"choices": (2, 4, 8)})  # reads in flight a thread


@dataclass(frozen=True)
class GemvPlan:
    """Blocks of x×y×z threads, z teams; a team processes a tile_m×tile_n tile of a matrix."""

    x: int
    y: int
    z: int
    tile_m: int
    tile_n: int
    unroll: int
    shared: int
    sum_threads: int = 128  # a block that adds the partial sums of a tile


def gemv(
    trans: bool,
    rows: int,
    columns: int,
    item: int,
    count: int,
    limits: Limits,
    numbers: GemvTuning,
    variant: str | None = None,
) -> GemvPlan:
    """Choose the launch for `count` matrices of about rows×columns entries of `item` bytes.

    Parameters
    ----------
    variant : {"big-tile", "classic"}, optional
        One team a matrix, or several tiles a matrix; default: chosen by size.
    """
    vector, size = max(16 // item, 1), rows * columns * item
    if variant is None:
        variant = "big-tile" if size <= numbers.crossover else "classic"
    unroll = 1 if columns <= 16 else numbers.unroll
    unlimited = 1 << 30
    tile_m, tile_n = unlimited, unlimited
    if variant == "classic":
        tile_m, tile_n = _gemv_tile(trans, rows, columns, item, count, limits, numbers)
    threads = 32 if size <= numbers.warp and variant == "big-tile" else numbers.threads
    x, y = _gemv_block(trans, min(rows, tile_m), min(columns, tile_n), vector, unroll, threads)
    z = 4 if threads == 32 else 1
    return GemvPlan(x, y, z, tile_m, tile_n, unroll, 0 if trans or y == 1 else 16 * x * y * z)


def _gemv_block(
    trans: bool, rows: int, columns: int, vector: int, unroll: int, threads: int
) -> tuple[int, int]:
    """Return lanes along the rows, and groups of lanes over the columns; whole warps in all."""
    vectors = max(-(-rows // vector), 1)
    if trans:  # several vectors of a column a lane, to amortize its ends
        x = min(max(power_of_two(-(-vectors // 4)), 4, unroll), 32)
        needed = max(32, x * -(-columns // unroll))
        return x, max(min(threads, -(-needed // 32) * 32) // 32 * 32 // x, 32 // x)
    if threads == 32 or vectors <= 32:
        x = min(max(power_of_two(vectors), 4), 32)
    else:  # the least number of strips, of about equal length
        strips = -(-vectors // threads)
        x = -(-vectors // strips)
        x = -(-x // 32) * 32
    needed = max(1, -(-columns // unroll))
    return x, max(min(threads // x, needed), -(-32 // x))


def _gemv_tile(
    trans: bool,
    rows: int,
    columns: int,
    item: int,
    count: int,
    limits: Limits,
    numbers: GemvTuning,
) -> tuple[int, int]:
    """Return the sides of a tile: outputs are split first, sums if the device is not filled."""
    outputs, terms = (columns, rows) if trans else (rows, columns)
    step = 32 if trans else 512 // item  # granularity of outputs for coalesced reads
    outputs_tile = max(numbers.tile // (item * max(terms, 1)) // step * step, step)
    min_tiles = numbers.waves * limits.multiprocessors
    if count * -(-outputs // outputs_tile) < min_tiles:
        outputs_tile = max(-(-outputs * count // min_tiles) // step * step, step)
    tiles = count * -(-outputs // outputs_tile)
    splits = min(-(-min_tiles // max(tiles, 1)), -(-terms // 64)) if tiles < min_tiles // 2 else 1
    terms_tile = 1 << 30 if splits <= 1 else -(-terms // splits // 32) * 32
    return (terms_tile, outputs_tile) if trans else (outputs_tile, terms_tile)
