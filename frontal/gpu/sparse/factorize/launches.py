"""Numeric factorization on the device: the launches over all fronts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ....numeric.method import Method
from ...runtime.array import NULL, Array, Value
from ...runtime.device import Device
from ...runtime.graph import CapturedLaunches, Launch
from ...runtime.structs import filled
from .. import launch, structs
from ..pattern import DevicePattern
from ..storage import ComputedFactor, Examination, State, Storage
from . import small_fronts

# entries of L in a diagonal tile above which rows are interchanged: LU, and L·D·Lᴴ, in which an
# interchange repeats the elimination of the columns
_MULTIPLIER, _OF_LDL = 8, 32


class TiledFronts(NamedTuple):
    """Fronts that are not small, whose tiles one launch computes."""

    # in the list of tasks, and in the list of pieces of rows left of diagonal tiles
    tasks: slice
    pieces: slice
    sent: Array | int  # messages, or the address of those of the first of all fronts
    workspace: Value  # see `workspace`


class Factorization:
    """The launches that factorize matrices of one pattern into one storage.

    Only counters are allocated; from the second factorization on a graph is replayed.

    Parameters
    ----------
    values : device array (entries,)
        Memory of the values of a matrix during its factorization.
    tiny : float
        Pivots below this are enlarged to it, if other fronts have rows of their columns.
    trace : device array (tasks, 4) of int64, optional
        Receives the times in ns at which each task began, was assembled, was summed and ended.
    """

    def __init__(
        self,
        pattern: DevicePattern,
        storage: Storage,
        values: Array,
        tiny: float,
        trace: Array | None = None,
    ) -> None:
        self.pattern, self.tiny = pattern, tiny
        self._numbers = storage.panels, storage.blocks, storage.largest
        device, self.values = pattern.device, values
        source = values if values.size else device.xp.empty(1, values.dtype)
        state = self._state = State(pattern, storage)
        self._parts = small_fronts.launches(pattern, storage, source, tiny, state)
        if pattern.tasks.count:
            room = workspace(pattern, storage.panels.dtype)
            tiled_fronts = TiledFronts(slice(0, pattern.tasks.count), slice(None), state.sent, room)
            self._parts.append(
                tile_launches(pattern, storage, source, tiny, state, tiled_fronts, trace)
            )
        launches = [one for part in self._parts for one in part]
        self._clear = partial(clear, device, self._state, storage.largest)
        self._run = CapturedLaunches(device, self._clear, launches)
        self._graph_complete = False

    def __call__(self, examination: Examination | None = None) -> State:
        """Factorize `values`, examine the factor, and fetch the outcome; nothing waits."""
        if self._run.runs > 0:
            if not self._graph_complete:  # part of the graph from now on
                for step in self._last(examination, repeated=True):
                    self._run.append(step)
                self._graph_complete = True
            self._run()
        else:
            self._run()
            for step in self._last(examination, repeated=False):  # while the device computes
                step()
        self._state.ended()
        return self._state

    def _last(
        self, examination: Examination | None, *, repeated: bool
    ) -> Iterator[Callable[[], object]]:
        """Yield the steps after all fronts."""
        if examination is not None and self.values.size:
            inputs = self.values, self._state.examined, repeated
            yield examination(ComputedFactor(self.pattern, *self._numbers, *inputs))
        yield self._state.fetch

    def timed(self) -> list[float]:
        """Return the milliseconds of each level of small fronts, and of all other fronts."""
        device = self.pattern.device
        self._clear()
        return [device.milliseconds(lambda p=part: [x() for x in p]) for part in self._parts]


def tile_constants(method: Method, plan: launch.TilesPlan) -> dict[str, int]:
    """Return the constants of front_tiles.cu."""
    constants = method.constants | plan.constants
    if method.unit:
        largest = _OF_LDL if method.indefinite else _MULTIPLIER
        constants |= {"PERTURB": 1, "MULTIPLIER": largest}
    if method.panels == 2:
        constants |= {"TWO_INVERSES": int(plan.two_inverses)}
    return constants


def clear(device: Device, state: State, largest: Array | None) -> None:
    """Enqueue the preparation of a factorization."""
    state.clear()
    if largest is not None:
        device.clear(largest)


def workspace(pattern: DevicePattern, dtype: np.dtype) -> Value:
    """Allocate the workspace of the blocks of a launch if shared memory is too small."""
    plan = launch.front_tiles(dtype, pattern.method, pattern.device.limits)
    blocks = min(plan.blocks, pattern.tasks.count)
    return pattern.device.xp.empty(blocks * plan.workspace, dtype) if plan.outside else NULL


def tile_launches(
    pattern: DevicePattern,
    storage: Storage,
    values: Array,
    tiny: float,
    state: State,
    tiled_fronts: TiledFronts,
    trace: Array | None = None,
) -> list[Launch]:
    """Return the launches for fronts that are not small, none for no tasks."""
    device, tasks, dtype = pattern.device, pattern.tasks, storage.panels.dtype
    first, count = tiled_fronts.tasks.start, tiled_fronts.tasks.stop - tiled_fronts.tasks.start
    if not count:
        return []
    struct = filled(
        device,
        structs.TILE_TASKS,
        dtype,
        list=tasks.list[tiled_fronts.tasks],
        count=count,
        entries={"begin": tasks.begin[first:], "source": tasks.source, "place": tasks.place},
        epoch_count=tasks.epoch_count,
        ticket=state.ticket,
        epoch=state.epoch,
        over=state.over,
        finished=state.finished,
        done=state.done,
        upper_done=state.upper_done,
        sent=tiled_fronts.sent,
        first_sent=tasks.first_sent,
        products=storage.panels,
        product=pattern.placed(dtype).get("product"),
        need=pattern.placed(dtype)["need"],
        **storage.of_pivots,
        outcome=state.outcome,
        tiny=tiny,
        trace=trace,
    )
    plan = launch.front_tiles(dtype, pattern.method, device.limits)
    constants = tile_constants(pattern.method, plan)
    constants |= {} if trace is None else {"TRACE": 1}
    kernel = device.kernel("front_tiles.cu", "front_tiles", dtype, **constants)
    tree = pattern.struct(dtype)
    blocks = min(plan.blocks, count)
    arguments = (tree, struct, storage.panels, values, tiled_fronts.workspace)
    launches = [Launch(kernel, blocks, plan.threads, arguments, plan.shared)]
    if storage.pivots is not None:
        row_pieces = tasks.row_pieces[tiled_fronts.pieces]
        pieces = len(row_pieces)
        kernel = device.kernel("front_pivots.cu", "front_rows", dtype, **pattern.method.constants)
        arguments = (tree, row_pieces, storage.pivots, storage.panels)
        launches.append(Launch(kernel, *launch.front_rows(pieces), arguments))
        kernel = device.kernel("front_pivots.cu", "front_pivots", dtype, **pattern.method.constants)
        launches.append(Launch(kernel, *launch.front_pivots(pieces), arguments[:3]))
    return launches
