"""What a file promises, compared with its size before memory is taken for it.

A line of text can ask for any amount of memory, and a packed file of a kilobyte hold a gigabyte of
nothing. So a header is believed as far as the bytes behind it can bear it out.
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
MAX_PACKED_BYTES = 2**25  # bytes that any packed file may hold
RATIO = 200  # of its own that a larger one may: texts of matrices are packed to 1/5 to 1/50
MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2"}  # what packed files begin with
HEADER = 2**20  # bytes that lines of comments may take
EMPTY = 1_000_000  # rows that a matrix may have without entries
SPARSEST = 100  # rows for each entry that a larger one may have


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Errors name the file; whatever goes wrong with a file that can be read is its content's."""
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
    """A stream that ends with an error where it gets too long."""

    def __init__(self, stream: BufferedIOBase, most: int) -> None:
        self._stream, self._most, self._read = stream, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._stream.readinto(buffer)
        self._read += count
        if self._read > self._most:
            raise ValueError(
                f"it unpacks to more than {self._most / 1e6:.0f} MB, {RATIO} times its size, which "
                "no matrix does; if it is sound, unpack it first"
            )
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


def packing(path: Path) -> str:
    """Return ".gz" or ".bz2" for a file that is named so, or begins so; else ""."""
    suffix = path.suffix.lower()
    if suffix in PACKED:
        return suffix
    with path.open("rb") as stream:
        start = stream.read(3)
    return next((ending for magic, ending in MAGIC.items() if start.startswith(magic)), "")


def most_bytes(path: Path) -> int:
    """Bytes of text that a file may hold, unpacked."""
    size = path.stat().st_size
    return max(MAX_PACKED_BYTES, RATIO * size) if packing(path) else size


def unpacked(path: Path) -> BufferedIOBase:
    """A file to read, unpacked as its name or its first bytes say, up to a bound."""
    unpack = PACKED.get(packing(path))
    if unpack is None:
        return path.open("rb")
    return io.BufferedReader(_Bounded(unpack(path, "rb"), most_bytes(path)), 2**20)


def check_entries(entries: int, least: int, available: int) -> None:
    """Refuse more entries than a file has room for.

    Parameters
    ----------
    entries : int
        What the header promises.
    least : int
        Bytes that one takes at least.
    available : int
        Bytes that there are.

    Raises
    ------
    ValueError
    """
    if entries < 0 or entries * least > available + least:
        raise ValueError(
            f"its header promises {entries} numbers or entries, which take {least} bytes each at "
            f"least, and the file has {available}: it was cut off, or the header is wrong"
        )


def check_shape(rows: int, columns: int, entries: int) -> None:
    """Refuse a matrix of which almost all rows are empty.

    Raises
    ------
    ValueError
    """
    most = max(EMPTY, SPARSEST * entries)
    if not 0 <= rows <= most or not 0 <= columns <= most:
        raise ValueError(
            f"its header promises {rows} rows and {columns} columns for {entries} entries, almost "
            "all of them empty: the header is wrong, or no system can be solved with the matrix"
        )


def _check_npy(stream: io.IOBase | IO[bytes], size: int, name: str) -> None:
    """Compare the header of an array in a stream of `size` bytes with the bytes behind it."""
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"{name} is in version {version} of NumPy's format; 1.0 and 2.0 are known")
    shape, _, dtype = read(stream)
    entries = int(np.prod([int(length) for length in shape], dtype=object))
    if dtype.hasobject or dtype.subdtype or dtype.names:
        raise ValueError(f"{name} holds {dtype}, which is no type of a number")
    held = size - stream.tell()
    if min(shape, default=0) < 0 or entries * dtype.itemsize != held:
        raise ValueError(
            f"{name} promises the shape {shape} of {dtype}, and there are {held} bytes"
        )


def check_npy(path: Path) -> None:
    """Compare the header of a ``.npy`` with its size.

    Raises
    ------
    ValueError
    """
    with path.open("rb") as stream:
        _check_npy(stream, path.stat().st_size, "it")


def check_npz(path: Path) -> None:
    """Compare what a ``.npz`` and its arrays promise with its size.

    Raises
    ------
    ValueError, zipfile.BadZipFile
    """
    with zipfile.ZipFile(path) as archive:
        promised = sum(info.file_size for info in archive.infolist())
        if promised > max(MAX_PACKED_BYTES, RATIO * path.stat().st_size):
            raise ValueError(
                f"it unpacks to {promised / 1e6:.0f} MB, more than {RATIO} times its size"
            )
        for info in archive.infolist():
            with archive.open(info) as stream:
                _check_npy(stream, info.file_size, info.filename)
