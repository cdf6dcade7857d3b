"""Memory of a factorization on the device: what stays of it, its counters and its messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import FactorMemoryError
from ..runtime.array import Array
from . import structs
from .pattern import Pattern


@dataclass
class Storage:
    """What a factorization keeps on the device.

    Attributes
    ----------
    panels : device array
        As `fronts.Layout` has them.
    inverses : device array
        Inverses of the diagonal tiles of L11; for LU those of the transpose of U11 behind them.
    pivots : device array or None
        LAPACK's row interchanges of each front, from 1.
    """

    panels: Array
    inverses: Array
    pivots: Array | None

    @property
    def upper_inverses(self) -> Array:
        """The inverses that belong to U; for Cholesky those of L."""
        return self.inverses if self.pivots is None else self.inverses[self.inverses.size // 2 :]

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return sum(x.nbytes for x in (self.panels, self.inverses, self.pivots) if x is not None)


def required(pattern: Pattern, dtype: np.dtype) -> int:
    """Bytes of a factor of this scalar type, and of what its computation takes besides."""
    panels, inverses = _sizes(pattern, dtype)
    working = pattern.schedule.blocks + pattern.messages
    return (panels + inverses + working) * dtype.itemsize


def _sizes(pattern: Pattern, dtype: np.dtype) -> tuple[int, int]:
    """Entries of panels, and of the inverses of diagonal tiles."""
    panels = int(pattern.layout(dtype).panel[-1])
    return panels, pattern.method.panels * int(pattern.inverse[-1])


def allocate(pattern: Pattern, dtype: np.dtype) -> Storage:
    """Take the memory of a factor; raise before any is taken if it does not fit."""
    device, (panels, inverses) = pattern.device, _sizes(pattern, dtype)
    needed = required(pattern, dtype)
    available = device.free_memory()
    if needed > available:
        raise FactorMemoryError(needed, available)
    xp, n = device.xp, int(pattern.plan.start[-1])
    return Storage(
        xp.empty(max(panels, 1), dtype),
        xp.empty(max(inverses, 1), dtype),
        xp.empty(n, np.int32) if pattern.method.pivots else None,
    )


class Outcome(NamedTuple):
    """What is known after a factorization.

    Attributes
    ----------
    failure : int or None
        First position whose pivot is not positive.
    replaced : int
        Pivots of LU that were tiny.
    examined : (4,) float64 array
        What `health.examination` found, zeros if it did not look.
    """

    failure: int | None
    replaced: int
    examined: np.ndarray


class State:
    """Counters of a factorization, and its messages.

    Attributes
    ----------
    outcome : device array of int32
        See sparse/front.cuh; then how many pivots were replaced.
    examined : device array (4,) of float64
        For `health.examination`.
    sent : device array
        Factors of diagonal tiles, as messages (common/messages.cuh).
    """

    def __init__(self, pattern: Pattern, dtype: np.dtype) -> None:
        fronts, rows = len(pattern.k), int(pattern.tile_row[-1])
        sizes = (2, 8, 1, pattern.schedule.levels, fronts, rows, rows)
        ends = np.cumsum(sizes)
        self._device = pattern.device
        self.all = pattern.device.xp.zeros(int(ends[-1]), np.int32)
        parts = [self.all[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        self.outcome, examined, self.ticket, self.level, self.finished, *rest = parts
        self.done, self.upper_done = rest
        self.examined = examined.view(np.float64)
        self.sent = pattern.device.xp.empty(pattern.messages, dtype)

    def clear(self) -> None:
        """Enqueue what makes ready for a factorization: counters zero, messages unset."""
        self._device.clear(self.all)
        if self.sent.size:
            self._device.clear(self.sent, 0xFF)

    def read(self) -> Outcome:
        """Download the outcome; waits."""
        found = self._device.download(self.all[:10])
        failure, replaced = found[:2].tolist()
        return Outcome(
            structs.NO_POSITION - failure if failure else None, replaced, found[2:].view(np.float64)
        )
