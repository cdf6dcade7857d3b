"""What ``memory=`` may be: where a factor is to be kept, or how much of it at most."""

from __future__ import annotations

import numpy as np

Memory = str | int

_NAMES = ("auto", "device", "streamed")


def required_memory(memory: object) -> Memory:
    """The name or the number of bytes that a user has given.

    Raises
    ------
    ValueError
        If it is neither.

    Examples
    --------
    >>> required_memory("auto"), required_memory(4e9)
    ('auto', 4000000000)
    """
    if isinstance(memory, str) and memory in _NAMES:
        return memory
    if (
        isinstance(memory, int | float | np.integer)
        and not isinstance(memory, bool)
        and 0 <= memory < 1 << 62  # NaN is not
    ):
        return int(memory)
    raise ValueError(
        f"memory is {memory!r}; choose 'auto', 'device', 'streamed' or a number of bytes"
    )


def byte_limit(memory: Memory) -> int | None:
    """A limit in bytes, if there is one."""
    return memory if isinstance(memory, int) else None
