"""Memory of a factorization on the device: what stays of it, its counters and its messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import FactorMemoryError
from ..runtime.array import Array
from . import launch, structs
from .pattern import Pattern


class Blocks(NamedTuple):
    """D of L D L^H.

    Attributes
    ----------
    diagonal, coupling : device arrays (n,)
        D(j,j), and D(j+1,j) of 2x2 pivots, 0 elsewhere; in elimination order.
    """

    diagonal: Array
    coupling: Array

    def copy(self) -> Blocks:
        """The same numbers in other memory."""
        return Blocks(*(x.copy() for x in self))


@dataclass
class Storage:
    """What a factorization keeps on the device.

    Attributes
    ----------
    panels : device array
        As `fronts.Layout` has them; while they are computed, contribution blocks among them.
    inverses : device array or None
        LU: inverses of the diagonal tiles of L11 and of the transpose of U11.
    pivots : device array or None
        LAPACK's row interchanges of each front, from 1.
    blocks : Blocks or None
        Of L D L^H.
    largest : device array (n,) of float32, or None
        With pivots: largest entry of each column of L below its diagonal tile, in small fronts of
        all of it; LU tells of those alone that are larger than LIMIT. Infinite where a pivot was
        replaced.
    """

    panels: Array
    inverses: Array | None
    pivots: Array | None
    blocks: Blocks | None = None
    largest: Array | None = None

    @property
    def of_pivots(self) -> dict[str, Array | None]:
        """Fields of structs: interchanges, D, and what tells of pivots."""
        d = zip(("diagonal", "coupling"), self.blocks or (None, None), strict=True)
        return {"pivots": self.pivots, "largest": self.largest, **dict(d)}

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        arrays = [self.panels, self.inverses, self.pivots, self.largest, *(self.blocks or ())]
        return sum(x.nbytes for x in arrays if x is not None)


def required(pattern: Pattern, dtype: np.dtype) -> int:
    """Bytes of a factor of this scalar type, and of what its computation takes besides."""
    plan = launch.front_tiles(dtype, pattern.method, pattern.device.limits)
    working = pattern.messages + plan.workspace * plan.blocks
    return (sum(_sizes(pattern, dtype)) + working) * dtype.itemsize


def _sizes(pattern: Pattern, dtype: np.dtype) -> tuple[int, int]:
    """Entries of the memory of panels, and of inverses that lie apart."""
    panels = pattern.layout(dtype).places.entries
    return panels, int(pattern.inverse[-1])


def allocate(pattern: Pattern, dtype: np.dtype) -> Storage:
    """Take the memory of a factor; raise before any is taken if it does not fit."""
    device, (panels, inverses) = pattern.device, _sizes(pattern, dtype)
    needed = required(pattern, dtype)
    available = device.free_memory()
    if needed > available:
        raise FactorMemoryError(needed, available)
    xp, n, method = device.xp, int(pattern.plan.start[-1]), pattern.method
    return Storage(
        xp.empty(max(panels, 1), dtype),
        xp.empty(max(inverses, 1), dtype) if method.panels == 2 else None,
        xp.empty(n, np.int32) if method.pivots else None,
        Blocks(xp.empty(n, dtype), xp.empty(n, dtype)) if method.indefinite else None,
        xp.zeros(n, np.float32) if method.pivots else None,
    )


class Outcome(NamedTuple):
    """What is known after a factorization.

    Attributes
    ----------
    failure : int or None
        First position whose pivot is not positive.
    replaced : int
        Pivots that were tiny.
    examined : (6,) float64 array
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
    examined : device array (6,) of float64
        For `health.examination`.
    sent : device array
        Factors of diagonal tiles, as messages (common/messages.cuh).
    """

    def __init__(self, pattern: Pattern, dtype: np.dtype) -> None:
        fronts, rows = len(pattern.k), int(pattern.tile_row[-1])
        sizes = (2, 12, 1, pattern.schedule.epochs, 1, fronts, rows, rows)
        ends = np.cumsum(sizes)
        self._device = pattern.device
        self.all = pattern.device.xp.zeros(int(ends[-1]), np.int32)
        parts = [self.all[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        self.outcome, examined, self.ticket, self.epoch, self.over, *rest = parts
        self.finished, self.done, self.upper_done = rest
        self.examined = examined.view(np.float64)
        self.sent = pattern.device.xp.empty(pattern.messages, dtype)

    def clear(self) -> None:
        """Enqueue what makes ready for a factorization: counters zero, messages unset."""
        self._device.clear(self.all)
        if self.sent.size:
            self._device.clear(self.sent, 0xFF)

    def read(self) -> Outcome:
        """Download the outcome; waits."""
        found = self._device.download(self.all[:14])
        failure, replaced = found[:2].tolist()
        return Outcome(
            structs.NO_POSITION - failure if failure else None, replaced, found[2:].view(np.float64)
        )
