"""Preprocessing of a graph for dissection: components, with indistinguishable nodes merged.

Dense nodes are ordered last. Nodes of hanging trees are ordered first, which causes no fill. They
are a third of the nodes of some saddle point problems, where they stall METIS's coarsening and
increase the weight of separators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..compile.jit import jit
from ..machine.lockfree_property import cached_property
from .amd import amd
from .graph import Graph, components, dense_limit, indistinguishable, induced

MAX_AMD_NODES = 200  # of a component ordered by AMD: METIS would hardly dissect it
MAX_DISTINCT_SHARE = 0.85  # share of distinct nodes above which none are merged (METIS's rule)
MIN_HANGING_SHARE = 0.1  # share of nodes with one neighbour for ordering hanging trees first


@dataclass(frozen=True, eq=False)
class CompressedGraph:
    """A component of a graph with its indistinguishable nodes merged (Ashcraft 1995).

    Attributes
    ----------
    graph : Graph
        Adjacency of the distinct nodes.
    weights : (graph.n,) int64 array
        Number of nodes that each distinct node represents.
    members : int32 array
        Nodes of the whole graph, grouped by distinct node, from node 0 on.
    """

    graph: Graph
    weights: np.ndarray
    members: np.ndarray

    @cached_property
    def group(self) -> np.ndarray:
        """The distinct node of each of the n nodes, if all are members: (n,) int32."""
        group = np.empty(self.members.size, np.int32)
        group[self.members] = np.repeat(np.arange(self.graph.n, dtype=np.int32), self.weights)
        return group

    def order(self) -> np.ndarray:
        """Return an order of the distinct nodes by AMD, for components too small for METIS."""
        return amd(self.graph.indptr, self.graph.indices)

    def expand(self, perm: np.ndarray) -> np.ndarray:
        """Return the order of the members from an order of the distinct nodes."""
        start = np.cumsum(self.weights) - self.weights
        size = self.weights[perm]
        offset = np.arange(self.members.size) - np.repeat(np.cumsum(size) - size, size)
        return self.members[np.repeat(start[perm], size) + offset]


def compressed(graph: Graph, nodes: np.ndarray) -> CompressedGraph:
    """Merge the indistinguishable nodes of a graph, if at least 15 percent can be saved."""
    first = indistinguishable(graph)
    distinct = np.flatnonzero(first == np.arange(graph.n))
    if distinct.size > MAX_DISTINCT_SHARE * graph.n:
        return uncompressed(graph, nodes)
    weights = np.bincount(first, minlength=graph.n)[distinct]
    members = nodes[np.argsort(first, kind="stable")]
    return CompressedGraph(induced(graph, distinct), weights, members)


def uncompressed(graph: Graph, nodes: np.ndarray) -> CompressedGraph:
    """Return the graph with each node as a distinct node."""
    return CompressedGraph(graph, np.ones(graph.n, np.int64), nodes)


@jit
def _peeled(indptr, indices):
    """Return the nodes of hanging trees, ordered so that each has at most one later neighbour."""
    n = indptr.size - 1
    degree = np.empty(n, np.int32)
    order = np.empty(n, np.int32)
    count = done = 0
    for v in range(n):
        degree[v] = indptr[v + 1] - indptr[v]
        if degree[v] == 1:
            order[count] = v
            count += 1
    while done < count:
        v = order[done]
        done += 1
        for p in range(indptr[v], indptr[v + 1]):
            u = indices[p]
            degree[u] -= 1
            if degree[u] == 1:
                order[count] = u
                count += 1
    return order[:count]


def hanging(graph: Graph) -> np.ndarray:
    """Return the nodes of hanging trees in their elimination order, or no node if they are few.

    Reference: W. Ost, C. Schulz, D. Strash, "Engineering data reduction for nested dissection",
    ALENEX 2021.

    Examples
    --------
    A triangle, and a path of three nodes that hangs on it:

    >>> import scipy.sparse as sp
    >>> from frontal.ordering.graph import adjacency
    >>> rows, columns = [0, 0, 1, 1, 3, 4], [1, 2, 2, 3, 5, 3]
    >>> hanging(adjacency(sp.coo_array((np.ones(6), (rows, columns)), shape=(6, 6))))
    array([4, 5, 3], dtype=int32)
    """
    if np.count_nonzero(graph.degree == 1) < MIN_HANGING_SHARE * graph.n:
        return np.empty(0, np.int32)
    return _peeled(graph.indptr, graph.indices)


class Components:
    """A graph's large components for METIS, small ones for AMD, dense nodes, and hanging trees.

    Parameters
    ----------
    graph : Graph
    merged : CompressedGraph, optional
        The same graph, with indistinguishable nodes merged if there are many, if it is known.
    """

    def __init__(self, graph: Graph, merged: CompressedGraph | None = None) -> None:
        self.graph, self._merged = graph, merged

    @cached_property
    def hanging(self) -> np.ndarray:
        """Nodes of hanging trees, in their elimination order."""
        return hanging(self.graph)

    @cached_property
    def dense(self) -> np.ndarray:
        """The dense nodes, by increasing degree."""
        nodes = np.flatnonzero(self.graph.degree > dense_limit(self.graph))
        nodes = np.setdiff1d(nodes, self.hanging, assume_unique=True)
        return nodes[np.argsort(self.graph.degree[nodes], kind="stable")].astype(np.int32)

    @cached_property
    def undivided(self) -> CompressedGraph | None:
        """METIS's input if the graph is connected; None if some nodes are ordered first or last."""
        if self.dense.size or self.hanging.size:
            return None
        merged, graph = self._merged, self.graph
        if (merged is None or merged.graph is graph) and graph.n <= MAX_AMD_NODES:
            return None
        return merged or compressed(graph, np.arange(graph.n, dtype=np.int32))

    @cached_property
    def _split(self) -> tuple[np.ndarray, list[CompressedGraph]]:
        graph, nodes = self.graph, np.arange(self.graph.n, dtype=np.int32)
        labelling = None if self.undivided is None else components(self.undivided.graph)
        if self.undivided is not None and labelling is not None and labelling[0] == 1:
            return nodes[:0], [self.undivided]
        removed = np.concatenate([self.hanging, self.dense])
        if removed.size:
            nodes = np.delete(nodes, removed)
            graph = induced(self.graph, nodes)
        if labelling is None or labelling[1].size != graph.n:
            labelling = components(graph)
        count, label = labelling
        sizes = np.bincount(label, minlength=count)
        large = np.flatnonzero(sizes > MAX_AMD_NODES)
        if count == 1 and large.size == 1:
            return nodes[:0], [compressed(graph, nodes)]
        by_component = np.argsort(label, kind="stable")
        end = np.cumsum(sizes)
        inside = [by_component[end[c] - sizes[c] : end[c]] for c in large]
        return (
            nodes[sizes[label] <= MAX_AMD_NODES],
            [compressed(induced(graph, part), nodes[part]) for part in inside],
        )

    @property
    def compressed(self) -> list[CompressedGraph]:
        """The large components, which METIS orders."""
        return self._split[1]

    def assemble(self, perms: list[np.ndarray]) -> np.ndarray:
        """Return the order of the whole graph from orders of the large components."""
        small, large = self._split
        rest = induced(self.graph, small)
        segments = [self.hanging, small[amd(rest.indptr, rest.indices)]]
        segments += [part.expand(perm) for part, perm in zip(large, perms, strict=True)]
        return np.concatenate([*segments, self.dense]).astype(np.int32)
