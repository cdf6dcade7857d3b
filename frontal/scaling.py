"""Row and column scaling of a general matrix, by powers of two so that it rounds nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._jit import jit


@dataclass(frozen=True)
class Scaling:
    """Factors of the rows and of the columns, (n,) float64, in the numbering of A."""

    row: np.ndarray
    column: np.ndarray


@jit
def _largest(indptr, indices, data, row, column):
    """Largest modulus of each row and of each column of diag(row) A diag(column)."""
    n = column.size
    by_row = np.zeros(n)
    by_column = np.zeros(n)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            size = abs(data[p]) * row[i] * column[j]
            by_row[i] = max(by_row[i], size)
            by_column[j] = max(by_column[j], size)
    return by_row, by_column


@jit
def scaled(indptr, indices, data, row, column):
    """Values of diag(row) A diag(column), in the scalar type of A."""
    out = np.empty_like(data)
    for j in range(column.size):
        for p in range(indptr[j], indptr[j + 1]):
            out[p] = data[p] * (row[indices[p]] * column[j])
    return out


def _power_of_two(x: np.ndarray) -> np.ndarray:
    """The power of two nearest to 1/x, 1 where x is zero."""
    return np.exp2(-np.round(np.log2(np.where(x > 0, x, 1.0))))


def equilibrate(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    row: np.ndarray | None = None,
    column: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scalings that bring the largest entry of every row and column near 1.

    Parameters
    ----------
    indptr, indices, data : arrays
        A by columns, (n, n).
    row, column : (n,) float arrays, optional
        Scalings to begin with, such as those of a maximum-product matching.

    Returns
    -------
    row, column : (n,) float64 arrays
        Powers of two.
    """
    n = indptr.size - 1
    row = np.ones(n) if row is None else 1 / _power_of_two(row)
    column = np.ones(n) if column is None else 1 / _power_of_two(column)
    by_row, _ = _largest(indptr, indices, data, row, column)
    row = row * _power_of_two(by_row)
    _, by_column = _largest(indptr, indices, data, row, column)
    return row, column * _power_of_two(by_column)
