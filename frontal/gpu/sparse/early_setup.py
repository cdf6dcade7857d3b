"""Host work of a first factorization, begun while the pattern is still analyzed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ...machine.threads import BackgroundTask
from ...numeric.method import Method
from ...symbolic.phase import Symbolic
from ...symbolic.plan import Plan, front_flops
from ..runtime.device import Device
from .backend import GpuBackend
from .layout.panels import DeviceLayout, Fronts
from .pattern import DevicePattern
from .tasks.list_bytes import small_bytes
from .tasks.small_fronts import in_order
from .tasks.solves import counted_rows, sweep_tasks
from .tasks.tiles import tiles_in_order


class _Placed(NamedTuple):
    """Fronts, and the task that computes their layout."""

    fronts: Fronts
    layout: BackgroundTask[DeviceLayout]


class EarlySetup:
    """Schedules, layouts and lists computed on threads, without memory of the device.

    Parameters
    ----------
    device : Device
    chosen : callable
        Returns whether the device is used for a given number of operations.
    dtype : numpy.dtype
        Expected scalar type of the factor.
    """

    def __init__(self, device: Device, chosen: Callable[[float], bool], dtype: np.dtype) -> None:
        self._device, self._chosen, self._dtype = device, chosen, dtype
        self._fronts: BackgroundTask[_Placed] | None = None

    def fronts(
        self, method: Method, start: np.ndarray, parent: np.ndarray, pointer: np.ndarray
    ) -> None:
        """Begin the work that depends on the fronts alone, before rows and entries are known.

        Parameters
        ----------
        start, parent, pointer : arrays
            See `Plan`.
        """
        if not self._chosen(method.panels * float(front_flops(start, pointer).sum())):
            return
        plan = Plan(start, parent, pointer, *[np.empty(0, np.int32)] * 8)
        self._fronts = BackgroundTask(partial(_placed, self._device, plan, method, self._dtype))

    def backend(self, symbolic: Symbolic) -> GpuBackend:
        """Return the backend for a plan, whose lists are begun."""
        fronts, self._fronts = self._fronts, None
        backend = GpuBackend(symbolic, self._device)
        backend.expected = BackgroundTask(partial(_listed, backend, fronts, self._dtype))
        return backend


def _placed(device: Device, plan: Plan, method: Method, dtype: np.dtype) -> _Placed:
    """Return fronts, and the task of their layout, which may take longer than rows and entries."""
    fronts = Fronts(device, plan, method)
    layout = BackgroundTask(partial(fronts.layout, dtype))
    for make in in_order, tiles_in_order, counted_rows, sweep_tasks:  # in the order of their use
        fronts.once(make)
    _ = fronts.most
    return _Placed(fronts, layout)


def _listed(
    backend: GpuBackend, begun: BackgroundTask[_Placed] | None, dtype: np.dtype
) -> DevicePattern:
    """Return the pattern of a backend, whose lists are computed on threads."""
    fronts, layout = (None, None) if begun is None else begun.result()
    pattern = backend.new_pattern(fronts)
    pattern.begin(dtype, layout)
    pattern.once(small_bytes)
    return pattern
