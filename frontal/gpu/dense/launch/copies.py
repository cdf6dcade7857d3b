"""Tiles of copy.cu."""

from __future__ import annotations

COPY_TILE = 32  # rows and columns


def copy_strided() -> tuple[int, int]:
    """Threads of a block along and across a tile."""
    return COPY_TILE, 8


def clear() -> int:
    """Threads of a block, which clears the columns of a tile."""
    return 256
