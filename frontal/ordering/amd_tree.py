"""The order and the tree of the factor, from the node records of minimum degree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import inner, jit
from .quotient import NONE


@inner
def _gather(node, parent, weight, degree, size):
    """Set `parent`, `weight`, `degree` and `size` of each node from the records.

    `parent` is the element that eliminated a node or, for an element, its parent in the same class.
    `size` is the number of nodes of an element, 1 for a dense node, and 0 for a node that was
    eliminated with another one.
    """
    for i in range(node.size):
        parent[i], weight[i], degree[i] = node[i].parent, node[i].weight, node[i].degree
        size[i] = weight[i] > 0 or parent[i] == NONE
        if size[i] and parent[i] != NONE and node[parent[i]].group != node[i].group:
            parent[i] = NONE
    for i in range(node.size):
        e = i
        while size[e] == 0:
            e = parent[e]
        size[e] += e != i
        while i != e:  # path compression
            above = parent[i]
            parent[i] = e
            i = above


class _Tree(NamedTuple):
    """Elements with their parents, children as linked lists, sizes, and starts in the order."""

    parent: np.ndarray
    child: np.ndarray
    sibling: np.ndarray
    size: np.ndarray
    start: np.ndarray


@inner
def _walk(root, tree, done, pivots, count):
    """Append the elements of a tree to `pivots` in postorder; set `start` of their nodes."""
    e = root
    while True:
        while tree.child[e] != NONE:
            below = tree.child[e]
            tree.child[e] = tree.sibling[below]
            e = below
        tree.start[e] = done
        done += tree.size[e]
        pivots[count] = e
        count += 1
        if e == root:
            return done, count
        e = tree.parent[e]


@jit
def assembly_order(node, members, first_member):
    """Return a postorder of the assembly tree, class by class, dense nodes last in their class.

    The pivot of an element follows the children of the element, then come the nodes eliminated with
    it: they are adjacent to all neighbours of the pivot, and their columns have one structure. If
    there are dense nodes, which were left out of the graph, the pivot comes last instead, because
    the nodes eliminated with it may be adjacent to fewer dense nodes.

    Returns
    -------
    order : (n,) int32 array
        The node that is eliminated k-th.
    pivots : int32 array
        Elements and dense nodes, in postorder.
    parent, weight, degree : (n,) int32 arrays
        For elements: the parent in the same class, columns, and update rows of their front.
    """
    n = node.size
    parent, weight, degree = np.empty((3, n), np.int32)
    size, start, sibling = np.empty((3, n), np.int32)
    _gather(node, parent, weight, degree, size)
    child = np.full(n, NONE, np.int32)
    for e in range(n - 1, -1, -1):
        above = parent[e]
        if above != NONE and size[e] > 0:
            sibling[e] = child[above]
            child[above] = e
    tree, pivots = _Tree(parent, child, sibling, size, start), np.empty(n, np.int32)
    done = count = 0
    for c in range(first_member.size - 1):
        for dense in range(2):
            for root in members[first_member[c] : first_member[c + 1]]:
                if parent[root] == NONE and (weight[root] == 0) == dense:
                    done, count = _walk(root, tree, done, pivots, count)
    order = np.empty(n, np.int32)
    behind = np.any(weight[pivots[:count]] == 0)
    for i in range(n):
        if size[i] > 0:
            order[start[i] + (size[i] - 1 if behind else 0)] = i
            start[i] += not behind
    for i in range(n):
        if size[i] == 0:
            order[start[parent[i]]] = i
            start[parent[i]] += 1
    return order, pivots[:count], parent, weight, degree


@jit
def column_tree(pivots, above, weight, degree):
    """Return parent and count of each column that the elements of `assembly_order` eliminate."""
    first = np.empty(above.size, np.int32)
    total = 0
    for e in pivots:
        first[e] = total
        total += weight[e]
    parent, counts = np.empty(total, np.int32), np.empty(total, np.int32)
    for e in pivots:
        for j in range(weight[e]):
            parent[first[e] + j] = first[e] + j + 1
            counts[first[e] + j] = weight[e] + degree[e] - j
        if weight[e] > 0:
            parent[first[e] + weight[e] - 1] = first[above[e]] if above[e] != NONE else NONE
    return parent, counts
