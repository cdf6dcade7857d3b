"""Memory of a factorization on the device: the factor, counters and messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, TypeVar

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

_WIDE_RHS = 8  # right-hand sides whose vectors should fit into the memory of factorizations
_WIDE_RHS_FRACTION = 64  # 1/64 of that memory may be added for them


class PivotBlocks(NamedTuple):
    """D of L D L^H."""

    # (n,): D(j,j), and D(j+1,j) of 2x2 pivots, 0 elsewhere; in elimination order
    diagonal: Array
    subdiagonal: Array


class SpareMemory(NamedTuple):
    """The memory behind the panels: used by factorizations, and between them by solves."""

    memory: Array  # bytes
    # factors of diagonal tiles, as messages (common/messages.cuh); panels written later and
    # contribution blocks reuse their memory
    sent: Array
    values: Array  # values that are factorized, if they differ from those that the matrix stores

    @classmethod
    def from_memory(cls, memory: Array, pattern: DevicePattern, separate_count: int) -> SpareMemory:
        """Return the memory that is not for panels in the memory of a factorization."""
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
    """Device memory of a factorization."""

    panels: Array  # as in `DeviceLayout`; during a factorization also contribution blocks
    pivots: Array | None  # LAPACK's row interchanges of each front, from 1
    blocks: PivotBlocks | None = None  # of L D L^H
    # (n,) float32, with pivots: largest entry of each column of L below its diagonal tile, in small
    # fronts of the whole column; for LU only if it is larger than LIMIT. Infinite if a pivot was
    # replaced.
    largest: Array | None = None
    spare: SpareMemory | None = None  # memory that is needed only during a factorization
    counters: Array | None = None  # int32: see `State`
    # the values of the factorized matrix, if they are stored with the factor
    values: Array | None = None
    signs: Array | None = None  # (n,) int8, for a method with known signs of the pivots

    @property
    def of_pivots(self) -> dict[str, Array | None]:
        """Fields of structs: interchanges, D, and largest entries of columns of L."""
        d = zip(("diagonal", "coupling"), self.blocks or (None, None), strict=True)
        return {"pivots": self.pivots, "largest": self.largest, "signs": self.signs, **dict(d)}

    @property
    def nbytes(self) -> int:
        """Bytes of panels with the memory behind them, interchanges, D and separate values."""
        arrays = [self.panels, self.pivots, self.largest, *(self.blocks or ())]
        spare = self.spare.beyond if self.spare else 0
        return sum(x.nbytes for x in arrays if x is not None) + spare


Stored = TypeVar("Stored", bound=Storage)


def required(pattern: Fronts, dtype: np.dtype, separate_count: int = 0) -> int:
    """Return the bytes of a factor of this scalar type and of the memory of its computation.

    `separate_count` factorized values differ from those that the matrix stores.
    """
    return (_entries(pattern, dtype, separate_count) + working(pattern, dtype)) * dtype.itemsize


def _entries(pattern: Fronts, dtype: np.dtype, separate_count: int) -> int:
    """Return the entries of the memory of a factorization."""
    entries = pattern.layout(dtype).places.entries + separate_count
    return entries + more(pattern, dtype, separate_count)


def more(pattern: Fronts, dtype: np.dtype, separate_count: int) -> int:
    """Return additional entries that let more arrays of solves fit into this memory."""
    if pattern.segment is not None:
        return 0
    places, item = pattern.layout(dtype).places, dtype.itemsize
    sizes = message_sizes(pattern.once(counted_rows), launch.solve_width(dtype, _WIDE_RHS), dtype)
    room = (places.entries - places.panels + separate_count) * item
    return -(-worth_having(sizes, room, places.entries * item // _WIDE_RHS_FRACTION) // item)


def working(pattern: Fronts, dtype: np.dtype) -> int:
    """Return the entries of the workspace of blocks outside shared memory."""
    plan = launch.front_tiles(dtype, pattern.method, pattern.device.limits)
    return plan.workspace * plan.blocks


def allocate(
    pattern: DevicePattern,
    dtype: np.dtype,
    make: Callable[..., Stored],
    separate_count: int = 0,
    checked: bool = False,
) -> Stored:
    """Allocate the memory of a factor; raise before any allocation if it does not fit.

    `make` is `Storage`, a subclass, or a function of the arguments of `Storage`. The free memory is
    not compared if the caller has `checked` it.
    """
    device, panels = pattern.device, pattern.layout(dtype).places.entries
    entries = _entries(pattern, dtype, separate_count)
    if not checked:
        needed = (entries + working(pattern, dtype)) * dtype.itemsize
        available = device.free_memory()
        if needed > available:
            raise FactorMemoryError(needed, available)
    n, method = (int(pattern.plan.start[-1]),), pattern.method
    kinds: list[Kind] = [((max(entries, 1),), dtype)]
    kinds.append(((sum(counter_sizes(pattern)),), np.dtype(np.int32)))
    kinds += [(n, np.dtype(np.int32)), (n, np.dtype(np.float32))] * method.unit
    memory, counters, *others = device.empties(kinds + [(n, dtype)] * (2 * method.indefinite))
    pivots, largest = others[:2] if method.unit else (None, None)
    if largest is not None:
        device.clear(largest)
    blocks = PivotBlocks(*others[2:]) if method.indefinite else None
    spare = SpareMemory.from_memory(memory, pattern, separate_count)
    return make(memory[: max(panels, 1)], pivots, blocks, largest, spare, counters)


class FactorizationOutcome(NamedTuple):
    """Result of a factorization."""

    failure: int | None  # first position whose pivot is not positive
    replaced: int  # number of tiny pivots that were replaced
    # (6,) float64: output of `pivot_statistics.examination`; zeros if it did not run
    examined: np.ndarray
    beyond: bool  # entries of L exceed `structs.LIMIT`


class ComputedFactor(NamedTuple):
    """A new factor in a storage, to be examined."""

    pattern: DevicePattern
    # see `Storage`
    panels: Array
    blocks: PivotBlocks | None
    largest: Array | None
    values: Array  # the values that were factorized
    numbers: Array  # (6,) float64: `State.examined`
    repeated: bool  # the storage held an earlier factor
    # only the pivots from the first position on and before the second
    columns: tuple[int, int] | None = None


Examination: TypeAlias = Callable[[ComputedFactor], Callable[[], object]]  # returns the launches


def counter_sizes(tree: Fronts) -> tuple[int, ...]:
    """Return the number of entries of each counter of `State`, in their order."""
    fronts, rows = len(tree.k), int(tree.tile_row[-1])
    return 2, 12, 1, tree.schedule.epochs, 1, fronts, rows, rows, 1


class State:
    """Counters and messages of a factorization: of one at a time in a storage.

    Attributes
    ----------
    outcome : device array of int32
        See sparse/front.cuh; then the number of replaced pivots.
    examined : device array (6,) of float64
        For `pivot_statistics.examination`.
    sent : device array
        Of the storage; see `SpareMemory`.
    """

    def __init__(self, pattern: DevicePattern, storage: Storage) -> None:
        if storage.spare is None or storage.counters is None:
            raise ValueError("this storage has no memory for messages")
        self._device, self.all, self.sent = pattern.device, storage.counters, storage.spare.sent
        self._device.clear(self.all)
        sizes = counter_sizes(pattern)
        ends = np.cumsum(sizes)
        parts = [self.all[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        self.outcome, examined, self.ticket, self.epoch, self.over, *rest = parts
        self.finished, self.done, self.upper_done, self.small_ticket = rest
        self.examined = examined.view(np.float64)
        self._mirror, self._end = pattern.device.staged(self.all[:14]), pattern.device.fence()

    def clear(self) -> None:
        """Enqueue the preparation of a factorization: counters zero, messages unset."""
        self._device.clear(self.all)
        if self.sent.size:
            self._device.clear(self.sent, 0xFF)

    def fetch(self) -> None:
        """Enqueue the copy of the outcome for `read`."""
        self._mirror.fetch()

    def ended(self) -> None:
        """Mark the end of the enqueued work; `read` does not wait for later work."""
        self._end.record()

    def read(self) -> FactorizationOutcome:
        """Return the outcome that was fetched; waits."""
        self._end.synchronize()
        numbers = self._mirror.host.copy()
        failure, replaced, *_, low, high = numbers.tolist()
        position = structs.NO_POSITION - failure if failure else None
        return FactorizationOutcome(
            position, replaced, numbers[2:].view(np.float64), bool(low or high)
        )
