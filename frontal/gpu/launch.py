"""Launch choices: pure functions of sizes, scalar type and the device's limits; no CuPy here.

One section a routine. Each function returns what its host code launches: variant, threads, tiles,
shared bytes. Numbers that depend on the chip come from ``Tuning``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any

import numpy as np

from . import tuned


@dataclass(frozen=True)
class Limits:
    """What a device offers to one kernel."""

    multiprocessors: int
    shared_block: int  # bytes of shared memory that a block can opt in to
    shared_multiprocessor: int  # bytes of shared memory of one multiprocessor
    capability: tuple[int, int]
    registers: int = 65536  # a multiprocessor
    threads: int = 2048  # a multiprocessor

    @classmethod
    def from_properties(cls, properties: dict[str, Any]) -> Limits:
        """Read the limits from ``cudaDeviceProp`` as CuPy returns it."""
        return cls(
            multiprocessors=properties["multiProcessorCount"],
            shared_block=properties["sharedMemPerBlockOptin"],
            shared_multiprocessor=properties["sharedMemPerMultiprocessor"],
            capability=(properties["major"], properties["minor"]),
            registers=properties["regsPerMultiprocessor"],
            threads=properties["maxThreadsPerMultiProcessor"],
        )


H200 = Limits(132, 232448, 233472, (9, 0))


# --- numbers that belong to a chip ---------------------------------------------------------------


@cache
def tuning(routine: str, device_name: str) -> Any:
    """Return the tuning dataclass of a routine, such as ``PotrfTuning`` for "potrf".

    A field is the user's number for this device (``frontal tune``) where there is one, else the
    shipped number, else the dataclass's default.
    """
    kind = globals()[f"{routine.capitalize()}Tuning"]
    found = tuned.numbers(device_name).get(routine, {})
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in found.items()}  # JSON has lists
    return kind(**{f.name: values[f.name] for f in fields(kind) if f.name in values})


# --- products: gemm, herk; trsm ------------------------------------------------------------------


@dataclass(frozen=True)
class Tile:
    """A tile product of ``device/tile.cuh``; several tiles of one warp share a block."""

    index: int  # the constant TILE of gemm.cu and herk.cu
    rows: int
    cols: int
    depth: int  # columns of op(A) in a slice
    stages: int
    warps: int = 4
    per_block: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * self.warps * self.per_block

    def shared(self, dtype: Any) -> int:
        """Bytes of shared memory of a block."""
        dtype = np.dtype(dtype)
        return self.per_block * self.stages * self._slices(dtype) * dtype.itemsize

    def _slices(self, dtype: np.dtype) -> int:
        """Elements of a slice of both operands, in the larger of its two layouts."""
        tensor = dtype.char in "dD"
        pad, along = {"d": (4, 2), "D": (2, 4), "f": (4, 0), "F": (2, 0)}[dtype.char]
        return sum(
            max(self.depth * (size + pad), size * (self.depth + along) if tensor else 0)
            for size in (self.rows, self.cols)
        )


def tiles(dtype: Any) -> tuple[Tile, ...]:
    """Return the tiles of a scalar type: tiny, small, medium, tall, large."""
    char = np.dtype(dtype).char
    tiny = Tile(0, 16, 16, 16, 1, warps=1, per_block=4)
    if char == "D":
        small = Tile(1, 32, 32, 16, 1, warps=1, per_block=4)
        return tiny, small, Tile(2, 64, 32, 8, 3), Tile(3, 64, 64, 8, 3), Tile(4, 64, 64, 8, 3)
    small = Tile(1, 32, 32, 32, 1, warps=1, per_block=4)
    tall = Tile(3, 128, 64, 16, 3)
    large = Tile(4, 128, 128, 16, 4, warps=8) if char == "d" else Tile(4, 128, 64, 16, 3)
    return tiny, small, Tile(2, 64, 64, 16, 3), tall, large


@dataclass(frozen=True)
class GemmTuning:
    """Numbers of gemm that belong to a chip: for each tile the largest side of C."""

    tiny: int = field(default=16, metadata={"choices": (0, 16)})
    small: int = field(default=32, metadata={"choices": (0, 16, 32, 48, 64)})
    medium: int = field(default=160, metadata={"choices": (64, 96, 128, 160, 256, 320, 512)})
    tall: int = field(default=512, metadata={"choices": (0, 256, 320, 512, 768, 1024, 2048)})
    fill: float = field(default=1.5, metadata={"choices": (0.0, 1.0, 1.5, 2.0, 4.0)})
    group: int = field(default=1024, metadata={"choices": (512, 1024, 2048)})


@dataclass(frozen=True)
class HerkTuning(GemmTuning):
    """Numbers of herk that belong to a chip."""


def product_tile(
    m: int, n: int, entries: int, dtype: Any, limits: Limits, numbers: GemmTuning
) -> Tile:
    """Choose the tile for products of at most m×n, of ``entries`` entries in all.

    Tall and large tiles are taken where there are ``fill`` of them for each multiprocessor.
    """
    tiny, small, medium, tall, large = tiles(dtype)
    side = max(m, n)
    if side <= numbers.tiny:
        return tiny
    if side <= numbers.small:
        return small
    filled = entries / (numbers.fill * limits.multiprocessors) if numbers.fill else entries
    fits = large.shared(dtype) <= limits.shared_block
    if side > numbers.tall and filled >= large.rows * large.cols and fits:
        return large
    return tall if side > numbers.medium and filled >= tall.rows * tall.cols else medium


@dataclass(frozen=True)
class TrsmTuning:
    """Numbers of trsm that belong to a chip."""

    fused: int = field(default=256, metadata={"choices": (128, 192, 256, 384, 512)})  # order of A
    narrow: int = field(default=16, metadata={"choices": (0, 8, 16, 32)})  # right-hand sides
    fill: float = field(default=2.0, metadata={"choices": (0.0, 1.0, 2.0, 4.0)})
    inverses: int = field(default=64, metadata={"choices": (0, 32, 64, 128)})  # order of A


@dataclass(frozen=True)
class TrsmPlan:
    """Strips of ``width`` right-hand sides, a block each; A in steps of ``fused`` rows."""

    width: int
    threads: int
    shared: int
    fused: int
    given: bool  # whether a kernel of its own makes the inverses of the diagonal blocks


def trsm(
    order: int,
    right_sides: Any,
    left: bool,
    dtype: Any,
    limits: Limits,
    numbers: TrsmTuning,
    width: int | None = None,
    given: bool = False,
) -> TrsmPlan:
    """Choose the launch for A of at most this order and these right-hand sides of each matrix.

    Parameters
    ----------
    width : int, optional
        As the caller wants it.
    given : bool
        The inverses are there already.
    """
    enough, widest = numbers.fill * limits.multiprocessors, int(max(right_sides, default=0))
    if width is None:
        width = 16 if widest <= numbers.narrow else 64
        while width > 16 and int((-(-right_sides // width)).sum()) < enough:
            width //= 2
    given = given or order > numbers.inverses
    threads, shared = _trsm_block(width, left, np.dtype(dtype), given)
    return TrsmPlan(width, threads, shared, numbers.fused, given)


def _trsm_block(width: int, left: bool, dtype: np.dtype, given: bool) -> tuple[int, int]:
    """Threads and bytes of shared memory, as ``Trsm`` of device/trsm.cuh has them."""
    across = 1 if width < 32 else 2
    sides = (32, width) if left else (width, 32)
    tile = Tile(0, *sides, 8 if dtype.char == "D" else 16, 3, warps=2 * across)
    tensor = dtype.char in "dD"
    pad = {"d": 4, "D": 2, "f": 4, "F": 2}[dtype.char]
    right = width * (32 + 4) if left and tensor else 32 * (width + pad)
    inverses = (1 if given else 2 * across) * triangle_shared(dtype)
    return tile.threads, inverses + max(tile.shared(dtype), right * dtype.itemsize)


def triangle_shared(dtype: np.dtype) -> int:
    """Bytes of a triangle of order 32 in shared memory."""
    return 32 * (32 + (2 if np.dtype(dtype).char == "D" else 4)) * np.dtype(dtype).itemsize


# --- potrf ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PotrfTuning:
    """Numbers of potrf that belong to a chip: the largest order for each kernel."""

    tiny: int = field(default=32, metadata={"choices": (0, 8, 16, 24, 32)})  # in registers
    shared: int = field(default=96, metadata={"choices": (32, 64, 96, 128, 160)})  # shared memory
    large: int = field(default=12288, metadata={"choices": (4096, 8192, 12288)})  # tiles of 64
    alone: int = field(default=5120, metadata={"choices": (0, 2048, 5120, 8192)})  # see potrf_tiles
    group: int = field(default=2, metadata={"choices": (1, 2, 4, 8)})  # rows of tiles a block


@dataclass(frozen=True)
class PotrfPart:
    """One launch of potrf: the matrices that take it.

    Attributes
    ----------
    kind : {"tiny", "shared", "tiles", "tasks"}
        The kernel file potrf_<kind>.cu.
    matrices : int array
        Largest first.
    """

    kind: str
    matrices: np.ndarray
    constants: tuple[tuple[str, int], ...]
    threads: int
    shared: int
    residents: int = 0


def block_ld(dtype: np.dtype, rows: int = 32) -> int:
    """Leading dimension of blocks in shared memory, as device/potrf_blocks.cuh has it."""
    return rows + (2 if dtype.char in "DF" else 4)


def potrf(n: np.ndarray, dtype: Any, limits: Limits, numbers: PotrfTuning) -> list[PotrfPart]:
    """Choose the launches for matrices of these orders, the largest matrices first."""
    dtype = np.dtype(dtype)
    order = np.argsort(-n, kind="stable")
    sizes = n[order]
    tiny, most = min(numbers.tiny, 32), numbers.shared // 32 * 32
    while most > 32 and potrf_shared_bytes(most, dtype) > limits.shared_block:
        most -= 32
    large = 1 << 30 if dtype.char == "D" else max(numbers.large, most)
    parts = []
    if len(chosen := order[sizes > large]):
        parts.append(potrf_tasks(chosen, dtype, limits))
    if len(chosen := order[(sizes > max(most, tiny)) & (sizes <= large)]):
        parts.append(potrf_tiles(chosen, int(n[chosen[0]]), dtype, limits, numbers))
    for high in range(most, 0, -32):
        if len(chosen := order[(sizes > max(high - 32, tiny)) & (sizes <= high)]):
            parts.append(potrf_shared(chosen, high, dtype))
    if len(chosen := order[sizes <= tiny]):
        parts.append(potrf_tiny(chosen, int(n[chosen[0]]), dtype))
    return parts


def potrf_tiny(matrices: np.ndarray, largest: int, dtype: Any) -> PotrfPart:
    """Launch of potrf_tiny.cu: four warps of 32·(WIDTH + 3) elements each."""
    width = max(8, -(-largest // 8) * 8)
    shared = 4 * 32 * (width + 3) * np.dtype(dtype).itemsize
    return PotrfPart("tiny", matrices, (("WIDTH", width),), 128, shared)


def potrf_shared_bytes(n: int, dtype: np.dtype) -> int:
    """Bytes of shared memory of potrf_shared.cu for matrices up to this order."""
    return n * block_ld(dtype, n) * dtype.itemsize


def potrf_shared(matrices: np.ndarray, n: int, dtype: np.dtype) -> PotrfPart:
    """Launch of potrf_shared.cu for matrices up to this order, a multiple of 32."""
    return PotrfPart("shared", matrices, (("ORDER", n),), n, potrf_shared_bytes(n, dtype))


def potrf_tiles(
    matrices: np.ndarray, largest: int, dtype: np.dtype, limits: Limits, numbers: PotrfTuning
) -> PotrfPart:
    """Launch of potrf_tiles.cu.

    Few matrices wait for one tile after the other, which is fastest where a block has much of a
    multiprocessor to itself; many or large ones keep as many blocks busy as fit.
    """
    product = Tile(0, 64, 64, 8 if dtype.char == "D" else 16, 3)
    tile = 64 * block_ld(dtype, 64) * dtype.itemsize
    shared = max(product.shared(dtype), 2 * tile + 64 * dtype.itemsize)
    bound = 1 if dtype.char == "D" else 2 if len(matrices) < limits.multiprocessors else 3
    shared += tile if bound < 3 else 0
    fit = max(min(bound, limits.shared_multiprocessor // (shared + 1024)), 1)
    residents = 1 if len(matrices) * largest <= numbers.alone else fit
    constants = (("RESIDENTS", bound), ("TILE", 64))
    return PotrfPart("tiles", matrices, constants, product.threads, shared, residents)


def potrf_tasks(matrices: np.ndarray, dtype: np.dtype, limits: Limits) -> PotrfPart:
    """Launch of potrf_tasks.cu: tiles of 128 by 8 warps."""
    tile, side, ld = 128, 4, block_ld(dtype, 128)
    product = Tile(0, tile, tile, 16, 3, warps=8)
    solve = tile * ld + side * (side + 1) // 2 * 32 * block_ld(dtype)
    region = max(-(-product.shared(dtype) // (32 * dtype.itemsize)) * 32, solve)
    shared = (region + 96) * dtype.itemsize
    residents = 65536 // (256 * product.threads)  # all registers of a thread
    residents = max(1, min(residents, limits.shared_multiprocessor // (shared + 1024)))
    constants = (("FUSED", 0), ("RESIDENTS", residents), ("TILE", tile), ("WARPS", 8))
    return PotrfPart("tasks", matrices, constants, product.threads, shared, residents)


# --- gemv ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GemvTuning:
    """Numbers of gemv that belong to a chip."""

    threads: int = field(default=256, metadata={"choices": (128, 192, 256)})  # a block
    crossover: int = 256 << 10  # bytes of a matrix beyond which tiles share it
    tile: int = 256 << 10  # bytes of a tile then
    warp: int = 8 << 10  # bytes of a matrix up to which it is one warp's
    waves: int = 4  # blocks a multiprocessor, at the least, before sums are split
    unroll: int = field(default=4, metadata={"choices": (2, 4, 8)})  # reads under way a thread


@dataclass(frozen=True)
class GemvPlan:
    """Blocks of x×y×z threads, z teams; a team takes a tile of tile_m×tile_n of a matrix."""

    x: int
    y: int
    z: int
    tile_m: int
    tile_n: int
    unroll: int
    shared: int


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
        A matrix a team, or several tiles a matrix; by size if not given.
    """
    vector, size = max(16 // item, 1), rows * columns * item
    if variant is None:
        variant = "big-tile" if size <= numbers.crossover else "classic"
    unroll = 1 if columns <= 16 else numbers.unroll
    whole = 1 << 30
    tile_m, tile_n = whole, whole
    if variant == "classic":
        tile_m, tile_n = _gemv_tile(trans, rows, columns, item, count, limits, numbers)
    threads = 32 if size <= numbers.warp and variant == "big-tile" else numbers.threads
    x, y = _gemv_block(trans, min(rows, tile_m), min(columns, tile_n), vector, unroll, threads)
    z = 4 if threads == 32 else 1
    return GemvPlan(x, y, z, tile_m, tile_n, unroll, 0 if trans or y == 1 else 16 * x * y * z)


def _gemv_block(
    trans: bool, rows: int, columns: int, vector: int, unroll: int, threads: int
) -> tuple[int, int]:
    """Lanes along the rows, and groups of them over the columns; whole warps together."""
    vectors = max(-(-rows // vector), 1)
    if trans:  # each lane several vectors of a column, so that little is lost at its ends
        x = min(max(_power_of_two(-(-vectors // 4)), 4, unroll), 32)
        wanted = max(32, x * -(-columns // unroll))
        return x, max(min(threads, -(-wanted // 32) * 32) // 32 * 32 // x, 32 // x)
    if threads == 32 or vectors <= 32:
        x = min(max(_power_of_two(vectors), 4), 32)
    else:  # as few strips as there can be, of about the same length
        strips = -(-vectors // threads)
        x = -(-vectors // strips)
        x = -(-x // 32) * 32
    wanted = max(1, -(-columns // unroll))
    return x, max(min(threads // x, wanted), -(-32 // x))


def _gemv_tile(
    trans: bool,
    rows: int,
    columns: int,
    item: int,
    count: int,
    limits: Limits,
    numbers: GemvTuning,
) -> tuple[int, int]:
    """Rows and columns of a tile: outputs are split first; sums only where blocks are too few."""
    outputs, terms = (columns, rows) if trans else (rows, columns)
    step = 32 if trans else 512 // item  # outputs that a block reads well
    outputs_tile = max(numbers.tile // (item * max(terms, 1)) // step * step, step)
    enough = numbers.waves * limits.multiprocessors
    if count * -(-outputs // outputs_tile) < enough:
        outputs_tile = max(-(-outputs * count // enough) // step * step, step)
    tiles = count * -(-outputs // outputs_tile)
    parts = min(-(-enough // max(tiles, 1)), -(-terms // 64)) if tiles < enough // 2 else 1
    terms_tile = 1 << 30 if parts <= 1 else -(-terms // parts // 32) * 32
    return (terms_tile, outputs_tile) if trans else (outputs_tile, terms_tile)


# --- getrf, inverse, getrs -----------------------------------------------------------------------


@dataclass(frozen=True)
class GetrfTuning:
    """Numbers of getrf that belong to a chip."""

    tiny: int = field(default=32, metadata={"choices": (0, 8, 16, 24, 32)})  # sides, registers
    block: int = field(
        default=128, metadata={"choices": (0, 48, 64, 96, 128, 160)}
    )  # shared memory
    panel: int = field(default=32, metadata={"choices": (8, 16, 32)})  # columns of a panel
    strips: int = field(default=768, metadata={"choices": (256, 512, 768, 1024, 2048)})  # rows
    outer: int = field(default=128, metadata={"choices": (64, 128, 256)})  # columns a large update
    tall: int = field(default=2048, metadata={"choices": (1024, 2048)})  # rows of a block's panel


@dataclass(frozen=True)
class GetrsTuning:
    """Numbers of getrs that belong to a chip."""

    share: int = field(
        default=32, metadata={"choices": (8, 16, 32, 64)}
    )  # right-hand sides a block


@dataclass(frozen=True)
class RowsPlan:
    """Matrices up to 32×32 of one width in registers: lanes a matrix, four warps a block."""

    width: int  # registers of a row: 8, 16, 24 or 32

    @classmethod
    def of(cls, side: int) -> RowsPlan:
        """Choose for matrices of at most side×side."""
        return cls(max(-(-side // 8) * 8, 8))

    @property
    def lanes(self) -> int:
        """Lanes of a matrix."""
        return min(_power_of_two(self.width), 32)

    @property
    def per_block(self) -> int:
        """Matrices of a block of 128 threads."""
        return 128 // self.lanes

    def shared(self, dtype: Any, per_block: int) -> int:
        """Bytes of shared memory: two rows and 16 bytes a matrix."""
        return per_block * (2 * self.width * np.dtype(dtype).itemsize + 16)


@dataclass(frozen=True)
class BlockPlan:
    """Matrices held whole in shared memory, one a block."""

    threads: int
    ld: int
    shared: int


@dataclass(frozen=True)
class PanelPlan:
    """Panels of LU in registers, ``rows`` rows a thread."""

    columns: int
    rows: int
    shared_by_blocks: bool = False  # a panel is shared by as many blocks as its rows need
    threads: int = 512  # most threads of a block

    @property
    def moves(self) -> int:
        """Integers of a list of moves."""
        return 4 * self.columns + 4

    def block(self, m: int) -> int:
        """Threads for panels of at most m rows."""
        threads = max(-(-m // (32 * self.rows)) * 32, 32)
        return min(threads, self.threads) if self.shared_by_blocks else threads

    def exchange(self, dtype: Any, blocks: int) -> int:
        """Bytes of global memory through which so many blocks agree upon pivots."""
        return 2 * blocks * (16 + self.columns * np.dtype(dtype).itemsize)

    def shared(self, dtype: Any, threads: int) -> int:
        """Bytes of shared memory of ``Panel``."""
        return 1024 + threads // 16 * self.columns * np.dtype(dtype).itemsize


_PADS = {"f": 4, "d": 4, "F": 2, "D": 2}


def getrf_block(
    m: int, n: int, dtype: Any, limits: Limits, numbers: GetrfTuning
) -> BlockPlan | None:
    """Choose the launch for matrices of at most m×n in shared memory; None: they do not fit."""
    dtype = np.dtype(dtype)
    if min(m, n) > numbers.block or m > 256:
        return None
    pad, threads = _PADS[dtype.char], -(-max(m, min(n, 128), 64) // 32) * 32
    ld = -(-m // 16) * 16 + pad
    entries = ld * n + -(-n // 32) * 16 * (32 + pad)
    shared = entries * dtype.itemsize + 336 + PanelPlan(16, 1).shared(dtype, threads)
    return BlockPlan(threads, ld, shared) if shared <= limits.shared_block else None


def getrf_panel(m: int, dtype: Any, numbers: GetrfTuning) -> PanelPlan:
    """Choose the panels for matrices of at most m rows: no more than 64 registers of a thread."""
    words = np.dtype(dtype).itemsize // 4
    if m > numbers.tall:
        return PanelPlan(min(numbers.panel, 64 // words), 1, shared_by_blocks=True)
    rows = 1
    while rows * 512 < m:
        rows *= 2
    return PanelPlan(max(min(numbers.panel, 64 // (words * rows)), 8), rows)


def strip_shared(dtype: Any) -> int:
    """Bytes of shared memory of getrf_update.cu."""
    dtype = np.dtype(dtype)
    medium = tiles(dtype)[2]
    along = {"f": 4, "d": 2, "F": 2, "D": 4}[dtype.char]
    solve = 32 * (32 + (2 if dtype.char == "D" else 4)) + medium.cols * (32 + along)
    return max(solve * dtype.itemsize, medium.shared(dtype))


def laswp_columns(m: int, dtype: Any, limits: Limits, most: int = 32) -> int:
    """Columns of m rows that pass through shared memory at a time; 0 where not even one fits."""
    room = limits.shared_multiprocessor // 6
    item = np.dtype(dtype).itemsize
    columns = min(most, (room - 4 * m) // (item * max(m, 1)))
    return max(columns, int(m * (item + 4) <= limits.shared_block))


def _power_of_two(n: int) -> int:
    """The least power of two that is not less than n."""
    return 1 << max(n - 1, 0).bit_length()
