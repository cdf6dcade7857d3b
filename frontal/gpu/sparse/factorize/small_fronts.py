"""Factorization of small fronts: the launches of front_small.cu and front_chains.cu."""

from __future__ import annotations

import numpy as np

from ....numeric.method import Method
from ...runtime.array import Array, Value
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
    """Return the launches of small fronts at each time of the schedule; see `Factorization`."""
    if not pattern.schedule.small.any():
        return []
    device, dtype = pattern.device, storage.panels.dtype
    tasks, count = pattern.small_tasks(dtype), pattern.schedule.launches
    fronts, outputs = _structs(pattern, storage, tiny, state)
    alone = count - pattern.schedule.chained
    levels: list[list[Launch]] = []
    kernel = device.kernel(
        "front_small.cu", "front_small", dtype, **small_constants(pattern.method)
    )
    for first, counts in zip(tasks.first[:alone], tasks.counts, strict=False):
        levels.append([])
        for plan in launch.small_fronts(dtype, pattern.method, counts, device.limits):
            begin = (np.int32(first + plan.first), *map(np.int32, plan.counts))
            arguments = (fronts, outputs, *begin, values)
            levels[-1].append(Launch(kernel, plan.blocks, plan.threads, arguments, plan.shared))
    if pattern.schedule.chained:
        first = tasks.first[alone]
        numbers = np.int32(first), np.int32(tasks.first[-1] - first)
        arguments = fronts, outputs, *numbers, state.small_ticket, values
        levels.append([_chains(pattern, dtype, tasks.counts[alone:], arguments)])
    return levels


def small_constants(method: Method) -> dict[str, int]:
    """Return the constants of front_small.cu and front_chains.cu."""
    return method.constants | {"PERTURB": int(method.unit)}


def _chains(
    pattern: DevicePattern,
    dtype: np.dtype,
    counts: list[tuple[int, int, int]],
    arguments: tuple[Value, ...],
) -> Launch:
    """Return the launch of front_chains.cu."""
    device, method = pattern.device, pattern.method
    kernel = device.kernel("front_chains.cu", "front_chains", dtype, **small_constants(method))
    blocks, threads, shared = launch.small_chains(dtype, method, counts, device.limits)
    return Launch(kernel, blocks, threads, arguments, shared)
