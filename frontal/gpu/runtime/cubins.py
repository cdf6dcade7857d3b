"""Disk cache of compiled kernels: one file an architecture, beside the CPU's compiled code.

After its magic bytes a file is a sequence of records: digest of the source and options, checksum,
size, code. Damaged or foreign contents are ignored and replaced. A file is replaced atomically, so
that no process reads a partial one; if two processes write at once, a record may be lost and is
compiled again.
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
    """Return the key of a kernel file with its includes and options."""
    return hashlib.sha256("\0".join((*options, source)).encode()).digest()


class Cubins:
    """A file of compiled kernels, safe for threads and processes.

    Parameters
    ----------
    path : Path
        Created at the first write; its folder need not be writable.
    limit : int
        Bytes of code; the oldest records are dropped first.
    """

    def __init__(self, path: Path, limit: int = LIMIT) -> None:
        self._path, self._limit = path, limit
        self._writing = threading.Lock()
        self._codes: dict[bytes, bytes] | None = None

    def get(self, key: bytes, compiled: Callable[[], bytes], recompile: bool = False) -> bytes:
        """Return the code of a digest; compile and store it if missing, or if `recompile`."""
        codes = self._read() if self._codes is None else self._codes
        self._codes = codes
        if key not in codes or recompile:
            codes[key] = compiled()
            self._keep(key, codes[key])
        return codes[key]

    def _keep(self, key: bytes, code: bytes) -> None:
        with self._writing:
            codes = self._read()  # other processes may have written since
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
                log.info("compiled kernels are not cached: %s", error)

    def _read(self) -> dict[bytes, bytes]:
        """Return all valid records."""
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
