"""Conversion of panels from the layout of a device (`DeviceLayout`) to that of the host."""

from __future__ import annotations

import numpy as np

from ....compile.jit import inner, jit
from .schedule import TILE


@jit
def unpad_triangle(factor, out, k, m, panel, l11_offset, ld, last_ld, target):
    """Copy panels of L from the layout of a device to that of the host."""
    inverse, lower = np.zeros((2, TILE, TILE), out.dtype)
    for s in range(k.size):
        to, order = target[s], k[s] + m[s]
        start, tiles = panel[s] + l11_offset[s], -(-k[s] // TILE)
        if last_ld[s] == 0:
            for j in range(k[s]):
                inverse[j : k[s], j] = factor[start : start + k[s] - j]
                start += k[s] - j
            _invert(inverse, k[s], lower)
            for j in range(k[s]):
                out[to + j * order + j : to + j * order + k[s]] = lower[j : k[s], j]
            tiles = 0
        for i in range(tiles):
            first = TILE * i
            end, step = min(first + TILE, k[s]), last_ld[s] if i + 1 == tiles else TILE
            for j in range(end):
                at, above = start + j * step, max(j - first, 0)
                row = to + j * order + first
                out[row + above : row + end - first] = factor[at + above : at + end - first]
            start += TILE * (end + 1)
        start = panel[s]
        for j in range(k[s]):
            row = to + j * order + k[s]
            out[row : row + m[s]] = factor[start : start + m[s]]
            start += ld[s]


@jit
def unpad_both(factor, out, k, m, panel, below, ld, upper_ld, target):
    """Copy panels of L and U to the layout of the host; inverses of diagonal tiles stay."""
    for s in range(k.size):
        to = target[s]
        for j in range(k[s]):
            start = panel[s] + j * ld[s]
            out[to : to + k[s]] = factor[start : start + k[s]]
            start += below[s]
            out[to + k[s] : to + k[s] + m[s]] = factor[start : start + m[s]]
            to += k[s] + m[s]
        start = panel[s] + k[s] * ld[s]
        for _ in range(k[s]):
            out[to : to + m[s]] = factor[start : start + m[s]]
            to += m[s]
            start += upper_ld[s]


@jit
def invert_tiles(out, k, m, target):
    """Replace the inverses of diagonal tiles in panels by L and U, see sparse/front.cuh."""
    lower, upper, inverse = np.zeros((3, TILE, TILE), out.dtype)
    for s in range(k.size):
        ld = k[s] + m[s]
        for first in range(0, k[s], TILE):
            w, at = min(TILE, k[s] - first), target[s] + first * (ld + 1)
            for c in range(w):
                lower[c, c] = 1
                for r in range(c + 1, w):
                    lower[r, c] = out[at + r + c * ld]
                for r in range(c, w):
                    upper[r, c] = out[at + r - c + (w - 1 - c) * ld]
            _invert(lower, w, inverse)
            for c in range(w):
                for r in range(c + 1, w):
                    out[at + r + c * ld] = inverse[r, c]
            _invert(upper, w, inverse)
            for c in range(w):
                for r in range(c, w):
                    out[at + c + r * ld] = inverse[r, c]


@inner
def _invert(lower, w, inverse):
    """Compute the inverse of a lower triangle."""
    for c in range(w):
        inverse[c, c] = 1 / lower[c, c]
        for r in range(c + 1, w):
            total = lower[r, c] * inverse[c, c]
            for q in range(c + 1, r):
                total += lower[r, q] * inverse[q, c]
            inverse[r, c] = -total / lower[r, r]
