"""The order inside a part: leaves and separators by constrained minimum degree.

Neighbours outside the part are eliminated later. They count in the degrees, so that nodes next to
them tend to come last, and are never eliminated here: the elimination tree of the part and its
column counts equal those in the whole graph.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating, jit
from ..graph import Graph
from ..halo_amd import amd_inside, halo_amd_tree


class Leaf(NamedTuple):
    """A part of a graph in elimination order, with its trees; roots have the parent -1.

    Attributes
    ----------
    names : (m,) int32 array
        Nodes of the part.
    parent, counts : int32 arrays
        Elimination tree and counts of the columns that the nodes represent, numbered from 0.
    node, column : (r + 1,) int64 arrays
        Start of the nodes and of the columns of each tree.
    root, beside : int32 arrays
        Pairs of a tree, from 0 to r - 1, and an adjacent node outside the part.
    """

    names: np.ndarray
    parent: np.ndarray
    counts: np.ndarray
    node: np.ndarray
    column: np.ndarray
    root: np.ndarray
    beside: np.ndarray


@jit
def _with_halo(indptr, indices, names, label):
    """Return the graph of the nodes `names` and then their outside neighbours, and the latter.

    `label` is -1 for all nodes, on entry and on return.
    """
    n = names.size
    entries = 0
    for k in range(n):
        label[names[k]] = k
        entries += indptr[names[k] + 1] - indptr[names[k]]
    halo = np.empty(entries, np.int32)
    outside = edges = 0
    for k in range(n):
        for p in range(indptr[names[k]], indptr[names[k] + 1]):
            u = indices[p]
            if label[u] < 0:
                label[u] = n + outside
                halo[outside] = u
                outside += 1
            edges += label[u] >= n
    degree = np.zeros(outside, np.int64)
    begin = np.empty(n + outside + 1, np.int64)
    near = np.empty(entries + edges, np.int32)
    begin[0] = q = 0
    for k in range(n):
        for p in range(indptr[names[k]], indptr[names[k] + 1]):
            near[q] = label[indices[p]]
            if near[q] >= n:
                degree[near[q] - n] += 1
            q += 1
        begin[k + 1] = q
    for k in range(outside):
        begin[n + k + 1] = begin[n + k] + degree[k]
        degree[k] = begin[n + k]
    for k in range(n):
        for p in range(begin[k], begin[k + 1]):
            u = near[p] - n
            if u >= 0:
                near[degree[u]] = k
                degree[u] += 1
    for k in range(n):
        label[names[k]] = -1
    for k in range(outside):
        label[halo[k]] = -1
    return begin, near, halo[:outside]


def order_inside(
    graph: Graph, names: np.ndarray, class_of: np.ndarray, label: np.ndarray
) -> np.ndarray:
    """Return the nodes `names` of a part in elimination order, class by class.

    `class_of` is the class of each of these nodes. `label` is a workspace: -1 for each node of the
    graph, on entry and on return.
    """
    indptr, indices, _ = _with_halo(graph.indptr, graph.indices, names, label)
    return names[amd_inside(indptr, indices, class_of)]


@allocating
def _trees(perm, parent, weights, node, column):
    """Return each node's tree and the number of trees; set the starts of their nodes, columns."""
    tree_of = np.empty(perm.size, np.int32)
    trees = columns = 0
    for k in range(perm.size):
        tree_of[perm[k]] = trees
        columns += weights[perm[k]]
        if parent[columns - 1] < 0:
            trees += 1
            node[trees], column[trees] = k + 1, columns
    return tree_of, trees


@allocating
def _next_to(begin, near, halo, tree_of, trees):
    """Return the pairs of a tree and an adjacent node outside the part."""
    first = begin[tree_of.size]
    root, beside = np.empty((2, begin[-1] - first), np.int32)
    seen = np.full(trees, -1, np.int32)
    pairs = 0
    for k in range(halo.size):
        for p in range(begin[tree_of.size + k], begin[tree_of.size + k + 1]):
            tree = tree_of[near[p]]
            if seen[tree] != k:
                seen[tree] = k
                root[pairs], beside[pairs] = tree, halo[k]
                pairs += 1
    return root[:pairs], beside[:pairs]


@jit
def _leaf(indptr, indices, weights, names, label):
    """Return the attributes of a `Leaf`; `label` as in `order_inside`."""
    begin, near, halo = _with_halo(indptr, indices, names, label)
    local = np.empty(begin.size - 1, np.int32)
    for k in range(local.size):
        local[k] = weights[names[k] if k < names.size else halo[k - names.size]]
    perm, parent, counts = halo_amd_tree(begin, near, local, names.size)
    node, column = np.zeros((2, names.size + 1), np.int64)
    tree_of, trees = _trees(perm, parent, local, node, column)
    root, beside = _next_to(begin, near, halo, tree_of, trees)
    return names[perm], parent, counts, node[: trees + 1], column[: trees + 1], root, beside


@jit
def empty_labels(n):
    """Return n labels of -1."""
    return np.full(n, np.int32(-1))


def order_leaf(graph: Graph, weights: np.ndarray, names: np.ndarray, label: np.ndarray) -> Leaf:
    """Order a part of a graph and return it with its trees; `label` as in `order_inside`.

    `weights` is the number of columns that each node of the graph represents.
    """
    return Leaf(*_leaf(graph.indptr, graph.indices, weights, names, label))
