"""The columns of C in elimination order, and the products C C^H in the values of A."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating, jit
from ...matrix.csc import place_of


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
    def columns(self) -> int:
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


@jit
def products_in(indptr, indices, C, adding):
    """Return C C^H, or its negative, as values to be added to those of A, by columns.

    Returns
    -------
    places : int64 array
        Their positions among the values of A; repeated ones are summed. Transposed entries have
        conjugate values in the same order, so that a Hermitian matrix stays exactly Hermitian.
    values : array of the scalar type
    outside : (int, int)
        Row and column of the first entry that A does not store, or (-1, -1).
    """
    extent, rows, values = C
    total, q, none = 0, 0, np.int64(-1)
    for t in range(extent.size - 1):
        total += (extent[t + 1] - extent[t]) ** 2
    limit = min(total, 4 * indices.size + 4)  # first attempts often end at an entry outside
    places, products = np.empty(limit, np.int64), np.empty(limit, values.dtype)
    for t in range(extent.size - 1):
        for b in range(extent[t], extent[t + 1]):
            j, y = np.int64(rows[b]), np.conj(values[b] if adding else -values[b])
            for a in range(b, extent[t + 1]):
                i, product = np.int64(rows[a]), values[a] * y
                below, above = place_of(indptr, indices, i, j), place_of(indptr, indices, j, i)
                if below < 0 or above < 0:
                    return places, products, (i, j) if below < 0 else (j, i)
                if q + 2 > places.size and q < total:
                    places, products = _larger(places), _larger(products)
                places[q], products[q] = below, product if a > b else product.real
                q += 1
                if a > b:
                    places[q], products[q] = above, np.conj(product)
                    q += 1
    return places[:q], products[:q], (none, none)


@allocating
def _larger(array):
    """Return an array of twice the size that begins with the entries of another."""
    out = np.empty(2 * array.size + 2, array.dtype)
    out[: array.size] = array
    return out


@jit
def add_at(data, places, values, before, diagonal, rows, old):
    """Add values to data at some places.

    On return `before` contains data[places] as they were, and `old` the moduli of the diagonal
    entries data[diagonal[rows]] as they were.
    """
    for p in range(rows.size):
        old[p] = data[diagonal[rows[p]]].real
    for p in range(places.size):
        before[p] = data[places[p]]
    for p in range(places.size):
        data[places[p]] += values[p]


@jit
def put_back(data, places, before):
    """Undo `add_at`."""
    for p in range(places.size):
        data[places[p]] = before[p]


@jit
def set_row(indptr, indices, data, i, rows, values):
    """Replace row and column i of a Hermitian matrix by columns; the column is (rows, values).

    Return row and column of the first entry that the matrix does not store, or (-1, -1).
    """
    for p in range(indptr[i], indptr[i + 1]):
        data[p] = 0
        q = place_of(indptr, indices, np.int64(i), np.int64(indices[p]))
        if q >= 0:
            data[q] = 0
    for p in range(rows.size):
        row = np.int64(rows[p])
        below, above = (
            place_of(indptr, indices, row, np.int64(i)),
            place_of(indptr, indices, np.int64(i), row),
        )
        if below < 0 or above < 0:
            return row, np.int64(i)
        data[below] += values[p]
        if row != i:
            data[above] += np.conj(values[p])
    return np.int64(-1), np.int64(-1)
