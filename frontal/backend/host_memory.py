"""Checks of the host's memory before large arrays are allocated."""

from __future__ import annotations

from ..errors import FactorMemoryError
from ..machine.resources import available_memory

_UNCHECKED_BYTES = 1 << 24  # bytes allocated without a check of the system's memory


def available_for(required: int) -> int | None:
    """Return the available bytes of the system; None if `required` is too small to check."""
    return available_memory() if required > _UNCHECKED_BYTES else None


def require_available(required: int) -> None:
    """Raise if the system lacks the memory.

    Raises
    ------
    FactorMemoryError
    """
    available = available_for(required)
    if available is not None and required > available:
        raise FactorMemoryError(required, available)
