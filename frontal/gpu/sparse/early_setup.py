"""Host work of a first factorization, begun while the pattern is still analyzed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np

from ...machine.threads import BackgroundTask
from ...numeric.method import Method
from ...symbolic.phase import Symbolic
from ...symbolic.plan import Plan, front_flops
from ..runtime.device import Device
from .backend import GpuBackend
from .layout.gathering import gathered, has_wide_parents
from .pattern import DevicePattern, is_light
from .tasks.list_bytes import small_bytes
from .tasks.small_fronts import in_order
from .tasks.solves import counted_rows, sweep_tasks
from .tasks.tiles import tiles_in_order

_UNKNOWN = np.empty(0, np.int32)  # arrays of a plan whose rows and entries are not known yet


class EarlySetup:
    """Schedules, layouts and lists, without memory of the device; on threads if they are long.

    `chosen` returns whether the device is used for a number of operations, and `dtype` is the
    expected scalar type of the factor.
    """

    def __init__(self, device: Device, chosen: Callable[[float], bool], dtype: np.dtype) -> None:
        self._device, self._chosen, self._dtype = device, chosen, dtype
        self._pattern: BackgroundTask[DevicePattern] | None = None

    def fronts(
        self, method: Method, start: np.ndarray, parent: np.ndarray, pointer: np.ndarray
    ) -> None:
        """Begin the work that depends on the fronts of a `Plan` alone, without rows and entries.

        Gathering fronts depend on rows: with wide parents all work waits for the plan.
        """
        if is_light(Plan(start, parent, pointer, *[_UNKNOWN] * 8)):
            return
        flops = method.panels * float(front_flops(start, pointer).sum())
        if has_wide_parents(parent) or not self._chosen(flops):
            return
        plan = Plan(start, parent, pointer, *[_UNKNOWN] * 8)
        self._pattern = BackgroundTask(partial(_placed, self._device, plan, method, self._dtype))

    def backend(self, symbolic: Symbolic) -> GpuBackend:
        """Return the backend for a plan, whose lists are begun, or made if they are short."""
        begun, self._pattern = self._pattern, None
        if begun is None and is_light(symbolic.plan):
            backend = GpuBackend(symbolic, self._device)
            with suppress(MemoryError):  # the factorization reports it
                backend.pattern.begin(self._dtype)
                _ = backend.pattern.most
            return backend
        expected = partial(_listed, self._device, symbolic, begun, self._dtype)
        return GpuBackend(symbolic, self._device, BackgroundTask(expected))


def _placed(device: Device, plan: Plan, method: Method, dtype: np.dtype) -> DevicePattern:
    """Return fronts whose layout is begun, which may take longer than rows and entries."""
    pattern = DevicePattern(device, plan, method)
    pattern.begin_layout(dtype)
    for make in in_order, tiles_in_order, counted_rows, sweep_tasks:  # in the order of their use
        pattern.once(make)
    _ = pattern.most
    return pattern


def _listed(
    device: Device,
    symbolic: Symbolic,
    begun: BackgroundTask[DevicePattern] | None,
    dtype: np.dtype,
) -> DevicePattern:
    """Return the fronts of a plan, whose lists are computed on threads."""
    if begun is None:
        pattern = DevicePattern(device, gathered(symbolic.plan), symbolic.method)
    else:
        pattern = begun.result()
        pattern.complete(symbolic.plan)
    pattern.begin(dtype)
    pattern.once(small_bytes)
    return pattern
