"""The shape of a graph: its growth around a node, and whether it is a grid."""

from __future__ import annotations

import math

import numpy as np

from ..compile.jit import brief, jit
from .graph import Graph

BALL_NODES = 250  # of a ball that shows a mesh's dimension, over neighbours of a node plus 2
MAX_COUNTED_DEGREE = 256  # degrees from MAX_COUNTED_DEGREE - 1 on are counted together
TRIANGLE_SAMPLES = 100  # nodes that are checked for triangles
MAX_GRID_DEGREE = 16  # most neighbours of a node of a grid without triangles


@jit
def _ball_sizes(indptr, indices, node, max_nodes, sizes):
    """Count nodes within r = 0, 1, 2, ... edges of a node up to `max_nodes`; return the last r."""
    n = indptr.size - 1
    seen, queue = np.zeros(n, np.bool_), np.empty(n, np.int32)
    seen[node], queue[0] = True, node
    begin, end, radius = 0, 1, 0
    sizes[0] = 1
    while end < max_nodes and begin < end:
        tail = end
        for q in range(begin, end):
            for p in range(indptr[queue[q]], indptr[queue[q] + 1]):
                u = indices[p]
                if not seen[u]:
                    seen[u] = True
                    queue[tail] = u
                    tail += 1
        begin, end = end, tail
        radius += 1
        sizes[radius] = end
    return radius


def dimension(graph: Graph, node: int) -> float:
    """Return the power of its radius by which a ball around a node grows: 2 in a plane mesh, 3 in a
    solid.

    The ball has a few thousand nodes. The result is inf if a ball of radius 3 has as many, and nan
    if it has a quarter of all nodes.

    Examples
    --------
    >>> from frontal.ordering.graph import adjacency
    >>> from frontal.problems import poisson2d, poisson3d
    >>> [round(dimension(adjacency(A), 0)) for A in (poisson2d(90), poisson3d(30))]
    [2, 3]
    """
    ball = BALL_NODES * (2 + graph.nnz // max(graph.n, 1))
    max_nodes = min(ball, graph.n // 4)
    sizes = np.zeros(max(max_nodes, 1) + 1, np.int64)
    radius = int(_ball_sizes(graph.indptr, graph.indices, node, max_nodes, sizes))
    if radius < 4:
        return math.inf if max_nodes == ball else math.nan
    half = radius // 2
    return math.log(sizes[radius] / sizes[half]) / math.log(radius / half)


@brief
def _frequencies(indptr):
    """Return the numbers of nodes with 0, 1, 2, ... neighbours."""
    count = np.zeros(MAX_COUNTED_DEGREE, np.int64)
    for i in range(indptr.size - 1):
        count[min(indptr[i + 1] - indptr[i], MAX_COUNTED_DEGREE - 1)] += 1
    return count


def regularity(graph: Graph, kinds: int) -> float:
    """Return the share of nodes that have one of the `kinds` most frequent degrees.

    Examples
    --------
    >>> from frontal.ordering.graph import adjacency
    >>> from frontal.problems import poisson2d
    >>> regularity(adjacency(poisson2d(10)), 1), regularity(adjacency(poisson2d(10)), 2)
    (0.64, 0.96)
    """
    count = np.sort(_frequencies(graph.indptr)[:-1])
    return int(count[-kinds:].sum()) / max(graph.n, 1)


@jit
def _has_no_triangles(indptr, indices):
    n = indptr.size - 1
    for k in range(min(TRIANGLE_SAMPLES, n)):
        v = k * n // min(TRIANGLE_SAMPLES, n)
        near = indices[indptr[v] : indptr[v + 1]]
        if near.size > MAX_GRID_DEGREE:
            return False
        for u in near:
            for p in range(indptr[u], indptr[u + 1]):
                for w in near:
                    if indices[p] == w:
                        return False
    return True


def has_no_triangles(graph: Graph) -> bool:
    """Return whether the sampled nodes have few neighbours, none adjacent to another.

    This holds for grids whose nodes have neighbours along the axes only.

    Examples
    --------
    >>> from frontal.ordering.graph import adjacency
    >>> from frontal.problems import elasticity3d, poisson3d
    >>> [has_no_triangles(adjacency(A)) for A in (poisson3d(5), elasticity3d(3))]
    [True, False]
    """
    return bool(_has_no_triangles(graph.indptr, graph.indices))
