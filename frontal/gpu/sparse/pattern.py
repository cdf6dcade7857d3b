"""The fronts of a plan on the device, with the task lists of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TypeVar, cast

import numpy as np

from ..._typing import Untyped
from ...machine.threads import BackgroundTask
from ..runtime.array import Array
from ..runtime.slab import ALIGNMENT, Slab, bytes_of, kinds_of
from .layout.panels import DeviceLayout, Fronts, arrays_of, on_device
from .tasks.list_bytes import placed_bytes, small_bytes
from .tasks.small_fronts import SmallTasks, small_tasks
from .tasks.solves import SolveTasks, all_tasks, solve_tasks
from .tasks.tiles import Tasks, tile_tasks

Made = TypeVar("Made")
Name = str | tuple[str, np.dtype]  # of a list, with its scalar type

_MIN_SLAB_BYTES = 1 << 21  # bytes from which on lists share a slab
_LISTS = 32  # upper bound of the number of lists, for padding


class DevicePattern(Fronts):
    """Fronts, and the lists of their tasks, each computed at its first use or begun on a thread."""

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """See `Fronts`."""
        return self._device_list("arrays", Fronts.indices)

    @cached_property
    def tasks(self) -> Tasks:
        """Tasks of the fronts that are not small."""
        return self._device_list("tasks", tile_tasks)

    @cached_property
    def _small_tasks(self) -> dict[np.dtype, SmallTasks]:
        return {}

    def small_tasks(self, dtype: np.dtype) -> SmallTasks:
        """Return the small fronts, by level, with panels of this scalar type."""
        if dtype not in self._small_tasks:
            make = partial(small_tasks, dtype=dtype)
            self._small_tasks[dtype] = self._device_list(("small", dtype), make)
        return self._small_tasks[dtype]

    @cached_property
    def _solve_tasks(self) -> dict[np.dtype, SolveTasks]:
        return {}

    def solve_tasks(self, dtype: np.dtype) -> SolveTasks:
        """Return the tasks of the solves with panels of this scalar type."""
        if dtype not in self._solve_tasks:
            make = partial(solve_tasks, dtype=dtype)
            self._solve_tasks[dtype] = self._device_list(("solve", dtype), make)
        return self._solve_tasks[dtype]

    @cached_property
    def _all_tasks(self) -> dict[np.dtype, Array]:
        return {}

    def all_tasks(self, dtype: np.dtype) -> Array:
        """Return all fronts in their order, each a task of a warp, with panels of this type."""
        if dtype not in self._all_tasks:
            self._all_tasks[dtype] = self.device.upload(all_tasks(self, dtype))
        return self._all_tasks[dtype]

    def layout(self, dtype: np.dtype) -> DeviceLayout:
        """See `Fronts`."""
        begun = self._listed.get(("layout", dtype))
        return super().layout(dtype) if begun is None else cast(DeviceLayout, begun.result())

    @cached_property
    def _listed(self) -> dict[Name, BackgroundTask]:
        """Tasks, running or completed, that compute lists on the host."""
        return {}

    @cached_property
    def _moving(self) -> dict[Name, BackgroundTask]:
        """Tasks that compute lists and upload them."""
        return {}

    def begin(self, dtype: np.dtype, layout: BackgroundTask[DeviceLayout] | None = None) -> None:
        """Begin all missing lists on threads, for panels of this scalar type.

        They stay on the host until their first use: threads that upload them would only alternate
        with the waiting thread.

        Parameters
        ----------
        layout : BackgroundTask, optional
            The running task that computes the layout.
        """
        if layout is not None:
            self._listed["layout", dtype] = layout
        for name, make in self._wanted(dtype):
            if name not in self._listed and name not in self._moving:
                # lists of solves are used later: leave cores and the GIL to the other lists
                after = list(self._listed.values()) if name[0] == "solve" else []
                self._listed[name] = BackgroundTask(partial(_after, after, partial(make, self)))

    def begin_solves(self, dtype: np.dtype) -> None:
        """Begin to upload the lists of solves, while the device factorizes."""
        name = "solve", dtype
        if name in self._listed and name not in self._moving:
            move = partial(self._uploaded, name, partial(solve_tasks, dtype=dtype))
            self._moving[name] = self.device.ahead(move)

    def send(self, more: int = 0) -> None:
        """Upload the lists that do not depend on the layout.

        Parameters
        ----------
        more : int
            Additional bytes in the slab for all lists of a factorization.
        """
        wanted = ("arrays", Fronts.indices), ("tasks", tile_tasks)
        if self.segment is None and not {"arrays", "tasks"} & vars(self).keys():
            host_arrays = [
                x for name, make in wanted for x in arrays_of(self._host_list(name, make)).values()
            ]
            others = self.once(small_bytes) + placed_bytes(self)
            size = bytes_of(kinds_of(host_arrays)) + others + more + _LISTS * ALIGNMENT
            if size >= _MIN_SLAB_BYTES:
                self.piece = Slab(self.device.xp.empty(size, np.uint8))
        _ = self.arrays, self.tasks

    def _wanted(self, dtype: np.dtype) -> Iterator[tuple[Name, Callable[[Fronts], object]]]:
        """Yield the names of missing lists, and the functions that compute them."""
        if dtype not in self._layouts:  # two other lists need it last
            yield ("layout", dtype), partial(Fronts.layout, dtype=dtype)
        if "arrays" not in self.__dict__:
            yield "arrays", Fronts.indices
        if "tasks" not in self.__dict__:
            yield "tasks", tile_tasks
        if self.schedule.small.any() and dtype not in self._small_tasks:
            yield ("small", dtype), partial(small_tasks, dtype=dtype)
        if dtype not in self._solve_tasks:
            yield ("solve", dtype), partial(solve_tasks, dtype=dtype)

    def finish(self) -> None:
        """Wait until no list is being computed."""
        for work in (*self._listed.values(), *self._moving.values()):
            work.join()

    def _device_list(self, name: Name, make: Callable[[Fronts], object]) -> Untyped:
        moving = self._moving.pop(name, None)
        return self._uploaded(name, make) if moving is None else moving.result()

    def _uploaded(self, name: Name, make: Callable[[Fronts], object]) -> Untyped:
        """Return a list on the device."""
        host_list = self._host_list(name, make)
        self._listed.pop(name, None)
        return on_device(self.device, host_list, self.piece)

    def _host_list(self, name: Name, make: Callable[[Fronts], object]) -> Untyped:
        """Return a list on the host, after its computation."""
        if name not in self._listed:
            self._listed[name] = BackgroundTask(partial(make, self), now=True)
        return self._listed[name].result()


def _after(others: Iterable[BackgroundTask[object]], work: Callable[[], Made]) -> Made:
    """Return the result of `work`, which begins after the other tasks."""
    for task in others:
        task.join()
    return work()
