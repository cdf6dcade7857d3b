"""Row and column scaling of a general matrix, by powers of two so that it rounds nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..cached import cached_property
from .matching import Matching, maximum_product_matching

if TYPE_CHECKING:
    from ..matrix import Canonical

_LARGEST = 1022  # exponent of a power of two whose inverse is a normal number, too
_ZERO = -(1 << 20)  # an exponent for zero, below all sums of others


@dataclass(frozen=True)
class Scaling:
    """Factors of the rows and of the columns, (n,) float64, in the numbering of A."""

    row: np.ndarray
    column: np.ndarray

    @cached_property
    def extreme(self) -> bool:
        """See `extreme`."""
        return extreme(self.row, self.column)


def scaling_of(matrix: Canonical, matching: Matching | None) -> Scaling:
    """Scaling of a matrix for LU, which begins with that of a matching.

    Where rows and columns both differ much in size, to make the largest entry of each row and then
    of each column 1 may leave entries of the diagonal that would be replaced as tiny pivots. A
    matching is then made for its scaling alone.
    """
    of = matrix.indptr, matrix.indices, matrix.data
    begin = (matching.row_scale, matching.col_scale) if matching else (None, None)
    row, column = equilibrate(*of, *begin)
    if matching is None:
        A = sp.csc_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        with np.errstate(over="ignore", under="ignore"):
            diagonal = np.abs(A.diagonal()) * row * column
        if diagonal.min(initial=1.0) < np.sqrt(np.finfo(matrix.dtype).eps):
            found = maximum_product_matching(A)
            row, column = equilibrate(*of, found.row_scale, found.col_scale)
    return Scaling(row, column)


def scaled(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
    """Values of diag(row) A diag(column), in the scalar type of A."""
    if extreme(row, column):
        by_row, by_column = (np.log2(a).astype(np.int64) for a in (row, column))
        exponent = by_row[indices] + np.repeat(by_column, np.diff(indptr))
        return shifted(data, exponent).astype(data.dtype, copy=False)
    factors = row[indices] * np.repeat(column, np.diff(indptr))
    return (data * factors).astype(data.dtype, copy=False)


def extreme(row: np.ndarray, column: np.ndarray) -> bool:
    """Whether the product of a row's and a column's factor may be no double precision number."""
    with np.errstate(over="ignore", under="ignore"):
        largest = row.max(initial=1.0) * column.max(initial=1.0)
        least = row.min(initial=1.0) * column.min(initial=1.0)
    return least < 2.0**-_LARGEST or largest > 2.0**_LARGEST


def shifted(M: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """M times 2^exponent, which broadcasts, in the double precision type of M."""
    if M.dtype.kind != "c":
        return np.ldexp(M.astype(np.float64, copy=False), exponent)
    out = np.empty(np.broadcast_shapes(M.shape, exponent.shape), np.complex128)
    np.real(out)[...], np.imag(out)[...] = (shifted(a, exponent) for a in (np.real(M), np.imag(M)))
    return out


def _largest(n: int, index: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Largest exponent of each row or column, 0 for an empty one."""
    largest = np.full(n, _ZERO)
    np.maximum.at(largest, index, exponent)
    return np.where(largest > _ZERO // 2, largest, 0)


def _exponents(x: np.ndarray) -> np.ndarray:
    """Exponent of the power of two nearest to each number, `_ZERO` for zero."""
    fraction, exponent = np.frexp(x)
    exponent = exponent.astype(np.int64) - (fraction < np.sqrt(0.5))
    return np.where(x > 0, exponent, _ZERO)


def _modulus(data: np.ndarray) -> np.ndarray:
    """Moduli, all of them numbers."""
    with np.errstate(over="ignore"):
        size = np.abs(data)
    if data.dtype.kind != "c" or np.isfinite(size).all():
        return size
    return np.where(
        np.isfinite(size), size, np.maximum(np.abs(np.real(data)), np.abs(np.imag(data)))
    )


def _powers(row: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two; what is too large in one goes over to the other."""
    ends = [a.max(initial=0) for a in (row, -row, column, -column)]
    if max(ends) > _LARGEST:
        shift = (row.max() + row.min() - column.max() - column.min()) // 4
        row, column = row - shift, column + shift
    row, column = (np.clip(a, -_LARGEST, _LARGEST).astype(np.int32) for a in (row, column))
    return np.ldexp(1.0, row), np.ldexp(1.0, column)


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
        Powers of two, whose inverses are numbers too.
    """
    n = indptr.size - 1
    by_row, by_column = (
        np.zeros(n, np.int64) if a is None else np.where(a > 0, _exponents(a), 0)
        for a in (row, column)
    )
    place = np.repeat(np.arange(n), np.diff(indptr))
    # exponents are added: the product of the powers may be no number
    size = _exponents(_modulus(data)) + by_row[indices] + by_column[place]
    gain = _largest(n, indices, size)
    size -= gain[indices]
    return _powers(by_row - gain, by_column - _largest(n, place, size))
