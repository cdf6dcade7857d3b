"""Loops over parts of columns, for vector instructions.

Indices are unsigned: Numba tests each signed index for a count from the end of the array, and a
loop with such tests is not vectorized.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import inner
from .pivots import size_of

MAX_LOOP_PRODUCT = 256  # largest number of multiplications in loops; a BLAS call takes as long


@inner
def subtract(a, out, b, at, count, factor):
    """Compute a[out + i] -= b[at + i] * factor for i < count."""
    out, at = np.uint64(out), np.uint64(at)
    for i in range(np.uint64(count)):
        a[out + i] -= b[at + i] * factor


@inner
def is_small_product(rows, columns, k):
    """Return whether loops compute a product faster than a BLAS call."""
    return rows * columns * k <= MAX_LOOP_PRODUCT


@inner
def subtract_product(
    c, out, ldc, rows, columns, a, a_offset, lda, b_offset, across, down, k, lower
):
    """Compute the lower part of C -= A B^H, or C -= A B^T unless `lower`, in loops.

    C begins at c[out], A at a[a_offset]; the entry of B in row j and column p is
    a[b_offset + p * down + j * across]. See `is_small_product`.
    """
    for j in range(columns):
        first = j if lower else np.int64(0)
        for p in range(k):
            factor = a[b_offset + p * down + j * across]
            factor = np.conj(factor) if lower else factor
            subtract(c, out + first + j * ldc, a, a_offset + first + p * lda, rows - first, factor)


@inner
def subtract_two(a, out, first, second, count, x, y):
    """Compute a[out + i] -= a[first + i] * x + a[second + i] * y for i < count."""
    out, first, second = np.uint64(out), np.uint64(first), np.uint64(second)
    for i in range(np.uint64(count)):
        a[out + i] -= a[first + i] * x + a[second + i] * y


@inner
def add(a, out, b, at, count):
    """Compute a[out + i] += b[at + i] for i < count."""
    out, at = np.uint64(out), np.uint64(at)
    for i in range(np.uint64(count)):
        a[out + i] += b[at + i]


@inner
def add_scattered(out, base, places, first, b, at):
    """Compute out[base + places[i]] += b[at + i] for i >= first."""
    base, at = np.uint64(base), np.uint64(at)
    for i in range(np.uint64(first), np.uint64(places.size)):
        out[base + np.uint64(places[i])] += b[at + i]


@inner
def add_row(out, base, ld, places, count, b, at):
    """Compute out[base + places[i] * ld] += b[at + i] for i < count."""
    base, ld, at = np.uint64(base), np.uint64(ld), np.uint64(at)
    for i in range(np.uint64(count)):
        out[base + np.uint64(places[i]) * ld] += b[at + i]


@inner
def multiply(a, at, count, factor):
    """Compute a[at + i] *= factor for i < count."""
    at = np.uint64(at)
    for i in range(np.uint64(count)):
        a[at + i] *= factor


@inner
def copy_times(out, to, a, at, count, factor):
    """Compute out[to + i] = a[at + i] * factor for i < count."""
    to, at = np.uint64(to), np.uint64(at)
    for i in range(np.uint64(count)):
        out[to + i] = a[at + i] * factor


@inner
def combine(out, first_out, second_out, a, first, second, count, d0, d1, b0, b1):
    """Set out[first_out + i] = x d0 + y b0, out[second_out + i] = x b1 + y d1 for i < count.

    x is a[first + i], y is a[second + i]; `out` may be `a`, with the same positions.
    """
    first_out, second_out, first, second = (
        np.uint64(first_out),
        np.uint64(second_out),
        np.uint64(first),
        np.uint64(second),
    )
    for i in range(np.uint64(count)):
        x, y = a[first + i], a[second + i]
        out[first_out + i], out[second_out + i] = x * d0 + y * b0, x * b1 + y * d1


@inner
def clear(a, at, count):
    """Set a[at + i] = 0 for i < count."""
    at = np.uint64(at)
    for i in range(np.uint64(count)):
        a[at + i] = 0


@inner
def within(a, at, count, bound):
    """Return whether all a[at + i], i < count, are at most `bound` in size; False for NaN."""
    at, good = np.uint64(at), True
    for i in range(np.uint64(count)):
        good &= size_of(a[at + i]) <= bound
    return good
