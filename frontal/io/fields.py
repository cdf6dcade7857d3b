"""A compiled loop over numbers in fixed columns of lines, as a Fortran format defines them."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np

from ..compile.jit import inner, jit
from . import numbers
from .fortran_format import Format, FormatArrays
from .instructions import byte
from .numbers import (
    HARD,
    LINE_END,
    NOT_A_NUMBER,
    NOT_AN_INTEGER,
    OK,
    POINT,
    RETURN,
    SPACE,
    decimal,
    parse_integer,
    parse_number,
)

_CUT_OFF, _NO_LINE, _EXCESS = range(6, 9)  # codes in addition to those of numbers
_CUT_THROUGH = NOT_A_NUMBER, NOT_AN_INTEGER, _EXCESS  # codes caused by fields of wrong widths
_MAX_QUOTED = 40  # characters of a field quoted in a message
_CODE, _LINE, _FIRST, _LAST, _HARDS = range(5)  # columns of a report


class _Section(NamedTuple):
    """Lines to read: text, their extents, index of one without a line end, arrays of the format."""

    text: np.ndarray
    lines: np.ndarray
    unended: int
    form: FormatArrays


class Lines:
    """The lines of a text.

    Attributes
    ----------
    text : (n,) uint8 array
    extents : (count, 2) int64 array
        First byte of each line, and the byte behind its last one.
    unended : int
        Index of a last line without a line end; `count` if there is none.
    """

    def __init__(self, text: bytes) -> None:
        self.text = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(self.text == LINE_END)
        self.unended = ends.size
        if text and not text.endswith(b"\n"):
            ends = np.append(ends, self.text.size)
        starts = np.concatenate([[0], ends[:-1] + 1])[: ends.size]
        returns = (ends > starts) & (self.text[ends - 1] == RETURN)
        self.extents = np.column_stack([starts, ends - returns])

    def __len__(self) -> int:
        return len(self.extents)

    def __getitem__(self, k: int) -> str:
        """Return a line; each byte is one character."""
        first, last = self.extents[k]
        return self.text[first:last].tobytes().decode("latin-1")

    def numbers(self, first: int, count: int, format_: Format, size: int) -> np.ndarray:
        """Read `size` float64 numbers from `count` lines.

        A blank field is 0. If a format cuts through numbers, the lines are still read if each has
        as many numbers as fields, separated by blanks and with decimal points: some programs write
        wider or narrower fields than they declare.

        Raises
        ------
        ValueError
            If a field is not a number, or the lines hold fewer or more; names line and field.
        """
        rows, none = self.extents[first : first + count], np.empty((0, 4), np.int64)
        section = _Section(self.text, rows, self.unended - first, format_.arrays())
        values = np.empty(size)
        report = _read_fields(section, values, False, none)
        separated = report[_CODE] in _CUT_THROUGH
        if separated:
            word_report = _read_fields(section, values, True, none)
            if word_report[_CODE] != OK:
                self._raise(report, first, count, size)
            report = word_report
        if report[_CODE] != OK:
            self._raise(report, first, count, size)
        if report[_HARDS]:
            hard = np.empty((report[_HARDS], 4), np.int64)
            _read_fields(section, values, separated, hard)
            for place, begin, end, field in hard:
                token = self.text[begin:end].tobytes().strip()
                decimals, scale = section.form.fields[field, 2:4].tolist()
                values[place] = decimal(token, decimals, scale)
        return values

    def _raise(self, report: np.ndarray, first: int, count: int, size: int) -> NoReturn:
        code, line = int(report[_CODE]), first + int(report[_LINE])
        if code == _NO_LINE:
            ends = (
                "the file ends" if first + count > len(self) else f"the declared {count} lines end"
            )
            raise ValueError(
                f"{ends} before {size} numbers were read, starting at line {first + 1}"
            )
        token = self.text[report[_FIRST] : report[_LAST]].tobytes().decode("latin-1").strip()
        token = repr(token[:_MAX_QUOTED])
        reason = {
            numbers.NOT_A_NUMBER: f"{token} is not a number",
            numbers.NOT_AN_INTEGER: f"{token} is not an integer, but its format is for integers",
            numbers.TOO_LARGE: f"{token} is too large",
            numbers.INEXACT: f"{token} is beyond 2^53 and not exact in float64",
            _CUT_OFF: f"the file ends inside the field {token}: it is truncated",
            _EXCESS: f"{token} follows the last field of the format, or the last of {size} numbers",
        }[code]
        raise ValueError(f"line {line + 1}: {reason}")


@inner
def _parse_field(text, first, last, field):
    """Return code and value of a field; 0 if it is blank."""
    p = first
    while p < last and byte(text, p) == SPACE:
        p += 1
    if p == last:
        return OK, 0.0
    if field[4]:
        end, code, integer = parse_integer(text, p, last, True)
        value, wrong = np.float64(integer), NOT_AN_INTEGER
    else:
        end, code, value = parse_number(text, p, last, field[2], field[3])
        wrong = NOT_A_NUMBER
    while end < last:
        if byte(text, end) != SPACE:
            code = wrong
        end += 1
    return code, value


@inner
def _only_blanks(text, first, last):
    """Return whether all characters between two positions are blanks."""
    while first < last and byte(text, first) == SPACE:
        first += 1
    return first >= last


@inner
def _word(text, p, last, field):
    """Return begin and end of the next word, and whether it is readable without a format."""
    while p < last and byte(text, p) == SPACE:
        p += 1
    end, shown = p, field[4] != 0
    while end < last and byte(text, end) != SPACE:
        shown |= byte(text, end) == POINT
        end += 1
    return p, end, shown and end > p


@jit
def _read_fields(section, values, separated, hard):
    """Read `values` from fields of lines, or if `separated` from words between blanks.

    Return a report: code, line, first and last byte of a field, and the number of hard ones; `hard`
    gets value, first and last byte and field of each. A line must be blank behind its last field.
    """
    lines, (pointer, fields, revert) = section.lines, section.form
    address, at, k, count = section.text.ctypes.data, 0, 0, pointer.size - 1
    report = np.zeros(5, np.int64)
    for line in range(lines.shape[0]):
        begin, end, last = lines[line, 0], lines[line, 1], lines[line, 0]
        report[_LINE] = line
        for f in range(pointer[k], min(pointer[k + 1], pointer[k] + values.size - at)):
            first, behind, shown = begin + fields[f, 0], begin + fields[f, 0] + fields[f, 1], True
            if separated:
                first, behind, shown = _word(address, last, end, fields[f])
            first, last = min(first, end), min(behind, end)
            code, values[at] = _parse_field(address, first, last, fields[f])
            if not shown:
                code = NOT_A_NUMBER
            elif line == section.unended and behind + separated > end:
                code = _CUT_OFF
            report[_FIRST], report[_LAST] = first, last
            if code == HARD:
                if report[_HARDS] < hard.shape[0]:
                    hard[report[_HARDS], 0], hard[report[_HARDS], 1] = at, first
                    hard[report[_HARDS], 2], hard[report[_HARDS], 3] = last, f
                report[_HARDS] += 1
            elif code != OK:
                report[_CODE] = code
                return report
            at += 1
        if not _only_blanks(address, last, end):
            report[_CODE], report[_FIRST], report[_LAST] = _EXCESS, last, end
            return report
        k = k + 1 if k + 1 < count else revert
    if at < values.size:
        report[_CODE] = _NO_LINE
    return report
