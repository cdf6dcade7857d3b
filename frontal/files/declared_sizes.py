"""Checks of declared sizes against the size of a file, before memory is allocated.

A line of text can request any amount of memory, and a compressed file of a kilobyte can contain a
gigabyte of zeros. So a header is trusted only as far as the bytes after it suffice.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import io
import zipfile
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

PACKED = {".gz": gzip.open, ".bz2": bz2.open}
MAX_PACKED_BYTES = 2**25  # bytes that any compressed file may contain
RATIO = 200  # largest compression ratio of larger files; texts of matrices have 5 to 50
MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2"}  # first bytes of compressed files
HEADER = 2**20  # bytes, bound of the comment lines
EMPTY = 1_000_000  # rows, bound of a matrix without entries
SPARSEST = 100  # rows an entry, bound of larger matrices


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Name the file in errors; any error in the content of a readable file becomes a ValueError."""
    try:
        yield
    except MemoryError as error:
        raise MemoryError(f"{path}: {error}") from error
    except Exception as error:
        if isinstance(error, OSError):
            content = type(error) in (OSError, gzip.BadGzipFile)
            if not content or error.errno not in (None, errno.EINVAL):  # EINVAL: a wrong offset
                raise
        raise ValueError(f"{path}: {error}") from error


class _Bounded(io.RawIOBase):
    """A stream that raises after more than ``most`` bytes."""

    def __init__(self, stream: BufferedIOBase, most: int) -> None:
        self._stream, self._most, self._read = stream, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._stream.readinto(buffer)
        self._read += count
        if self._read > self._most:
            raise ValueError(
                f"the file decompresses to more than {self._most / 1e6:.0f} MB, {RATIO} times its "
                "size, which is implausible for a matrix; if it is correct, decompress it first"
            )
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def packing(path: Path) -> str:
    """Return ".gz" or ".bz2" for a file with that suffix or with its first bytes; else ""."""
    suffix = path.suffix.lower()
    if suffix in PACKED:
        return suffix
    with path.open("rb") as stream:
        start = stream.read(3)
    return next((ending for magic, ending in MAGIC.items() if start.startswith(magic)), "")


def most_bytes(path: Path) -> int:
    """Return the largest number of bytes of text in a file, decompressed."""
    size = path.stat().st_size
    return max(MAX_PACKED_BYTES, RATIO * size) if packing(path) else size


def unpacked(path: Path) -> BufferedIOBase:
    """Open a file, decompressed by its suffix or first bytes up to `most_bytes`."""
    unpack = PACKED.get(packing(path))
    if unpack is None:
        return path.open("rb")
    return io.BufferedReader(_Bounded(unpack(path, "rb"), most_bytes(path)), 2**20)


def check_entries(entries: int, least: int, available: int) -> None:
    """Raise if a header declares more entries than the file can contain.

    Parameters
    ----------
    entries : int
        Declared number of entries.
    least : int
        Least bytes of an entry.
    available : int
        Bytes in the file.

    Raises
    ------
    ValueError
    """
    if entries < 0 or entries * least > available + least:
        raise ValueError(
            f"the header declares {entries} numbers or entries of at least {least} bytes each, "
            f"but the file has {available} bytes: it is truncated, or the header is wrong"
        )


def check_shape(rows: int, columns: int, entries: int) -> None:
    """Raise if almost all rows of a matrix are empty.

    Raises
    ------
    ValueError
    """
    most = max(EMPTY, SPARSEST * entries)
    if not 0 <= rows <= most or not 0 <= columns <= most:
        raise ValueError(
            f"the header declares {rows} rows and {columns} columns, but only {entries} entries: "
            "the header is wrong, or almost all rows or columns are empty and no system can be "
            "solved with the matrix"
        )


def _check_npy(stream: io.IOBase | IO[bytes], size: int, name: str) -> None:
    """Compare the header of an array in a stream of `size` bytes with the bytes after it."""
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"{name} is in version {version} of NumPy's format, not 1.0 or 2.0")
    shape, _, dtype = read(stream)
    entries = int(np.prod([int(length) for length in shape], dtype=object))
    if dtype.hasobject or dtype.subdtype or dtype.names:
        raise ValueError(f"{name} has dtype {dtype}, which is not a type of numbers")
    held = size - stream.tell()
    if min(shape, default=0) < 0 or entries * dtype.itemsize != held:
        raise ValueError(
            f"{name} declares shape {shape} of {dtype}, but contains {held} bytes of data"
        )


def check_npy(path: Path) -> None:
    """Compare the header of a ``.npy`` with the size of the file.

    Raises
    ------
    ValueError
    """
    with path.open("rb") as stream:
        _check_npy(stream, path.stat().st_size, "the file")


def check_npz(path: Path) -> None:
    """Compare the declared sizes of a ``.npz`` and its arrays with the size of the file.

    Raises
    ------
    ValueError, zipfile.BadZipFile
    """
    with zipfile.ZipFile(path) as archive:
        promised = sum(info.file_size for info in archive.infolist())
        if promised > max(MAX_PACKED_BYTES, RATIO * path.stat().st_size):
            raise ValueError(
                f"the file decompresses to {promised / 1e6:.0f} MB, more than {RATIO} times its "
                "size"
            )
        for info in archive.infolist():
            with archive.open(info) as stream:
                _check_npy(stream, info.file_size, info.filename)
