"""Threads and memory of this machine, and the rates of the machines in cost estimates.

Rates are constants, fitted to measurements once and not measured where the package runs, so that
an analysis is the same everywhere. The GPU of the estimates is an H200: to query the actual one
would make a context on it.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import NamedTuple

from .cgroup import group_memory

_RESOURCE = importlib.import_module("resource") if os.name == "posix" else None


class FrontCost(NamedTuple):
    """Seconds that a front costs on a machine, fitted to measurements.

    A front with k pivot columns and m update rows takes
    ``front + entry * (F k + 2 m^2) + flops / (rate * k / (k + half))`` seconds with F = k + m:
    a fixed part, the traffic of its panel and contribution block, and arithmetic whose rate
    is half of its maximum at `half` pivot columns. A front of more than `supernodes.TILE` rows
    takes `tile` seconds more for each of its tiles. `stored` is a price for memory, not a time:
    the seconds that may be spent to save one entry of the factor.

    A front ends at least `latency + pivot * k` seconds after its last child, even if the machine,
    which works on `width` fronts at once, has nothing else to do. `share` is the time of the whole
    machine that may be spent to save one unit of this time.
    """

    front: float
    entry: float
    rate: float
    half: float
    tile: float = 0.0
    stored: float = 0.0
    latency: float = 0.0
    pivot: float = 0.0
    width: int = 0
    share: float = 0.0


@dataclass(frozen=True)
class Machine:
    """Expected cost of a factorization on a machine, in double precision.

    Attributes
    ----------
    rate : float
        Flops a second of the dense kernels: of one core, or of the whole GPU.
    bandwidth : float
        Bytes of the factor a second, for assembly, storing and one solve.
    least_flops : float
        Flops of a factorization below which several cores, or a GPU, do not pay.
    fronts : FrontCost
        Costs that amalgamation minimizes.
    room : float
        Bytes of a factor above which memory may be short.
    """

    rate: float
    bandwidth: float
    least_flops: float
    fronts: FrontCost
    room: float = inf


class DissectionCost(NamedTuple):
    """Seconds that nested dissection takes on one core; see `ordering.model`."""

    start: float
    node: float  # a vertex and level of the recursion
    neighbour: float  # a neighbour and level


CPU = Machine(
    rate=4e10,
    bandwidth=1e9,
    least_flops=2e7,  # a millisecond, less than a thread needs to help
    fronts=FrontCost(front=0.05e-6, entry=0.2e-9, rate=1.0e10, half=2.0),
)
H200 = Machine(
    rate=3e13,  # within 1.3x for grids that take 4 ms or more
    bandwidth=2e11,
    least_flops=2e7,  # milliseconds on a CPU
    fronts=FrontCost(
        front=6e-9,
        entry=18e-12,
        rate=1e12,
        half=12.0,
        tile=14e-9,
        stored=4e-11,
        latency=8e-6,
        pivot=0.4e-6,
        width=256,
        share=0.125,
    ),
    room=1.6e10,
)
# Fitted to measured graphs within 2x. METIS runs as a process, whose start and input count.
METIS = DissectionCost(start=0.05, node=1.35e-7, neighbour=4.85e-8)
DISSECTION = DissectionCost(start=0.001, node=1.2e-7, neighbour=7e-8)

MACHINES = {"cpu": CPU, "gpu": H200}  # by the name of a backend


def variable(name: str) -> str | None:
    """Return `os.environ.get` of a name, faster if the variable is not set.

    `os.environ.get` raises and catches then, which is the slowest query of a small system's
    factorization.
    """
    known = getattr(os.environ, "_data", None)  # keys are encoded names
    return None if known is not None and _encoded(name) not in known else os.environ.get(name)


@cache
def _encoded(name: str) -> object:
    return os.environ.encodekey(name)


def thread_count() -> int:
    """Return ``FRONTAL_NUM_THREADS``, else the number of cores this process may run on.

    Raises
    ------
    ValueError
        If the variable is not a positive integer.
    """
    asked = variable("FRONTAL_NUM_THREADS")
    if asked:
        if not asked.strip().isdigit() or int(asked) < 1:
            raise ValueError(f"FRONTAL_NUM_THREADS is {asked!r}; give a positive integer")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Return the bytes that this process can still allocate, None if unknown."""
    sizes = _free_memory(), group_memory(), address_space()
    known = [size for size in sizes if size is not None]
    return min(known) if known else None


def address_space() -> int | None:
    """Return the free bytes of the address space of this process, None if it has no limit.

    Such limits are set by `ulimit -v` and by batch systems. Reserved addresses count, used or not.
    """
    if not hasattr(_RESOURCE, "RLIMIT_AS"):
        return None
    limit = _RESOURCE.getrlimit(_RESOURCE.RLIMIT_AS)[0]
    if limit == _RESOURCE.RLIM_INFINITY:
        return None
    try:
        with open("/proc/self/statm") as pages:
            return max(0, limit - int(pages.read().split()[0]) * _RESOURCE.getpagesize())
    except OSError:
        return None


def _free_memory() -> int | None:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None
