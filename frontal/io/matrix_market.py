"""Matrix Market files; the content is checked against the declarations.

Boisvert, Pozo and Remington, The Matrix Market exchange formats (NISTIR 5935, 1996). Text is read
in blocks of whole lines, and threads parse each block in compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ..files.declared_sizes import most_bytes, unpacked
from ..machine.threads import parallel_for
from .banner import FIELDS, SYMMETRIES, Banner, read_banner
from .entries import (
    CODE,
    FIRST,
    HARDS,
    LOWER,
    UPPER,
    EntryArrays,
    EntryLayout,
    count_entries,
    read_entries,
)
from .line_errors import raise_line_error, raise_triangles
from .numbers import LINE_END, OK, decimal
from .triangles import complete, complete_dense

_BLOCK_BYTES = 1 << 22  # bytes of text in memory at a time: larger blocks are not faster
_CHUNK_BYTES = 1 << 18  # bytes of text parsed by one call of compiled code
_WINDOW_BYTES = 1 << 10  # bytes searched at a time for the last line end
_MAX_LINE = 1 << 20  # bytes of a line; a number needs 17 digits at most


def read_matrix_market(path: Path) -> np.ndarray | sp.coo_array:
    """Read a matrix, or a vector as a matrix of one column.

    Duplicate entries stay: conversions of SciPy sum them.

    Returns
    -------
    array (m, n) for the format array, coo_array for coordinate
        float64, complex128, int64 or, for unsigned-integer, uint64; ones for a pattern.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is malformed; the message names line and token.
    """
    with unpacked(path) as stream:
        banner = read_banner(stream, most_bytes(path))
        return _Body(banner).read(stream)


class _Body:
    """The entries of a file during reading."""

    def __init__(self, banner: Banner) -> None:
        self.banner, count = banner, banner.entries
        indices = 0 if banner.is_dense else 1 if banner.is_vector else 2
        self.layout = EntryLayout(
            indices=indices,
            field=FIELDS.index(banner.field),
            symmetry=SYMMETRIES.index(banner.symmetry),
            rows=banner.rows,
            columns=banner.columns,
            entries=count,
        )
        narrow = max(banner.rows, banner.columns, count) <= np.iinfo(np.int32).max
        stored = count if indices else 0
        self.coordinates = np.empty((2, stored), np.int32 if narrow else np.int64)
        is_complex, is_real = banner.field == "complex", banner.field == "real"
        self.reals = np.empty(2 * count if is_complex else count if is_real else 0)
        self.integers = np.empty(count if banner.field.endswith("integer") else 0, np.int64)
        self.done = 0  # entries read
        self.lines = banner.lines  # lines read
        self.triangles = [0, 0]  # numbers of the first lines below and above the diagonal

    def read(self, stream: BufferedIOBase) -> np.ndarray | sp.coo_array:
        """Read the entries from a stream."""
        for block in self._blocks(stream):
            self._read_block(block)
        if self.done < self.banner.entries:
            raise ValueError(
                f"the file ends after {self.done} of {self.banner.entries} entries: it is "
                "truncated, or its size line is wrong"
            )
        return self._dense() if self.banner.is_dense else self._sparse()

    def _blocks(self, stream: BufferedIOBase) -> Iterator[np.ndarray]:
        """Yield the text as blocks of whole lines; append a line end to the last line."""
        buffer, rest = np.empty(_BLOCK_BYTES + 1, np.uint8), 0
        while True:
            count = _fill(stream, buffer[rest:-1].data)
            size = rest + count
            if count == 0:
                break
            cut = _last_end(buffer[:size])
            if cut:
                yield buffer[:cut]
                rest = size - cut
                buffer[:rest] = buffer[cut:size].copy()
            elif size > _MAX_LINE:
                raise ValueError(
                    f"the line after line {self.lines} has more than {_MAX_LINE} bytes: the file "
                    "is not a Matrix Market file, or has no line breaks"
                )
            else:
                rest = size
        if rest:
            buffer[rest] = LINE_END
            yield buffer[: rest + 1]

    def _read_block(self, text: np.ndarray) -> None:
        starts = np.append(np.arange(0, text.size, _CHUNK_BYTES), text.size)
        extents = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
        counts = np.zeros((len(extents), 2), np.int64)  # entries, lines
        reports = np.zeros((len(extents), 6), np.int64)
        none = np.empty((0, 3), np.int64)

        def count(first: int, last: int) -> None:
            for k in range(first, last):
                counts[k] = count_entries(text, *extents[k])

        def read(first: int, last: int) -> None:
            for k in range(first, last):
                self._read_chunk(text, extents[k], self.done + before[k], none, reports[k])

        parallel_for(count, starts)
        before = np.cumsum(counts[:, 0]) - counts[:, 0]
        parallel_for(read, starts)
        for k in np.flatnonzero(reports[:, HARDS]):
            self._round(text, extents[k], self.done + before[k], reports[k])
        self._check(text, reports)
        self.done += int(counts[:, 0].sum())
        self.lines += int(counts[:, 1].sum())

    def _read_chunk(
        self, text: np.ndarray, extent: tuple[int, int], at: int, *marks: np.ndarray
    ) -> None:
        """Read the entries of a chunk; `marks` are hard numbers and report of `EntryArrays`."""
        out = EntryArrays(self.coordinates, self.reals, self.integers, *marks)
        read_entries(text, extent, self.layout, out, at)

    def _round(
        self, text: np.ndarray, extent: tuple[int, int], at: int, report: np.ndarray
    ) -> None:
        """Round the numbers of a chunk that have many digits and are close to a tie."""
        hard = np.empty((report[HARDS], 3), np.int64)
        self._read_chunk(text, extent, at, hard, report)
        for place, first, last in hard:
            self.reals[place] = decimal(text[first:last].tobytes())

    def _check(self, text: np.ndarray, reports: np.ndarray) -> None:
        """Raise for the first malformed line, or if entries of both triangles were read."""
        damaged = np.flatnonzero(reports[:, CODE] != OK)
        if damaged.size:
            report = reports[damaged[0]]
            line = self._line(text, report[FIRST])
            raise_line_error(text, report, line, self.banner)
        for k, column in enumerate((LOWER, UPPER)):
            positions = reports[:, column][reports[:, column] >= 0]
            if positions.size and not self.triangles[k]:
                self.triangles[k] = self._line(text, positions[0])
        if self.banner.symmetry != "general" and all(self.triangles):
            raise_triangles(self.banner.symmetry, *self.triangles)

    def _line(self, text: np.ndarray, place: int) -> int:
        """Return the number of the line that contains a byte."""
        return self.lines + int(np.count_nonzero(text[:place] == LINE_END)) + 1

    def _values(self) -> np.ndarray:
        field = self.banner.field
        if field == "pattern":
            return np.ones(self.banner.entries)
        if field == "complex":
            return self.reals.view(np.complex128)
        if field == "unsigned-integer":
            return self.integers.view(np.uint64)
        return self.reals if field == "real" else self.integers

    def _dense(self) -> np.ndarray:
        banner, values = self.banner, self._values()
        if banner.symmetry == "general":
            return values.reshape((banner.rows, banner.columns), order="F")
        return complete_dense(values, banner.rows, banner.symmetry)

    def _sparse(self) -> sp.coo_array:
        banner = self.banner
        rows, columns = self.coordinates
        rows, columns, values = complete((rows, columns, self._values()), banner.symmetry)
        return sp.coo_array((values, (rows, columns)), shape=(banner.rows, banner.columns))


def _fill(stream: BufferedIOBase, buffer: memoryview) -> int:
    """Read until a buffer is full or the stream ends; return the number of bytes."""
    size = 0
    while size < len(buffer):
        count = stream.readinto(buffer[size:])
        if not count:
            break
        size += count
    return size


def _last_end(text: np.ndarray) -> int:
    """Return the position behind the last line end, or 0 if there is none."""
    last = text.size
    while last > 0:
        first = max(last - _WINDOW_BYTES, 0)
        ends = np.flatnonzero(text[first:last] == LINE_END)
        if ends.size:
            return first + int(ends[-1]) + 1
        last = first
    return 0
