"""The fronts of a plan on the device, with the lists of tasks that kernels work through."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import TypeVar, cast

import numpy as np

from ...machine import thread_count
from ...parts import Ahead
from ..runtime.array import Array
from .fronts import Fronts, Layout
from .small_tasks import SmallTasks, small_tasks
from .solve_tasks import SolveTasks, all_tasks, solve_tasks
from .tile_tasks import Tasks, tile_tasks

Made = TypeVar("Made")
_MANY = 4  # cores on which all lists are made at the same time


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
    def _all_tasks(self) -> dict[np.dtype, Array]:
        return {}

    def all_tasks(self, dtype: np.dtype) -> Array:
        """All fronts in their order, each as a warp takes it whole, with panels of this type."""
        if dtype not in self._all_tasks:
            self._all_tasks[dtype] = self.device.upload(all_tasks(self, dtype))
        return self._all_tasks[dtype]

    def layout(self, dtype: np.dtype) -> Layout:
        """See `Fronts`."""
        begun = self._begun.get(("layout", dtype))
        return super().layout(dtype) if begun is None else cast(Layout, begun.result())

    @cached_property
    def _begun(self) -> dict[str | tuple[str, np.dtype], Ahead]:
        return {}

    def begin(self, dtype: np.dtype) -> None:
        """Begin all lists that are not there yet, on threads, for panels of this scalar type."""
        if dtype not in self._layouts:  # two other lists want it at their ends
            self._ahead(("layout", dtype), partial(Fronts.layout, dtype=dtype))
        if "arrays" not in self.__dict__:
            self._ahead("arrays", Fronts.uploaded)
        if "tasks" not in self.__dict__:
            self._ahead("tasks", tile_tasks)
        if self.schedule.small.any() and dtype not in self._small_tasks:
            self._ahead(("small", dtype), partial(small_tasks, dtype=dtype))
        if dtype not in self._solve_tasks:  # is for later: with few cores it leaves others alone
            others = [] if thread_count() >= _MANY else list(self._begun.values())
            self._ahead(("solve", dtype), partial(solve_tasks, dtype=dtype), others)

    def _ahead(
        self,
        name: str | tuple[str, np.dtype],
        make: Callable[[Fronts], object],
        after: Iterable[Ahead[object]] = (),
    ) -> None:
        """Begin a list, unless that is done, when others are over."""
        if name not in self._begun:
            self._begun[name] = self.device.ahead(partial(_after, after, partial(make, self)))

    def finish(self) -> None:
        """Wait until no list is at work any more."""
        for work in self._begun.values():
            work.join()

    def _made(self, name: str | tuple[str, np.dtype], make: Callable[[Fronts], Made]) -> Made:
        begun = self._begun.pop(name, None)
        return make(self) if begun is None else begun.result()


def _after(others: Iterable[Ahead[object]], work: Callable[[], Made]) -> Made:
    """What comes of work that begins when other work is over."""
    for other in others:
        other.join()
    return work()
