"""The choice of an ordering: minimum degree always, what is dearer where it should pay."""

from __future__ import annotations

import contextlib
import logging
import time

import numpy as np

from ..errors import OrderingTimeout
from ..machine import METIS
from . import metis
from .amd import amd
from .components import Components
from .etree import Cost, EliminationTree
from .graph import Graph, dense_limit
from .model import Model, dissected, metis_seconds
from .nested_dissection import constrained_amd

FLOOR = 1e8  # flops of minimum degree below which nothing else is worth a look
FEWEST = 2000  # nodes from which METIS may win
METIS_DEFAULT = -1  # imbalance
IMBALANCES = (400, 500)  # of METIS; 0.65 to 1.1 times the flops of its default 200
IMBALANCE_GAIN = 0.08  # of the flops, by the better of two runs, in the mean over 17 graphs
IMBALANCE_SHARE = 0.4  # of METIS's time, for a run beside it: half a core at worst
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

    A METIS that fails or is not done in time is given up: minimum degree is there.
    """
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    n = found.graph.n
    found.add_amd()
    if found.cost.flops < FLOOR or n < FEWEST:
        return
    hoped = found.model.seconds(dissected(found.cost, n))
    saving = found.seconds - hoped
    crowded = found.model.crowded(found.cost)
    if (saving < METIS.start and not crowded) or not metis.available():
        return
    components = Components(found.graph)
    price = metis_seconds(components)
    if saving < price and not crowded:
        return
    imbalances = _imbalances(IMBALANCE_GAIN * hoped / price, threads)
    try:
        _dissect(found, components, imbalances, threads, deadline)
    except (OrderingTimeout, RuntimeError) as error:
        log.warning("%s. Going on with the ordering %r", error, found.method)
    if found.method == "metis" and CONSTRAINED_GAIN * found.seconds > CONSTRAINED_SHARE * price:
        found.add_constrained()


def _imbalances(gain: float, threads: int) -> tuple[int, ...]:
    """Imbalances for METIS, where one more run should save `gain` times what it takes."""
    if gain > 1:
        return METIS_DEFAULT, *IMBALANCES
    return METIS_DEFAULT, *(IMBALANCES[: threads - 1] if gain > IMBALANCE_SHARE else ())


def _dissect(
    found: Candidates,
    components: Components,
    imbalances: tuple[int, ...],
    threads: int,
    deadline: float,
) -> None:
    """Add METIS's orders for some imbalances, as many at once as there are threads."""
    with contextlib.ExitStack() as stack:
        runs: list[metis.Run] = []
        for k, imbalance in enumerate(imbalances):
            for ahead in imbalances[len(runs) : k + threads]:
                runs.append(stack.enter_context(metis.Run(components, ahead)))
            perm = runs[k].result(deadline - time.monotonic())
            found.add("metis", perm, f"metis {imbalance}" if k else "metis")
