"""The choice of an ordering: minimum degree always, what is dearer where it should pay."""

from __future__ import annotations

import logging
import time

import numpy as np

from ..cached import cached_property
from ..errors import OrderingTimeout
from ..machine import thread_count
from . import dissection, metis
from .amd import amd_tree
from .components import Components, CompressedGraph, compressed
from .etree import Cost, EliminationTree, inverse
from .graph import Graph, dense_limit, dimension
from .model import Model, dissected, dissection_seconds, metis_seconds
from .nested_dissection import constrained_amd

FLOOR = 1e8  # flops of minimum degree below which nothing else is worth a look
FEWEST = 2000  # nodes from which dissection may win
BESIDE_THREADS = 4  # from which on a dissection begins beside minimum degree
BESIDE_NODES = 20_000  # that take minimum degree 20 milliseconds
MANY = 8  # neighbours of a node, in the mean, from which on some may have the same
LAYERS_NODES = 25_000, 60_000  # of solids and planes, that take minimum degree 20 milliseconds
LAYERS_GAIN = 0.4  # of the seconds of an order by layers, by a better dissection
PLANE = 5  # neighbours of a node, in the mean, of plane meshes, which minimum degree is good for
SOLID_DIMENSIONS = 2.2, 3.6  # of graphs that grow like solid meshes, around each of some nodes
PLANE_DIMENSIONS = 1.6, 2.4  # and like plane ones, some of which are grids:
REGULAR = 0.6  # of the nodes of these have the same number of neighbours
SEEDS = 4  # dissections, the best of which has about 0.88 times the flops of one
SEED_GAIN = 0.06  # of the flops, by one more
METIS_GAIN = 0.08  # of the flops, on meshes
AMD_NODE = 8.5e-7  # seconds of minimum degree for a node of a solid mesh
TREE_NODE = 1.8e-7  # and of the tree of another order, which minimum degree tells
SOLID = 10.0  # times n^(4/3) and n^2: entries and flops of solid meshes by minimum degree
SLOWED = 0.5  # of a dissection's time, by which minimum degree beside it may be slowed down
MESH = 3.0  # times n^(2/3): mean height of the columns of meshes at most, seen by an entry
HARD = 2.0  # times the flops that were hoped for: an expander, or hubs
HARD_GAIN = 0.35  # of the flops, by METIS on these
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
        self.merged = _merged(graph)
        self.tried: dict[str, Cost] = {}
        self.method = ""
        self.perm = np.empty(0, np.int32)
        self.seconds = np.inf

    @cached_property
    def compressed(self) -> Graph:
        """The graph, with equal nodes merged if there are many."""
        return self.graph if self.merged is None else self.merged.graph

    def grows_like(self, dimensions: tuple[float, float]) -> bool:
        """Whether the graph grows like a mesh, around each of some nodes."""
        least, most = dimensions
        return all(least < found < most for found in self._dimensions)

    @cached_property
    def _dimensions(self) -> list[float]:
        graph = self.compressed
        return [dimension(graph, graph.n * k // 4) for k in (1, 2, 3)]

    def add(
        self,
        method: str,
        perm: np.ndarray,
        label: str = "",
        tree: EliminationTree | None = None,
    ) -> None:
        """Count an order, if its tree is not known; keep it if it is the best so far."""
        tree = tree or self._tree(perm)
        cost = self.tried[label or method] = tree.cost()
        seconds = self.model.seconds(cost)
        log.debug("ordering %s: %s, %.3g s expected", label or method, cost, seconds)
        if seconds < self.seconds:
            self.method, self.perm, self.seconds = method, perm, seconds
            self.cost, self.tree = cost, tree

    def add_amd(self) -> None:
        """Minimum degree, its dense rows by the rule of all methods here."""
        graph, merged = self.graph, self.merged
        dense = dense_limit(graph) / max(graph.n, 1) ** 0.5
        if merged is None:
            perm, tree = amd_tree(graph.indptr, graph.indices, None, dense)
        else:
            of = merged.graph.indptr, merged.graph.indices
            perm, tree = amd_tree(*of, merged.weights, dense)
            perm = merged.expand(perm)
        known = None if tree is None else EliminationTree(perm, inverse(perm), *tree)
        self.add("amd", perm, tree=known)

    def add_layers(self, threads: int, timeout: float | None) -> bool:
        """A dissection by layers, if there are separators; whether there are."""
        merged = self.merged
        of = (self.graph, None) if merged is None else (merged.graph, merged.weights)
        with dissection.Layers(*of, threads) as run:
            found = run.result(timeout)
        if found is not None:
            nodes, *tree = found
            perm = nodes if merged is None else merged.expand(nodes)
            self.add("layers", perm, tree=EliminationTree(perm, inverse(perm), *tree))
        return found is not None

    def _tree(self, perm: np.ndarray) -> EliminationTree:
        """The elimination tree of an order, counted by groups of equal nodes that it keeps."""
        merged = self.merged
        if merged is not None:
            group = merged.group[perm]
            if np.count_nonzero(np.diff(group)) == merged.graph.n - 1:
                return EliminationTree.of_groups(merged.graph, merged.weights, merged.group, perm)
        return EliminationTree.of(self.graph, perm)

    def add_constrained(self) -> None:
        """Constrained minimum degree inside the dissection that is best so far."""
        self.add("nesdis", constrained_amd(self.graph, self.tree))


def _merged(graph: Graph) -> CompressedGraph | None:
    """The graph with equal nodes merged, if there may be many and are."""
    if graph.nnz < MANY * graph.n:
        return None
    merged = compressed(graph, np.arange(graph.n, dtype=np.int32))
    return None if merged.graph is graph else merged


def choose(found: Candidates, time_limit: float | None, threads: int | None) -> None:
    """Fill `found` with minimum degree and, as far as they should pay, dissections.

    A dissection that is sooner done on many threads comes first, and often alone. One that fails or
    is not done in time is given up: minimum degree is there.
    """
    if found.graph.n < FEWEST:
        found.add_amd()
        return
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    components, threads = Components(found.graph, found.merged), threads or thread_count()
    layered = _by_layers(found, threads, time_limit)
    with _Dissections(found, components, threads) as dissections:
        if not (layered or dissections.come_first()):
            found.add_amd()
            if found.cost.flops < FLOOR:
                return
        try:
            if dissections.should_pay():
                hard = dissections.add(deadline) > HARD
                if metis.available():
                    _try_metis(found, components, HARD_GAIN if hard else METIS_GAIN, deadline)
        except (OrderingTimeout, RuntimeError) as error:
            log.warning("%s. Going on without it", error)
        if "amd" not in found.tried and not dissections.suffice():
            found.add_amd()


def _by_layers(found: Candidates, threads: int, time_limit: float | None) -> bool:
    """Add a dissection by layers, which many threads have sooner than minimum degree, to a mesh."""
    if threads < BESIDE_THREADS or not _has_layers(found):
        return False
    try:
        return found.add_layers(threads, time_limit)
    except (OrderingTimeout, RuntimeError) as error:
        log.warning("%s. Going on without it", error)
        return False


def _has_layers(found: Candidates) -> bool:
    """Whether layers of breadth first searches are good separators: of solids, and plane grids.

    Of other plane meshes, where they are ragged, they make up to twice the flops of minimum degree.
    """
    graph, (solid, plane) = found.compressed, LAYERS_NODES
    if graph.n < solid:
        return False
    if found.grows_like(SOLID_DIMENSIONS):
        return True
    regular = np.bincount(graph.degree).max(initial=0) >= REGULAR * graph.n
    return graph.n >= plane and regular and found.grows_like(PLANE_DIMENSIONS)


class _Dissections:
    """Dissections of a graph; with cores to spare the first one begins beside minimum degree."""

    def __init__(self, found: Candidates, components: Components, threads: int) -> None:
        self.found, self.components, self.threads = found, components, threads
        self.run: dissection.Run | None = None
        self.since = time.monotonic()
        self._dense = found.graph.nnz > PLANE * found.graph.n
        self._beside = threads >= BESIDE_THREADS

    def come_first(self) -> bool:
        """Whether the first one is likely to win against minimum degree on a mesh.

        If it is not, but may pay all the same, it begins beside where there are cores to spare;
        where there are not, the graph has to grow like a solid mesh.
        """
        if self.found.graph.n < BESIDE_NODES or not self._dense:
            return False
        graph, model, price = self.found.graph, self.found.model, self._price_of_whole
        saving = model.seconds(self._likely) - model.seconds(dissected(self._likely, graph.n))
        if price + self.found.compressed.n * TREE_NODE < self._amd_seconds + saving:
            return self._beside or self.found.grows_like(SOLID_DIMENSIONS)
        if not self._beside:
            return False
        if saving > SLOWED * price or model.crowded(self._likely):
            self.run = dissection.Run(self.components, 1, self.threads - 1)
        return False

    @property
    def _likely(self) -> Cost:
        """Cost of minimum degree for a solid mesh."""
        n = self.found.graph.n
        return Cost(int(SOLID * n ** (4 / 3)), SOLID * n**2.0, 0)

    def suffice(self) -> bool:
        """Whether minimum degree is not worth its time any more: separators are those of a mesh."""
        if not self.found.tried:
            return False
        cost, n = self.found.cost, self.found.graph.n
        meshlike = cost.flops <= MESH * cost.nnz * n ** (2 / 3)
        return meshlike or self.found.seconds <= self._amd_seconds

    def should_pay(self) -> bool:
        """Whether the first one is worth the time that it still takes."""
        found = self.found
        if not found.tried:
            return True
        if found.method == "layers":
            saving = LAYERS_GAIN * found.seconds
        else:
            saving = found.seconds - found.model.seconds(dissected(found.cost, found.graph.n))
        if found.model.crowded(found.cost):
            return True
        if self.run is not None:
            return saving > self.price - (time.monotonic() - self.since)
        # the first test spares most meshes a search for components and equal nodes
        return saving > self._price_of_whole and saving > self.price

    @cached_property
    def _price_of_whole(self) -> float:
        """Seconds that one takes, if there is one component and no further equal nodes."""
        return dissection_seconds(self.found.compressed, self.threads)

    @cached_property
    def price(self) -> float:
        """Seconds that one takes."""
        return dissection_seconds(self.components, self.threads)

    @property
    def _amd_seconds(self) -> float:
        """Seconds that minimum degree takes for a solid graph."""
        return AMD_NODE * self.found.compressed.n

    def add(self, deadline: float) -> float:
        """Add as many as should pay; the flops of the first over those that were hoped for."""
        found = self.found
        by_degree = found.tried.get("amd", self._likely)
        hoped = dissected(by_degree, found.graph.n).flops
        if "amd" not in found.tried and self._beside:
            hoped = np.inf  # METIS has one thread
        for seed in range(1, SEEDS + 1):
            run, self.run = self.run, None
            with run or dissection.Run(self.components, seed, self.threads) as running:
                perm = running.result(deadline - time.monotonic())
            found.add("dissection", perm, f"dissection {seed}" if seed > 1 else "")
            if SEED_GAIN * found.seconds < self.price:
                break
        return found.tried["dissection"].flops / hoped

    def __enter__(self) -> _Dissections:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.run is not None:
            self.run.cancel()


def _try_metis(found: Candidates, components: Components, gain: float, deadline: float) -> None:
    """Add METIS's order, and a better one inside its separators, if a `gain` of flops pays."""
    price = metis_seconds(components)
    if gain * found.seconds < price:
        return
    with metis.Run(components) as run:
        found.add("metis", run.result(deadline - time.monotonic()))
    if found.method == "metis" and CONSTRAINED_GAIN * found.seconds > CONSTRAINED_SHARE * price:
        found.add_constrained()
