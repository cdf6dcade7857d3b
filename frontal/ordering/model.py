"""What a factorization and METIS are expected to cost in seconds, to choose between orderings.

All figures are estimates from sizes; no time is measured, so that a choice can be repeated.
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

ENTRY = 16  # bytes of an entry and its index
TEAM_START = 0.02  # seconds that threads take to share a dissection's first parts
CHAIN = 0.7  # of what one thread takes for a depth: separators that wait for each other
METIS_COARSEST = 60.0  # nodes at which the levels of METIS end


@dataclass(frozen=True)
class CostModel:
    """Seconds of a number of factorizations with one solve each.

    Attributes
    ----------
    reuse : float
        Number of factorizations.
    rate : float
        Flops a second.
    bandwidth : float
        Bytes of the factor a second.
    room : float
        Bytes of the factor, `ENTRY` each, beyond which dissection is tried whatever it takes.
    """

    reuse: float = 1.0
    rate: float = CPU.rate
    bandwidth: float = CPU.bandwidth
    room: float = np.inf

    def crowded(self, cost: Cost) -> bool:
        """Whether memory may run short, so that a better ordering is worth its time."""
        return cost.nnz * ENTRY > self.room

    def seconds(self, cost: Cost) -> float:
        """Time of all factorizations in an ordering of this cost."""
        return self.reuse * (cost.flops / self.rate + cost.nnz * ENTRY / self.bandwidth)


def pace_of(backend: str, work: int) -> dict[str, float]:
    """Return the pace of a backend's machine as options of `order`.

    Parameters
    ----------
    backend : {"cpu", "gpu"}
    work : int
        Triangular factors that are computed: 1 for Cholesky, 2 for LU.

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
    """Time on one core: of some graphs, and of a level of each; `coarsest` nodes are left."""
    seconds = []
    for graph in graphs:
        levels = max(float(np.log2(max(graph.n / coarsest(graph.n), 1.0))), 1.0)
        level = cost.node * graph.n + cost.neighbour * graph.nnz
        seconds.append((levels * level, level))
    return np.array(seconds).reshape(-1, 2).sum(axis=0)


def _graphs(components: Components) -> list[Graph]:
    return [part.graph for part in components.compressed]


def metis_seconds(components: Components) -> float:
    """Expected time of METIS; it runs through all levels of coarsening in near-equal time."""
    return METIS.start + float(
        _levels_seconds(_graphs(components), METIS, lambda _: METIS_COARSEST)[0]
    )


def dissection_seconds(source: Components | Graph, threads: int) -> float:
    """Expected time of `dissection.NestedDissection`; all parts of one depth together take
    near-equal time.

    Of a graph it is the time that it would take if it were connected.

    Separators are refined by one thread each: of each depth the largest, half as large as the one
    before, is a chain; with what threads wait for it takes `CHAIN` of a depth.
    """
    graphs = [source] if isinstance(source, Graph) else _graphs(source)
    total, level = _levels_seconds(graphs, DISSECTION, leaf_size)
    chain = min(total, CHAIN * level)
    shared = (
        threads > 1 and max((graph.nnz for graph in graphs), default=0) >= 2 * MIN_EDGES_PER_THREAD
    )
    start = TEAM_START if shared else DISSECTION.start
    return start + float(chain + (total - chain) / threads)


def dissected(amd: Cost, n: int) -> Cost:
    """Expected cost of nested dissection, from that of minimum degree.

    The mean height of a column, seen by an entry, is flops / nnz. It is sqrt(n) / 2 for plane
    meshes, where minimum degree needs 1.2 to 1.6 times the flops of dissection, and 10 sqrt(n) or
    more for solid ones, where it needs 2 to 6 times. The line was fitted to 35 graphs.
    """
    height = amd.flops / max(amd.nnz, 1) / np.sqrt(max(n, 1))
    gain = float(np.clip(1.3 + 0.25 * height, 1.0, 6.0))
    return Cost(int(amd.nnz / np.sqrt(gain)), amd.flops / gain, amd.height)
