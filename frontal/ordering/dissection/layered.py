"""Dissection by layers into large parts; one thread orders each part by minimum degree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..graph import Graph, dense_limit
from ..shape import has_no_triangles
from .layers import MIN_REDUCTION, Marked, cut, sort_dense
from .leaves import Leaf, empty_labels, order_leaf
from .merged_trees import graft
from .task_pool import TaskPool, work_off

MIN_LEAVES = 64  # of a large graph
MIN_CUT_NODES = 400  # nodes; larger parts may be cut
GRID_SECTION = 0.8  # weight over n^(2/3) of the largest layer of a grid from a corner

Ordered = tuple[np.ndarray, np.ndarray, np.ndarray]  # nodes; parent and count of each column


class _Common:
    """State that the parts of a graph share.

    `leaves` and nonempty `separators` are stored by position in the elimination order; `uncut` is
    whether the graph has no light separator.
    """

    def __init__(self, graph: Graph, weights: np.ndarray, stop: np.ndarray) -> None:
        n = graph.n
        self.graph, self.weights, self.stop = graph, weights, stop
        mark, place = np.empty((2, n), np.int32)
        self.marked = Marked(graph.indptr, graph.indices, weights, mark, place)
        self.leaves: dict[int, Leaf] = {}
        self.separators: dict[int, np.ndarray] = {}
        self.leaf = max(n // MIN_LEAVES, MIN_CUT_NODES)
        self.uncut, self.size = False, n
        self._labels: list[np.ndarray] = []  # reused arrays; append and pop are atomic

    def first(self) -> LayeredPart:
        """Return all nodes except the dense ones as a part; dense nodes are ordered last.

        In a grid without triangles the layers from any corner are equally light.
        """
        names, limit = np.empty(self.graph.n, np.int32), dense_limit(self.graph)
        size, corner = map(int, sort_dense(self.graph.indptr, limit, self.marked.mark, names))
        self.size = size
        self.separate(size, names[size:])
        if not has_no_triangles(self.graph):
            return LayeredPart(self, names[:size], 0, 0, 0)
        above = int(GRID_SECTION * size ** (2 / 3) / MIN_REDUCTION)
        return LayeredPart(self, names[:size], 0, corner, above)

    def order(self, first: int, names: np.ndarray) -> None:
        """Order the nodes `names` at position `first` by minimum degree."""
        label = self._labels.pop() if self._labels else empty_labels(self.graph.n)
        self.leaves[first] = order_leaf(self.graph, self.weights, names, label)
        self._labels.append(label)

    def separate(self, first: int, names: np.ndarray) -> None:
        """Store the nodes of a nonempty separator at position `first`."""
        if names.size:
            self.separators[first] = names

    def order_all(self) -> Ordered:
        """Return the order of all nodes and its tree."""
        leaves = [self.leaves[first] for first in sorted(self.leaves)]
        separators = [self.separators[first] for first in sorted(self.separators)]
        others = np.concatenate([np.empty(0, np.int32), *separators])
        return graft(self.graph, self.weights, leaves, others)


class LayeredPart(NamedTuple):
    """A part of a graph, at position `first` of the elimination order.

    Its search begins at ``names[start]``; the separator that cut it off weighs `above`.
    """

    common: _Common
    names: np.ndarray
    first: int
    start: int
    above: int

    def work(self) -> list[LayeredPart]:
        """Order the part, or store its separator and return the two sides as parts."""
        common, names, first = self.common, self.names, self.first
        if common.stop[0] or not names.size:
            return []
        if names.size > common.leaf:
            start = names[self.start]
            names, *sizes = cut(common.marked, first, names, start, self.above, common.stop)
            size0, size1, weight = map(int, sizes)
            if size0:
                common.separate(first + size0 + size1, names[size0 + size1 :])
                return [  # searches begin at the rim: at the first and the last layer
                    LayeredPart(common, names[:size0], first, -1, weight),
                    LayeredPart(common, names[size0 : size0 + size1], first + size0, 0, weight),
                ]
            common.uncut = common.uncut or names.size == common.size
        if not (common.uncut or common.stop[0]):
            common.order(first, names)
        return []


class Layers(TaskPool[Ordered | None]):
    """A run of dissection by layers; as a context manager, it is cancelled on exit.

    It costs about as much as minimum degree and is parallel. The order depends on the graph alone.
    The result also holds the elimination tree.

    Parameters
    ----------
    graph : Graph
    weights : (graph.n,) int array, optional
        Number of nodes that each node represents.
    threads : int
        Number of threads.

    Examples
    --------
    >>> from frontal.ordering.graph import adjacency
    >>> from frontal.problems import poisson2d
    >>> with Layers(adjacency(poisson2d(60))) as run:
    ...     order, parent, counts = run.result()
    >>> bool(counts.sum() < 90_000)
    True
    """

    compiled_as = "layers"

    def __init__(self, graph: Graph, weights: np.ndarray | None = None, threads: int = 1) -> None:
        if weights is None:
            weights = np.ones(graph.n, np.int32)
        self._graph, self._weights = graph, weights.astype(np.int32, copy=False)
        super().__init__(threads)

    def _order(self) -> Ordered | None:
        """Return order and tree, or None if the graph has no light separator, so is no mesh."""
        common = _Common(self._graph, self._weights, self._stop)
        work_off([common.first()], LayeredPart.work, self._threads)
        return None if common.uncut or self._stop[0] else common.order_all()

    def __enter__(self) -> Layers:
        return self
