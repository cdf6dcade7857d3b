"""Blocks of vectors side by side, as the real and imaginary parts that a real factor solves for."""

from __future__ import annotations

from ..backend.protocol import NumericFactor
from ..numeric.linear_system import Vectors


def side_by_side(factor: NumericFactor, *blocks: Vectors) -> Vectors:
    """Return the columns of several (n, k) arrays of one scalar type in one array."""
    k = blocks[0].shape[1]
    joined = factor.empty(k * len(blocks), blocks[0].dtype)
    for c, block in enumerate(blocks):
        joined[:, c * k : (c + 1) * k] = block
    return joined


def of_parts(parts: Vectors) -> Vectors:
    """Return complex vectors from their real parts, beside which are the imaginary ones."""
    k = parts.shape[1] // 2
    return parts[:, :k] + 1j * parts[:, k:]
