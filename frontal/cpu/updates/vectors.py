"""The columns of C in elimination order, and the products C C^H in the values of A."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner, jit
from ...matrix.csc import first_from


class SparseColumns(NamedTuple):
    """Sparse vectors of one scalar type, by columns; entries are finite and not zero.

    Attributes
    ----------
    indptr : (k + 1,) int64 array
    rows : int32 array
        In any order; repeated entries are summed.
    values : array of the scalar type
    """

    indptr: np.ndarray
    rows: np.ndarray
    values: np.ndarray

    @property
    def count(self) -> int:
        """Number of vectors."""
        return self.indptr.size - 1


def in_elimination_order(C: SparseColumns, position: np.ndarray) -> SparseColumns:
    """Return C with rows in elimination order, and columns of similar paths side by side.

    Parameters
    ----------
    C : SparseColumns
    position : (n,) int32 array
        Position of each row of A in elimination order.
    """
    return SparseColumns(*_in_elimination_order(*C, position))


@jit
def _in_elimination_order(indptr, rows, values, position):
    count = indptr.size - 1
    least, order = np.full(count, position.size, np.int32), np.arange(count)
    for t in range(count):
        for p in range(indptr[t], indptr[t + 1]):
            least[t] = min(least[t], position[rows[p]])
        i = t
        while i > 0 and least[order[i - 1]] > least[t]:
            order[i] = order[i - 1]
            i -= 1
        order[i] = t
    out, q = (np.empty_like(indptr), np.empty_like(rows), np.empty_like(values)), 0
    out[0][0] = 0
    for i in range(count):
        t = order[i]
        for p in range(indptr[t], indptr[t + 1]):
            out[1][q], out[2][q] = position[rows[p]], values[p]
            q += 1
        out[0][i + 1] = q
    return out


@inner
def _place_of(indptr, indices, i, j):
    """Return the position of entry (i, j) of a matrix by columns; -1 if it is not stored."""
    end = indptr[j + 1]
    p = first_from(indices, indptr[j], end, i)
    return p if p < end and indices[p] == i else np.int64(-1)


@jit
def add_products(indptr, indices, data, C, adding):
    """Add C C^H to the values of a matrix by columns, or subtract it, with exact symmetry.

    Return row and column of the first entry of C C^H that is not stored, or (-1, -1).
    """
    extent, rows, values = C
    for t in range(extent.size - 1):
        for b in range(extent[t], extent[t + 1]):
            j, y = np.int64(rows[b]), np.conj(values[b] if adding else -values[b])
            for a in range(b, extent[t + 1]):
                i = np.int64(rows[a])
                p, q = _place_of(indptr, indices, i, j), _place_of(indptr, indices, j, i)
                if p < 0 or q < 0:
                    return (i, j) if p < 0 else (j, i)
                product = values[a] * y
                if a == b:
                    data[p] += product.real
                else:
                    data[p] += product
                    data[q] += np.conj(product)
    return np.int64(-1), np.int64(-1)


@jit
def diagonal_places(indptr, indices, perm):
    """Return the position of each diagonal entry among the values of A, in elimination order.

    Every diagonal entry is stored, as in a matrix with a Cholesky factor.
    """
    out = np.empty(perm.size, np.int64)
    for k in range(perm.size):
        out[k] = _place_of(indptr, indices, np.int64(perm[k]), np.int64(perm[k]))
    return out
