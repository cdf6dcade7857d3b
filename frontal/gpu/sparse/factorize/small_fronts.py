"""Factorization of small fronts: the launches of front_small.cu."""

from __future__ import annotations

import numpy as np

from ...runtime.array import Array
from ...runtime.graph import Launch
from ...runtime.structs import filled
from .. import launch, structs
from ..pattern import DevicePattern
from ..storage import State, Storage


def _structs(
    pattern: DevicePattern, storage: Storage, tiny: float, state: State
) -> tuple[np.ndarray, np.ndarray]:
    """Return the structs `SmallFronts` and `SmallOutputs` of the kernel."""
    device, dtype = pattern.device, storage.panels.dtype
    tasks = pattern.small_tasks(dtype)
    fronts = filled(
        device,
        structs.SMALL_FRONTS,
        fronts=tasks.fronts,
        children=tasks.children,
        maps=tasks.maps,
        sources=tasks.sources,
        places=tasks.places,
        finished=state.finished,
    )
    outputs = filled(
        device,
        structs.OUTPUTS,
        dtype,
        factor=storage.panels,
        **storage.of_pivots,
        outcome=state.outcome,
        tiny=tiny,
    )
    return fronts, outputs


def launches(
    pattern: DevicePattern, storage: Storage, values: Array, tiny: float, state: State
) -> list[list[Launch]]:
    """Return the launches of each level of small fronts; see `Factorization`."""
    if not pattern.schedule.small.any():
        return []
    device, dtype = pattern.device, storage.panels.dtype
    tasks = pattern.small_tasks(dtype)
    constants = pattern.method.constants | {"PERTURB": int(pattern.method.pivots)}
    kernel = device.kernel("front_small.cu", "front_small", dtype, **constants)
    fronts, outputs = _structs(pattern, storage, tiny, state)
    levels: list[list[Launch]] = []
    for first, counts in zip(tasks.first, tasks.counts, strict=False):
        levels.append([])
        for plan in launch.small_fronts(dtype, pattern.method, counts, device.limits):
            begin = (np.int32(first + plan.first), *map(np.int32, plan.counts))
            arguments = (fronts, outputs, *begin, values)
            levels[-1].append(Launch(kernel, plan.blocks, plan.threads, arguments, plan.shared))
    return levels
