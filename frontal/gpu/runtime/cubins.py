"""Machine code of kernels on disk: one file for each architecture, beside the CPU's compiled code.

After its first bytes a file is a row of records: what a kernel was compiled from as a digest, a
checksum, a size, the code. What is damaged or foreign is left aside and written anew. A file is
replaced as a whole, so that no process sees half of one; where two processes write at once, a
record may get lost, and is compiled once more.
"""

from __future__ import annotations

import hashlib
import logging
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

from ...files.atomic_write import replacing

log = logging.getLogger("frontal")

_FIRST = b"frontal kernels 1\n"
_RECORD = struct.Struct("<32sIQ")  # digest, checksum, bytes of code
LIMIT = 64 << 20  # bytes of all code in a file


def digest(source: str, options: tuple[str, ...]) -> bytes:
    """What tells a kernel file, all it includes and its options from any other."""
    return hashlib.sha256("\0".join((*options, source)).encode()).digest()


class Cubins:
    """A file of machine code, for any number of threads and processes.

    Parameters
    ----------
    path : Path
        Made when something is written; its folder need not be writable.
    limit : int
        Bytes of code; what was kept first goes first.
    """

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self._path, self._limit = path, limit
        self._writing = threading.Lock()
        self._codes: dict[bytes, bytes] | None = None

    def get(self, key: bytes, compiled: Callable[[], bytes], recompile: bool = False) -> bytes:
        """Return the code of a digest; if it is not there, or `recompile`, compile and keep it."""
        codes = self._read() if self._codes is None else self._codes
        self._codes = codes
        if key not in codes or recompile:
            codes[key] = compiled()
            self._keep(key, codes[key])
        return codes[key]

    def _keep(self, key: bytes, code: bytes) -> None:
        with self._writing:
            codes = self._read()  # others may have written since
            codes.pop(key, None)
            codes[key] = code
            over = sum(map(len, codes.values())) - self._limit
            for old in list(codes)[:-1]:
                if over <= 0:
                    break
                over -= len(codes.pop(old))
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(self._path) as stream:
                    stream.write(_FIRST)
                    for record_key, body in codes.items():
                        stream.write(_RECORD.pack(record_key, zlib.crc32(body), len(body)) + body)
            except OSError as error:
                log.info("compiled kernels are not kept: %s", error)

    def _read(self) -> dict[bytes, bytes]:
        """All records that are whole."""
        try:
            content = self._path.read_bytes()
        except OSError:
            return {}
        codes: dict[bytes, bytes] = {}
        at = len(_FIRST) if content.startswith(_FIRST) else len(content)
        while at + _RECORD.size <= len(content):
            key, checksum, size = _RECORD.unpack_from(content, at)
            at += _RECORD.size
            body = content[at : at + size]
            at += size
            if len(body) == size and zlib.crc32(body) == checksum:
                codes[key] = body
        return codes
