"""Launches of potrf by size of the matrices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...runtime.limits import Limits
from .products import Tile


@dataclass(frozen=True)
class PotrfTuning:
    """Chip-dependent numbers of potrf: the largest order for each kernel."""

    tiny: int = field(default=32, metadata={"choices": (0, 8, 16, 24, 32)})  # order, in registers
    shared: int = field(default=96, metadata={"choices": (32, 64, 96, 128, 160)})  # shared memory
    large: int = field(default=12288, metadata={"choices": (4096, 8192, 12288)})  # tiles of 64
    alone: int = field(default=5120, metadata={"choices": (0, 2048, 5120, 8192)})  # see potrf_tiles
    group: int = field(default=2, metadata={"choices": (1, 2, 4, 8)})  # rows of tiles a block


@dataclass(frozen=True)
class PotrfLaunch:
    """One launch of potrf, and its matrices."""

    kind: str  # of the kernel file potrf_<kind>.cu: "tiny", "shared", "tiles" or "tasks"
    matrices: np.ndarray  # indices, largest matrix first
    constants: tuple[tuple[str, int], ...]
    threads: int
    shared: int
    residents: int = 0  # blocks a multiprocessor that wait for each other
    tile: int = 0  # rows of a tile, which is a task
    inverse_entries: int = 0  # workspace of a diagonal tile, for its inverse or those of its blocks
    outside: int = 0  # entries of workspace a block, used instead of shared memory


def block_ld(dtype: np.dtype, rows: int = 32) -> int:
    """Return the leading dimension of blocks in shared memory, as in dense/potrf_blocks.cuh."""
    return rows + (2 if dtype.char in "DF" else 4)


def potrf(
    n: np.ndarray, dtype: npt.DTypeLike, limits: Limits, numbers: PotrfTuning
) -> list[PotrfLaunch]:
    """Choose the launches for matrices of orders n, the largest matrices first."""
    dtype = np.dtype(dtype)
    order = np.argsort(-n, kind="stable")
    sizes = n[order]
    tiny, max_shared = min(numbers.tiny, 32), numbers.shared // 32 * 32
    while max_shared > 32 and potrf_shared_bytes(max_shared, dtype) > limits.shared_block:
        max_shared -= 32
    has_tasks = dtype.char != "D" and potrf_tasks(order[:0], dtype).shared <= limits.shared_block
    max_tiles = max(numbers.large, max_shared) if has_tasks else 1 << 30
    launches = []
    if len(chosen := order[sizes > max_tiles]):
        launches.append(potrf_tasks(chosen, dtype))
    if len(chosen := order[(sizes > max(max_shared, tiny)) & (sizes <= max_tiles)]):
        launches.append(potrf_tiles(chosen, int(n[chosen[0]]), dtype, limits, numbers))
    for high in range(max_shared, 0, -32):
        if len(chosen := order[(sizes > max(high - 32, tiny)) & (sizes <= high)]):
            launches.append(potrf_shared(chosen, high, dtype))
    if len(chosen := order[sizes <= tiny]):
        launches.append(potrf_tiny(chosen, int(n[chosen[0]]), dtype))
    return launches


def potrf_tiny(matrices: np.ndarray, largest: int, dtype: npt.DTypeLike) -> PotrfLaunch:
    """Return the launch of potrf_tiny.cu: four warps of 32·(WIDTH + 3) elements each."""
    width = max(8, -(-largest // 8) * 8)
    shared = 4 * 32 * (width + 3) * np.dtype(dtype).itemsize
    return PotrfLaunch("tiny", matrices, (("WIDTH", width),), 128, shared)


def potrf_shared_bytes(n: int, dtype: np.dtype) -> int:
    """Return the bytes of shared memory of potrf_shared.cu for matrices up to order n."""
    return n * block_ld(dtype, n) * dtype.itemsize


def potrf_shared(matrices: np.ndarray, n: int, dtype: np.dtype) -> PotrfLaunch:
    """Return the launch of potrf_shared.cu for matrices up to order n, a multiple of 32."""
    return PotrfLaunch("shared", matrices, (("ORDER", n),), n, potrf_shared_bytes(n, dtype))


def potrf_tiles(
    matrices: np.ndarray, largest: int, dtype: np.dtype, limits: Limits, numbers: PotrfTuning
) -> PotrfLaunch:
    """Return the launch of potrf_tiles.cu.

    A small number of matrices is bound by the chain of tiles, which is fastest if a block has a
    large share of a multiprocessor; more or larger matrices use as many blocks as fit.
    """
    product = Tile(0, 64, 64, 8 if dtype.char == "D" else 16, 3)
    tile = 64 * block_ld(dtype, 64) * dtype.itemsize
    slices, scales = product.shared(dtype), 64 * dtype.itemsize
    all_bytes = max(slices, 2 * tile + scales)
    bound = 1 if dtype.char == "D" else 2 if len(matrices) < limits.multiprocessors else 3
    available = limits.shared_block - 1024
    staged = bound < 3 and all_bytes + tile <= available
    if bound < 3 and dtype.char != "D" and not staged:
        bound = 3
    shared, outside = all_bytes + (tile if staged else 0), 0
    if all_bytes > available:  # the inverse, or everything, in global memory
        shared, outside = max(slices, tile), tile + scales
        shared, outside = (shared, outside) if shared <= available else (0, all_bytes)
    fit = max(min(bound, limits.shared_multiprocessor // (shared + 1024)), 1)
    residents = 1 if len(matrices) * largest <= numbers.alone else fit
    constants: tuple[tuple[str, int], ...] = (("RESIDENTS", bound),)
    if bound < 3 and not staged:
        constants += (("STAGED", 0),)
    if outside:
        constants += (("OUTSIDE", 1 if shared else 2),)
    sizes = {"tile": 64, "inverse_entries": 64 * 64, "outside": outside // dtype.itemsize}
    return PotrfLaunch("tiles", matrices, constants, product.threads, shared, residents, **sizes)


def potrf_tasks(matrices: np.ndarray, dtype: np.dtype) -> PotrfLaunch:
    """Return the launch of potrf_tasks.cu: tiles of 128 by 8 warps, which use all registers."""
    tile, side, ld = 128, 4, block_ld(dtype, 128)
    product = Tile(0, tile, tile, 16, 3, warps=8)
    inverse_entries = side * (side + 1) // 2 * 32 * block_ld(dtype)
    solve = tile * ld + inverse_entries
    region = max(-(-product.shared(dtype) // (32 * dtype.itemsize)) * 32, solve)
    shared = (region + 96) * dtype.itemsize
    return PotrfLaunch("tasks", matrices, (), product.threads, shared, 1, tile, inverse_entries)
