"""Memory of a factorization on the device: what stays of it, its counters and its messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import FactorMemoryError
from ..runtime.array import Array
from ..runtime.slab import Kind
from . import launch, structs
from .layout.panels import Fronts
from .layout.subset_packing import worth_having
from .pattern import DevicePattern
from .solve.messages import message_sizes
from .tasks.solves import counted_rows

_WIDE_RHS = 8  # right-hand sides of solves that have room in the memory of factorizations,
_WIDE_RHS_FRACTION = 64  # of which so small a part may be added for them


class PivotBlocks(NamedTuple):
    """D of L D L^H.

    Attributes
    ----------
    diagonal, coupling : device arrays (n,)
        D(j,j), and D(j+1,j) of 2x2 pivots, 0 elsewhere; in elimination order.
    """

    diagonal: Array
    subdiagonal: Array


class SpareMemory(NamedTuple):
    """The memory behind the panels: for factorizations, and between them for solves.

    Attributes
    ----------
    memory : device array of bytes
        All of it.
    sent : device array
        Factors of diagonal tiles, as messages (common/messages.cuh), and then what takes their
        place: panels that are written later, and contribution blocks.
    values : device array
        What is factorized, if that is not what the matrix keeps.
    """

    memory: Array
    sent: Array
    values: Array

    @classmethod
    def from_memory(cls, memory: Array, pattern: DevicePattern, separate_count: int) -> SpareMemory:
        """What is no panel in the memory that all of them share."""
        places = pattern.layout(memory.dtype).places
        rest, last = memory[places.panels :], places.entries
        sent = memory[places.sent : places.sent + places.messages]
        return cls(rest.view(np.uint8), sent, memory[last : last + separate_count])

    @property
    def beyond(self) -> int:
        """Bytes of values."""
        return self.values.nbytes


@dataclass
class Storage:
    """What a factorization keeps on the device.

    Attributes
    ----------
    panels : device array
        As `fronts.Layout` has them; while they are computed, contribution blocks among them.
    pivots : device array or None
        LAPACK's row interchanges of each front, from 1.
    blocks : PivotBlocks or None
        Of L D L^H.
    largest : device array (n,) of float32, or None
        With pivots: largest entry of each column of L below its diagonal tile, in small fronts of
        all of it; LU tells of those alone that are larger than LIMIT. Infinite where a pivot was
        replaced.
    spare : SpareMemory or None
        Memory that a factorization needs besides, and nobody between two of them.
    counters : device array of int32, or None
        See `State`.
    values : device array or None
        The matrix that it is a factor of, if that is kept with it.
    """

    panels: Array
    pivots: Array | None
    blocks: PivotBlocks | None = None
    largest: Array | None = None
    spare: SpareMemory | None = None
    counters: Array | None = None
    values: Array | None = None

    @property
    def of_pivots(self) -> dict[str, Array | None]:
        """Fields of structs: interchanges, D, and what tells of pivots."""
        d = zip(("diagonal", "coupling"), self.blocks or (None, None), strict=True)
        return {"pivots": self.pivots, "largest": self.largest, **dict(d)}

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        arrays = [self.panels, self.pivots, self.largest, *(self.blocks or ())]
        spare = self.spare.beyond if self.spare else 0
        return sum(x.nbytes for x in arrays if x is not None) + spare


def required(pattern: Fronts, dtype: np.dtype, separate_count: int = 0) -> int:
    """Bytes of a factor of this scalar type, and of what its computation takes besides.

    Parameters
    ----------
    apart : int
        Values that are factorized and are not those that the matrix keeps.
    """
    entries = (
        pattern.layout(dtype).places.entries + separate_count + more(pattern, dtype, separate_count)
    )
    return (entries + working(pattern, dtype)) * dtype.itemsize


def more(pattern: Fronts, dtype: np.dtype, separate_count: int) -> int:
    """Entries beside those of a factorization, with which much more of what solves need fits."""
    if pattern.segment is not None:
        return 0
    places, item = pattern.layout(dtype).places, dtype.itemsize
    sizes = message_sizes(pattern.once(counted_rows), launch.solve_width(dtype, _WIDE_RHS), dtype)
    room = (places.entries - places.panels + separate_count) * item
    return -(-worth_having(sizes, room, places.entries * item // _WIDE_RHS_FRACTION) // item)


def working(pattern: Fronts, dtype: np.dtype) -> int:
    """Entries of what blocks work in besides."""
    plan = launch.front_tiles(dtype, pattern.method, pattern.device.limits)
    return plan.workspace * plan.blocks


def allocate(pattern: DevicePattern, dtype: np.dtype, separate_count: int = 0) -> Storage:
    """Take the memory of a factor; raise before any is taken if it does not fit.

    Parameters
    ----------
    apart : int
        See `required`.
    """
    device, panels = pattern.device, pattern.layout(dtype).places.entries
    needed = required(pattern, dtype, separate_count)
    available = device.free_memory()
    if needed > available:
        raise FactorMemoryError(needed, available)
    n, method = (int(pattern.plan.start[-1]),), pattern.method
    kinds: list[Kind] = [
        ((max(panels + separate_count + more(pattern, dtype, separate_count), 1),), dtype)
    ]
    kinds.append(((sum(counter_sizes(pattern)),), np.dtype(np.int32)))
    kinds += [(n, np.dtype(np.int32)), (n, np.dtype(np.float32))] * method.pivots
    memory, counters, *others = device.empties(kinds + [(n, dtype)] * (2 * method.indefinite))
    pivots, largest = others[:2] if method.pivots else (None, None)
    if largest is not None:
        device.clear(largest)
    blocks = PivotBlocks(*others[2:]) if method.indefinite else None
    spare = SpareMemory.from_memory(memory, pattern, separate_count)
    return Storage(memory[: max(panels, 1)], pivots, blocks, largest, spare, counters)


class FactorizationOutcome(NamedTuple):
    """What is known after a factorization.

    Attributes
    ----------
    failure : int or None
        First position whose pivot is not positive.
    replaced : int
        Pivots that were tiny.
    examined : (6,) float64 array
        What `pivot_statistics.examination` found, zeros if it did not look.
    beyond : bool
        It has found entries of L beyond `structs.LIMIT`.
    """

    failure: int | None
    replaced: int
    examined: np.ndarray
    beyond: bool


def counter_sizes(tree: Fronts) -> tuple[int, ...]:
    """How many numbers each counter of `State` is, in their order."""
    fronts, rows = len(tree.k), int(tree.tile_row[-1])
    return 2, 12, 1, tree.schedule.epochs, 1, fronts, rows, rows


class State:
    """Counters of a factorization, and its messages: of one at a time in a storage.

    Attributes
    ----------
    outcome : device array of int32
        See sparse/front.cuh; then how many pivots were replaced.
    examined : device array (6,) of float64
        For `pivot_statistics.examination`.
    sent : device array
        Of the storage; see `SpareMemory`.
    """

    def __init__(self, pattern: DevicePattern, storage: Storage) -> None:
        if storage.spare is None or storage.counters is None:
            raise ValueError("a storage without memory for messages")
        self._device, self.all, self.sent = pattern.device, storage.counters, storage.spare.sent
        self._device.clear(self.all)
        sizes = counter_sizes(pattern)
        ends = np.cumsum(sizes)
        parts = [self.all[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        self.outcome, examined, self.ticket, self.epoch, self.over, *rest = parts
        self.finished, self.done, self.upper_done = rest
        self.examined = examined.view(np.float64)
        self._mirror, self._end = pattern.device.staged(self.all[:14]), pattern.device.fence()

    def clear(self) -> None:
        """Enqueue what makes ready for a factorization: counters zero, messages unset."""
        self._device.clear(self.all)
        if self.sent.size:
            self._device.clear(self.sent, 0xFF)

    def fetch(self) -> None:
        """Enqueue the copy of the outcome that `read` understands."""
        self._mirror.fetch()

    def ended(self) -> None:
        """Say that all of it is enqueued, and need not wait for what is enqueued from now on."""
        self._end.record()

    def read(self) -> FactorizationOutcome:
        """Understand the outcome that was fetched; waits."""
        self._end.synchronize()
        numbers = self._mirror.host.copy()
        failure, replaced, *_, low, high = numbers.tolist()
        position = structs.NO_POSITION - failure if failure else None
        return FactorizationOutcome(
            position, replaced, numbers[2:].view(np.float64), bool(low or high)
        )
