"""Norms, the first value that is not finite, and the minimum, each in one pass."""

from __future__ import annotations

import numpy as np

from ..compile.jit import brief
from ..machine.threads import MIN_PARALLEL_ENTRIES, parallel_for


@brief
def norms(indptr, indices, data):
    """Return the infinity norm and the 1-norm of a matrix by columns."""
    rows, largest_sum = np.zeros(indptr.size - 1), 0.0
    for j in range(rows.size):
        column = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            size = np.float64(np.abs(data[p]))
            rows[indices[p]] += size
            column += size
        if column > largest_sum or column != column:
            largest_sum = column
    infinity = 0.0
    for i in range(rows.size):
        if rows[i] > infinity or rows[i] != rows[i]:
            infinity = rows[i]
    return infinity, largest_sum


def first_non_finite(values: np.ndarray) -> int:
    """Return the position of the first NaN or infinity in a vector; -1 if none."""

    def finite(first: int, last: int) -> bool:
        with np.errstate(all="ignore"):  # finite values may overflow: False proves nothing
            return bool(np.isfinite(values[first:last].sum()))

    if values.size > MIN_PARALLEL_ENTRIES and all(parallel_for(finite, values.size)):
        return -1
    return _first_non_finite(values)


@brief
def _first_non_finite(values):
    bad = False
    for p in range(values.size):
        bad |= not np.isfinite(values[p])
    if bad:
        for p in range(values.size):
            if not np.isfinite(values[p]):
                return p
    return -1


@brief
def least(values):
    """Return the minimum of 1 and the values; NaN if one is NaN."""
    smallest = 1.0
    for x in values:
        smallest = x if x < smallest or x != x else smallest
        if smallest != smallest:
            break
    return smallest
