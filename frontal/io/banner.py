"""The first lines of a Matrix Market file: banner, comments, sizes."""

from __future__ import annotations

from io import BufferedIOBase
from typing import NamedTuple

from ..files.declared_sizes import HEADER, check_entries, check_shape

FORMATS = ("coordinate", "array")
FIELDS = ("real", "integer", "unsigned-integer", "complex", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_OBJECTS = ("matrix", "vector")
_MARK = b"\xef\xbb\xbf"  # byte order mark, which some editors write
_MIN_BYTES = {"pattern": 0, "complex": 4}  # bytes of the values of a line with separators; else 2


class Banner(NamedTuple):
    """The declarations at the beginning of a file.

    Attributes
    ----------
    is_vector, is_dense : bool
    field, symmetry : str
        One of FIELDS and SYMMETRIES.
    rows, columns, entries : int
        Number of stored entries: of one triangle, if the matrix is symmetric.
    lines : int
        Number of lines before the first entry.
    """

    is_vector: bool
    is_dense: bool
    field: str
    symmetry: str
    rows: int
    columns: int
    entries: int
    lines: int


def read_banner(stream: BufferedIOBase, available: int) -> Banner:
    """Read the lines before the first entry.

    Parameters
    ----------
    stream : buffered stream
        Afterwards positioned at the line of the first entry.
    available : int
        Upper bound of the bytes of text in the file.

    Raises
    ------
    ValueError
        If they are malformed, contradict each other, or declare more than fits into the file.
    """
    kind, is_dense, field, symmetry = _kind(stream.readline(HEADER))
    is_vector = kind == "vector"
    line, lines, size = b"%", 1, 0
    while line.lstrip().startswith(b"%") or (line and not line.strip()):
        line = stream.readline(HEADER)
        lines, size = lines + 1, size + len(line)
        if size > HEADER:
            raise ValueError(f"there is no size line in the first {HEADER} bytes")
    sizes = _sizes(line, lines, (not is_vector) + (not is_dense) + 1)
    rows, columns = sizes[0], 1 if is_vector else sizes[1]
    if symmetry != "general" and rows != columns:
        raise ValueError(
            f"line {lines}: a {symmetry} matrix must be square, not {rows} by {columns}"
        )
    entries = _dense_entries(rows, columns, symmetry) if is_dense else sizes[-1]
    entry_bytes = _MIN_BYTES.get(field, 2) + (0 if is_dense else 2 if is_vector else 4)
    check_entries(entries, entry_bytes, available)
    check_shape(rows, columns, entries)
    return Banner(is_vector, is_dense, field, symmetry, rows, columns, entries, lines)


def _kind(line: bytes) -> tuple[str, bool, str, str]:
    """Return object, whether the format is dense, field and symmetry declared by a banner."""
    words = line.removeprefix(_MARK).decode("latin-1").lower().split()
    if not words or words[0] != "%%matrixmarket":
        raise ValueError("the file does not begin with a line '%%MatrixMarket matrix ...'")
    if len(words) != 5:
        raise ValueError(
            f"line 1: the banner has {len(words)} words, not 5: %%MatrixMarket, object, format, "
            "field and symmetry"
        )
    words[3] = "real" if words[3] == "double" else words[3]
    known = _OBJECTS, FORMATS, FIELDS, SYMMETRIES
    names = "object", "format", "field", "symmetry"
    for word, choices, name in zip(words[1:], known, names, strict=True):
        if word not in choices:
            raise ValueError(f"line 1: the {name} {word[:40]!r} is not one of {', '.join(choices)}")
    kind, format_, field, symmetry = words[1:]
    if field == "pattern" and format_ == "array":
        raise ValueError("line 1: an array stores values, so its field cannot be 'pattern'")
    if symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer"):
        raise ValueError(
            f"line 1: a skew-symmetric matrix has signed values, the field {field!r} has none"
        )
    if symmetry != "general" and kind == "vector":
        raise ValueError(f"line 1: the symmetry of a vector must be 'general', not {symmetry!r}")
    return kind, format_ == "array", field, symmetry


def _sizes(line: bytes, number: int, count: int) -> list[int]:
    words = line.split()
    if not words:
        raise ValueError("the file ends before its size line")
    if len(words) != count or not all(word.isdigit() and len(word) < 20 for word in words):
        shown = line[:40].strip().decode("latin-1")
        raise ValueError(f"line {number}: expected {count} sizes, not {shown!r}")
    return [int(word) for word in words]


def _dense_entries(rows: int, columns: int, symmetry: str) -> int:
    """Return the number of stored values of an array: all, or the lower triangle."""
    if symmetry == "general":
        return rows * columns
    return rows * (rows - 1) // 2 if symmetry == "skew-symmetric" else rows * (rows + 1) // 2
