"""Time of a factorization on the device by level and size of fronts, with lower bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ....symbolic.plan import front_flops
from ...runtime.array import Array
from ...runtime.device import Device
from .. import launch
from ..layout.schedule import TILE, contribution_entries
from ..pattern import DevicePattern
from ..storage import Storage, allocate
from .launches import Factorization

EDGES = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 1 << 30)  # orders of size classes


@dataclass(frozen=True)
class Row:
    """Fronts of one level or size class."""

    name: str  # level, or orders of the fronts
    fronts: int
    # for a level: from the beginning of its first task to the end of its last, so that levels
    # overlap. For a size class: time of its tasks divided by the number of blocks that work
    # concurrently.
    milliseconds: float
    # the part of `milliseconds` in which tasks waited for others or read their children
    waiting: float
    flops: float  # a multiply-add counts as two
    # milliseconds to move the bytes (panels once, contribution blocks twice) and to compute, at the
    # device's measured ceilings
    bandwidth_floor: float
    flop_floor: float


@dataclass(frozen=True)
class FactorProfile:
    """Time of one factorization by level and by size class of the fronts, in milliseconds."""

    total: float
    levels: list[Row]
    classes: list[Row]
    ceilings: dict[str, float]


class _Trace(NamedTuple):
    """Measurements of a factorization."""

    # (t, 4): the list of tasks, and their times in ms; see `Factorization`
    tasks: np.ndarray
    stamps: np.ndarray
    marks: list[float]  # see `Factorization.timed`
    work: np.ndarray  # (f, 3): flops and both floors of each front

    def row(self, name: str, fronts: np.ndarray, milliseconds: float, waiting: float) -> Row:
        """Return the row of a set of fronts."""
        total = self.work[fronts].sum(axis=0)
        return Row(name, int(fronts.sum()), milliseconds, waiting, *map(float, total))

    def times(self, tasks: np.ndarray) -> tuple[float, float]:
        """Return the total time of some tasks, and the part in which they waited."""
        stamps = self.stamps[tasks]
        return (
            float((stamps[:, 3] - stamps[:, 0]).sum()),
            float((stamps[:, 1] - stamps[:, 0]).sum()),
        )


def profile(pattern: DevicePattern, values: Array, tiny: float) -> FactorProfile:
    """Factorize once more in separate memory, with a clock in every task."""
    device, dtype = pattern.device, values.dtype
    storage = allocate(pattern, dtype, Storage)
    times = device.xp.zeros((max(pattern.tasks.count, 1), 4), np.int64)
    factorization = Factorization(pattern, storage, values, tiny, times)
    factorization.timed()  # warms up
    marks = factorization.timed()
    ceilings = _ceilings(device, dtype)
    tasks = device.download(pattern.tasks.list).reshape(-1, 4)
    stamps = device.download(times)[: len(tasks)] / 1e6
    trace = _Trace(tasks, stamps, marks, _work(pattern, dtype, ceilings))
    plan = launch.front_tiles(dtype, pattern.method, device.limits)
    blocks = max(min(plan.blocks, pattern.tasks.count), 1)
    classes = _by_class(pattern, trace, blocks)
    return FactorProfile(float(sum(marks)), _by_level(pattern, trace), classes, ceilings)


def _ceilings(device: Device, dtype: np.dtype) -> dict[str, float]:
    """Return bytes and flops per millisecond: of a large copy, and of a large matrix product."""
    xp = device.xp
    source, n = xp.ones(1 << 26, np.uint8), 2048
    target, a = xp.empty_like(source), xp.ones((n, n), dtype)
    copy = min(device.milliseconds(lambda: xp.copyto(target, source)) for _ in range(4))
    product = min(device.milliseconds(lambda: xp.matmul(a, a)) for _ in range(4))
    scale = 4 if dtype.kind == "c" else 1
    return {"bytes": 2 * source.nbytes / copy, "flops": 2 * scale * n**3 / product}


def _work(pattern: DevicePattern, dtype: np.dtype, ceilings: dict[str, float]) -> np.ndarray:
    """Return flops and both floors of each front."""
    flops = front_flops(pattern.plan.start, pattern.plan.pointer)
    flops *= pattern.method.panels * (4 if dtype.kind == "c" else 1)
    moved = pattern.layout(dtype).size + 2 * contribution_entries(pattern.m, pattern.method)
    floors = moved * dtype.itemsize / ceilings["bytes"], flops / ceilings["flops"]
    return np.stack([flops, *floors], axis=1)


def _by_level(pattern: DevicePattern, trace: _Trace) -> list[Row]:
    schedule = pattern.schedule
    task_level = schedule.level[trace.tasks[:, 0]]
    rows = []
    for level in range(schedule.levels):
        mine = task_level == level
        if level < schedule.small_levels:
            last = schedule.launches - 1
            shared = schedule.small_levels - last if level >= last else 1
            span, waiting = trace.marks[min(level, last)] / shared, 0.0
        else:
            stamps, (total, waiting) = trace.stamps[mine], trace.times(mine)
            span = float(stamps[:, 3].max() - stamps[:, 0].min())
            waiting *= span / max(total, 1e-9)
        rows.append(trace.row(str(level), schedule.level == level, span, waiting))
    return rows


def _by_class(pattern: DevicePattern, trace: _Trace, blocks: int) -> list[Row]:
    order, schedule = pattern.k + pattern.m, pattern.schedule
    kind = np.searchsorted(EDGES, order)
    small_time = float(sum(trace.marks[: schedule.launches]))
    area = (order * np.minimum(order, TILE)).astype(float) * schedule.small
    rows = []
    for index in np.unique(kind):
        fronts = kind == index
        total, waiting = trace.times(kind[trace.tasks[:, 0]] == index)
        time = total / blocks
        time += small_time * float(area[fronts].sum()) / max(float(area.sum()), 1.0)
        low = EDGES[index - 1] + 1 if index else 1
        name = f"{low}-{EDGES[index]}" if index + 1 < len(EDGES) else f"{low}-"
        rows.append(trace.row(name, fronts, time, waiting / blocks))
    return rows
