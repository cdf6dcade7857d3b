"""The elimination tree of a dissection, merged from the trees of its leaves.

The order of a leaf comes with the trees and column counts of the nodes inside. Each tree is reduced
to its root, which becomes adjacent to all outside neighbours of the tree. The roots and the
separators form a small graph, whose elimination tree is computed as for any other graph.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import jit
from ...machine.threads import parallel_for
from ..etree import postordered_tree
from ..graph import Graph, copy_inside, count_inside
from .leaves import Leaf


@jit
def _count_edges(label, root, beside, begin):
    """Count the edges of the roots at both ends in ``begin[k + 1]``, and form the prefix sums.

    `label` is the number of each node outside the leaves.
    """
    for e in range(root.size):
        begin[root[e] + 1] += 1
        begin[label[beside[e]] + 1] += 1
    for k in range(begin.size - 1):
        begin[k + 1] += begin[k]


@jit
def _scatter_edges(label, root, beside, begin, near):
    """Write the edges of the roots at the end of each node's neighbours."""
    free = begin[1:].copy()
    for e in range(root.size):
        u, v = root[e], label[beside[e]]
        free[u] -= 1
        free[v] -= 1
        near[free[u]], near[free[v]] = v, u


def _root_graph(
    graph: Graph, others: np.ndarray, root: np.ndarray, beside: np.ndarray, roots: int
) -> Graph:
    """Return the graph of roots, then `others`; ``root[e]`` is adjacent to ``beside[e]``."""
    label = np.full(graph.n, -1, np.int32)
    label[others] = np.arange(roots, roots + others.size)
    begin = np.zeros(roots + others.size + 1, np.int64)
    ends = np.append(0, np.cumsum(graph.indptr[others + 1] - graph.indptr[others]))
    parallel_for(
        lambda *bounds: count_inside(
            graph.indptr, graph.indices, others, label, begin[roots:], *bounds
        ),
        ends,
    )
    _count_edges(label, root, beside, begin)
    near = np.empty(int(begin[-1]), np.int32)
    parallel_for(
        lambda *bounds: copy_inside(
            graph.indptr, graph.indices, others, label, begin[roots:], near, *bounds
        ),
        ends,
    )
    _scatter_edges(label, root, beside, begin, near)
    return Graph(begin, near, roots + others.size)


@jit
def _plant(leaf, at_node, at_column, above, order, parent, counts):
    """Copy the trees of a leaf to their positions, with the columns `above` as parents of roots."""
    for r in range(at_node.size):
        first, shift = leaf.column[r], at_column[r] - leaf.column[r]
        for k in range(first, leaf.column[r + 1]):
            parent[k + shift] = leaf.parent[k] + shift if leaf.parent[k] >= 0 else above[r]
            counts[k + shift] = leaf.counts[k]
        for k in range(leaf.node[r], leaf.node[r + 1]):
            order[at_node[r] + k - leaf.node[r]] = leaf.names[k]


@jit
def _plant_others(others, weights, at_node, at_column, above, rows, order, parent, counts):
    """Place the nodes outside the leaves as `_plant`; `rows` are the counts of first columns."""
    for k in range(others.size):
        order[at_node[k]] = others[k]
        for i in range(weights[others[k]]):
            column = at_column[k] + i
            parent[column], counts[column] = column + 1, rows[k] - i
        parent[at_column[k] + weights[others[k]] - 1] = above[k]


def graft(
    graph: Graph, weights: np.ndarray, leaves: list[Leaf], others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the order of a graph and its elimination tree.

    Parameters
    ----------
    graph : Graph
    weights : (graph.n,) int32 array
        Number of columns that each node represents.
    leaves : list of Leaf
        Parts of the graph, no two adjacent.
    others : int32 array
        All other nodes, in their elimination order, which follows the leaves.

    Returns
    -------
    order : (graph.n,) int32 array
        The node eliminated k-th, in a postorder of the tree.
    parent, counts : int32 arrays
        The tree of the columns, as in `EliminationTree`.
    """
    first = np.cumsum([0] + [leaf.node.size - 1 for leaf in leaves])
    perm, rank, above, rows = _root_tree(graph, weights, leaves, first, others)
    ones, widths = np.ones(others.size, np.int64), weights[others]
    at_node = _places([np.diff(leaf.node) for leaf in leaves] + [ones], perm, rank)
    at_column = _places([np.diff(leaf.column) for leaf in leaves] + [widths], perm, rank)
    over = above[rank]
    over = np.where(over < 0, -1, at_column[perm[over]])
    order = np.empty(graph.n, np.int32)
    parent, counts = np.empty((2, weights.sum()), np.int32)

    def work(begin: int, end: int) -> None:
        for leaf, start in zip(leaves[begin:end], first[begin:end], strict=True):
            trees = slice(start, start + leaf.node.size - 1)
            _plant(leaf, at_node[trees], at_column[trees], over[trees], order, parent, counts)

    parallel_for(work, np.cumsum([0] + [leaf.parent.size for leaf in leaves]))
    tail = slice(first[-1], None)
    at = at_node[tail], at_column[tail], over[tail], rows[rank[tail]]
    _plant_others(others, weights, *at, order, parent, counts)
    return order, parent, counts


def _root_tree(
    graph: Graph, weights: np.ndarray, leaves: list[Leaf], first: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the tree of all roots, then the other nodes, as `postordered_tree`."""
    roots, none = int(first[-1]), others[:0]
    leaf_offsets = zip(leaves, first[:-1], strict=True)
    root = np.concatenate([none, *(leaf.root + np.int32(at) for leaf, at in leaf_offsets)])
    beside = np.concatenate([none, *(leaf.beside for leaf in leaves)])
    size = np.concatenate([np.ones(roots, np.int32), weights[others]])
    nodes = np.arange(size.size, dtype=np.int32)
    return postordered_tree(_root_graph(graph, others, root, beside, roots), nodes, size)


def _places(sizes: list[np.ndarray], perm: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the start of each item of these sizes, laid out in the order `perm`."""
    in_order = np.concatenate(sizes)[perm]
    return (np.cumsum(in_order) - in_order)[rank]
