"""Error messages for a malformed line of a Matrix Market file."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from . import entries, numbers
from .banner import Banner
from .entries import CODE, FIRST, LAST
from .numbers import LINE_END

_MAX_QUOTED = 40  # characters of a token quoted in a message


def raise_line_error(text: np.ndarray, report: np.ndarray, line: int, banner: Banner) -> NoReturn:
    """Raise ValueError for a malformed line, from the report of `read_entries`."""
    code = report[CODE]
    if code == entries.EXTRA:
        raise ValueError(
            f"line {line}: there are more entries than the {banner.entries} that the size line "
            "declares"
        )
    token = _token(text, report[FIRST], report[LAST])
    raise ValueError(f"line {line}: {_reason(code, token, banner)}")


def raise_triangles(symmetry: str, lower: int, upper: int) -> NoReturn:
    """Raise ValueError for entries on both sides of the diagonal."""
    raise ValueError(
        f"lines {lower} and {upper} are on opposite sides of the diagonal, but a {symmetry} file "
        "stores only one triangle. If the file stores both triangles, its banner should say "
        "'general'"
    )


def _token(text: np.ndarray, first: int, last: int) -> str:
    """Return the token that begins at `first`, up to the next blank."""
    blanks = (LINE_END, numbers.SPACE, numbers.TAB, numbers.RETURN)
    end = int(first)
    while text[end] not in blanks and end < first + _MAX_QUOTED:
        end += 1
    return repr(text[first : max(end, last)].tobytes().decode("latin-1")[:_MAX_QUOTED])


def _reason(code: int, token: str, banner: Banner) -> str:
    """Return a description of the error in a token."""
    values = 0 if banner.field == "pattern" else 2 if banner.field == "complex" else 1
    count = values + (0 if banner.is_dense else 1 if banner.is_vector else 2)
    sizes = f"a matrix of {banner.rows} rows and {banner.columns} columns"
    if code == numbers.INEXACT:
        return (
            f"{token} is beyond 2^53 and not exact in float64; declare the field 'real' to round it"
        )
    comma = "; the decimal separator is a point, not a comma" if "," in token else ""
    return {
        numbers.NOT_A_NUMBER: f"{token} is not a number{comma}",
        numbers.NOT_AN_INTEGER: f"{token} is not an integer, but the field is {banner.field!r}",
        numbers.TOO_LARGE: f"{token} is too large for the field {banner.field!r}",
        entries.TOO_FEW: f"the line has fewer than {count} numbers",
        entries.TOO_MANY: f"{token} follows the {count} numbers of the line",
        entries.NOT_AN_INDEX: f"{token} is not the number of a row or column",
        entries.NO_ROW: f"there is no row {token} in {sizes}",
        entries.NO_COLUMN: f"there is no column {token} in {sizes}",
        entries.DIAGONAL: f"{token} on the diagonal contradicts the symmetry {banner.symmetry!r}",
    }[code]
