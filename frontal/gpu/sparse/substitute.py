"""Forward and backward substitution over the fronts on the device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import combinations

import numpy as np

from ..runtime.array import Array
from ..runtime.graph import Launch, Replayed
from ..runtime.structs import filled
from . import health, launch, structs
from .pattern import Pattern
from .schedule import TILE
from .solve_tasks import SolveTasks
from .storage import Storage

_ALIGNED = 256  # bytes, as what a device gives


class Solver:
    """Solves with one factor; one call at a time, since all share its vectors and messages.

    It keeps the arrays of the storage, and not the storage, which keeps this.
    """

    def __init__(self, pattern: Pattern, storage: Storage) -> None:
        self.pattern, self.panels, self.pivots = pattern, storage.panels, storage.pivots
        self.dtype = storage.panels.dtype
        self.inverses, self.d = storage.inverses, storage.blocks
        self._spare = storage.panels[:0] if storage.spare is None else storage.spare.memory
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
                self._widen(width)
            self._sweeps[width, flip] = Sweeps(self, self._messages[-1], width, flip)
        return self._sweeps[width, flip]

    def has(self, sweeps: Sweeps) -> bool:
        """Whether sweeps still have their messages and vectors."""
        return self._sweeps.get((sweeps.width, sweeps.flip)) is sweeps

    def _widen(self, width: int) -> None:
        """Make messages for so many right-hand sides, in the place of narrower ones."""
        if any(sweeps.captured for sweeps in self._sweeps.values()):
            # they stay: a graph that the caller captured may still send them
            self._spare = self._messages[-1].left
        elif self._messages:
            self._messages.pop()
        self._sweeps.clear()
        self._messages.append(Messages(self.pattern, self.dtype, width, self._spare))

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
            sweeps.vectors[:, :count] = x[:, part]
            if count < sweeps.width:
                sweeps.vectors[:, count:] = 0
            sweeps()
            x[:, part] = sweeps.vectors[:, :count]

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
        """Take note of another factor in the storage, and of what has been overwritten for it."""
        for messages in self._messages:
            messages.unset()
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
    solve leaves them so, and they serve all widths; those that bring the solution lie apart, since
    each forward sweep sets their bits, in the place of the right-hand sides that it has read.

    Parameters
    ----------
    spare : device array of bytes
        Memory of factorizations, which as many of these arrays lie in as there is room for.

    Attributes
    ----------
    sent : list of device arrays of bytes
        Values between the sweeps, messages of update rows, and parts of sums.
    vectors : device array (n * width,)
        Right-hand sides, then the solution.
    left : device array of bytes
        What is left of the spare memory.
    turns : int
        Sweeps that were enqueued.
    """

    turns = 0

    def __init__(self, pattern: Pattern, dtype: np.dtype, width: int, spare: Array) -> None:
        self.width, self._device = width, pattern.device
        xp, n = pattern.device.xp, int(pattern.plan.start[-1])
        tasks, size = pattern.solve_tasks(dtype), width * dtype.itemsize
        sizes = [rows * size for rows in (n, tasks.messages, TILE * tasks.partials, n)]
        placed, end = fitted(sizes, spare.nbytes)
        arrays = [
            xp.empty(size, np.uint8) if first is None else spare[first : first + size]
            for first, size in zip(placed, sizes, strict=True)
        ]
        self.left = spare[end:]
        self.sent, self.vectors = arrays[:3], arrays[3].view(dtype)
        ends = (
            first + size
            for first, size in zip(placed, sizes[:3], strict=False)
            if first is not None
        )
        self._among = spare[: max(ends, default=0)]
        self.tickets = xp.zeros(4, np.int32)
        for array in self.sent:
            self._clear(array)

    def unset(self) -> None:
        """Set the bits of what lies where a factorization has been at work."""
        self._clear(self._among)

    def _clear(self, array: Array) -> None:
        if array.size:
            self._device.clear(array, 0xFF)


def fitted(sizes: list[int], room: int) -> tuple[list[int | None], int]:
    """Places of arrays in memory that has room for some: those that fill it best, and their end.

    Examples
    --------
    >>> fitted([300, 600, 100], 1024)
    ([None, 0, 768], 1024)
    """
    padded = [-(-size // _ALIGNED) * _ALIGNED for size in sizes]
    best: tuple[int, ...] = ()
    for count in range(1, len(sizes) + 1):
        for chosen in combinations(range(len(sizes)), count):
            taken = sum(padded[i] for i in chosen)
            if sum(padded[i] for i in best) < taken <= room // _ALIGNED * _ALIGNED:
                best = chosen
    places: list[int | None] = [None] * len(sizes)
    end = 0
    for i in best:
        places[i], end = end, end + padded[i]
    return places, end


class Sweeps:
    """The launches that solve for `width` right-hand sides.

    From the second call on a graph is replayed.

    Attributes
    ----------
    width : int
    flip : bool
        Of the transpose.
    vectors : device array (n, width)
        What is solved for, in the order of elimination, and then what comes of it.
    """

    def __init__(self, solver: Solver, messages: Messages, width: int, flip: bool) -> None:
        self.width, self.flip = width, flip
        pattern, dtype = solver.pattern, solver.dtype
        n = int(pattern.plan.start[-1])
        self.vectors = messages.vectors[: n * width].reshape(n, width)
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
        self._messages.turns += 1
        self._run()

    def enqueue(self) -> None:
        """Enqueue the launches, as a part of a graph."""
        self._messages.turns += 1
        self._run.enqueue()

    @property
    def turn(self) -> object:
        """Equal to what it was while nothing has used the vectors, but for graphs of a caller."""
        return self._messages, self._messages.turns

    @property
    def captured(self) -> bool:
        """Whether a graph that the caller captured has them."""
        return self._run.captured

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
        y, messages, partial = (device.pointer(x) for x in self._messages.sent)
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
            y=y,
            z=self.vectors,
            messages=messages,
            partial=partial,
            ticket=self._messages.tickets[ticket:],
            count=count,
        )
        constants = plan.constants | health.constants(solver.pattern, FLIP=flip)
        kernel = device.kernel(f"{name}.cu", name, dtype, **constants)
        arguments = (struct, solver.panels)
        if not forward:
            arguments += (solver.pattern.struct(dtype),)
        return Launch(kernel, plan.blocks, plan.threads, arguments, plan.shared)
