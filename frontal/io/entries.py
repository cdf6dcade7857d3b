"""Compiled loops over the entry lines of Matrix Market files.

A chunk is a range of bytes of a block; it consists of the lines that begin in it. Comments and
blank lines may occur anywhere. Tokens are read to their end; a wrong number of tokens is an error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import forced, inner, jit
from .instructions import byte, eight_bytes, trailing_zeros
from .numbers import (
    HARD,
    LINE_END,
    LITTLE_ENDIAN,
    NOT_A_NUMBER,
    NOT_AN_INTEGER,
    OK,
    RETURN,
    SPACE,
    TAB,
    parse_index,
    parse_integer,
    parse_number,
)

# Codes of lines, in addition to those of numbers
TOO_FEW, TOO_MANY, NOT_AN_INDEX, NO_ROW, NO_COLUMN, EXTRA, DIAGONAL = range(6, 13)
REAL, INTEGER, UNSIGNED, COMPLEX, PATTERN = range(5)  # fields
GENERAL, SYMMETRIC, SKEW, HERMITIAN = range(4)  # symmetries
CODE, FIRST, LAST, LOWER, UPPER, HARDS = range(6)  # columns of a report
_COMMENT = ord("%")
_BLANKS = 1 << SPACE | 1 << TAB | 1 << RETURN  # one bit for each character


class EntryLayout(NamedTuple):
    """Declarations of a file: `indices` per line (0 to 2), field, symmetry, shape, entries."""

    indices: int
    field: int
    symmetry: int
    rows: int
    columns: int
    entries: int


class EntryArrays(NamedTuple):
    """Output of `read_entries`.

    Attributes
    ----------
    coordinates : (2, nnz) int32 or int64 array
        Rows and columns, from 0.
    reals : float64 array
        Values of the fields real and complex; real and imaginary parts alternate.
    integers : int64 array
        Values of the fields integer and unsigned-integer.
    hard : (k, 3) int64 array
        Index in `reals`, first and last byte of the first k numbers to round by `decimal`.
    report : (6,) int64 array
        Code, first and last byte of the malformed token, first byte of the first lines below and
        above the diagonal (-1: none), and the number of all hard tokens.
    """

    coordinates: np.ndarray
    reals: np.ndarray
    integers: np.ndarray
    hard: np.ndarray
    report: np.ndarray


@forced
def _skip_blanks(text, p):
    """Return the position of the next token, or of the end of the line."""
    c = byte(text, p)
    while c <= SPACE and _BLANKS >> c & 1 != 0:
        p += 1
        c = byte(text, p)
    return p


@forced
def _next_line(text, p, size):
    """Return the position behind the end of the line."""
    while LITTLE_ENDIAN and p + 8 <= size:
        word = eight_bytes(text, p) ^ np.uint64(0x0A0A0A0A0A0A0A0A)
        ends = (word - np.uint64(0x0101010101010101)) & ~word & np.uint64(0x8080808080808080)
        if ends != np.uint64(0):
            return p + np.int64(trailing_zeros(ends) >> np.uint64(3)) + 1
        p += 8
    while byte(text, p) != LINE_END:
        p += 1
    return p + 1


@inner
def _first_line(text, first, size):
    """Return the first position from `first` on at which a line begins."""
    return first if first == 0 else _next_line(text, first - 1, size)


@jit
def count_entries(text, first, last):
    """Return the numbers of entry lines and of all lines that begin in a chunk.

    `text` (uint8) has whole lines, each with its line end; the chunk is ``text[first:last]``.
    """
    address, size = text.ctypes.data, text.size
    p, count, lines = _first_line(address, first, size), 0, 0
    while p < last:
        p = _skip_blanks(address, p)
        count += byte(address, p) != _COMMENT and byte(address, p) != LINE_END
        p = _next_line(address, p, size)
        lines += 1
    return count, lines


@forced
def _ends(text, p):
    """Return whether a token ends here."""
    c = byte(text, p)
    return c <= SPACE and (_BLANKS | 1 << LINE_END) >> c & 1 != 0


@forced
def _read_index(text, p, last, count):
    """Return end, code and zero-based value of a row or column index."""
    end, value = parse_index(text, p, last)
    code = OK
    if byte(text, p) == LINE_END:
        code = TOO_FEW
    elif value < 0 or not _ends(text, end):
        code = NOT_AN_INDEX
    elif value == 0 or value > count:
        code = NO_ROW
    return end, code, value - 1


@forced
def _read_real(text, p, last):
    """Return end, code and value of a number."""
    end, code, value = parse_number(text, p, last, 0, 0)
    if not _ends(text, end):
        code = NOT_A_NUMBER
    if byte(text, p) == LINE_END:
        code = TOO_FEW
    return end, code, value


@inner
def _read_integer(text, p, last, signed):
    """Return end, code and value of an integer."""
    end, code, value = parse_integer(text, p, last, signed)
    if not _ends(text, end):
        code = NOT_AN_INTEGER
    if byte(text, p) == LINE_END:
        code = TOO_FEW
    return end, code, value


@forced
def _read_place(text, p, last, layout):
    """Return begin and end of the last index, the code, row and column."""
    first, end, row, column, code = p, p, 0, 0, OK
    if layout.indices > 0:
        end, code, row = _read_index(text, p, last, layout.rows)
    if layout.indices > 1 and code == OK:
        first = _skip_blanks(text, end)
        end, code, column = _read_index(text, first, last, layout.columns)
        code = NO_COLUMN if code == NO_ROW else code
    return first, end, code, row, column


@forced
def _read_values(text, p, last, layout, out, at, diagonal):
    """Read the values of an entry; return begin and end of the last one, and the code."""
    first, end, code, zero = p, p, OK, True
    reals, integers, hard, report = out.reals, out.integers, out.hard, out.report
    if layout.field == INTEGER or layout.field == UNSIGNED:
        first = _skip_blanks(text, p)
        end, code, integers[at] = _read_integer(text, first, last, layout.field == INTEGER)
        zero = integers[at] == 0 or layout.symmetry == HERMITIAN
    elif layout.field != PATTERN:
        parts = 2 if layout.field == COMPLEX else 1
        for place in range(parts * at, parts * at + parts):
            first = _skip_blanks(text, end)
            end, code, value = _read_real(text, first, last)
            reals[place] = value
            zero &= value == 0 or (layout.symmetry == HERMITIAN and place == parts * at)
            if code == HARD:
                code = OK
                if report[HARDS] < hard.shape[0]:
                    hard[report[HARDS], 0] = place
                    hard[report[HARDS], 1] = first
                    hard[report[HARDS], 2] = end
                report[HARDS] += 1
            if code != OK:
                break
    if diagonal and layout.symmetry >= SKEW and code == OK and not zero:
        code = DIAGONAL
    return first, end, code


@jit
def read_entries(text, extent, layout, out, at):
    """Read the entries of a chunk, up to the first malformed line.

    Parameters
    ----------
    text : (n,) uint8 array
        Whole lines, each with its line end.
    extent : pair of int
        First byte of the chunk, and the first one behind it.
    layout : EntryLayout
    out : EntryArrays
    at : int
        Number of entries before the chunk.
    """
    report = out.report
    address, size = text.ctypes.data, text.size
    p = _first_line(address, extent[0], size)
    report[CODE], report[LOWER], report[UPPER], report[HARDS] = OK, -1, -1, 0
    while p < extent[1]:
        p = _skip_blanks(address, p)
        c = byte(address, p)
        has_entry = c != _COMMENT and c != LINE_END
        if not has_entry:
            p = _next_line(address, p, size)
            continue
        first, end, code, row, column = _read_place(address, p, size, layout)
        if at >= layout.entries:
            code = EXTRA
        elif code == OK:
            if layout.indices > 0:
                out.coordinates[0, at] = row
                out.coordinates[1, at] = column
            diagonal = layout.indices > 1 and row == column
            first, end, code = _read_values(address, end, size, layout, out, at, diagonal)
        if code == OK and byte(address, end) != LINE_END:
            end = first = _skip_blanks(address, end)
            code = OK if byte(address, end) == LINE_END else TOO_MANY
        if code != OK:
            report[CODE], report[FIRST], report[LAST] = code, first, end
            break
        if row > column and report[LOWER] < 0:
            report[LOWER] = p
        elif row < column and report[UPPER] < 0:
            report[UPPER] = p
        at += 1
        p = end + 1
