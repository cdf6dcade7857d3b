"""The elimination tree of a dissection, merged from the trees of its leaves.

The order of a leaf comes with the trees and column counts of the nodes inside. Each tree is reduced
to its root, which becomes adjacent to all outside neighbours of the tree. The roots and the
separators form a small graph, whose elimination tree is computed as for any other graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import jit
from ...machine.threads import parallel_for
from ..etree import postordered_tree
from ..graph import Graph, Inside
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
    inside = Inside(graph, others, roots)
    begin = np.zeros(roots + others.size + 1, np.int64)
    inside.count(begin[roots:])
    _count_edges(inside.label, root, beside, begin)
    near = np.empty(int(begin[-1]), np.int32)
    inside.copy(begin[roots:], near)
    _scatter_edges(inside.label, root, beside, begin, near)
    return Graph(begin, near, roots + others.size)


class _Places(NamedTuple):
    """Positions of trees or nodes: first node, first column, and parent of the last column."""

    node: np.ndarray
    column: np.ndarray
    above: np.ndarray


@jit
def _plant(leaf, at, order, parent, counts):
    """Copy the trees of a leaf to their places."""
    for r in range(at.node.size):
        first, shift = leaf.column[r], at.column[r] - leaf.column[r]
        for k in range(first, leaf.column[r + 1]):
            parent[k + shift] = leaf.parent[k] + shift if leaf.parent[k] >= 0 else at.above[r]
            counts[k + shift] = leaf.counts[k]
        for k in range(leaf.node[r], leaf.node[r + 1]):
            order[at.node[r] + k - leaf.node[r]] = leaf.names[k]


@jit
def _plant_others(others, widths, at, rows, order, parent, counts):
    """Place the nodes outside the leaves as `_plant`; `rows` are the counts of first columns."""
    for k in range(others.size):
        order[at.node[k]] = others[k]
        for i in range(widths[k]):
            column = at.column[k] + i
            parent[column], counts[column] = column + 1, rows[k] - i
        parent[at.column[k] + widths[k] - 1] = at.above[k]


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

    def places(begin: int, end: int | None) -> _Places:
        return _Places(at_node[begin:end], at_column[begin:end], over[begin:end])

    def work(begin: int, end: int) -> None:
        for leaf, start in zip(leaves[begin:end], first[begin:end], strict=True):
            _plant(leaf, places(start, start + leaf.node.size - 1), order, parent, counts)

    parallel_for(work, np.cumsum([0] + [leaf.parent.size for leaf in leaves]))
    others_at, rows = places(first[-1], None), rows[rank[first[-1] :]]
    _plant_others(others, widths, others_at, rows, order, parent, counts)
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
