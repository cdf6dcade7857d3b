"""Scaling by which the logarithms of all entries are nearest to zero (Curtis and Reid 1972).

It is the same for A and for D_1 A D_2, up to rounding to powers of two: what is said of the matrix
that it gives, as that it is singular to working precision, does not depend on units.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

_STEPS = 100
_MOST = 900  # powers of two that entries may be moved by


def balance(A: sp.csc_array) -> tuple[np.ndarray, np.ndarray]:
    """Exponents of a row and column scaling of A, (n,) int64.

    Least squares in the logarithms, by conjugate gradients on the equations of the columns.
    """
    size = np.abs(A.data).astype(np.float64)
    there = size > 0
    logs = np.log2(np.where(there, size, 1.0))
    parts = (A.indices, A.indptr)
    pattern, L = (
        sp.csc_array((data, *parts), shape=A.shape) for data in (there.astype(np.float64), logs)
    )
    ones = np.ones(A.shape[0])
    in_rows, in_columns = (np.maximum(P @ ones, 1) for P in (pattern, pattern.T))
    sums = L @ ones

    def reduced(c: np.ndarray) -> np.ndarray:
        return in_columns * c - pattern.T @ ((pattern @ c) / in_rows)

    c = np.zeros(A.shape[0])
    r = pattern.T @ (sums / in_rows) - L.T @ ones
    p = z = r / in_columns
    product = r @ z
    for _ in range(_STEPS):
        if not product > 1e-3 * c.size:
            break
        image = reduced(p)
        step = product / (p @ image)
        c, r = c + step * p, r - step * image
        z = r / in_columns
        product, before = r @ z, product
        p = z + (product / before) * p
    row = -(sums + pattern @ c) / in_rows
    row, column = (np.clip(np.round(a), -_MOST, _MOST).astype(np.int64) for a in (row, c))
    return row, column
