"""Launches of getrf, inverse and getrs: rows, blocks and panels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ...runtime.limits import Limits, power_of_two
from .products import tiles, triangle_shared


@dataclass(frozen=True)
class GetrfTuning:
    """Chip-dependent numbers of getrf."""

    tiny: int = field(default=32, metadata={"choices": (0, 8, 16, 24, 32)})  # sides, registers
    block: int = field(default=64, metadata={"choices": (0, 48, 64, 96, 128)})  # shared memory
    left: int = field(default=512, metadata={"choices": (0, 128, 256, 512)})  # rows, left-looking
    panel: int = field(default=32, metadata={"choices": (8, 16, 32)})  # columns of a panel
    strips: int = field(default=768, metadata={"choices": (256, 512, 768, 1024, 2048)})  # rows
    outer: int = field(default=128, metadata={"choices": (64, 128, 256)})  # columns a large update
    vendor: int = 512  # least order of a single matrix for cuSOLVER
    tall: int = field(default=2048, metadata={"choices": (1024, 2048)})  # most rows of one block


@dataclass(frozen=True)
class GetrsTuning:
    """Chip-dependent numbers of getrs."""

    share: int = field(
        default=32, metadata={"choices": (8, 16, 32, 64)}
    )  # right-hand sides a block


@dataclass(frozen=True)
class RowsPlan:
    """Matrices up to 32×32 of one width in registers: a lane a row, four warps a block."""

    max_side: ClassVar[int] = 32  # rows and columns
    threads: ClassVar[int] = 128

    width: int  # registers of a row: 8, 16, 24 or 32

    @classmethod
    def for_side(cls, side: int) -> RowsPlan:
        """Return the plan for matrices of at most side×side."""
        return cls(max(-(-side // 8) * 8, 8))

    @property
    def lanes(self) -> int:
        """Lanes a matrix."""
        return min(power_of_two(self.width), self.max_side)

    @property
    def per_block(self) -> int:
        """Matrices a block."""
        return self.threads // self.lanes

    def shared(self, dtype: npt.DTypeLike, per_block: int) -> int:
        """Return bytes of shared memory: two rows and 16 bytes a matrix."""
        return per_block * (2 * self.width * np.dtype(dtype).itemsize + 16)


@dataclass(frozen=True)
class BlockPlan:
    """Matrices that lie entirely in shared memory, one a block."""

    threads: int
    ld: int
    shared: int


@dataclass(frozen=True)
class PanelPlan:
    """Panels of LU in registers, ``rows`` rows a thread."""

    max_blocks: ClassVar[int] = 32  # blocks that share a panel

    columns: int
    rows: int
    shared_by_blocks: bool = False  # the rows of a panel are distributed to blocks
    threads: int = 512  # largest number a block

    @property
    def moves(self) -> int:
        """Integers a list of moves."""
        return 4 * self.columns + 4

    def block(self, m: int) -> int:
        """Return the threads a block for panels of at most m rows."""
        threads = max(-(-m // (32 * self.rows)) * 32, 32)
        return min(threads, self.threads) if self.shared_by_blocks else threads

    def together(self, blocks: int, limits: Limits) -> int:
        """Return how many panels of ``blocks`` blocks are certain to be resident at once."""
        return max(limits.multiprocessors // blocks, 1)

    def exchange(self, dtype: npt.DTypeLike, blocks: int) -> int:
        """Return bytes of global memory by which ``blocks`` blocks choose common pivots."""
        return 2 * blocks * (16 + self.columns * np.dtype(dtype).itemsize)

    def shared(self, dtype: npt.DTypeLike, threads: int) -> int:
        """Return bytes of shared memory of ``Panel``."""
        return 1024 + threads // 16 * self.columns * np.dtype(dtype).itemsize


_PADS = {"f": 4, "d": 4, "F": 2, "D": 2}


def getrf_block(
    m: int, n: int, dtype: npt.DTypeLike, limits: Limits, numbers: GetrfTuning
) -> BlockPlan | None:
    """Choose the launch for matrices of at most m×n in shared memory; None if too large."""
    dtype = np.dtype(dtype)
    if min(m, n) > numbers.block or m > 256:
        return None
    pad, threads = _PADS[dtype.char], -(-max(m, min(n, 128), 64) // 32) * 32
    ld = -(-m // 16) * 16 + pad
    entries = ld * n + -(-n // 32) * 16 * (32 + pad)
    shared = entries * dtype.itemsize + 336 + PanelPlan(16, 1).shared(dtype, threads)
    return BlockPlan(threads, ld, shared) if shared <= limits.shared_block else None


@dataclass(frozen=True)
class LeftPlan:
    """Left-looking factorization by panels of ``columns`` columns, one matrix a block."""

    columns: int
    threads: int
    ld: int
    shared: int
    residents: int  # blocks a multiprocessor


def getrf_left(
    m: int, dtype: npt.DTypeLike, limits: Limits, numbers: GetrfTuning
) -> LeftPlan | None:
    """Choose the launch of getrf_left.cu for at most m rows; None if too large."""
    dtype = np.dtype(dtype)
    columns, max_threads = (16, 256) if dtype.char == "D" else (32, 512)
    threads = max(-(-m // 32) * 32, 64)
    if threads > min(max_threads, numbers.left):
        return None
    ld = threads + _PADS[dtype.char]
    entries = columns * (ld + columns + _PADS[dtype.char])
    shared = entries * dtype.itemsize + triangle_shared(dtype) + 4 * threads
    shared += PanelPlan(columns, 1).shared(dtype, threads)
    if shared > limits.shared_block:
        return None
    residents = min(limits.shared_multiprocessor // (shared + 1280), max_threads // threads)
    return LeftPlan(columns, threads, ld, shared, residents)


def getrf_panel(m: int, dtype: npt.DTypeLike, numbers: GetrfTuning) -> PanelPlan:
    """Choose the panels for matrices of at most m rows: at most 64 registers a thread."""
    words = np.dtype(dtype).itemsize // 4
    if m > numbers.tall:
        return PanelPlan(min(numbers.panel, 64 // words), 1, shared_by_blocks=True)
    rows = 1
    while rows * 512 < m:
        rows *= 2
    return PanelPlan(max(min(numbers.panel, 64 // (words * rows)), 8), rows)


@dataclass(frozen=True)
class StripPlan:
    """Strips of ``columns`` columns, one a block."""

    columns: int
    threads: int
    shared: int = 0


def getrf_update(dtype: npt.DTypeLike) -> StripPlan:
    """Return the launch of getrf_update.cu."""
    dtype = np.dtype(dtype)
    medium = tiles(dtype)[2]
    along = {"f": 4, "d": 2, "F": 2, "D": 4}[dtype.char]
    solve = 32 * (32 + (2 if dtype.char == "D" else 4)) + medium.cols * (32 + along)
    shared = max(solve * dtype.itemsize, medium.shared(dtype))
    return StripPlan(medium.cols, medium.threads, shared)


def laswp(columns: int = 32) -> StripPlan:
    """Return the launch of laswp.cu and getrs.cu for strips of ``columns`` columns."""
    return StripPlan(columns, 128)


def laswp_through_shared(
    m: int, dtype: npt.DTypeLike, limits: Limits, max_columns: int = 32
) -> tuple[int, int]:
    """Return the columns of m rows that pass through shared memory at a time, and their bytes.

    0 columns if not even one fits.
    """
    available = limits.shared_multiprocessor // 6
    item = np.dtype(dtype).itemsize
    columns = min(max_columns, (available - 4 * m) // (item * max(m, 1)))
    columns = max(columns, int(m * (item + 4) <= limits.shared_block))
    return columns, m * (columns * item + 4)


def getrf_info() -> int:
    """Return the threads a block of getrf_info.cu."""
    return 256


def inverse_copies(count: int, columns: int) -> tuple[tuple[int, int], int]:
    """Return grid and threads of inverse.cu for ``count`` matrices of ``columns`` columns."""
    return (count, min(columns, 64)), 128
