"""The fronts of a plan on the device, with the task lists of the kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain, islice
from typing import TypeVar, cast

import numpy as np

from ..._typing import Untyped
from ...backend.protocol import panel_offsets
from ...machine.threads import BackgroundTask
from ...symbolic.plan import Plan
from ..runtime.array import Array, Value
from ..runtime.graph import Launch
from ..runtime.slab import ALIGNMENT, Slab, bytes_of, kinds_of
from ..runtime.structs import filled
from . import launch, structs
from .layout.host_panels import invert_tiles, unpad_both, unpad_triangle
from .layout.panels import DeviceLayout, Fronts
from .tasks.list_bytes import placed_bytes, small_bytes
from .tasks.small_fronts import SmallTasks, small_tasks
from .tasks.solves import SolveTasks, all_tasks, counted_rows, solve_tasks
from .tasks.tiles import Tasks, tile_tasks

Made = TypeVar("Made")
Name = str | tuple[str, np.dtype]  # of a list, with its scalar type

# update rows and entries of A from which on lists are made on threads: shorter lists take less time
# than threads that wait for each other's GIL
_MIN_THREADED_ENTRIES = 1 << 19
_MIN_SLAB_BYTES = 1 << 21  # bytes from which on lists share a slab
_LISTS = 32  # upper bound of the number of lists, for padding


class DevicePattern(Fronts):
    """Fronts, and the lists of their tasks, each computed at its first use or begun on a thread.

    A list is computed on the host by a task, uploaded at its first use or by another task, and then
    stored on the device, in the slab `piece` if there is one. All lists of a `light` pattern are
    computed in the calling thread, and uploaded at once.
    """

    piece: Slab | None = None

    @cached_property
    def _lists(self) -> dict[Name, Untyped]:
        """Lists on the device."""
        return {}

    @cached_property
    def _listed(self) -> dict[Name, BackgroundTask]:
        """Tasks, running or completed, that compute lists on the host."""
        return {}

    @cached_property
    def _moving(self) -> dict[Name, BackgroundTask]:
        """Tasks that compute lists and upload them."""
        return {}

    @cached_property
    def _structs(self) -> dict[np.dtype, np.ndarray]:
        return {}

    def complete(self, plan: Plan) -> None:
        """Set the plan of these fronts, if they were created before their rows were known."""
        self.plan = plan

    @property
    def arrays(self) -> dict[str, Array]:
        """Index arrays, by the names of their fields in the struct."""
        return self._list("arrays", Fronts.indices)

    @property
    def has_arrays(self) -> bool:
        """Return whether the index arrays are on the device."""
        return "arrays" in self._lists

    @property
    def tasks(self) -> Tasks:
        """Tasks of the fronts that are not small."""
        return self._list("tasks", tile_tasks)

    def small_tasks(self, dtype: np.dtype) -> SmallTasks:
        """Return the small fronts, by level, with panels of this scalar type."""
        return self._list(("small", dtype), partial(small_tasks, dtype=dtype))

    def solve_tasks(self, dtype: np.dtype) -> SolveTasks:
        """Return the tasks of the solves with panels of this scalar type."""
        return self._list(("solve", dtype), partial(solve_tasks, dtype=dtype))

    def all_tasks(self, dtype: np.dtype) -> Array:
        """Return all fronts in their order, each a task of a warp, with panels of this type."""
        return self._list(("all", dtype), partial(all_tasks, dtype=dtype))

    def placed(self, dtype: np.dtype) -> dict[str, Array]:
        """Return offsets and dependencies of blocks, by the names of fields."""
        return self._list(("placed", dtype), partial(Fronts.offsets, dtype=dtype))

    def struct(self, dtype: np.dtype) -> np.ndarray:
        """Return the struct `Fronts` of the kernels for panels of this scalar type."""
        if dtype not in self._structs:
            offsets = {name: self.placed(dtype)[name] for name in ("panel", "block")}
            self._structs[dtype] = filled(self.device, structs.FRONTS, **offsets, **self.arrays)
        return self._structs[dtype]

    def constants(self, **flags: bool) -> dict[str, int]:
        """Return the constants of a kernel; omit false flags, so that few variants are compiled."""
        return self.method.constants | {name: 1 for name, value in flags.items() if value}

    def system_launch(
        self, name: str, dtype: np.dtype, work: int, *arguments: Value, **flags: bool
    ) -> Launch:
        """Return a launch of system.cu, whose threads loop over `work` items."""
        kernel = self.device.kernel("system.cu", f"system_{name}", dtype, **self.constants(**flags))
        blocks = launch.system_blocks(work, self.device.limits)
        return Launch(kernel, blocks, launch.SYSTEM_THREADS, arguments)

    def layout(self, dtype: np.dtype) -> DeviceLayout:
        """See `Fronts`."""
        begun = self._listed.get(("layout", dtype))
        return super().layout(dtype) if begun is None else cast(DeviceLayout, begun.result())

    @property
    def light(self) -> bool:
        """Whether lists take less time than threads to compute them."""
        return self.segment is None and is_light(self.plan)

    def begin_layout(self, dtype: np.dtype) -> None:
        """Begin the layout on a thread; rows and entries may still be unknown."""
        self._listed["layout", dtype] = BackgroundTask(partial(Fronts.layout, self, dtype))

    def begin(self, dtype: np.dtype) -> None:
        """Begin all missing lists on threads, for panels of this scalar type.

        They stay on the host until their first use: threads that upload them would only alternate
        with the waiting thread.
        """
        light = self.light
        if light:
            self.once(counted_rows)  # before the lists of solves, which drop what it needs
        for name, make in self._wanted(dtype):
            if any(name in known for known in (self._lists, self._listed, self._moving)):
                continue
            if light:
                self._host_list(name, make)
            else:
                # lists of solves are used later: leave cores and the GIL to the other lists
                after = list(self._listed.values()) if name[0] == "solve" else []
                self._listed[name] = BackgroundTask(partial(_after, after, partial(make, self)))

    def _wanted(self, dtype: np.dtype) -> Iterator[tuple[Name, Callable[[Fronts], object]]]:
        """Yield the names of lists, and the functions that compute them."""
        if dtype not in self._layouts:  # two other lists need it last
            yield ("layout", dtype), partial(Fronts.layout, dtype=dtype)
        yield "arrays", Fronts.indices
        yield "tasks", tile_tasks
        if self.schedule.small.any():
            yield ("small", dtype), partial(small_tasks, dtype=dtype)
        yield ("solve", dtype), partial(solve_tasks, dtype=dtype)

    def begin_solves(self, dtype: np.dtype) -> None:
        """Begin to upload the lists of solves, while the device factorizes."""
        name = "solve", dtype
        if name in self._listed and name not in self._moving:
            move = partial(self._uploaded, name, partial(solve_tasks, dtype=dtype))
            self._moving[name] = self.device.ahead(move)

    def send(self, more: int = 0) -> None:
        """Upload the lists that do not depend on the layout.

        The slab for all lists of a factorization has `more` additional bytes.
        """
        wanted = ("arrays", Fronts.indices), ("tasks", tile_tasks)
        if self.segment is None and not {"arrays", "tasks"} & self._lists.keys():
            host_arrays = [
                x for name, make in wanted for x in _arrays_of(self._host_list(name, make)).values()
            ]
            others = self.once(small_bytes) + placed_bytes(self)
            size = bytes_of(kinds_of(host_arrays)) + others + more + _LISTS * ALIGNMENT
            if size >= _MIN_SLAB_BYTES:
                self.piece = Slab(self.device.xp.empty(size, np.uint8))
        _ = self.arrays, self.tasks

    def send_all(self, dtype: np.dtype, more: Sequence[np.ndarray]) -> list[Array]:
        """Upload all missing lists and further arrays at once; return the further arrays."""
        placed = ("placed", dtype), partial(Fronts.offsets, dtype=dtype)
        host_lists = {
            name: self._host_list(name, make)
            for name, make in (*self._wanted(dtype), placed)
            if name not in self._lists and name[0] != "layout"
        }
        host_arrays = {name: _arrays_of(lists) for name, lists in host_lists.items()}
        everything = chain(more, *(arrays.values() for arrays in host_arrays.values()))
        uploads = iter(self.device.uploads([*everything]))
        others = [*islice(uploads, len(more))]
        for name, host_list in host_lists.items():
            self._lists[name] = _moved(
                host_list, {field: next(uploads) for field in host_arrays[name]}
            )
            self._listed.pop(name, None)
        return others

    def finish(self) -> None:
        """Wait until no list is being computed."""
        for work in (*self._listed.values(), *self._moving.values()):
            work.join()

    def _list(self, name: Name, make: Callable[[Fronts], object]) -> Untyped:
        """Return a list on the device, computed and uploaded at the first request."""
        if name not in self._lists:
            moving = self._moving.pop(name, None)
            uploaded = self._uploaded(name, make) if moving is None else moving.result()
            self._lists[name] = uploaded
        return self._lists[name]

    def _uploaded(self, name: Name, make: Callable[[Fronts], object]) -> Untyped:
        """Compute and upload a list: an array, a dictionary or a dataclass with arrays."""
        host_list = self._host_list(name, make)
        self._listed.pop(name, None)
        if isinstance(host_list, np.ndarray):
            return self.device.upload(host_list)
        host_arrays = _arrays_of(host_list)
        uploads = self.device.uploads([*host_arrays.values()], self.piece)
        return _moved(host_list, dict(zip(host_arrays, uploads, strict=True)))

    def _host_list(self, name: Name, make: Callable[[Fronts], object]) -> Untyped:
        """Return a list on the host, after its computation."""
        if name not in self._listed:
            self._listed[name] = BackgroundTask(partial(make, self), now=True)
        return self._listed[name].result()

    def to_host(self, factor: np.ndarray, panel: np.ndarray | None = None) -> np.ndarray:
        """Return panels in the order of `panel_offsets`, from panels as the device stores them.

        `panel` has the offsets of the panels in `factor`, by default those of the device. Above the
        diagonal of L, where the device may store other values, Cholesky has zeros as on the CPU.
        """
        layout, target = self.layout(factor.dtype), panel_offsets(self.plan, self.method)
        out = np.zeros(int(target[-1]), factor.dtype)
        panel = layout.places.panel if panel is None else panel
        source = factor, out, self.k, self.m, panel
        if self.method.one_triangle:
            unpad_triangle(*source, layout.l11_offset, layout.ld, layout.last_ld, target)
        else:
            unpad_both(*source, layout.below, layout.ld, layout.upper_ld, target)
            invert_tiles(out, self.k, self.m, target)
        return out


def is_light(plan: Plan) -> bool:
    """Return whether the lists of a plan take less time than threads to compute them."""
    return int(plan.pointer[-1]) + plan.source.size < _MIN_THREADED_ENTRIES


def _moved(host_list: Untyped, arrays: dict[str, Array]) -> Untyped:
    """Return lists with arrays of the device instead of those of the host."""
    return arrays if isinstance(host_list, dict) else replace(host_list, **arrays)


def _arrays_of(lists: Untyped) -> dict[str, np.ndarray]:
    """Return the host arrays of lists, by name."""
    fields = lists if isinstance(lists, dict) else vars(lists)
    return {name: array for name, array in fields.items() if isinstance(array, np.ndarray)}


def _after(others: Iterable[BackgroundTask[object]], work: Callable[[], Made]) -> Made:
    """Return the result of `work`, which begins after the other tasks."""
    for task in others:
        task.join()
    return work()
