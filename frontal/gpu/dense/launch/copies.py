"""Tiles of copy.cu, threads of lists.cu."""

from __future__ import annotations

from ..structs import COPY_ROWS, COPY_TILE


def copy_strided() -> tuple[int, int]:
    """Return the threads of a block along and across a tile."""
    return COPY_TILE, COPY_ROWS


def entries(count: int) -> tuple[int, int]:
    """Return blocks, and threads a block, for one thread an entry."""
    return -(-count // 256), 256
