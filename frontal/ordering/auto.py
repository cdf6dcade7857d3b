"""The choice of an ordering: minimum degree always, what is dearer where it should pay."""

from __future__ import annotations

import logging
import time

import numpy as np

from ..errors import OrderingTimeout
from . import metis
from .amd import amd
from .components import Components
from .dissection import dissect
from .etree import Cost, EliminationTree
from .graph import Graph, dense_limit
from .model import Model, dissected, dissection_seconds, metis_seconds
from .nested_dissection import constrained_amd

FLOOR = 1e8  # flops of minimum degree below which nothing else is worth a look
FEWEST = 2000  # nodes from which dissection may win
SEEDS = 4  # dissections, the best of which has about 0.88 times the flops of one
SEED_GAIN = 0.06  # of the flops, by one more
METIS_GAIN = 0.08  # of the flops: more on expanders and near hubs, less on meshes
CONSTRAINED_GAIN = 0.02  # of the flops, by constrained minimum degree
CONSTRAINED_SHARE = 0.3  # of METIS's time, for that and counting

log = logging.getLogger("frontal")


class Candidates:
    """Orders tried, and the one that makes the factorizations cheapest by the model."""

    cost: Cost
    tree: EliminationTree

    def __init__(self, graph: Graph, model: Model) -> None:
        self.graph = graph
        self.model = model
        self.tried: dict[str, Cost] = {}
        self.method = ""
        self.perm = np.empty(0, np.int32)
        self.seconds = np.inf

    def add(self, method: str, perm: np.ndarray, label: str = "") -> None:
        """Count an order; keep it if it is the best so far."""
        tree = EliminationTree.of(self.graph, perm)
        cost = self.tried[label or method] = tree.cost()
        seconds = self.model.seconds(cost)
        log.debug("ordering %s: %s, %.3g s expected", label or method, cost, seconds)
        if seconds < self.seconds:
            self.method, self.perm, self.seconds = method, perm, seconds
            self.cost, self.tree = cost, tree

    def add_amd(self) -> None:
        """Minimum degree, its dense rows by the rule of all methods here."""
        graph = self.graph
        dense = dense_limit(graph) / np.sqrt(max(graph.n, 1))
        self.add("amd", amd(graph.indptr, graph.indices, dense=dense))

    def add_constrained(self) -> None:
        """Constrained minimum degree inside the dissection that is best so far."""
        self.add("nesdis", constrained_amd(self.graph, self.tree))


def choose(found: Candidates, time_limit: float | None, threads: int) -> None:
    """Fill `found` with minimum degree and, as far as they should pay, dissections.

    A dissection that fails or is not done in time is given up: minimum degree is there.
    """
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    n = found.graph.n
    found.add_amd()
    if found.cost.flops < FLOOR or n < FEWEST:
        return
    components = Components(found.graph)
    saving = found.seconds - found.model.seconds(dissected(found.cost, n))
    crowded = found.model.crowded(found.cost)
    try:
        if crowded or saving > dissection_seconds(components, threads):
            _dissect(found, components, threads, deadline)
            if metis.available():
                _try_metis(found, components, crowded, deadline)
    except (OrderingTimeout, RuntimeError) as error:
        log.warning("%s. Going on with the ordering %r", error, found.method)


def _dissect(found: Candidates, components: Components, threads: int, deadline: float) -> None:
    """Add dissections, as many as should pay."""
    price = dissection_seconds(components, threads)
    for seed in range(1, SEEDS + 1):
        perm = dissect(components, seed, threads, deadline - time.monotonic())
        found.add("dissection", perm, f"dissection {seed}" if seed > 1 else "")
        if SEED_GAIN * found.seconds < price:
            break


def _try_metis(found: Candidates, components: Components, crowded: bool, deadline: float) -> None:
    """Add METIS's order, and a better one inside its separators, if they should pay."""
    price = metis_seconds(components)
    if METIS_GAIN * found.seconds < price and not crowded:
        return
    with metis.Run(components) as run:
        found.add("metis", run.result(deadline - time.monotonic()))
    if found.method == "metis" and CONSTRAINED_GAIN * found.seconds > CONSTRAINED_SHARE * price:
        found.add_constrained()
