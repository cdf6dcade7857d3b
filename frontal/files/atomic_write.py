"""Files that are there whole or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".tmp"  # what the names of such files end with while they are written


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream for the new content of a file, which nobody ever sees a part of.

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
