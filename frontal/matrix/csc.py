"""Checks of compressed columns: valid index arrays, sorted rows."""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit
from ..machine.threads import parallel_for

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
