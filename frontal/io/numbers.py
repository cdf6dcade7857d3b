"""Decimal numbers in text, rounded to the nearest float64, as Fortran and C write them.

Up to 2^53 and 10^22 one division or product is exact (Clinger, PLDI 1990); beyond, the product with
the upper 128 bits of a power of five decides (Lemire, Software: Practice and Experience 51, 2021).
With more than 19 digits a tie may remain open: `decimal` decides it.
"""

from __future__ import annotations

import re
import sys

import numpy as np

from ..compile.jit import forced, inner
from .instructions import (
    byte,
    eight_bytes,
    float64_from_bits,
    high_product,
    leading_zeros,
    trailing_zeros,
)

OK, NOT_A_NUMBER, TOO_LARGE, HARD = range(4)  # codes of `parse_number`
NOT_AN_INTEGER, INEXACT = 4, 5  # further codes of `parse_integer`

SPACE, TAB, LINE_END, RETURN = ord(" "), ord("\t"), ord("\n"), ord("\r")
PLUS, MINUS, POINT = ord("+"), ord("-"), ord(".")
_E, _D, _Q = map(ord, "edq")
_LOWER = 32  # bit that converts a capital letter to lower case
_MAX_DIGITS = 19  # digits that always fit into uint64
_MAX_EXPONENT = 1 << 40  # larger exponents are clipped to this one, which is far out of range
_MIN_POWER, _MAX_POWER = -342, 308  # powers of ten for which a number of 19 digits is in range
_FRACTION = 52  # bits of the fraction of a float64
_MAX_EXACT_INTEGER = np.uint64(1 << 53)  # all integers up to this one are exact in float64
_ROUNDED_BITS = np.uint64(0x7FF)  # bits of a normalized integer beyond the precision of float64
_MAX_TENTH, _MAX_SIGNED = np.uint64((1 << 64) // 10), np.uint64((1 << 63) - 1)
_MAX_INDEX = 1 << 62  # stands for all larger integers, which index no matrix
LITTLE_ENDIAN = sys.byteorder == "little"  # whether eight digits can be read at once
_HIGH, _PAIRS = np.uint64(0xF0F0F0F0F0F0F0F0), np.uint64(0x000000FF000000FF)
_DECIMAL = re.compile(
    r"([+-]?)(?:(\d+\.?\d*|\.\d+)(?:[edq]([+-]?\d+)|([+-]\d+))?|(inf|infinity|nan))",
    re.ASCII | re.IGNORECASE,
)


def _powers_of_five() -> np.ndarray:
    """Return the upper 128 bits of 5^q as pairs of uint64, reciprocals rounded up."""
    powers = np.empty((_MAX_POWER - _MIN_POWER + 1, 2), np.uint64)
    for q in range(_MIN_POWER, _MAX_POWER + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        if q >= 0:
            leading = power << 128 - bits if bits <= 128 else power >> bits - 128
        else:
            leading = (1 << bits + 127) // power + 1
            leading >>= leading.bit_length() - 128
        powers[q - _MIN_POWER] = leading >> 64, leading & (1 << 64) - 1
    return powers


_FIVES = _powers_of_five()
_TENS = np.array([float(10**q) for q in range(23)])
_POWERS = np.array([10**q for q in range(9)], np.uint64)


@forced
def _read_digits(text, p, last, value):
    """Append decimal digits, eight at a time, to a uint64; return their end, and the value."""
    while LITTLE_ENDIAN and p + 8 <= last:
        word = eight_bytes(text, p) ^ np.uint64(0x3030303030303030)
        others = (word | (word + np.uint64(0x0606060606060606))) & _HIGH
        bits = trailing_zeros(others) & np.uint64(0x78)  # bits of digits before another character
        if bits == np.uint64(0):
            return p, value
        word = word << (np.uint64(64) - bits)  # leading zeros
        word = word * np.uint64(10) + (word >> np.uint64(8))
        even = (word & _PAIRS) * np.uint64(0x000F424000000064)
        odd = (word >> np.uint64(16) & _PAIRS) * np.uint64(0x0000271000000001)
        count = np.int64(bits >> np.uint64(3))
        value = value * _POWERS[count] + (even + odd >> np.uint64(32))
        p += count
        if count < 8:
            return p, value
    while p < last and 48 <= byte(text, p) <= 57:
        value = value * np.uint64(10) + np.uint64(byte(text, p) - 48)
        p += 1
    return p, value


@forced
def _nearest(digits, power):
    """Return the float64 nearest to digits · 10^power, for digits exact in 64 bits."""
    if digits == np.uint64(0) or power < _MIN_POWER:
        return 0.0
    if power > _MAX_POWER:
        return np.inf
    zeros = leading_zeros(digits)
    shifted = digits << zeros
    five = _FIVES[power - _MIN_POWER]
    high, low = high_product(shifted, five[0]), shifted * five[0]
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):
        more = high_product(shifted, five[1])
        low += more
        if more > low:
            high += np.uint64(1)
    upper = high >> np.uint64(63)
    shift = upper + np.uint64(64 - _FRACTION - 3)
    fraction = high >> shift
    exponent = ((217706 * power) >> 16) + 63 + np.int64(upper) - np.int64(zeros) + 1023
    if exponent <= 0:  # subnormal, or rounds up to the smallest normal number
        if exponent <= -63:
            return 0.0
        fraction >>= np.uint64(1 - exponent)
        return float64_from_bits((fraction + (fraction & np.uint64(1))) >> np.uint64(1))
    tie = low <= np.uint64(1) and -4 <= power <= 23 and fraction & np.uint64(3) == np.uint64(1)
    if tie and fraction << shift == high:
        fraction -= np.uint64(1)
    fraction = (fraction + (fraction & np.uint64(1))) >> np.uint64(1)
    bits = (np.uint64(exponent - 1) << np.uint64(_FRACTION)) + fraction
    return float64_from_bits(bits) if exponent < 2047 else np.inf


@forced
def _rounded(digits, power):
    """Return the result of `_nearest`; by one product or quotient if that is exact."""
    if digits <= _MAX_EXACT_INTEGER and -22 <= power <= 22:
        value = np.float64(digits)
        return value / _TENS[-power] if power < 0 else value * _TENS[power]
    return _nearest(digits, power)


@inner
def _truncated(text, first, last, power):
    """Return code and modulus of a number of more than 19 digits in ``text[first:last]``."""
    digits, count, dropped, rest = np.uint64(0), 0, 0, False
    for p in range(first, last):
        digit = byte(text, p) - 48
        if digit < 0 or (digit == 0 and count == 0):
            continue  # the decimal point, or a leading zero
        if count < _MAX_DIGITS:
            digits = digits * np.uint64(10) + np.uint64(digit)
            count += 1
        else:
            dropped += 1
            rest |= digit > 0
    value = _nearest(digits, power + dropped)
    if rest and value != _nearest(digits + np.uint64(1), power + dropped):
        return HARD, value
    return OK, value


@inner
def _special(text, first, last):
    """Return end and value of inf, infinity or nan; the end is `first` if it is none of these."""
    inf, nan, end = (105, 110, 102, 105, 110, 105, 116, 121), (110, 97, 110), 0
    while end < 8 and first + end < last and byte(text, first + end) | _LOWER == inf[end]:
        end += 1
    if end >= 3:
        return first + (8 if end == 8 else 3), np.inf
    end = 0
    while end < 3 and first + end < last and byte(text, first + end) | _LOWER == nan[end]:
        end += 1
    return first + (3 if end == 3 else 0), np.nan


@inner
def _exponent(text, first, last):
    """Return end and value of an exponent; the end is `first` if there is none.

    As in Fortran, an exponent begins with E, D or Q, or with a sign.
    """
    p, letter = first, byte(text, first) | _LOWER
    if letter != _E and letter != _D and letter != _Q:
        if byte(text, p) != PLUS and byte(text, p) != MINUS:
            return first, 0
    else:
        p += 1
    negative = p < last and byte(text, p) == MINUS
    if p < last and (negative or byte(text, p) == PLUS):
        p += 1
    begin, value = p, 0
    while p < last and 48 <= byte(text, p) <= 57:
        value = min(10 * value + byte(text, p) - 48, _MAX_EXPONENT)
        p += 1
    if p == begin:
        return first, 0
    return p, -value if negative else value


@forced
def parse_number(text, first, last, decimals, scale):
    """Parse a number that begins at `first`.

    Parameters
    ----------
    text : int
        Address of the text.
    first, last : int
        Offsets; the number ends before `last`.
    decimals : int
        Digits behind the implied point of a number without a decimal point: d of Fortran's Fw.d.
    scale : int
        A number without exponent is divided by 10 to this power: k of Fortran's kP.

    Returns
    -------
    end : int
        Offset behind the number. The caller checks the next character.
    code : int
        OK, NOT_A_NUMBER, TOO_LARGE for float64, or HARD: `decimal` must round it.
    value : float
    """
    p, negative = first, False
    if p < last and (byte(text, p) == PLUS or byte(text, p) == MINUS):
        negative = byte(text, p) == MINUS
        p += 1
    begin = p
    p, digits = _read_digits(text, p, last, np.uint64(0))
    count, power = p - begin, -decimals
    if p < last and byte(text, p) == POINT:
        p += 1
        point = p
        p, digits = _read_digits(text, p, last, digits)
        count, power = count + p - point, point - p
    if count == 0:
        end, value = _special(text, begin, last)
        return end, OK if end > begin else NOT_A_NUMBER, -value if negative else value
    end, exponent = p, 0
    if p < last and byte(text, p) > SPACE:
        end, exponent = _exponent(text, p, last)
    power += exponent if end > p else -scale
    if count > _MAX_DIGITS:
        code, value = _truncated(text, begin, p, power)
    else:
        code, value = OK, _rounded(digits, power)
    if value == np.inf:
        code = TOO_LARGE
    return end, code, -value if negative else value


@inner
def parse_integer(text, first, last, signed):
    """Parse an integer that begins at `first`.

    Returns
    -------
    end : int
        Offset behind the integer. The caller checks the next character.
    code : int
        OK, NOT_AN_INTEGER, TOO_LARGE for int64 or, if not `signed`, uint64, or INEXACT in float64.
    value : int
        As int64; a large unsigned integer has the same bits.
    """
    p, negative = first, False
    if p < last and (byte(text, p) == PLUS or (signed and byte(text, p) == MINUS)):
        negative = byte(text, p) == MINUS
        p += 1
    begin, value, large = p, np.uint64(0), False
    while p < last and 48 <= byte(text, p) <= 57:
        digit = np.uint64(byte(text, p) - 48)
        large |= value > _MAX_TENTH or (value == _MAX_TENTH and digit > np.uint64(5))
        value = value * np.uint64(10) + digit
        p += 1
    code = OK if p > begin else NOT_AN_INTEGER
    if value > _MAX_EXACT_INTEGER and (value << leading_zeros(value)) & _ROUNDED_BITS != np.uint64(
        0
    ):
        code = INEXACT
    if large or (signed and value > _MAX_SIGNED):
        code = TOO_LARGE
    return p, code, -np.int64(value) if negative else np.int64(value)


@forced
def parse_index(text, first, last):
    """Parse an index; return end and value: -1 if it is not a number, 2^62 if it is too large."""
    begin = first + (first < last and byte(text, first) == PLUS)
    p, value = _read_digits(text, begin, last, np.uint64(0))
    if p - begin > 18:
        return p, _MAX_INDEX
    return p, np.int64(value) if p > begin else -1


def decimal(token: bytes, decimals: int = 0, scale: int = 0) -> float:
    """Return the number that a token represents, by Python's exact conversion.

    Raises
    ------
    ValueError
        If it is not a number, or too large.

    Examples
    --------
    >>> decimal(b"1.5D+03"), decimal(b"0.5-100"), decimal(b"250", decimals=2)
    (1500.0, 5e-101, 2.5)
    """
    text = token.decode("latin-1")
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a number")
    sign, digits, exponent, bare, special = match.groups()
    if special:
        return float(sign + special)
    exponent_text = exponent or bare
    power = int(exponent_text) if exponent_text else -scale
    value = float(f"{sign}{digits}e{power - (0 if '.' in digits else decimals)}")
    if abs(value) == np.inf:
        raise ValueError(f"{text!r} is too large for float64")
    return value
