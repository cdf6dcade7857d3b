"""Assembled matrices of the Harwell-Boeing collection, and of its successor, Rutherford-Boeing.

Fields have fixed columns, given by the formats in the header, and may touch each other (Duff,
Grimes and Lewis, User's guide for the Harwell-Boeing sparse matrix collection, 1992; The
Rutherford-Boeing sparse matrix collection, 1997).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..files.declared_sizes import check_entries, check_shape, unpacked
from ..matrix.validate import checked
from .fields import Lines
from .fortran_format import Format, parse_format
from .triangles import check_triangle, complete

_SYMMETRIES = {  # key: second letter of the type
    **dict.fromkeys("UR", "general"),
    "S": "symmetric",
    "H": "hermitian",
    "Z": "skew-symmetric",
}
_WIDTH = 14  # columns of a number in the header
_LENGTHS = "pointers", "row indices", "values", "right-hand sides"


class _Declaration(NamedTuple):
    """The declarations in the first four lines.

    `kind` is a type of three letters. `lines` are the numbers of lines of pointers, row indices,
    values and right-hand sides, `formats` those of the first three.
    """

    kind: str
    rows: int
    columns: int
    entries: int
    lines: list[int]
    formats: list[str]


def read_harwell_boeing(path: Path) -> sp.csc_array:
    """Read a matrix; right-hand sides are skipped.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is malformed; the message names the line.
    """
    with unpacked(path) as stream:
        text = stream.read()
    lines = Lines(text)
    header = _header(lines)
    pattern, nnz = header.kind[0] == "P", header.entries
    parts = 2 if header.kind[0] == "C" else 1
    sizes = [header.columns + 1, nnz, 0 if pattern else nnz * parts]
    check_entries(max(sizes), 1, len(text))
    check_shape(header.rows, header.columns, nnz)
    sections, first = [], 4 + (header.lines[3] > 0)
    for k, size in enumerate(sizes):
        format_ = _format(header, k) if size else Format([[]], 0)
        sections.append(lines.numbers(first, header.lines[k], format_, size))
        first += header.lines[k]
    _check_rest(lines, first + header.lines[3])
    return _matrix(header, *sections)


def _header(lines: Lines) -> _Declaration:
    if len(lines) < 4:
        raise ValueError("the header has fewer than four lines")
    counts = _integers(lines, 1, 0, 5)
    kind = lines[2][:3].upper()
    rows, columns, entries, elemental = _integers(lines, 2, 1, 5)
    if kind[2:] != "A" or elemental:
        raise ValueError(f"line 3: a matrix of type {kind!r} is not assembled")
    if kind[0] not in "RCIP" or kind[1] not in _SYMMETRIES:
        raise ValueError(f"line 3: unknown matrix type {kind!r}")
    if kind[:2] == "PZ":
        raise ValueError(
            "line 3: a skew-symmetric matrix has signed values, a pattern has no values"
        )
    if kind[1] in "SHZ" and rows != columns:
        raise ValueError(
            f"line 3: a matrix of type {kind!r} must be square, not {rows} by {columns}"
        )
    line = lines[3]
    return _Declaration(
        kind, rows, columns, entries, counts[1:], [line[:16], line[16:32], line[32:52]]
    )


def _integers(lines: Lines, k: int, first: int, last: int) -> list[int]:
    """Return the numbers of a header line; a blank field is 0."""
    line = lines[k]
    words = [line[i * _WIDTH : (i + 1) * _WIDTH].strip() for i in range(first, last)]
    for word in words:
        if word and not (word.isascii() and word.isdigit()):
            raise ValueError(f"line {k + 1}: {word!r} is not a number")
    return [int(word or 0) for word in words]


def _format(header: _Declaration, k: int) -> Format:
    format_ = parse_format(header.formats[k])
    if k < 2 and not all(field.is_integer for line in format_.lines for field in line):
        shown = header.formats[k].strip()
        raise ValueError(f"line 4: the format {shown!r} of {_LENGTHS[k]} is not an integer format")
    return format_


def _check_rest(lines: Lines, first: int) -> None:
    """Raise if lines exceed the number declared by the header, or right-hand sides are missing."""
    if first > len(lines):
        raise ValueError(f"the file has {len(lines)} lines, but its header declares {first}")
    for k in range(first, len(lines)):
        if lines[k].strip(" \x1a"):  # Ctrl-Z: the end of a text on some systems
            raise ValueError(f"line {k + 1} follows the lines that the header declares")


def _matrix(
    header: _Declaration, pointers: np.ndarray, rows: np.ndarray, values: np.ndarray
) -> sp.csc_array:
    indptr, indices = pointers.astype(np.int64) - 1, rows.astype(np.int64) - 1
    data = values.view(np.complex128) if header.kind[0] == "C" else values
    data = np.ones(header.entries) if header.kind[0] == "P" else data
    if indptr[-1] != header.entries:
        raise ValueError(
            f"the last column pointer is {indptr[-1] + 1}, not one more than the {header.entries} "
            "entries"
        )
    shape, symmetry = (header.rows, header.columns), _SYMMETRIES[header.kind[1]]
    A = checked(sp.csc_array((data, indices, indptr), shape=shape), "the matrix")
    if symmetry == "general":
        return A
    columns = np.repeat(np.arange(header.columns), np.diff(indptr))
    check_triangle(indices, columns, data, symmetry)
    i, j, values = complete((indices, columns, data), symmetry)
    return sp.csc_array(sp.coo_array((values, (i, j)), shape=shape))
