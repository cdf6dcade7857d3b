"""Nested dissection on threads; the order does not depend on their number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...machine.threads import BackgroundTask
from ..components import Components, CompressedGraph
from .bisect import with_levels
from .graph import Levels, Weighted, scrambled
from .leaves import order_inside
from .levels import team_levels
from .split import dissect_to_leaves, leaf_size, split
from .task_pool import TaskPool, work_off
from .team import MIN_RANGE_EDGES, Team

MIN_EDGES_PER_THREAD = 20_000  # least edges of a component per thread that coarsens it
MAX_SERIAL_NODES = 5_000  # nodes of a part that one thread dissects down to leaves


class Component:
    """A connected graph and the order of its nodes, which its parts fill in.

    `perm` is the node eliminated k-th, `leaf` the largest number of nodes of a leaf, and
    ``stop[0]`` is nonzero once the run is cancelled.
    """

    def __init__(self, compressed: CompressedGraph, stop: np.ndarray) -> None:
        self.compressed, self.stop = compressed, stop
        self.perm = np.empty(compressed.graph.n, np.int32)
        self.leaf = leaf_size(compressed.graph.n)
        self._labels: list[np.ndarray] = []  # reused arrays; append and pop are atomic

    def undivided(self, seed: int, threads: int) -> DissectionPart:
        """Return all nodes as one part; compute its coarser graphs with up to `threads` threads."""
        adjacency = self.compressed.graph
        weights = self.compressed.weights.astype(np.int32)
        edges = np.ones(adjacency.nnz, np.int32)
        graph = Weighted(adjacency.indptr, adjacency.indices, edges, weights)
        team = min(threads, adjacency.nnz // MIN_EDGES_PER_THREAD)
        levels = (
            team_levels(graph, seed, team, self.stop)
            if team > 1
            else with_levels(graph, 0, seed, self.stop)
        )
        return DissectionPart(self, levels, np.arange(adjacency.n, dtype=np.int32), 0, seed)

    def order_inside(self, names: np.ndarray, class_of: np.ndarray) -> np.ndarray:
        """Return the nodes `names` in elimination order, class by class."""
        graph = self.compressed.graph
        label = self._labels.pop() if self._labels else np.full(graph.n, -1, np.int32)
        order = order_inside(graph, names, class_of, label)
        self._labels.append(label)
        return order


class DissectionPart(NamedTuple):
    """A part of a component: its levels, and the names of its nodes in the component.

    The nodes occupy consecutive positions of the elimination order, from `first` on. The `seed`
    depends only on the position in the tree of parts, so the number of threads changes no result.
    """

    component: Component
    levels: Levels
    names: np.ndarray
    first: int
    seed: int

    def work(self, threads: int) -> list[DissectionPart]:
        """Order the part, or order its separator and return the two sides as parts.

        A large part uses a share of the `threads` proportional to its nodes.
        """
        component, levels, names, first, seed = self
        n = names.size
        if component.stop[0]:
            return []
        if n > MAX_SERIAL_NODES:
            ranges = levels.graph.near.size // MIN_RANGE_EDGES
            share = min(threads * n // component.perm.size, ranges)
            sides = (
                Team(share, component.stop).split(levels, names, seed)
                if share > 1
                else split(levels, names, 0, seed, component.stop)
            )
            levels0, names0, levels1, names1, separator = sides
            middle, last = first + names0.size, first + n - separator.size
            if max(names0.size, names1.size) < n:
                component.perm[last : first + n] = separator
                return [
                    DissectionPart(component, levels0, names0, first, int(scrambled(seed, 0))),
                    DissectionPart(component, levels1, names1, middle, int(scrambled(seed, 1))),
                ]
        class_of = dissect_to_leaves(levels, names, component.leaf, seed, component.stop)
        if not component.stop[0]:
            component.perm[first : first + n] = component.order_inside(names, class_of)
        return []


class NestedDissection(TaskPool[np.ndarray]):
    """A run of nested dissection on a graph; as a context manager, it is cancelled on exit.

    Multilevel bisection computes the separators; constrained minimum degree orders the leaves of
    a few hundred nodes and the separators between them. Hashes break all ties: the order depends
    on graph and seed, not on threads.

    Parameters
    ----------
    components : Components
        The graph.
    seed : int
        Different seeds give different orders of about the same quality.
    threads : int
        Number of threads.

    References
    ----------
    A. George, SIAM J. Numer. Anal. 10 (1973); G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20 (1998).

    Examples
    --------
    >>> from frontal.ordering.etree import EliminationTree
    >>> from frontal.ordering.graph import adjacency
    >>> from frontal.problems import poisson2d
    >>> graph = adjacency(poisson2d(40))
    >>> with NestedDissection(Components(graph)) as run:
    ...     EliminationTree.from_graph(graph, run.result()).cost().nnz < 32_000
    True
    """

    def __init__(self, components: Components, seed: int = 1, threads: int = 1) -> None:
        self._components, self._seed = components, seed
        super().__init__(threads)

    def _order(self) -> np.ndarray:
        threads = self._threads
        subgraphs = self._begin()
        work_off(subgraphs, lambda part: part.work(threads), threads)
        return self._components.assemble([part.component.perm for part in subgraphs])

    def _begin(self) -> list[DissectionPart]:
        """Return all components as parts; coarsen the whole graph while components are searched."""
        full_graph, args = self._components.undivided, (self._seed, self._threads)
        if full_graph is not None and self._threads > 1:
            with BackgroundTask(lambda: self._components.compressed) as known:
                guessed = Component(full_graph, self._stop).undivided(*args)
            if known.result() == [full_graph]:
                return [guessed]
        return [Component(one, self._stop).undivided(*args) for one in self._components.compressed]

    def __enter__(self) -> NestedDissection:
        return self
