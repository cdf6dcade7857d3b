"""Numeric factorization on the device: memory, and the launches over all fronts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...errors import FactorMemoryError
from ..runtime.graph import Launch, Replayed
from ..runtime.structs import filled
from . import launch, small_fronts, structs
from .pattern import Pattern

Examination = Callable[[Any, Any, Any, bool], Launch]

_MULTIPLIER = 8  # larger entries of L in a diagonal tile ask for interchanges


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
    factorization, solver
        What has been prepared to compute with this memory, and takes more of it.
    """

    panels: Any
    inverses: Any
    pivots: Any
    factorization: Factorization | None = None
    solver: Any = None

    @property
    def upper_inverses(self) -> Any:
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


class Factorization:
    """The launches that factorize matrices of one pattern into one storage.

    All memory is taken at the beginning; from the second factorization on a graph is replayed.

    Parameters
    ----------
    storage : Storage
        What is overwritten.
    entries : int
        Number of values of a matrix.
    tiny : float
        Pivots of LU below this are made that large.
    trace : device array (tasks, 4) of int64, optional
        Gets the nanoseconds at which each task began, was assembled, was summed and ended.
    """

    def __init__(
        self, pattern: Pattern, storage: Storage, entries: int, tiny: float, trace: Any = None
    ) -> None:
        self.pattern, self.tiny, self._panels = pattern, tiny, storage.panels
        device, dtype = pattern.device, storage.panels.dtype
        self._values = device.xp.empty(max(entries, 1), dtype)
        self._blocks = device.xp.empty(max(pattern.schedule.blocks, 1), dtype)
        self._state = State(pattern, dtype)
        given = pattern, storage, self._blocks, self._values, tiny, self._state
        self._parts = small_fronts.launches(*given) if pattern.schedule.small.any() else []
        if pattern.tasks.count:
            self._parts.append(_tiles(*given, trace))
        launches = [one for part in self._parts for one in part]
        self._run = Replayed(device, self._state.clear, launches)
        self._examined = False

    def __call__(self, values: Any, examination: Examination | None = None) -> State:
        """Factorize values on the host or the device; nothing waits for the device.

        Parameters
        ----------
        examination : callable, optional
            Given the panels, the values, four numbers to be filled, and whether this is not the
            first time: what looks at the factor before anybody waits for it.

        Returns
        -------
        State
            What the launches find.
        """
        kept = self._values[: values.size]
        self.pattern.device.copy(values, kept)
        again = self._run.runs > 0
        look = None
        if examination is not None and not self._examined and values.size:
            look = examination(self._panels, kept, self._state.examined, again)
        if look is not None and again:  # from now on a part of the graph
            self._run.append(look)
            self._examined = True
        self._run()
        if look is not None and not again:
            look()
        return self._state

    def timed(self, values: Any) -> list[float]:
        """Milliseconds of each level of small fronts, and of all others together."""
        device = self.pattern.device
        device.copy(values, self._values[: values.size])
        self._state.clear()
        return [device.milliseconds(lambda p=part: [x() for x in p]) for part in self._parts]


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
        For `life.examination`.
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


def _tiles(
    pattern: Pattern,
    storage: Storage,
    blocks: Any,
    values: Any,
    tiny: float,
    state: State,
    trace: Any,
) -> list[Launch]:
    """Launches for all fronts that are not small."""
    device, tasks, dtype = pattern.device, pattern.tasks, storage.panels.dtype
    lu = pattern.method.pivots
    struct = filled(
        device,
        structs.TILE_TASKS,
        dtype,
        list=tasks.list,
        count=tasks.count,
        entries={"begin": tasks.begin, "source": tasks.source, "place": tasks.place},
        level_count=tasks.level_count,
        ticket=state.ticket,
        level=state.level,
        finished=state.finished,
        done=state.done,
        upper_done=state.upper_done,
        inverses=storage.inverses,
        upper_inverses=storage.upper_inverses,
        sent=state.sent,
        first_sent=tasks.first_sent,
        pivots=storage.pivots,
        outcome=state.outcome,
        tiny=tiny,
        trace=trace,
    )
    plan = launch.front_tiles(dtype, pattern.method, device.limits)
    constants = {}
    if lu:
        constants = {
            "LU": 1,
            "PERTURB": 1,
            "MULTIPLIER": _MULTIPLIER,
            "TWO_INVERSES": int(plan.two_inverses),
        }
    constants |= {} if trace is None else {"TRACE": 1}
    kernel = device.kernel("front_tiles.cu", "front_tiles", dtype, **constants)
    tree = pattern.struct(dtype)
    arguments = (tree, struct, storage.panels, blocks, values)
    found = [Launch(kernel, min(plan.blocks, tasks.count), plan.threads, arguments, plan.shared)]
    if lu:
        kernel = device.kernel("front_pivots.cu", "front_pivots", dtype, LU=1)
        arguments = (tree, tasks.fronts, storage.pivots, storage.panels)
        found.append(Launch(kernel, *launch.front_pivots(len(tasks.fronts)), arguments))
    return found
