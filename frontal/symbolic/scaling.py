"""Row and column scaling of a matrix, by powers of two so that it rounds nothing.

A method of one triangle scales rows and columns alike: by the geometric means of the factors that
a matching gives to a row and its column (Duff and Pralet 2005), or until the largest entry of each
row is near 1 (`equilibrate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compile.jit import brief, jit
from .equilibrate import (
    MAX_EXPONENT,
    ONE_BITS,
    equal,
    equal_rows,
    equilibrate,
    equilibrate_symmetric,
    exponents,
    larger_part,
    logarithms,
    modulus,
    powers,
)
from .matching import Matching, maximum_product_matching

if TYPE_CHECKING:
    from ..matrix.canonical import Canonical

UNEVEN_BELOW = 2.0**-10  # entries below it make a scaling uneven,
UNEVEN = 0.01  # if they are more than this share of all


@dataclass(eq=False)  # frozen ones take as long to make as all of a small solve
class Scaling:
    """Factors of the rows and of the columns, (n,) float64, in the numbering of A."""

    row: np.ndarray
    column: np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaling) and all(
            np.array_equal(a, b) for a, b in ((self.row, other.row), (self.column, other.column))
        )

    __hash__ = None  # type: ignore[assignment]


class ScalingRequest(NamedTuple):
    """What a scaling is to come from.

    Attributes
    ----------
    matching : Matching or None
        Of a matrix of the pattern, whose scaling is begun with.
    plain : bool
        From the largest entries alone, whatever these leave of others.
    """

    matching: Matching | None = None
    plain: bool = False


class Equilibrated(NamedTuple):
    """A scaling, and whether a matching would hardly give another."""

    scaling: Scaling
    even: bool


def scaling_of(matrix: Canonical, wanted: ScalingRequest, symmetric: bool) -> Scaling:
    """Scaling of a matrix for a method that seeks pivots.

    Where rows and columns both differ much in size, to make the largest entry of each row and then
    of each column 1 may leave entries of the diagonal that would be no pivots. A matching is then
    made for its scaling alone.

    Parameters
    ----------
    matrix : Canonical
    wanted : ScalingRequest
    symmetric : bool
        Rows and columns are scaled alike, by one array.
    """
    if wanted.plain or wanted.matching is not None:
        return _equilibrated(matrix, symmetric, None if wanted.plain else wanted.matching)[0]
    scaling, even = equilibrated(matrix, symmetric)
    if not even:
        with np.errstate(over="ignore", under="ignore"):
            diagonal = modulus(matrix.A.diagonal()) * scaling.row * scaling.column
        if wants_matching(diagonal.min(initial=1.0), matrix.dtype):
            matching = maximum_product_matching(matrix.A)
            return _equilibrated(matrix, symmetric, matching)[0]
    return scaling


def wants_matching(smallest: float, dtype: np.dtype) -> bool:
    """Whether the least entry of a diagonal is too small for an uneven scaling."""
    return bool(smallest < np.sqrt(np.finfo(dtype).eps))


def equilibrated(matrix: Canonical, symmetric: bool) -> Equilibrated:
    """Scale the largest entry of each row and column to 1.

    The scaling is called even where hardly any entry that is not zero is far below 1.
    """
    scaling, size = _equilibrated(matrix, symmetric, None)
    far = _far_below(matrix.indptr, matrix.indices, size, scaling.row, scaling.column)
    return Equilibrated(scaling, far <= UNEVEN * size.size)


def _equilibrated(
    matrix: Canonical, symmetric: bool, matching: Matching | None
) -> tuple[Scaling, np.ndarray]:
    """Such a scaling, from that of a matching on where there is one, and moduli."""
    pattern = matrix.indptr, matrix.indices
    size = modulus(matrix.data)
    begin = (matching.row_scale, matching.col_scale) if matching else (None, None)
    if not symmetric:
        return Scaling(*equilibrate(*pattern, size, *begin)), size
    both = equilibrate_symmetric(*pattern, size, *begin)
    return Scaling(both, both), size


@brief
def _far_below(indptr, indices, size, row, column):
    """How many entries but zeros are far below 1."""
    far = 0
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            product = np.float64(size[p]) * row[np.uint32(indices[p])] * column[j]
            far += (size[p] > 0) & (product < UNEVEN_BELOW)
    return far


def scaled(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
    """Values of diag(row) A diag(column), in the scalar type of A."""
    if extreme(row, column):
        by_row, by_column = (np.log2(a).astype(np.int64) for a in (row, column))
        exponent = by_row[indices] + np.repeat(by_column, np.diff(indptr))
        return shifted(data, exponent).astype(data.dtype, copy=False)
    out = np.empty_like(data)
    _multiply(indptr, indices, data, row, column, out)
    return out


@brief
def _multiply(indptr, indices, data, row, column, out):
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            out[p] = data[p] * (row[np.uint32(indices[p])] * column[j])


@brief
def extreme(row, column):
    """Whether the product of a row's and a column's factor may be no double precision number."""
    largest = smallest = highest = lowest = ONE_BITS
    for x in row.view(np.int64):  # bits of positive numbers are ordered as these are
        largest, smallest = max(largest, x), min(smallest, x)
    for x in column.view(np.int64):
        highest, lowest = max(highest, x), min(lowest, x)
    ends = np.array([smallest, lowest, largest, highest]).view(np.float64)
    return ends[0] * ends[1] < 2.0**-MAX_EXPONENT or ends[2] * ends[3] > 2.0**MAX_EXPONENT


def shifted(M: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """M times 2^exponent, which broadcasts, in the double precision type of M."""
    if M.dtype.kind != "c":
        return np.ldexp(M.astype(np.float64, copy=False), exponent)
    out = np.empty(np.broadcast_shapes(M.shape, exponent.shape), np.complex128)
    np.real(out)[...], np.imag(out)[...] = (shifted(a, exponent) for a in (np.real(M), np.imag(M)))
    return out


@jit
def scale_values(indptr, indices, data, row, column, symmetric, out):
    """As `equilibrated` and `scaled`, for compiled loops over matrices of one pattern.

    Parameters
    ----------
    indptr, indices, data : arrays
        A by columns.
    row, column : (n,) float64 arrays
        Scalings to begin with, 1 where there are none; they become those of A.
    alike : bool
        Rows and columns are scaled alike.
    out : (nnz,) array
        Gets the scaled values.

    Returns
    -------
    bool
        Whether the products of these factors are numbers; else `out` is not written.
    """
    size = np.empty(data.size)
    for p in range(data.size):
        size[p] = larger_part(data[p])
    if symmetric:
        scale = 0.5 * (np.log2(row) + np.log2(column))
        equal_rows(indptr, indices, logarithms(size.view(np.int64)), scale)
        row[:] = powers(np.rint(scale))
        column[:] = row
    else:
        initial = exponents(row), exponents(column)
        by_row, by_column = equal(indptr, indices, size.view(np.int64), *initial)
        row[:], column[:] = by_row, by_column
    if extreme(row, column):
        return False
    _multiply(indptr, indices, data, row, column, out)
    return True
