"""Whether something is done so often that code of its own for it is worth compiling.

What is compiled into one call for small systems takes seconds to compile, and saves less than a
tenth of a millisecond each time. The first calls of a process go the general way, which larger
systems need too.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

LEAST = 16  # calls that go the general way


class Often:
    """Counts calls until they are many."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self) -> bool:
        """Whether there were `LEAST` calls before this one."""
        if self._calls >= LEAST:
            return True
        self._calls += 1
        return False


@contextlib.contextmanager
def never() -> Iterator[None]:
    """All calls go the general way."""
    global LEAST
    old, LEAST = LEAST, sys.maxsize
    try:
        yield
    finally:
        LEAST = old
