"""The fronts of a plan on the device, with the lists of tasks that kernels work through."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from ...parts import Ahead
from ..runtime.array import Array
from .fronts import Fronts
from .small_tasks import SmallTasks, small_tasks
from .solve_tasks import SolveTasks, solve_tasks
from .tile_tasks import Tasks, tile_tasks

Made = TypeVar("Made")


class Pattern(Fronts):
    """Fronts, and the lists of their tasks, each made when it is first asked for, or begun."""

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """See `Fronts`."""
        return self._made("arrays", Fronts.uploaded)

    @cached_property
    def tasks(self) -> Tasks:
        """Tasks of the fronts that are not small."""
        return self._made("tasks", tile_tasks)

    @cached_property
    def _small_tasks(self) -> dict[np.dtype, SmallTasks]:
        return {}

    def small_tasks(self, dtype: np.dtype) -> SmallTasks:
        """Fronts that are small, by level, with panels of this scalar type."""
        if dtype not in self._small_tasks:
            make = partial(small_tasks, dtype=dtype)
            self._small_tasks[dtype] = self._made(("small", dtype), make)
        return self._small_tasks[dtype]

    @cached_property
    def _solve_tasks(self) -> dict[np.dtype, SolveTasks]:
        return {}

    def solve_tasks(self, dtype: np.dtype) -> SolveTasks:
        """Tasks of the solves with panels of this scalar type."""
        if dtype not in self._solve_tasks:
            make = partial(solve_tasks, dtype=dtype)
            self._solve_tasks[dtype] = self._made(("solve", dtype), make)
        return self._solve_tasks[dtype]

    @cached_property
    def _begun(self) -> dict[str | tuple[str, np.dtype], Ahead]:
        return {}

    def begin(self, dtype: np.dtype) -> None:
        """Begin all lists that are not there yet, on threads, for panels of this scalar type."""
        self.layout(dtype)  # lists want it
        lists: dict[str | tuple[str, np.dtype], Callable[[Fronts], object]] = {}
        if "arrays" not in self.__dict__:
            lists["arrays"] = Fronts.uploaded
        if "tasks" not in self.__dict__:
            lists["tasks"] = tile_tasks
        if self.schedule.small.any() and dtype not in self._small_tasks:
            lists["small", dtype] = partial(small_tasks, dtype=dtype)
        last = "solve", dtype
        if dtype not in self._solve_tasks:
            lists[last] = partial(solve_tasks, dtype=dtype)
        before: Ahead[object] | None = None
        for name, make in lists.items():
            if name not in self._begun:
                # the last one is for later: it leaves the others alone
                work = partial(_after, before if name == last else None, partial(make, self))
                self._begun[name] = before = self.device.ahead(work)

    def finish(self) -> None:
        """Wait until no list is at work any more."""
        for work in self._begun.values():
            work.join()

    def _made(self, name: str | tuple[str, np.dtype], make: Callable[[Fronts], Made]) -> Made:
        begun = self._begun.pop(name, None)
        return make(self) if begun is None else begun.result()


def _after(before: Ahead[object] | None, work: Callable[[], Made]) -> Made:
    """What comes of work that begins when other work is over."""
    if before is not None:
        before.join()
    return work()
