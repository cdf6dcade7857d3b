"""Exponents of powers of two that scale the largest entry of each row and column to about 1.

Rows are scaled first and then columns, or both together in repeated sweeps (Ruiz,
RAL-TR-2001-034). All operations are exact except sums, which are rounded by IEEE 754: every
device computes the same result (sparse/equilibrate.cu).
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import brief, inner, jit

MAX_EXPONENT = 1022  # largest exponent of a power of two whose inverse is also a normal number
SWEEPS = 10  # most sweeps; each halves the exponent of a row's largest entry
_CONVERGED_BELOW = (
    0.5  # largest change of an exponent in the last sweep: exponents are rounded to integers
)
_ZERO = -(1 << 20)  # exponent of zero, below all sums of other exponents
# bits of a double: the fraction, infinity, and the fraction of the square root of 2
_FRACTION, _ENDLESS, _ROOT = (1 << 52) - 1, 0x7FF << 52, 0x6A09E667F3BCD
ONE_BITS = np.int64(0x3FF << 52)  # the bits of 1


def modulus(data: np.ndarray) -> np.ndarray:
    """Return moduli; for complex numbers the larger part's modulus, equal on every device."""
    if data.dtype.kind != "c":
        return np.abs(data)
    return np.maximum(np.abs(np.real(data)), np.abs(np.imag(data)))


@inner
def larger_part(x):
    """Return `modulus` of one number."""
    return max(abs(x.real), abs(x.imag))


@inner
def _exponent(bits):
    """Return the exponent of the power of two nearest to a number >= 0 with these bits.

    The result is `_ZERO` for zero and NaN, and 0 for infinity.
    """
    if bits >= _ENDLESS:
        return 0 if bits == _ENDLESS else _ZERO
    if bits == 0:
        return _ZERO
    bits = _normal(bits)
    return (bits >> 52) - 1022 - ((bits & _FRACTION) < _ROOT)


@inner
def _normal(bits):
    """Return the bits of a positive number; for a subnormal one, with a normalized fraction.

    The exponent field of small subnormal numbers becomes negative. The base-2 logarithm of the
    number is the result over 2^52, minus 1023, to within 0.09.
    """
    if bits > _FRACTION:
        return bits
    places = 0
    while bits >> 52 == 0:
        bits, places = bits << 1, places + 1
    return bits - (places << 52)


@brief
def exponents(x):
    """Return the exponent of the power of two nearest to each number, 0 if not positive."""
    out = np.zeros(x.size, np.int64)
    bits = x.view(np.int64)
    for i in range(x.size):
        if x[i] > 0:
            out[i] = _exponent(bits[i])
    return out


@brief
def powers(exponent):
    """Return powers of two, with exponents limited so that their inverses are normal numbers."""
    bits = np.empty(exponent.size, np.int64)
    for i in range(bits.size):
        bits[i] = ONE_BITS + (min(max(np.int64(exponent[i]), -MAX_EXPONENT), MAX_EXPONENT) << 52)
    return bits.view(np.float64)


@jit
def _gains(indptr, indices, size, by_row, by_column):
    """Return exponents of the largest entry of each row, then of each column; 0 for empty ones."""
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
    """Shift exponents between rows and columns if one exceeds `MAX_EXPONENT`."""
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
    """Compute `equilibrate` from bits of moduli; overwrite the initial exponents."""
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
    """Return scalings that bring the largest entry of every row and column to about 1.

    Parameters
    ----------
    indptr, indices, data : arrays
        A by columns, (n, n).
    row, column : (n,) float arrays, optional
        Initial scalings, such as those of a maximum-product matching.

    Returns
    -------
    row, column : (n,) float64 arrays
        Powers of two whose inverses are normal numbers.
    """
    by_row, by_column = (
        np.zeros(indptr.size - 1, np.int64) if a is None else exponents(a) for a in (row, column)
    )
    # exponents are added, since the product of the powers may overflow
    bits = modulus(data).astype(np.float64, copy=False).view(np.int64)
    return equal(indptr, indices, bits, by_row, by_column)


def mean_exponents(row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return exponents of the geometric means of row and column factors, not rounded."""
    return 0.5 * (np.log2(row) + np.log2(column))


@brief
def logarithms(bits):
    """Return base-2 logarithms of moduli from their bits, to within 0.09; -inf for 0, inf, NaN."""
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
    """Change the common exponents of rows and columns until each row's largest is about 0."""
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
    """Return one scaling of rows and columns that brings the largest entry of each to about 1.

    Parameters
    ----------
    indptr, indices, data : arrays
        A by columns, (n, n), with symmetric moduli.
    row, column : (n,) float arrays, optional
        Scalings whose geometric mean is the initial scaling, such as those of a matching.

    Returns
    -------
    (n,) float64 array
        Powers of two whose inverses are normal numbers.
    """
    scale = np.zeros(indptr.size - 1)
    if row is not None and column is not None:
        scale = mean_exponents(row, column)
    size = modulus(data).astype(np.float64, copy=False)
    equal_rows(indptr, indices, logarithms(size.view(np.int64)), scale)
    return powers(np.rint(scale))
