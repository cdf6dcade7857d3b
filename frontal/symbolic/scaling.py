"""Row and column scaling of a matrix, by powers of two so that it rounds nothing.

A method of one triangle scales rows and columns alike: by the geometric means of the factors that
a matching gives to a row and its column (Duff and Pralet 2005), or until the largest entry of each
row is near 1 (Ruiz, RAL-TR-2001-034).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._jit import brief, inner, jit
from ..cached import cached_property
from .matching import Matching, maximum_product_matching

if TYPE_CHECKING:
    from ..matrix import Canonical

_LARGEST = 1022  # exponent of a power of two whose inverse is a normal number, too
FAR = 2.0**-10  # entries below it make a scaling uneven,
UNEVEN = 0.01  # if they are more than this share of all
SWEEPS = 10  # each halves the decades between a row's largest entry and 1,
_NEAR = 0.5  # and one by less than this power of two is the last: they are rounded to whole ones
_ZERO = -(1 << 20)  # an exponent for zero, below all sums of others
# of a double: its fraction, the exponent of infinity, and the fraction of the root of 2
_FRACTION, _ENDLESS, _ROOT = (1 << 52) - 1, 0x7FF, 0x6A09E667F3BCD
_ONE = np.int64(0x3FF << 52)  # the bits of 1


@dataclass(frozen=True)
class Scaling:
    """Factors of the rows and of the columns, (n,) float64, in the numbering of A."""

    row: np.ndarray
    column: np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaling) and all(
            np.array_equal(a, b) for a, b in ((self.row, other.row), (self.column, other.column))
        )

    __hash__ = None  # type: ignore[assignment]

    @cached_property
    def extreme(self) -> bool:
        """See `extreme`."""
        return extreme(self.row, self.column)


class Equilibrated(NamedTuple):
    """A scaling, and whether a matching would hardly give another."""

    scaling: Scaling
    even: bool


def scaling_of(matrix: Canonical, matching: Matching | None, symmetric: bool) -> Scaling:
    """Scaling of a matrix for a method that seeks pivots, which begins with that of a matching.

    Where rows and columns both differ much in size, to make the largest entry of each row and then
    of each column 1 may leave entries of the diagonal that would be no pivots. A matching is then
    made for its scaling alone.

    Parameters
    ----------
    matrix : Canonical
    matching : Matching or None
        Of a matrix of this pattern.
    symmetric : bool
        Rows and columns are scaled alike, by one array.
    """
    if matching is not None:
        return _equilibrated(matrix, symmetric, matching)[0]
    scaling, even = equilibrated(matrix, symmetric)
    if not even:
        with np.errstate(over="ignore", under="ignore"):
            diagonal = np.abs(matrix.A.diagonal()) * scaling.row * scaling.column
        if diagonal.min(initial=1.0) < np.sqrt(np.finfo(matrix.dtype).eps):
            found = maximum_product_matching(matrix.A)
            return _equilibrated(matrix, symmetric, found)[0]
    return scaling


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
    of = matrix.indptr, matrix.indices
    size = _modulus(matrix.data)
    begin = (matching.row_scale, matching.col_scale) if matching else (None, None)
    if not symmetric:
        return Scaling(*equilibrate(*of, size, *begin)), size
    both = equilibrate_symmetric(*of, size, *begin)
    return Scaling(both, both), size


@brief
def _far_below(indptr, indices, size, row, column):
    """How many entries but zeros are far below 1."""
    far = 0
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            product = np.float64(size[p]) * row[np.uint32(indices[p])] * column[j]
            far += (size[p] > 0) & (product < FAR)
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
    largest = least = highest = lowest = _ONE
    for x in row.view(np.int64):  # bits of positive numbers are ordered as these are
        largest, least = max(largest, x), min(least, x)
    for x in column.view(np.int64):
        highest, lowest = max(highest, x), min(lowest, x)
    ends = np.array([least, lowest, largest, highest]).view(np.float64)
    return ends[0] * ends[1] < 2.0**-_LARGEST or ends[2] * ends[3] > 2.0**_LARGEST


def shifted(M: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """M times 2^exponent, which broadcasts, in the double precision type of M."""
    if M.dtype.kind != "c":
        return np.ldexp(M.astype(np.float64, copy=False), exponent)
    out = np.empty(np.broadcast_shapes(M.shape, exponent.shape), np.complex128)
    np.real(out)[...], np.imag(out)[...] = (shifted(a, exponent) for a in (np.real(M), np.imag(M)))
    return out


@jit
def _gains(indptr, indices, size, by_row, by_column):
    """Exponents of the largest entry of each row, and then of each column; 0 for empty ones."""
    n = indptr.size - 1
    of_row, of_column = np.full(n, _ZERO), np.zeros(n, np.int64)
    for j in range(n):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i = np.uint32(indices[p])
            of_row[i] = max(of_row[i], size[p] + by_row[i] + by_column[j])
    for i in range(n):
        if of_row[i] <= _ZERO // 2:
            of_row[i] = 0
    for j in range(n):
        largest = _ZERO
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i = np.uint32(indices[p])
            largest = max(largest, size[p] + by_row[i] + by_column[j] - of_row[i])
        of_column[j] = largest if largest > _ZERO // 2 else 0
    return of_row, of_column


@inner
def _exponent(bits):
    """Exponent of the power of two nearest to a positive number of such bits, `_ZERO` for zero."""
    exponent, fraction = bits >> 52, bits & _FRACTION
    if exponent == _ENDLESS:
        return 0 if fraction == 0 else _ZERO
    if exponent == 0:
        if fraction == 0:
            return _ZERO
        exponent += 1
        while fraction >> 52 == 0:
            fraction, exponent = fraction << 1, exponent - 1
        fraction &= _FRACTION
    return exponent - 1022 - (fraction < _ROOT)


def _modulus(data: np.ndarray) -> np.ndarray:
    """Moduli, all of them numbers."""
    if data.dtype.kind != "c":
        return np.abs(data)
    with np.errstate(over="ignore"):
        size = np.abs(data)
    if np.isfinite(size).all():
        return size
    return np.where(
        np.isfinite(size), size, np.maximum(np.abs(np.real(data)), np.abs(np.imag(data)))
    )


@inner
def _take_over(row, column):
    """Let one side of a scaling have what is too large in the other one."""
    n = row.size
    largest, least, highest, lowest = row[0], row[0], column[0], column[0]
    for i in range(n):
        largest, least = max(largest, row[i]), min(least, row[i])
        highest, lowest = max(highest, column[i]), min(lowest, column[i])
    if max(max(largest, -least), max(highest, -lowest)) > _LARGEST:
        shift = (largest + least - highest - lowest) // 4
        for i in range(n):
            row[i], column[i] = row[i] - shift, column[i] + shift


@brief
def _powers(exponent):
    """Powers of two, whose inverses are numbers too."""
    bits = np.empty(exponent.size, np.int64)
    for i in range(bits.size):
        bits[i] = _ONE + (min(max(np.int64(exponent[i]), -_LARGEST), _LARGEST) << 52)
    return bits.view(np.float64)


@brief
def _equal(indptr, indices, bits, by_row, by_column):
    """See `equilibrate`: for bits of moduli, and exponents to begin with, which it changes."""
    size = np.empty(bits.size, np.int64)
    for p in range(bits.size):
        size[p] = _exponent(bits[p])
    of_row, of_column = _gains(indptr, indices, size, by_row, by_column)
    for i in range(by_row.size):
        by_row[i], by_column[i] = by_row[i] - of_row[i], by_column[i] - of_column[i]
    if by_row.size > 0:
        _take_over(by_row, by_column)
    return _powers(by_row), _powers(by_column)


@brief
def _exponents(x):
    """Exponent of the power of two nearest to each number, 0 for what is not positive."""
    out = np.zeros(x.size, np.int64)
    bits = x.view(np.int64)
    for i in range(x.size):
        if x[i] > 0:
            out[i] = _exponent(bits[i])
    return out


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
    by_row, by_column = (
        np.zeros(indptr.size - 1, np.int64) if a is None else _exponents(a) for a in (row, column)
    )
    # exponents are added: the product of the powers may be no number
    bits = _modulus(data).astype(np.float64, copy=False).view(np.int64)
    return _equal(indptr, indices, bits, by_row, by_column)


@brief
def _logarithms(bits):
    """Those to base 2, but for 0.09, of moduli of such bits; -inf for zero and what is no number.

    An exponent and its fraction are the logarithm up to that, which is far below a power of two.
    """
    out, tiny = np.empty(bits.size), False
    for p in range(bits.size):
        number = (bits[p] > 0) & (bits[p] < _ENDLESS << 52)
        tiny |= number & (bits[p] <= _FRACTION)
        out[p] = bits[p] * 2.0**-52 - 1023 if number else -np.inf
    if tiny:
        for p in range(bits.size):
            if 0 < bits[p] <= _FRACTION:  # of a subnormal number the fraction is all
                out[p] = np.log2(bits[p]) - 1074
    return out


@jit
def _equal_rows(indptr, indices, size, scale):
    """Change the exponents of rows and columns alike until the largest of each row is near 0."""
    n = scale.size
    gain = np.empty(n)
    for _ in range(SWEEPS):
        far = 0.0
        for j in range(n):
            largest = -np.inf
            for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
                largest = max(largest, size[p] + scale[np.uint32(indices[p])])
            gain[j] = 0.5 * (largest + scale[j]) if largest > -np.inf else 0.0
            far = max(far, abs(gain[j]))
        for j in range(n):
            scale[j] -= gain[j]
        if far < _NEAR:
            break


def equilibrate_symmetric(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    row: np.ndarray | None = None,
    column: np.ndarray | None = None,
) -> np.ndarray:
    """One scaling of rows and columns that brings the largest entry of each of them near 1.

    Parameters
    ----------
    indptr, indices, data : arrays
        A by columns, (n, n), its moduli symmetric.
    row, column : (n,) float arrays, optional
        Scalings whose geometric mean is begun with, such as those of a matching.

    Returns
    -------
    (n,) float64 array
        Powers of two, whose inverses are numbers too.
    """
    scale = np.zeros(indptr.size - 1)
    if row is not None and column is not None:
        scale = 0.5 * (np.log2(row) + np.log2(column))
    modulus = _modulus(data).astype(np.float64, copy=False)
    _equal_rows(indptr, indices, _logarithms(modulus.view(np.int64)), scale)
    return _powers(np.rint(scale))


@jit
def scale_values(indptr, indices, data, row, column, alike, out):
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
    modulus = np.empty(data.size)
    for p in range(data.size):
        modulus[p] = np.abs(data[p])
    if alike:
        scale = 0.5 * (np.log2(row) + np.log2(column))
        _equal_rows(indptr, indices, _logarithms(modulus.view(np.int64)), scale)
        row[:] = _powers(np.rint(scale))
        column[:] = row
    else:
        of = _exponents(row), _exponents(column)
        by_row, by_column = _equal(indptr, indices, modulus.view(np.int64), *of)
        row[:], column[:] = by_row, by_column
    if extreme(row, column):
        return False
    _multiply(indptr, indices, data, row, column, out)
    return True
