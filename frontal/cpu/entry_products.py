"""Products of two blocks of vectors at the entries of a sparse matrix.

The derivatives of solutions and determinants with respect to the values of A are such products
("sampled dense-dense matrix products").
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit


def entry_products(
    row: np.ndarray,
    column: np.ndarray,
    R: np.ndarray,
    C: np.ndarray,
    diagonal: float,
    beside: float,
) -> np.ndarray:
    """Return the product of row i of R and row j of C for each entry (i, j).

    Parameters
    ----------
    row, column : (count,) int32 arrays
        The entries, in any order.
    R, C : (n, k) arrays
        Of one scalar type.
    diagonal, beside : float
        Factors of the products on the diagonal and beside it.

    Returns
    -------
    (count,) array
    """
    out = np.empty(row.size, R.dtype)
    R, C = np.ascontiguousarray(R), np.ascontiguousarray(C)
    _entry_products(row, column, R, C, float(diagonal), float(beside), out)
    return out


@jit
def _entry_products(row, column, R, C, diagonal, beside, out):
    k = R.shape[1]
    for p in range(row.size):
        i, j = np.uint32(row[p]), np.uint32(column[p])
        total = R[i, 0] * C[j, 0]
        for c in range(1, k):
            total += R[i, c] * C[j, c]
        out[p] = total * (diagonal if i == j else beside)
