"""Expected seconds of factorizations and dissections, to choose between orderings.

All figures are estimates from sizes. No time is measured, so that a choice is reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..machine.resources import CPU, DISSECTION, MACHINES, METIS, DissectionCost
from .components import Components
from .dissection.dissect import MIN_EDGES_PER_THREAD
from .dissection.split import leaf_size
from .etree import Cost
from .graph import Graph

ENTRY_BYTES = 16  # bytes of an entry and its index
TEAM_START_SECONDS = 0.02  # seconds until threads share the first parts of a dissection
CHAIN_SHARE = 0.7  # time of the chain of dependent separators over one thread's time for a depth
METIS_COARSEST_NODES = 60.0  # nodes of METIS's coarsest graph


@dataclass(frozen=True)
class CostModel:
    """Seconds of a number of factorizations with one solve each.

    Attributes
    ----------
    reuse : float
        Number of factorizations.
    rate : float
        Flops per second.
    bandwidth : float
        Bytes of the factor per second.
    room : float
        Bytes of the factor, above which dissection is tried at any cost in time.
    """

    reuse: float = 1.0
    rate: float = CPU.rate
    bandwidth: float = CPU.bandwidth
    room: float = np.inf

    def crowded(self, cost: Cost) -> bool:
        """Return whether the factor exceeds `room`, so that a better order is worth its time."""
        return cost.nnz * ENTRY_BYTES > self.room

    def seconds(self, cost: Cost) -> float:
        """Return the seconds of all factorizations in an order of this cost."""
        return self.reuse * (cost.flops / self.rate + cost.nnz * ENTRY_BYTES / self.bandwidth)


def pace_of(backend: str, work: int) -> dict[str, float]:
    """Return rate, bandwidth and room of a backend's machine as options of `order`.

    Parameters
    ----------
    backend : {"cpu", "gpu"}
    work : int
        Number of triangular factors to compute: 1 for Cholesky, 2 for LU.

    Examples
    --------
    >>> pace_of("cpu", 2)["rate"] == CPU.rate / 2
    True
    """
    taken = MACHINES[backend]
    rate, bandwidth, room = (x / work for x in (taken.rate, taken.bandwidth, taken.room))
    return {"rate": rate, "bandwidth": bandwidth, "room": room}


def _levels_seconds(
    graphs: list[Graph], cost: DissectionCost, coarsest: Callable[[int], float]
) -> np.ndarray:
    """Return the seconds on one core for all levels of all graphs, and for one level of each.

    The levels of a graph of n nodes end at ``coarsest(n)`` nodes.
    """
    seconds = []
    for graph in graphs:
        levels = max(float(np.log2(max(graph.n / coarsest(graph.n), 1.0))), 1.0)
        level = cost.node * graph.n + cost.neighbour * graph.nnz
        seconds.append((levels * level, level))
    return np.array(seconds).reshape(-1, 2).sum(axis=0)


def _graphs(components: Components) -> list[Graph]:
    return [part.graph for part in components.compressed]


def metis_seconds(components: Components) -> float:
    """Return the expected seconds of METIS, which takes about the same time for each level."""
    return METIS.start + float(
        _levels_seconds(_graphs(components), METIS, lambda _: METIS_COARSEST_NODES)[0]
    )


def dissection_seconds(source: Components | Graph, threads: int) -> float:
    """Return the expected seconds of `dissection.NestedDissection`.

    All parts of one depth together take about the same time at each depth. A `Graph` is assumed to
    be connected. A separator is refined by one thread, so the largest separators of all depths,
    each half as large as the one before, form a sequential chain; with waiting threads it takes
    `CHAIN_SHARE` of a depth.
    """
    graphs = [source] if isinstance(source, Graph) else _graphs(source)
    total, level = _levels_seconds(graphs, DISSECTION, leaf_size)
    chain = min(total, CHAIN_SHARE * level)
    shared = (
        threads > 1 and max((graph.nnz for graph in graphs), default=0) >= 2 * MIN_EDGES_PER_THREAD
    )
    start = TEAM_START_SECONDS if shared else DISSECTION.start
    return start + float(chain + (total - chain) / threads)


def dissected(amd: Cost, n: int) -> Cost:
    """Return the expected cost of nested dissection, from the cost of minimum degree.

    The mean height of a column, weighted by entries, is flops / nnz. It is sqrt(n) / 2 for plane
    meshes, where minimum degree needs 1.2 to 1.6 times the flops of dissection, and 10 sqrt(n) or
    more for solid ones, where it needs 2 to 6 times. The line was fitted to 35 graphs.
    """
    height = amd.flops / max(amd.nnz, 1) / np.sqrt(max(n, 1))
    gain = float(np.clip(1.3 + 0.25 * height, 1.0, 6.0))
    return Cost(int(amd.nnz / np.sqrt(gain)), amd.flops / gain, amd.height)
