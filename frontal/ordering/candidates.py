"""The orders that were tried, and the best one by the model."""

from __future__ import annotations

import logging

import numpy as np

from ..machine.lockfree_property import cached_property
from . import dissection
from .amd import amd_tree
from .components import Components, CompressedGraph, compressed, uncompressed
from .etree import Cost, EliminationTree, inverse
from .graph import Graph, dense_limit
from .model import CostModel, dissected
from .nested_dissection import constrained_amd
from .shape import dimension, regularity

MIN_COMPRESSED_DEGREE = 8  # mean neighbours from which many nodes may be indistinguishable
SOLID_DIMENSIONS = 2.2, 3.6  # bounds of the dimension of solid meshes, around three sample nodes
PLANE_DIMENSIONS = 1.6, 2.4  # bounds of the dimension of plane meshes
MAX_MESH_DIMENSION = 5.0  # of graphs that have separators which a dissection finds
MIN_REGULAR_SHARE = 0.6  # share of the nodes of a grid that have the most frequent degree
AMD_ENTRY_SECONDS = 1.4e-7  # of minimum degree per entry of the pattern of a solid mesh
SOLID_COST = 10.0  # entries over n^(4/3), and flops over n^2, of solid meshes by minimum degree

log = logging.getLogger("frontal")


class Candidates:
    """The orders tried, and the one with the cheapest factorizations by the model."""

    cost: Cost
    tree: EliminationTree

    def __init__(self, graph: Graph, model: CostModel) -> None:
        self.graph = graph
        self.model = model
        self.merged = _merged(graph)
        self.tried: dict[str, Cost] = {}
        self.method = ""
        self.perm = np.empty(0, np.int32)
        self.seconds = np.inf

    @cached_property
    def compressed(self) -> Graph:
        """The graph, with indistinguishable nodes merged if there are many."""
        return self.graph if self.merged is None else self.merged.graph

    @cached_property
    def components(self) -> Components:
        """The components of the graph."""
        nodes = np.arange(self.graph.n, dtype=np.int32)
        return Components(self.graph, self.merged or uncompressed(self.graph, nodes))

    def _grows_like(self, dimensions: tuple[float, float]) -> bool:
        low, high = dimensions
        return all(low < found < high for found in self._dimensions)

    @cached_property
    def _dimensions(self) -> list[float]:
        graph = self.compressed
        return [dimension(graph, graph.n * k // 4) for k in (1, 2, 3)]

    @cached_property
    def is_solid(self) -> bool:
        """Whether the graph grows like a solid mesh."""
        return self._grows_like(SOLID_DIMENSIONS)

    @cached_property
    def is_plane(self) -> bool:
        """Whether the graph grows like a plane mesh."""
        return self._grows_like(PLANE_DIMENSIONS)

    @cached_property
    def is_mesh(self) -> bool:
        """Whether no sampled node has the growth of a circuit or of a graph with hubs."""
        return not any(found > MAX_MESH_DIMENSION for found in self._dimensions)

    @cached_property
    def is_grid(self) -> bool:
        """Whether most nodes have the one or two most frequent numbers of neighbours.

        Two numbers count in a solid mesh, for quadratic elements. In the plane only one counts,
        since two are frequent in any triangulation.
        """
        return regularity(self.compressed, 2 if self.is_solid else 1) >= MIN_REGULAR_SHARE

    @cached_property
    def likely(self) -> Cost:
        """Expected cost of minimum degree for a solid mesh."""
        n = self.graph.n
        return Cost(int(SOLID_COST * n ** (4 / 3)), SOLID_COST * n**2.0, 0)

    @cached_property
    def hoped(self) -> Cost:
        """Expected cost of a dissection of a solid mesh."""
        return dissected(self.likely, self.graph.n)

    @property
    def saving(self) -> float:
        """Seconds of all factorizations that a dissection of a solid mesh saves."""
        return self.model.seconds(self.likely) - self.model.seconds(self.hoped)

    @property
    def amd_seconds(self) -> float:
        """Expected seconds of minimum degree for a solid mesh."""
        return AMD_ENTRY_SECONDS * self.compressed.nnz

    def add(
        self,
        method: str,
        perm: np.ndarray,
        label: str = "",
        tree: EliminationTree | None = None,
    ) -> None:
        """Count the cost of an order, from its `tree` if passed; keep the best order so far."""
        tree = tree or self._tree(perm)
        cost = self.tried[label or method] = tree.cost()
        seconds = self.model.seconds(cost)
        log.debug("ordering %s: %s, %.3g s expected", label or method, cost, seconds)
        if seconds < self.seconds:
            self.method, self.perm, self.seconds = method, perm, seconds
            self.cost, self.tree = cost, tree

    def add_amd(self) -> None:
        """Add minimum degree, with dense rows by `dense_limit` as in all methods."""
        graph, merged = self.graph, self.merged
        dense = dense_limit(graph) / max(graph.n, 1) ** 0.5
        if merged is None:
            perm, tree = amd_tree(graph.indptr, graph.indices, None, dense)
        else:
            perm, tree = amd_tree(merged.graph.indptr, merged.graph.indices, merged.weights, dense)
            perm = merged.expand(perm)
        known = None if tree is None else EliminationTree(perm, inverse(perm), *tree)
        self.add("amd", perm, tree=known)

    def add_layers(self, threads: int, timeout: float | None) -> bool:
        """Add a dissection by layers; return whether the graph has separators."""
        merged = self.merged
        args = (self.graph, None) if merged is None else (merged.graph, merged.weights)
        with dissection.Layers(*args, threads) as run:
            outcome = run.result(timeout)
        if outcome is not None:
            nodes, *tree = outcome
            perm = nodes if merged is None else merged.expand(nodes)
            self.add("layers", perm, tree=EliminationTree(perm, inverse(perm), *tree))
        return outcome is not None

    def _tree(self, perm: np.ndarray) -> EliminationTree:
        """Return the tree of an order, computed by groups if each group stays consecutive."""
        merged = self.merged
        if merged is not None:
            group = merged.group[perm]
            if np.count_nonzero(np.diff(group)) == merged.graph.n - 1:
                return EliminationTree.from_groups(merged.graph, merged.weights, merged.group, perm)
        return EliminationTree.from_graph(self.graph, perm)

    def add_constrained(self) -> None:
        """Add constrained minimum degree inside the best dissection so far."""
        self.add("nesdis", constrained_amd(self.graph, self.tree))


def _merged(graph: Graph) -> CompressedGraph | None:
    """Return the graph with indistinguishable nodes merged, or None if there are few."""
    if graph.nnz < MIN_COMPRESSED_DEGREE * graph.n:
        return None
    merged = compressed(graph, np.arange(graph.n, dtype=np.int32))
    return None if merged.graph is graph else merged
