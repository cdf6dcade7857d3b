"""Fortran formats for reading numbers: (1P,4D20.12), (1X,5E15.9), (10I8).

Input formats are defined in section 13 of the Fortran standard (ISO/IEC 1539-1:2018). Blanks in a
format are ignored.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

_MAX_COLUMN = 1000  # columns of a line; cards had 80
_MAX_FIELDS = 10_000  # fields of a format, with repetitions
_ITEM = re.compile(
    r"(?P<scale>[+-]?\d+)P"
    r"|(?P<repeat>\d*)(?P<kind>[IFEDGQ])(?P<width>\d+)(?:\.(?P<decimals>\d+)(?:E\d+)?)?"
    r"|(?P<skip>\d*)X"
    r"|T(?P<way>[LR]?)(?P<column>\d+)"
    r"|(?P<group>\d*)\("
    r"|(?P<mark>[/):]|S[PS]?|BN)"
)


class Field(NamedTuple):
    """One number of a line.

    Attributes
    ----------
    start, width : int
        Columns, from 0.
    decimals : int
        Digits behind the implied point of a number without a decimal point.
    scale : int
        A number without exponent is divided by 10 to this power.
    is_integer : bool
    """

    start: int
    width: int
    decimals: int
    scale: int
    is_integer: bool


class FormatArrays(NamedTuple):
    """First field of each line (lines + 1,), all fields (count, 5), and the line to revert to."""

    pointer: np.ndarray
    fields: np.ndarray
    revert: int


class Format(NamedTuple):
    """Fields of consecutive lines; after the last line, lines from `revert` on repeat."""

    lines: list[list[Field]]
    revert: int

    def arrays(self) -> FormatArrays:
        """Return the format for compiled code."""
        pointer = np.cumsum([0, *map(len, self.lines)])
        fields = [field for line in self.lines for field in line]
        return FormatArrays(pointer, np.array(fields, np.int64).reshape(-1, 5), self.revert)


def parse_format(text: str) -> Format:
    """Parse a format.

    Raises
    ------
    ValueError
        If it is malformed, contains no number, or has items that are not for reading numbers.

    Examples
    --------
    >>> parse_format("(1X,2I4)").lines
    [[Field(start=1, width=4, decimals=0, scale=0, is_integer=True), \
Field(start=5, width=4, decimals=0, scale=0, is_integer=True)]]
    """
    items = "".join(text.upper().split())
    try:
        if not items.startswith("("):
            raise ValueError("it does not begin with '('")
        first = _Parser(items)
        first.read()
        if first.place != len(items):
            raise ValueError(f"{items[first.place :]!r} follows its closing parenthesis")
        repeated = _Parser(items, first.revert, first.scale)
        repeated.read()
        if not any(repeated.lines):
            raise ValueError("its repeated part has no field")
    except ValueError as error:
        raise ValueError(f"the Fortran format {text.strip()!r} cannot be read: {error}") from None
    if first.lines == repeated.lines:
        return Format(first.lines, 0)
    return Format(first.lines + repeated.lines, len(first.lines))


class _Parser:
    """A parser of a format, which assigns its fields to lines.

    Attributes
    ----------
    lines : list of list of Field
    place : int
        Position behind the parsed text.
    revert : int
        Position of the group from which the format repeats: the last one of the first level.
    scale : int
        Scale factor at the current position.
    """

    def __init__(self, items: str, place: int = 0, scale: int = 0) -> None:
        self.items, self.place, self.scale = items, place, scale
        self.lines: list[list[Field]] = [[]]
        self.revert, self._column, self._fields = 0, 0, 0

    def read(self) -> None:
        """Parse to the end of the format, from its beginning or from `revert`."""
        if self.place == 0:
            self.place = 1
            self._group(0)
        else:
            self._group(0)

    def _group(self, depth: int) -> None:
        """Parse items up to the closing parenthesis of the group."""
        while True:
            if self.items[self.place : self.place + 1] == ",":
                self.place += 1
            item = _ITEM.match(self.items, self.place)
            if item is None:
                rest = self.items[self.place : self.place + 10]
                raise ValueError(
                    f"{rest!r} is not an item for numbers"
                    if rest
                    else "its closing parenthesis is missing"
                )
            begin, self.place = self.place, item.end()
            if item["group"] is not None:
                self._repeat(int(item["group"] or 1), depth, begin)
            elif item["mark"] == ")":
                return
            else:
                self._item(item)

    def _repeat(self, count: int, depth: int, begin: int) -> None:
        if depth == 0:
            self.revert = begin
        if depth > 20:
            raise ValueError("its groups are nested too deeply")
        inside = self.place
        for _ in range(max(count, 1)):
            self.place = inside
            fields = self._fields
            self._group(depth + 1)
            if fields == self._fields:
                raise ValueError("it has a group without fields")

    def _item(self, item: re.Match[str]) -> None:
        if item["scale"] is not None:
            self.scale = int(item["scale"])
        elif item["kind"] is not None:
            self._add(item)
        elif item["skip"] is not None:
            self._column += int(item["skip"] or 1)
        elif item["column"] is not None:
            column = int(item["column"])
            step = {"": column - 1 - self._column, "L": -column, "R": column}[item["way"]]
            self._column = max(self._column + step, 0)
        elif item["mark"] == "/":
            self.lines.append([])
            self._column = 0

    def _add(self, item: re.Match[str]) -> None:
        """Add the fields of an item, such as 5E15.9."""
        width, count = int(item["width"]), int(item["repeat"] or 1)
        is_integer = item["kind"] == "I" or (item["kind"] == "G" and not item["decimals"])
        decimals = 0 if is_integer else int(item["decimals"] or 0)
        self._fields += count
        if not width > 0 or self._column + width * count > _MAX_COLUMN:
            raise ValueError(f"a line has more than {_MAX_COLUMN} columns, or a field has width 0")
        if self._fields > _MAX_FIELDS or abs(self.scale) > _MAX_COLUMN or decimals > _MAX_COLUMN:
            raise ValueError(
                "its number of fields, its scale factor or its number of decimals is too large"
            )
        for _ in range(count):
            self.lines[-1].append(Field(self._column, width, decimals, self.scale, is_integer))
            self._column += width
