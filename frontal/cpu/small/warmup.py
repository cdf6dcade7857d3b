"""Count of calls, from which compiling the fast path for small systems is worthwhile.

The fast path takes seconds to compile, and saves less than 0.1 ms for each call. The first calls of
a process use the general path, which larger systems need too.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

MIN_CALLS = 16  # calls that use the general path
# Factorizations of each analysis that use it: one takes less time than to build a `SmallFactorizer`
GENERAL_FACTORIZATIONS = 1


class CallCounter:
    """Counter of calls up to `MIN_CALLS`."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self) -> bool:
        """Return whether there were `MIN_CALLS` calls before this one."""
        if self._calls >= MIN_CALLS:
            return True
        self._calls += 1
        return False


@contextlib.contextmanager
def never() -> Iterator[None]:
    """Make all calls use the general path."""
    global MIN_CALLS
    old, MIN_CALLS = MIN_CALLS, sys.maxsize
    try:
        yield
    finally:
        MIN_CALLS = old
