"""Launches of gemm, herk, trsm and trtri: tiles and strips."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ...runtime.limits import Limits, power_of_two


@dataclass(frozen=True)
class Tile:
    """A tile product of ``common/tile.cuh``; several tiles of one warp share a block."""

    index: int  # the constant TILE of gemm.cu and herk.cu
    rows: int
    cols: int
    depth: int  # columns of op(A) in a slice
    stages: int
    warps: int = 4
    per_block: int = 1

    @property
    def threads(self) -> int:
        """Threads a block."""
        return 32 * self.warps * self.per_block

    def shared(self, dtype: npt.DTypeLike) -> int:
        """Return bytes of shared memory a block."""
        dtype = np.dtype(dtype)
        tensor = dtype.char in "dD"
        return self.per_block * self.elements(dtype, (tensor, tensor)) * dtype.itemsize

    def elements(self, dtype: npt.DTypeLike, along: tuple[bool, bool] = (False, False)) -> int:
        """Return elements of all slices of both operands; with ``along`` they may lie along k."""
        dtype = np.dtype(dtype)
        pad, along_pad = {"d": (4, 2), "D": (2, 4), "f": (4, 0), "F": (2, 0)}[dtype.char]
        sizes = (self.rows, self.cols)
        return self.stages * sum(
            max(self.depth * (size + pad), size * (self.depth + along_pad) if may else 0)
            for size, may in zip(sizes, along, strict=True)
        )


def tiles(dtype: npt.DTypeLike) -> tuple[Tile, ...]:
    """Return the tiles of a scalar type: tiny, small, medium, tall, large."""
    char = np.dtype(dtype).char
    tiny = Tile(0, 16, 16, 16, 1, warps=1, per_block=4)
    if char == "D":
        small = Tile(1, 32, 32, 8, 4)
        return tiny, small, Tile(2, 64, 32, 8, 3), Tile(3, 64, 64, 8, 3), Tile(4, 64, 64, 8, 3)
    small = Tile(1, 32, 32, 32, 1, warps=2)
    tall = Tile(3, 128, 64, 16, 3)
    large = Tile(4, 128, 128, 16, 4, warps=8) if char == "d" else Tile(4, 128, 64, 16, 3)
    return tiny, small, Tile(2, 64, 64, 16, 3), tall, large


@dataclass(frozen=True)
class GemmTuning:
    """Chip-dependent numbers of gemm: for each tile the largest side of C."""

    tiny: int = field(default=16, metadata={"choices": (0, 16)})
    small: int = field(default=32, metadata={"choices": (0, 16, 32, 48, 64)})
    medium: int = field(default=640, metadata={"choices": (128, 256, 384, 640, 1024)})
    tall: int = field(default=1 << 30, metadata={"choices": (256, 640, 1024, 2048, 1 << 30)})
    fill: float = field(default=1.5, metadata={"choices": (0.0, 1.0, 1.5, 2.0, 4.0)})
    group: int = field(default=1024, metadata={"choices": (512, 1024, 2048)})
    vendor: int = 512  # cube root of the least m·n·k of a single matrix for cuBLAS,
    stacks: int = 32  # of each matrix of a stack for cuBLAS,
    together: int = 1 << 29  # and least real products of the whole stack


@dataclass(frozen=True)
class HerkTuning(GemmTuning):
    """Chip-dependent numbers of herk."""

    vendor: int = 1024


def product_tile(
    m: int, n: int, entries: int, dtype: npt.DTypeLike, limits: Limits, numbers: GemmTuning
) -> Tile:
    """Choose the tile for products of at most m×n, of ``entries`` entries in total.

    Tall and large tiles require ``numbers.fill`` of them for each multiprocessor.
    """
    tiny, small, medium, tall, large = tiles(dtype)
    side = max(m, n)

    def fits(tile: Tile) -> bool:
        return tile.shared(dtype) <= limits.shared_block

    if side <= numbers.small:
        return small if side > numbers.tiny and fits(small) else tiny
    filled = entries / (numbers.fill * limits.multiprocessors) if numbers.fill else entries
    if side > numbers.tall and filled >= large.rows * large.cols and fits(large):
        return large
    wide = side > numbers.medium and filled >= tall.rows * tall.cols
    return tall if wide and fits(tall) else medium


@dataclass(frozen=True)
class TrsmTuning:
    """Chip-dependent numbers of trsm."""

    tiny: int = field(default=32, metadata={"choices": (0, 8, 16, 24, 32)})  # order, registers
    fused: int = field(default=256, metadata={"choices": (128, 192, 256, 384, 512)})  # order of A
    narrow: int = field(default=16, metadata={"choices": (0, 8, 16, 32)})  # right-hand sides
    fill: float = field(default=2.0, metadata={"choices": (0.0, 1.0, 2.0, 4.0)})
    inverses: int = field(default=64, metadata={"choices": (0, 32, 64, 128)})  # order of A


@dataclass(frozen=True)
class TrsmPlan:
    """Strips of ``width`` right-hand sides, one a block; A in steps of ``fused`` rows."""

    width: int
    threads: int
    shared: int
    fused: int
    separate_inverses: bool  # whether trtri.cu inverts the diagonal blocks


def trsm(
    order: int,
    right_sides: np.ndarray,
    left: bool,
    dtype: npt.DTypeLike,
    limits: Limits,
    numbers: TrsmTuning,
    width: int | None = None,
    separate_inverses: bool = False,
) -> TrsmPlan:
    """Choose the launch for A of at most ``order`` and ``right_sides`` of each matrix.

    Parameters
    ----------
    width : int, optional
        Width of a strip; default: chosen by the number of right-hand sides.
    separate_inverses : bool
        The inverses are computed already.
    """
    min_strips, widest = numbers.fill * limits.multiprocessors, int(max(right_sides, default=0))
    if width is None:
        width = 16 if widest <= numbers.narrow else 64
        while width > 16 and int((-(-right_sides // width)).sum()) < min_strips:
            width //= 2
    separate_inverses = separate_inverses or order > numbers.inverses
    threads, shared = _trsm_block(width, left, np.dtype(dtype), separate_inverses)
    while shared + 1024 > limits.shared_block and (width > 16 or not separate_inverses):
        width, separate_inverses = (width // 2, True) if separate_inverses else (width, True)
        threads, shared = _trsm_block(width, left, np.dtype(dtype), separate_inverses)
    return TrsmPlan(width, threads, shared, numbers.fused, separate_inverses)


def _trsm_block(
    width: int, left: bool, dtype: np.dtype, separate_inverses: bool
) -> tuple[int, int]:
    """Return threads and bytes of shared memory, as ``Trsm`` of dense/trsm.cuh has them."""
    across = 1 if width < 32 else 2
    sides = (32, width) if left else (width, 32)
    tile = Tile(0, *sides, 8 if dtype.char == "D" else 16, 3, warps=2 * across)
    tensor = dtype.char in "dD"
    pad = {"d": 4, "D": 2, "f": 4, "F": 2}[dtype.char]
    right = width * (32 + 4) if left and tensor else 32 * (width + pad)
    inverses = (1 if separate_inverses else 2 * across) * triangle_shared(dtype)
    return tile.threads, inverses + max(tile.shared(dtype), right * dtype.itemsize)


@dataclass(frozen=True)
class TrsmTinyPlan:
    """Right-hand sides in registers, ``lanes`` of a matrix side by side."""

    max_order: ClassVar[int] = 32  # order of A

    width: int
    lanes: int
    threads: int
    shared: int

    @property
    def per_block(self) -> int:
        """Matrices a block, or strips of right-hand sides."""
        return self.threads // self.lanes


def trsm_tiny(order: int, rights: int, dtype: npt.DTypeLike, limits: Limits) -> TrsmTinyPlan:
    """Choose the launch of trsm_tiny.cu for at most ``order`` and ``rights`` right-hand sides.

    A block has at most the warps with which four blocks share a multiprocessor's memory.
    """
    dtype, width = np.dtype(dtype), max(-(-order // 8) * 8, 8)
    lanes = min(max(power_of_two(rights), 8), 32)
    while (warp := 32 // lanes * _tiny_group(width, lanes, dtype)) > limits.shared_block:
        lanes *= 2
    warps = 4
    while warps > 1 and warps * warp > limits.shared_multiprocessor // 4 - 1024:
        warps //= 2
    return TrsmTinyPlan(width, lanes, 32 * warps, warps * warp)


def _tiny_group(width: int, lanes: int, dtype: np.dtype) -> int:
    """Return bytes a matrix, or a strip of its right-hand sides, as in trsm_tiny.cu."""
    ld = width + 16 // dtype.itemsize
    return -(-(width * ld + lanes * (width + 1)) * dtype.itemsize // 64) * 64 + 16


def trtri(triangles: int, dtype: npt.DTypeLike, limits: Limits) -> tuple[int, int, int]:
    """Return blocks, threads and bytes of shared memory of trtri.cu: a warp a triangle."""
    per_block = 4 if 4 * triangle_shared(dtype) <= limits.shared_block else 2
    return -(-triangles // per_block), 32 * per_block, per_block * triangle_shared(dtype)


def triangle_shared(dtype: npt.DTypeLike) -> int:
    """Return bytes of a triangle of order 32 in shared memory."""
    return 32 * (32 + (2 if np.dtype(dtype).char == "D" else 4)) * np.dtype(dtype).itemsize
