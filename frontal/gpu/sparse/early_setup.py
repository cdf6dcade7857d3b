"""What a first factorization waits for on the host, begun while its pattern is still analyzed."""

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
    """Fronts, and where they lie."""

    fronts: Fronts
    layout: BackgroundTask[DeviceLayout]


class EarlySetup:
    """Begins schedules, places and lists on threads. It takes no memory of the device.

    Parameters
    ----------
    device : Device
    chosen : callable
        Whether the device is taken for so many operations.
    dtype : numpy.dtype
        Scalar type of the factor that is expected.
    """

    def __init__(self, device: Device, chosen: Callable[[float], bool], dtype: np.dtype) -> None:
        self._device, self._chosen, self._dtype = device, chosen, dtype
        self._fronts: BackgroundTask[_Placed] | None = None

    def fronts(
        self, method: Method, start: np.ndarray, parent: np.ndarray, pointer: np.ndarray
    ) -> None:
        """Begin what follows from fronts, whose rows and entries are not known yet.

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
        """The backend for a plan, with its lists begun."""
        fronts, self._fronts = self._fronts, None
        backend = GpuBackend(symbolic, self._device)
        backend.expected = BackgroundTask(partial(_listed, backend, fronts, self._dtype))
        return backend


def _placed(device: Device, plan: Plan, method: Method, dtype: np.dtype) -> _Placed:
    """Fronts, and what is begun of their places, which may take longer than rows and entries."""
    fronts = Fronts(device, plan, method)
    layout = BackgroundTask(partial(fronts.layout, dtype))
    for make in in_order, tiles_in_order, counted_rows, sweep_tasks:  # what comes next
        fronts.once(make)
    _ = fronts.most
    return _Placed(fronts, layout)


def _listed(
    backend: GpuBackend, begun: BackgroundTask[_Placed] | None, dtype: np.dtype
) -> DevicePattern:
    """The pattern of a backend, whose lists are at work."""
    fronts, layout = (None, None) if begun is None else begun.result()
    pattern = backend.new_pattern(fronts)
    pattern.begin(dtype, layout)
    pattern.once(small_bytes)
    return pattern
