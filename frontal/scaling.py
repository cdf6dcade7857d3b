"""Row and column scaling of a general matrix, by powers of two so that it rounds nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scaling:
    """Factors of the rows and of the columns, (n,) float64, in the numbering of A."""

    row: np.ndarray
    column: np.ndarray


def scaled(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
    """Values of diag(row) A diag(column), in the scalar type of A."""
    factors = row[indices] * np.repeat(column, np.diff(indptr))
    return (data * factors).astype(data.dtype, copy=False)


def _largest(n: int, index: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Largest entry of each row or column."""
    largest = np.zeros(n)
    np.maximum.at(largest, index, size)
    return largest


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
    by_column = np.repeat(np.arange(n), np.diff(indptr))
    size = np.abs(data) * (row[indices] * column[by_column])
    gain = _power_of_two(_largest(n, indices, size))
    size *= gain[indices]
    return row * gain, column * _power_of_two(_largest(n, by_column, size))
