"""Atomic replacement of files: written under a temporary name, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".tmp"  # suffix of temporary names


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a stream for the new contents of a file, which replace it atomically.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a"
    >>> with replacing(path) as stream:
    ...     stream.write(b"all"), path.exists()
    (3, False)
    >>> path.read_bytes()
    b'all'
    """
    temporary = path.with_name(os.urandom(8).hex() + UNFINISHED)
    try:
        with temporary.open("xb") as stream:
            yield stream
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
