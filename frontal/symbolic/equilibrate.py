"""Exponents of powers of two that bring the largest entry of each row and column near 1.

Rows and then columns, or both alike by turns (Ruiz, RAL-TR-2001-034). All of it is exact but for
sums that are rounded as IEEE 754 has it: every device finds the same (sparse/equilibrate.cu).
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import brief, inner, jit

MAX_EXPONENT = 1022  # exponent of a power of two whose inverse is a normal number, too
SWEEPS = 10  # each halves the decades between a row's largest entry and 1,
_CONVERGED_BELOW = (
    0.5  # and one by less than this power of two is the last: they are rounded to whole ones
)
_ZERO = -(1 << 20)  # an exponent for zero, below all sums of others
# bits of a double: the fraction, those of infinity, and the fraction of the root of 2
_FRACTION, _ENDLESS, _ROOT = (1 << 52) - 1, 0x7FF << 52, 0x6A09E667F3BCD
ONE_BITS = np.int64(0x3FF << 52)  # the bits of 1


def modulus(data: np.ndarray) -> np.ndarray:
    """Moduli, of complex numbers those of their larger parts, which every device has alike."""
    if data.dtype.kind != "c":
        return np.abs(data)
    return np.maximum(np.abs(np.real(data)), np.abs(np.imag(data)))


@inner
def larger_part(x):
    """As `modulus`, of one number."""
    return max(abs(x.real), abs(x.imag))


@inner
def _exponent(bits):
    """Exponent of the power of two nearest to a positive number of such bits, `_ZERO` for zero."""
    if bits >= _ENDLESS:
        return 0 if bits == _ENDLESS else _ZERO
    if bits == 0:
        return _ZERO
    bits = _normal(bits)
    return (bits >> 52) - 1022 - ((bits & _FRACTION) < _ROOT)


@inner
def _normal(bits):
    """Bits of a positive number as if all had fractions of so many places: below 0 for small ones.

    The logarithm to base 2 of the number is that of these bits over 2^52, less 1023, but for 0.09.
    """
    if bits > _FRACTION:
        return bits
    places = 0
    while bits >> 52 == 0:
        bits, places = bits << 1, places + 1
    return bits - (places << 52)


@brief
def exponents(x):
    """Exponent of the power of two nearest to each number, 0 for what is not positive."""
    out = np.zeros(x.size, np.int64)
    bits = x.view(np.int64)
    for i in range(x.size):
        if x[i] > 0:
            out[i] = _exponent(bits[i])
    return out


@brief
def powers(exponent):
    """Powers of two, whose inverses are numbers too."""
    bits = np.empty(exponent.size, np.int64)
    for i in range(bits.size):
        bits[i] = ONE_BITS + (min(max(np.int64(exponent[i]), -MAX_EXPONENT), MAX_EXPONENT) << 52)
    return bits.view(np.float64)


@jit
def _gains(indptr, indices, size, by_row, by_column):
    """Exponents of the largest entry of each row, and then of each column; 0 for empty ones."""
    n = indptr.size - 1
    row_gain, column_gain = np.full(n, _ZERO), np.zeros(n, np.int64)
    for j in range(n):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i = np.uint32(indices[p])
            row_gain[i] = max(row_gain[i], size[p] + by_row[i] + by_column[j])
    for i in range(n):
        if row_gain[i] <= _ZERO // 2:
            row_gain[i] = 0
    for j in range(n):
        largest = _ZERO
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            i = np.uint32(indices[p])
            largest = max(largest, size[p] + by_row[i] + by_column[j] - row_gain[i])
        column_gain[j] = largest if largest > _ZERO // 2 else 0
    return row_gain, column_gain


@inner
def _balance(row, column):
    """Let one side of a scaling have what is too large in the other one."""
    n = row.size
    largest, smallest, highest, lowest = row[0], row[0], column[0], column[0]
    for i in range(n):
        largest, smallest = max(largest, row[i]), min(smallest, row[i])
        highest, lowest = max(highest, column[i]), min(lowest, column[i])
    if max(max(largest, -smallest), max(highest, -lowest)) > MAX_EXPONENT:
        shift = (largest + smallest - highest - lowest) // 4
        for i in range(n):
            row[i], column[i] = row[i] - shift, column[i] + shift


@brief
def equal(indptr, indices, bits, by_row, by_column):
    """See `equilibrate`: for bits of moduli, and exponents to begin with, which it changes."""
    size = np.empty(bits.size, np.int64)
    for p in range(bits.size):
        size[p] = _exponent(bits[p])
    row_gain, column_gain = _gains(indptr, indices, size, by_row, by_column)
    for i in range(by_row.size):
        by_row[i], by_column[i] = by_row[i] - row_gain[i], by_column[i] - column_gain[i]
    if by_row.size > 0:
        _balance(by_row, by_column)
    return powers(by_row), powers(by_column)


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
        np.zeros(indptr.size - 1, np.int64) if a is None else exponents(a) for a in (row, column)
    )
    # exponents are added: the product of the powers may be no number
    bits = modulus(data).astype(np.float64, copy=False).view(np.int64)
    return equal(indptr, indices, bits, by_row, by_column)


def mean_exponents(row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Those of the geometric means of the factors of rows and columns, not rounded."""
    return 0.5 * (np.log2(row) + np.log2(column))


@brief
def logarithms(bits):
    """Those to base 2, but for 0.09, of moduli of such bits; -inf where these are no numbers."""
    out, tiny = np.empty(bits.size), False
    for p in range(bits.size):
        number = (bits[p] > 0) & (bits[p] < _ENDLESS)
        tiny |= number & (bits[p] <= _FRACTION)
        out[p] = bits[p] * 2.0**-52 - 1023 if number else -np.inf
    if tiny:
        for p in range(bits.size):
            if 0 < bits[p] <= _FRACTION:
                out[p] = _normal(bits[p]) * 2.0**-52 - 1023
    return out


@jit
def equal_rows(indptr, indices, size, scale):
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
        if far < _CONVERGED_BELOW:
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
        scale = mean_exponents(row, column)
    size = modulus(data).astype(np.float64, copy=False)
    equal_rows(indptr, indices, logarithms(size.view(np.int64)), scale)
    return powers(np.rint(scale))
