"""Named vectors and a header in one file: NumPy's .npz, without pickles and without compression.

A reader trusts nothing: sizes are compared with that of the file before memory is allocated, and
contents with their checksums. The caller checks the meaning of header and vectors.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from .atomic_write import replacing

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from typing_extensions import Self

_HEADER = "header"
_ENCRYPTED = 1  # bit of a ZIP member's flags

Header = dict[str, object]


def write(path: Path, header: Header, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a file; if that fails, no part of it remains.

    Parameters
    ----------
    path : Path
    header : dict
        Serializable as JSON.
    arrays : mapping of str to array
        Vectors of numbers.
    """
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with replacing(path) as stream:
        np.savez(stream, **{_HEADER: text, **arrays})
        stream.flush()
        os.fsync(stream.fileno())  # some file systems report only here that they are full


class Archive:
    """A file written by `write`, or claimed to be; a context manager.

    Attributes
    ----------
    header : dict
    names : set of str
        Names of the vectors.

    Raises
    ------
    OSError
        If the file cannot be read.
    Exception
        Of any type, if the file is malformed.
    """

    def __init__(self, path: Path) -> None:
        self._zip = zipfile.ZipFile(path)
        try:
            self._check_members(path.stat().st_size)
            header = json.loads(self.vector(_HEADER, np.uint8).tobytes())
            if not isinstance(header, dict):
                raise ValueError("its header is not a JSON object")
        except BaseException:
            self._zip.close()
            raise
        self.header: Header = header
        self.names = {name.removesuffix(".npy") for name in self._zip.namelist()} - {_HEADER}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._zip.close()

    def vector(self, name: str, dtype: DTypeLike) -> np.ndarray:
        """Return a vector of this type.

        Raises
        ------
        ValueError
            If no vector has that name, or its type or shape differ.
        """
        dtype = np.dtype(dtype)
        try:
            info = self._zip.getinfo(f"{name}.npy")
        except KeyError:
            raise ValueError(f"it has no vector {name}") from None
        with self._zip.open(info) as stream:
            version = np.lib.format.read_magic(stream)
            if version != (1, 0):
                raise ValueError(f"{name} is in version {version} of NumPy's format, not (1, 0)")
            shape, _, stored = np.lib.format.read_array_header_1_0(stream)
            if stored != dtype or len(shape) != 1:
                raise ValueError(f"{name} is {stored} {shape}, not a vector of {dtype}")
            if shape[0] < 0 or shape[0] * dtype.itemsize != info.file_size - stream.tell():
                raise ValueError(
                    f"{name}: header says {shape[0]} entries, "
                    f"file has {info.file_size - stream.tell()} bytes"
                )
        with self._zip.open(info) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)

    def _check_members(self, size: int) -> None:
        """Raise if members are compressed, encrypted or overlapping."""
        members = self._zip.infolist()
        names = [member.filename for member in members]
        if len(set(names)) < len(names):
            raise ValueError("it has two vectors of the same name")
        for member in members:
            packed = member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED
            if packed or member.file_size != member.compress_size:
                raise ValueError(f"{member.filename} is compressed or encrypted")
        if sum(member.file_size for member in members) > size:
            raise ValueError("its vectors are larger than the file")
