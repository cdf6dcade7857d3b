"""Forward and backward substitution over the fronts on the device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial

import numpy as np

from ..runtime.array import Array
from ..runtime.graph import Launch, Replayed
from ..runtime.structs import filled
from . import health, launch, structs
from .pattern import Pattern
from .schedule import TILE
from .solve_tasks import SolveTasks
from .storage import Storage


class Solver:
    """Solves with one factor; one call at a time, since all share its vectors and messages.

    It keeps the arrays of the storage, and not the storage, which keeps this.
    """

    def __init__(self, pattern: Pattern, storage: Storage) -> None:
        self.pattern, self.panels, self.pivots = pattern, storage.panels, storage.pivots
        self.dtype = storage.panels.dtype
        self.inverses, self.d = storage.inverses, storage.blocks
        self._sweeps: dict[tuple[int, bool], Sweeps] = {}
        self._messages: list[Messages] = []  # the widest last

    def sweeps(self, width: int, flip: bool) -> Sweeps:
        """Prepare both sweeps for `width` right-hand sides, or the first of them.

        Parameters
        ----------
        flip : bool
            Solve with the transpose (LU only).

        Raises
        ------
        ValueError
            If they would have to be prepared while a caller captures a graph.
        """
        width = launch.solve_width(self.dtype, width)
        if (width, flip) not in self._sweeps:
            if self.pattern.device.capturing():
                raise ValueError(
                    "a graph is being captured, and what such a solve needs is not on the device "
                    f"yet. Try: solve once for {width} right-hand sides before the capture begins"
                )
            if not self._messages or width > self._messages[-1].width:
                self._sweeps.clear()
                # narrower ones stay: a graph that the caller captured may still send them
                self._messages.append(Messages(self.pattern, self.dtype, width))
            self._sweeps[width, flip] = Sweeps(self, self._messages[-1], width, flip)
        return self._sweeps[width, flip]

    def blocks(self, total: int, flip: bool) -> Iterator[tuple[slice, Sweeps]]:
        """Parts of `total` right-hand sides, and the sweeps that solve for each."""
        first = 0
        while first < total:
            sweeps = self.sweeps(total - first, flip)
            part = slice(first, min(first + sweeps.width, total))
            yield part, sweeps
            first = part.stop

    def solve(self, x: Array, flip: bool) -> None:
        """Overwrite x with the solution in the order of elimination; nothing waits for the host.

        Parameters
        ----------
        x : device array (n, w)
            Right-hand sides.
        flip : bool
            See `sweeps`.
        """
        n, total = x.shape
        for part, sweeps in self.blocks(total if n else 0, flip):
            count = part.stop - part.start
            sweeps.rhs[:, :count] = x[:, part]
            sweeps()
            x[:, part] = sweeps.solution[:, :count]

    @cached_property
    def tasks(self) -> SolveTasks:
        """Tasks of this pattern and scalar type."""
        return self.pattern.solve_tasks(self.dtype)

    @cached_property
    def place(self) -> Array | None:
        """With pivots: which row of its front comes to each pivot row."""
        if self.tasks.pivot_tiles is None:
            return None
        n = int(self.pattern.plan.start[-1])
        place = self.pattern.device.xp.empty(max(n, 1), np.int32)
        self._fill(place)
        return place

    def renew(self) -> None:
        """Take note of other pivots: the storage has another factor now."""
        place = self.__dict__.get("place")
        if place is not None:
            self._fill(place)

    def _fill(self, place: Array) -> None:
        tiles, pivots, device = self.tasks.pivot_tiles, self.pivots, self.pattern.device
        if tiles is None or pivots is None:
            return
        constants = self.pattern.method.constants  # of a file that the sweeps take anyway
        constants |= launch.front_solve(self.dtype, 1, device.limits).constants
        kernel = device.kernel("front_forward.cu", "front_places", self.dtype, **constants)
        arguments = (tiles, np.int32(len(tiles)), pivots, place)
        blocks, threads = launch.front_places(len(tiles))
        kernel((blocks,), (threads,), arguments)


class Messages:
    """What blocks send each other, for some right-hand sides or fewer.

    Messages are numbers whose bits are all set until they are sent (sparse/front_solve.cuh). Every
    solve leaves them so, and one buffer serves all widths; those that bring the solution lie apart,
    since each forward sweep sets their bits.
    """

    def __init__(self, pattern: Pattern, dtype: np.dtype, width: int) -> None:
        self.width = width
        xp, n = pattern.device.xp, int(pattern.plan.start[-1])
        tasks, size = pattern.solve_tasks(dtype), width * dtype.itemsize
        rows = n + tasks.messages + TILE * tasks.partials
        self.sent = xp.full(rows * size, 0xFF, np.uint8)
        self.solution = xp.empty(n * width, dtype)
        self.rhs = xp.zeros(n * width, dtype)
        self.tickets = xp.zeros(4, np.int32)


class Sweeps:
    """The launches that solve for `width` right-hand sides.

    From the second call on a graph is replayed.

    Attributes
    ----------
    width : int
    rhs, solution : device arrays (n, width)
        What is solved for, in the order of elimination, and what comes of it.
    """

    def __init__(self, solver: Solver, messages: Messages, width: int, flip: bool) -> None:
        self.width = width
        pattern, dtype = solver.pattern, solver.dtype
        n = int(pattern.plan.start[-1])
        self.rhs, self.solution = (
            x[: n * width].reshape(n, width) for x in (messages.rhs, messages.solution)
        )
        self._messages = messages
        tasks, limits = solver.tasks, pattern.device.limits
        small = launch.front_solve_small(dtype, width, limits)
        large = launch.front_solve(dtype, width, limits)
        launches = (
            self._launch(solver, flip, "front_forward_small", tasks.small, 0, small),
            self._launch(solver, flip, "front_forward", tasks.forward, 1, large),
            self._launch(solver, flip, "front_backward", tasks.backward, 2, large),
            self._launch(solver, flip, "front_backward_small", tasks.small, 3, small),
        )
        found = [one for one in launches if one is not None]
        begin = partial(pattern.device.clear, messages.tickets)
        self._run = Replayed(pattern.device, begin, found)

    def __call__(self) -> None:
        """Solve; nothing waits for the host."""
        self._run()

    def _launch(
        self,
        solver: Solver,
        flip: bool,
        name: str,
        tasks: Array,
        ticket: int,
        plan: launch.SolvePlan,
    ) -> Launch | None:
        count = len(tasks)
        if not count:
            return None
        device, dtype, forward = solver.pattern.device, solver.dtype, ticket < 2
        sent, n = device.pointer(self._messages.sent), int(solver.pattern.plan.start[-1])
        row = self.width * dtype.itemsize  # bytes
        struct = filled(
            device,
            structs.SOLVE,
            tasks=tasks,
            message_pointer=solver.tasks.message_pointer,
            slots=solver.tasks.slots,
            place=solver.place,
            inverses=solver.inverses,
            diagonal=solver.d.diagonal if solver.d else None,
            coupling=solver.d.coupling if solver.d else None,
            x=self.rhs,
            y=sent,
            z=self.solution,
            messages=sent + n * row,
            partial=sent + (n + solver.tasks.messages) * row,
            ticket=self._messages.tickets[ticket:],
            count=count,
        )
        constants = plan.constants | health.constants(solver.pattern, FLIP=flip)
        kernel = device.kernel(f"{name}.cu", name, dtype, **constants)
        arguments = (struct, solver.panels)
        if not forward:
            arguments += (solver.pattern.struct(dtype),)
        return Launch(kernel, plan.blocks, plan.threads, arguments, plan.shared)
