"""Forward and backward substitution over the fronts on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np

from ...runtime.array import Array
from ...runtime.graph import CapturedLaunches, Launch
from ...runtime.structs import filled
from .. import launch, structs
from ..pattern import DevicePattern
from ..storage import Storage
from ..tasks.solves import SolveTasks
from .messages import Messages, lends

# unknowns up to which the first solve allocates messages for probes, which are a few megabytes
_MAX_PREPARED_UNKNOWNS = 1 << 15
KERNELS = "front_forward_small", "front_forward", "front_backward", "front_backward_small"


class ColumnBlock(Protocol):
    """Right-hand sides that pass through the fronts together."""

    width: int  # largest number of right-hand sides
    # (n, width): see `SweepLaunches`
    vectors: Array
    solution: Array


class Pass(NamedTuple):
    """One forward and backward substitution."""

    # columns of the right-hand sides, and the blocks that hold them
    blocks: Sequence[tuple[slice, ColumnBlock]]
    run: Callable[[], None]  # enqueues the pass


class DeviceSolver:
    """Solver with one factor; one call at a time, since all calls share its vectors and messages.

    It refers to the arrays of the storage, not to the storage, which owns this solver. It is
    `resident` if all panels are on the device.
    """

    resident = True

    def __init__(self, pattern: DevicePattern, storage: Storage) -> None:
        self.pattern, self.panels, self.pivots = pattern, storage.panels, storage.pivots
        self.dtype = storage.panels.dtype
        self.d = storage.blocks
        self._spare = storage.panels[:0] if storage.spare is None else storage.spare.memory
        self._sweeps: dict[tuple[int, bool, bool], SweepLaunches] = {}
        self._messages: list[Messages] = []  # the widest last
        self._place: Array | None = None

    def sweeps(self, width: int, flip: bool, lent: bool = False) -> SweepLaunches:
        """Return both sweeps for at most `width` right-hand sides; with `flip` for the transpose.

        Raises
        ------
        ValueError
            If sweeps would have to be prepared while a caller captures a graph.
        """
        width = launch.solve_width(self.dtype, width)
        key = width, flip, lent
        if key not in self._sweeps:
            if self.pattern.device.capturing():
                raise ValueError(
                    "a graph is being captured, but the data for this solve is not on the device "
                    f"yet. Try: solve once for {width} right-hand sides before the capture begins"
                )
            if not self._messages:
                self._prepare_probes(width, lent)
            if not self._messages or width > self._messages[-1].width:
                self._widen(width, lent)
            self._sweeps[key] = SweepLaunches(self, self._messages[-1], width, flip, lent)
        return self._sweeps[key]

    def has(self, sweeps: SweepLaunches) -> bool:
        """Return whether sweeps still have their messages and vectors."""
        return any(one is sweeps for one in self._sweeps.values())

    def _prepare_probes(self, width: int, lent: bool) -> None:
        """Allocate messages for probes of a small system, if they are wider and memory suffices.

        Most factors need them, and would then replace narrower ones with all that refers to them.
        """
        wide = launch.solve_width(self.dtype, launch.PROBING_WIDTH)
        if width < wide and int(self.pattern.plan.start[-1]) <= _MAX_PREPARED_UNKNOWNS:
            with suppress(MemoryError):
                self._widen(wide, lent)

    def _widen(self, width: int, lent: bool) -> None:
        """Allocate messages for `width` right-hand sides, replacing narrower ones."""
        stay = any(sweeps.captured for sweeps in self._sweeps.values())
        self._sweeps.clear()
        if stay:  # a graph that the caller captured may still use these messages
            self._spare = self._messages[-1].remainder
        elif self._messages:
            self._messages.pop()
            self.pattern.device.give_back()  # freed blocks are too small for the next messages
        self._messages.append(Messages(self.pattern, self.dtype, width, self._spare, lent=lent))

    def passes(self, total: int, flip: bool, into: Array | None = None) -> Iterator[Pass]:
        """Yield the passes that solve for `total` right-hand sides, one after another.

        `into` (n, total), by columns, is the memory of the solutions; passes may overwrite it
        before.
        """
        first = 0
        while first < total:
            width = launch.solve_width(self.dtype, total - first)
            columns = slice(first, min(first + width, total))
            lent = None if into is None else self._lent(into, columns, width)
            sweeps = self.sweeps(width, flip, lent is not None)
            if lent is not None:
                sweeps.take(lent)
            yield Pass([(columns, sweeps)], sweeps)
            if lent is not None:
                sweeps.let_go()
            first = columns.stop

    def _lent(self, into: Array, columns: slice, width: int) -> Array | None:
        """Return the memory of solutions as vectors, or None if that does not pay."""
        n, count = len(into), columns.stop - columns.start
        if count < width or into.dtype != self.dtype or not lends(n, width, self.dtype):
            return None
        return into[:, columns].T.reshape(n, width)

    def solve(self, x: Array, flip: bool) -> None:
        """Overwrite x (n, w) with the solution in the order of elimination; nothing waits."""
        n, total = x.shape
        for sweep_pass in self.passes(total if n else 0, flip):
            for columns, sweeps in sweep_pass.blocks:
                count = columns.stop - columns.start
                sweeps.vectors[:, :count] = x[:, columns]
                if count < sweeps.width:
                    sweeps.vectors[:, count:] = 0
            sweep_pass.run()
            for columns, sweeps in sweep_pass.blocks:
                x[:, columns] = sweeps.solution[:, : columns.stop - columns.start]

    @cached_property
    def tasks(self) -> SolveTasks:
        """Tasks of this pattern and scalar type."""
        return self.pattern.solve_tasks(self.dtype)

    @property
    def place(self) -> Array | None:
        """With pivots: the row of its tile that moves to each pivot row."""
        if self._place is None and self.tasks.pivot_tiles is not None:
            n = int(self.pattern.plan.start[-1])
            place = self._place = self.pattern.device.xp.empty(max(n, 1), np.uint8)
            self._fill(place)
        return self._place

    def renew(self) -> None:
        """Reset messages, and update `place`, after a new factorization in the storage."""
        for messages in self._messages:
            messages.unset()
        if self._place is not None:
            self._fill(self._place)

    def _fill(self, place: Array) -> None:
        tiles, pivots, device = self.tasks.pivot_tiles, self.pivots, self.pattern.device
        if tiles is None or pivots is None:
            return
        constants = self.pattern.method.constants  # of a file that the sweeps compile anyway
        constants |= launch.front_solve(self.dtype, 1, device.limits).constants
        kernel = device.kernel("front_forward.cu", "front_places", self.dtype, **constants)
        arguments = (tiles, np.int32(len(tiles)), pivots, place)
        blocks, threads = launch.front_places(len(tiles))
        kernel((blocks,), (threads,), arguments)


class SweepLaunches:
    """The launches that solve for `width` right-hand sides; with `flip` of the transpose.

    From the second call on a graph is replayed, unless vectors are `lent`: then `take` sets their
    memory, which belongs to others, before each call.

    Attributes
    ----------
    vectors, solution : device arrays (n, width)
        Right-hand sides in elimination order, and their solution, valid until the next solve.
    """

    def __init__(
        self, solver: DeviceSolver, messages: Messages, width: int, flip: bool, lent: bool = False
    ) -> None:
        self.width, self.flip, self._messages = width, flip, messages
        self._nothing = solver.panels[:0]
        self.vectors = self._nothing if lent else messages.vectors_of(width)
        self.solution = messages.solution_of(width)
        tasks = solver.tasks
        lists = tasks.small, tasks.forward, tasks.backward, tasks.small
        launches = sweep_launches(solver, messages, self.vectors, width, flip, solver.panels, lists)
        active = list(chain.from_iterable(launches))
        device = self._device = solver.pattern.device
        begin = partial(device.clear, messages.beginning(width), 0xFF)
        self._structs = [one.arguments[0] for one in active]
        self._run = CapturedLaunches(device, begin, active, graph=not lent)

    def take(self, vectors: Array) -> None:
        """Use memory (n, width) for vectors."""
        self.vectors, address = vectors, self._device.pointer(vectors)
        for struct in self._structs:
            struct.view(structs.SOLVE.dtype_for(vectors.dtype))["z"] = address

    def let_go(self) -> None:
        """Drop the lent memory."""
        self.vectors = self._nothing

    def __call__(self) -> None:
        """Solve; nothing waits for the host."""
        self._messages.make_way(self.width)
        self._run()
        self._messages.shared |= self._run.captured

    def enqueue(self) -> None:
        """Enqueue the launches as a part of a graph."""
        self._messages.make_way(self.width, graph=True)
        self._run.enqueue()

    def replayed(self) -> None:
        """Record the replay of a graph that contains what `enqueue` enqueues."""
        self._messages.replayed(self.width)

    @property
    def turn(self) -> object:
        """Value that changes when the vectors are overwritten, except by graphs of a caller."""
        return self._messages, self._messages.turns

    @property
    def captured(self) -> bool:
        """Return whether a graph that the caller captured contains these launches."""
        return self._run.captured


def sweep_launches(
    solver: DeviceSolver,
    messages: Messages,
    vectors: Array,
    width: int,
    flip: bool,
    panels: Array,
    lists: Sequence[Array],
    first_ticket: int = 0,
) -> list[list[Launch]]:
    """Return the launch of each of the `KERNELS` for its list of tasks; no launch for no tasks.

    Offsets of tasks refer to `panels`. Tickets, from `first_ticket` on, are -1 when a kernel
    begins.
    """
    device, dtype, pattern = solver.pattern.device, solver.dtype, solver.pattern
    y, _, partial = (device.pointer(x) for x in messages.sent)
    of_rows = device.pointer(messages.of_rows)
    launches: list[list[Launch]] = []
    for place, (name, tasks) in enumerate(zip(KERNELS, lists, strict=True), first_ticket):
        if not len(tasks):
            launches.append([])
            continue
        struct = filled(
            device,
            structs.SOLVE,
            tasks=tasks,
            message_pointer=solver.tasks.message_pointer,
            slots=solver.tasks.slots,
            place=solver.place,
            diagonal=solver.d.diagonal if solver.d else None,
            coupling=solver.d.subdiagonal if solver.d else None,
            y=y,
            z=vectors,
            x=of_rows,
            messages=of_rows,
            partial=partial,
            ticket=messages.tickets[place:],
            count=len(tasks),
        )
        choose = launch.front_solve_small if name.endswith("small") else launch.front_solve
        plan = choose(dtype, width, device.limits)
        constants = plan.constants | pattern.constants(FLIP=flip)
        kernel = device.kernel(f"{name}.cu", name, dtype, **constants)
        tree = (pattern.struct(dtype),) if name.startswith("front_backward") else ()
        arguments = struct, panels, *tree
        launches.append([Launch(kernel, plan.blocks, plan.threads, arguments, plan.shared)])
    return launches
