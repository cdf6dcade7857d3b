"""Values of ``memory=``: where a factor is stored, or its largest size in bytes."""

from __future__ import annotations

import numpy as np

Memory = str | int

_NAMES = ("auto", "device", "streamed")


def required_memory(memory: object) -> Memory:
    """Return the name or the number of bytes that a user passed as ``memory=``.

    Raises
    ------
    ValueError
        If `memory` is neither.

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
        and 0 <= memory < 1 << 62  # False for NaN
    ):
        return int(memory)
    raise ValueError(
        f"memory is {memory!r}; choose 'auto', 'device', 'streamed' or a number of bytes"
    )


def byte_limit(memory: Memory) -> int | None:
    """Return the limit in bytes; None for a name."""
    return memory if isinstance(memory, int) else None
