"""Whether something is done so often that code of its own for it is worth compiling.

What is compiled into one call for small systems takes seconds to compile, and saves less than a
tenth of a millisecond each time. The first calls of a process go the general way, which larger
systems need too.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

MIN_CALLS = 16  # calls that go the general way


class CallCounter:
    """Counts calls until they are many."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self) -> bool:
        """Whether there were `MIN_CALLS` calls before this one."""
        if self._calls >= MIN_CALLS:
            return True
        self._calls += 1
        return False


@contextlib.contextmanager
def never() -> Iterator[None]:
    """All calls go the general way."""
    global MIN_CALLS
    old, MIN_CALLS = MIN_CALLS, sys.maxsize
    try:
        yield
    finally:
        MIN_CALLS = old
