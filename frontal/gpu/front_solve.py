"""Forward and backward substitution over the fronts on the device: one launch for each sweep."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from . import launch
from .front_factor import Storage
from .fronts import Pattern
from .schedule import TILE

_THREADS, _WARPS = 256, 8  # of device/front_solve.cuh

# device/front_solve.cuh: Solve
_POINTERS = ("small", "tasks", "mail_pointer", "slots", "place", "inverses")
_POINTERS += ("y", "z", "mail", "partial", "x", "ticket", "other_ticket")
_STRUCT = np.dtype(
    [
        *((name, "u8") for name in _POINTERS),
        ("n", "i8"),
        *((name, "i4") for name in ("small_count", "task_count", "width")),
    ],
    align=True,
)


class Solver:
    """Solves with one factor; one call at a time, since all share the messages.

    Messages are numbers whose bits are all set until they are sent (device/front_solve.cuh). Every
    solve leaves them so, and one buffer serves all widths; those that bring the solution lie apart,
    since each forward sweep sets their bits.
    """

    def __init__(self, pattern: Pattern, storage: Storage) -> None:
        self.pattern, self.storage = pattern, storage
        self._width = 0
        self._launches: dict[tuple[int, bool], tuple[launch.SolvePlan, Any, Any]] = {}

    def solve(self, x: Any, flip: bool) -> None:
        """Overwrite x with the solution in the order of elimination; nothing waits for the host.

        Parameters
        ----------
        x : device array (n, w)
            Right-hand sides, each column contiguous, one after the other.
        flip : bool
            Solve with the transpose (LU only).
        """
        n, width = x.shape
        if n == 0 or width == 0:
            return
        device, dtype = self.pattern.device, self.storage.panels.dtype
        first, address = 0, device.pointer(x)
        while first < width:
            plan, forward, backward = self._prepared(width - first, flip)
            count = min(width - first, plan.width)
            for kernel, struct, tree in (forward, backward):
                struct["x"], struct["width"] = address + first * n * dtype.itemsize, count
                grid = plan.residents * device.limits.multiprocessors
                tree = (tree,) if tree is not None else ()
                kernel((grid,), (_THREADS,), (*tree, struct, self.storage.panels), plan.shared)
            first += count

    def _prepared(self, width: int, flip: bool) -> tuple[launch.SolvePlan, Any, Any]:
        """Both kernels for so many right-hand sides, with their arguments."""
        pattern, dtype = self.pattern, self.storage.panels.dtype
        device, lu = pattern.device, int(not pattern.symmetric)
        plan = launch.front_solve(dtype, width, device.limits)
        if (plan.width, flip) not in self._launches:
            if plan.width > self._width:
                self._take_messages(plan.width)
            constants = {"LU": lu, "FLIP": int(flip), "WIDTH": plan.width}
            constants["RESIDENTS"] = plan.residents
            found = []
            for forward in (True, False):
                name = "front_forward" if forward else "front_backward"
                kernel = device.kernel(f"{name}.cu", name, dtype, **constants)
                tree = None if forward else pattern.struct(dtype)
                found.append((kernel, self._struct(forward, flip, plan.width), tree))
            self._launches[plan.width, flip] = plan, *found
        return self._launches[plan.width, flip]

    def _struct(self, forward: bool, flip: bool, width: int) -> np.ndarray:
        """Arguments of one sweep, less the right-hand sides."""
        pattern, tasks, pointer = self.pattern, self._tasks, self.pattern.device.pointer
        struct, size = np.zeros((), _STRUCT), self.storage.panels.dtype.itemsize
        struct["small"] = pointer(tasks.small)
        struct["tasks"] = pointer(tasks.forward if forward else tasks.backward)
        struct["mail_pointer"], struct["slots"] = pointer(tasks.mail_pointer), pointer(tasks.slots)
        struct["place"] = pointer(self._place)
        of_upper = not pattern.symmetric and forward == flip
        storage = self.storage
        struct["inverses"] = pointer(storage.upper_inverses if of_upper else storage.inverses)
        n, at = int(pattern.plan.start[-1]), pointer(self._messages)
        struct["z"] = pointer(self._solution)
        for name, rows in (("y", n), ("mail", tasks.messages), ("partial", 0)):
            struct[name] = at
            at += rows * width * size
        tickets = pointer(self._tickets)
        struct["ticket"] = tickets + (0 if forward else 4)
        struct["other_ticket"] = tickets + (4 if forward else 0)
        struct["n"], struct["small_count"] = n, tasks.small_count
        struct["task_count"] = tasks.forward_count if forward else tasks.backward_count
        return struct

    def _take_messages(self, width: int) -> None:
        """Take memory for the messages of so many right-hand sides; earlier arguments are void."""
        n, xp = int(self.pattern.plan.start[-1]), self.pattern.device.xp
        size = width * self.storage.panels.dtype.itemsize
        rows = n + self._tasks.messages + TILE * self._tasks.partials
        self._messages = xp.full(rows * size, 0xFF, np.uint8)
        self._solution = xp.empty(n * size, np.uint8)
        self._width = width
        self._launches.clear()

    @cached_property
    def _tasks(self) -> Any:
        return self.pattern.solve_tasks(self.storage.panels.dtype)

    @cached_property
    def _tickets(self) -> Any:
        return self.pattern.device.xp.zeros(2, np.int32)

    @cached_property
    def _place(self) -> Any:
        """LU: which row of its front comes to each pivot row."""
        if self._tasks.pivot_tiles is None:
            return None
        n = int(self.pattern.plan.start[-1])
        place = self.pattern.device.xp.empty(max(n, 1), np.int32)
        self._fill(place)
        return place

    def renew(self) -> None:
        """Take note of other pivots: the storage has another factor now."""
        place = self.__dict__.get("_place")
        if place is not None:
            self._fill(place)

    def _fill(self, place: Any) -> None:
        tiles, storage, device = self._tasks.pivot_tiles, self.storage, self.pattern.device
        count, constants = len(tiles), {"LU": 1, "FLIP": 0, "WIDTH": 1, "RESIDENTS": 1}
        kernel = device.kernel(
            "front_forward.cu", "front_places", storage.panels.dtype, **constants
        )
        arguments = (tiles, np.int32(count), storage.pivots, place)
        kernel((-(-count // _WARPS),), (_THREADS,), arguments)
