"""Graphs of sweeps with the steps around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ...runtime.array import Array
from ...runtime.device import Device
from ...runtime.graph import CapturedLaunches, Launch
from .sweeps import SweepLaunches


class SweepGraph:
    """Steps that begin with zero norms and become a graph.

    Parameters
    ----------
    device : Device
    norms : device array
        Set to zero before the steps.
    steps : sequence of Launch, SweepLaunches or callable
        See `CapturedLaunches`.

    Attributes
    ----------
    replayed : CapturedLaunches
        The graph.
    sweeps : list of SweepLaunches
        The sweeps that it contains.
    """

    def __init__(
        self,
        device: Device,
        norms: Array,
        steps: Sequence[Launch | SweepLaunches | Callable[[], object]],
    ) -> None:
        self.sweeps = [step for step in steps if isinstance(step, SweepLaunches)]
        launches = [step.enqueue if isinstance(step, SweepLaunches) else step for step in steps]
        self.replayed = CapturedLaunches(device, partial(device.clear, norms), launches)

    def __call__(self) -> None:
        """Launch the graph."""
        if self.replayed.replay():
            for sweeps in self.sweeps:
                sweeps.replayed()
        else:
            self.replayed()
