"""Checks of compressed columns: valid index arrays, sorted rows, finite values."""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit
from ..machine.threads import MIN_PARALLEL_ENTRIES, parallel_for
from . import norms

SORTED, UNSORTED, CORRUPT = 0, 1, 2


def inspect(indptr: np.ndarray, indices: np.ndarray) -> int:
    """Return `SORTED`, `UNSORTED` or, for invalid arrays, `CORRUPT`; rows must ascend strictly."""
    if indptr[0] != 0:
        return CORRUPT
    return max(parallel_for(lambda *bounds: _inspect_columns(indptr, indices, *bounds), indptr))


@jit
def _inspect_columns(indptr, indices, first, last):
    n = indptr.size - 1
    order = SORTED
    for j in range(first, last):
        if indptr[j] < 0 or indptr[j + 1] < indptr[j] or indptr[j + 1] > indices.size:
            return CORRUPT
        before = -1
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i < 0 or i >= n:
                return CORRUPT
            if i <= before:
                order = UNSORTED
            before = i
    return order


def first_non_finite(values: np.ndarray) -> int:
    """Return the position of the first NaN or infinity in a vector; -1 if none."""

    def finite(first: int, last: int) -> bool:
        with np.errstate(all="ignore"):  # finite values may overflow: False proves nothing
            return bool(np.isfinite(values[first:last].sum()))

    if values.size > MIN_PARALLEL_ENTRIES and all(parallel_for(finite, values.size)):
        return -1
    return norms.first_non_finite(values)
