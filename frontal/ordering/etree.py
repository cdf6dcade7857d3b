"""Elimination tree, postorder and column counts of a Cholesky factor, from the pattern alone.

The pattern is the adjacency of a symmetric matrix without its diagonal. In a permutation,
``perm[k]`` is the node eliminated k-th; ``iperm`` is its inverse. Results are in elimination order.
The work is proportional to the number of entries, times a factor below 5 for any matrix that fits
in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compile.jit import allocating, brief, jit
from ..machine.threads import is_short, parallel_for
from .groups import members_of
from .parallel_tree import (
    column_counts,
    elimination_tree,
    short_column_counts,
    short_elimination_tree,
)

if TYPE_CHECKING:
    from .graph import Graph


@dataclass(frozen=True)
class Cost:
    """Cost of a Cholesky factorization in an ordering.

    Attributes
    ----------
    nnz : int
        Entries of the factor, diagonal included.
    flops : float
        Sum of squared column counts: multiplications and additions of Cholesky.
    height : int
        Columns on the longest path of the tree.
    """

    nnz: int
    flops: float
    height: int


@allocating
def depth_first(parent, pointer, children):
    """Return a postorder of a depth-first traversal with the children in the listed order."""
    cursor = pointer[:-1].copy()
    post, stack = np.empty(parent.size, np.int32), np.empty(parent.size, np.int32)
    done = 0
    for root in range(parent.size):
        if parent[root] >= 0:
            continue
        stack[0] = root
        top = 1
        while top > 0:
            j = stack[top - 1]
            if cursor[j] == pointer[j + 1]:
                top -= 1
                post[done] = j
                done += 1
            else:
                stack[top] = children[cursor[j]]
                cursor[j] += 1
                top += 1
    return post


@allocating
def postorder(parent):
    """Return a postorder of a depth-first traversal with ascending children."""
    pointer, children = members_of(parent)
    return depth_first(parent, pointer, children)


@brief
def _inverse(perm):
    iperm = np.empty_like(perm)
    for k in range(perm.size):
        iperm[perm[k]] = k
    return iperm


@jit
def _invert(perm, iperm, first, last):
    for k in range(first, last):
        iperm[perm[k]] = k


def inverse(perm: np.ndarray) -> np.ndarray:
    """Return the inverse permutation."""
    if is_short(perm.size):
        return _inverse(perm)
    iperm = np.empty_like(perm)
    parallel_for(lambda *bounds: _invert(perm, iperm, *bounds), perm.size)
    return iperm


@jit
def _degrees(indptr, perm, degree, first, last):
    """Set ``degree[k + 1]`` to the number of neighbours of the node eliminated k-th."""
    for k in range(first, last):
        degree[k + 1] = indptr[perm[k] + 1] - indptr[perm[k]]


@jit
def _permute(indptr, indices, perm, iperm, pointer, rows, first, last):
    for k in range(first, last):
        q = pointer[k]
        for p in range(indptr[perm[k]], indptr[perm[k] + 1]):
            rows[q] = iperm[indices[p]]
            q += 1


def _permuted(graph: Graph, perm: np.ndarray, iperm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return column starts and unsorted rows of the pattern in elimination order."""
    pointer, rows = np.zeros(graph.n + 1, np.int64), np.empty(graph.nnz, np.int32)
    parallel_for(lambda *bounds: _degrees(graph.indptr, perm, pointer, *bounds), graph.indptr)
    np.cumsum(pointer, out=pointer)
    parallel_for(
        lambda *bounds: _permute(graph.indptr, graph.indices, perm, iperm, pointer, rows, *bounds),
        pointer,
    )
    return pointer, rows


@jit
def _refined(perm, parent):
    """Return permutation and tree in postorder, the postorder itself, and its inverse."""
    post = postorder(parent)
    rank = _inverse(post)
    new_perm = np.empty_like(perm)
    new_parent = np.empty_like(parent)
    for k in range(post.size):
        new_perm[k] = perm[post[k]]
        above = parent[post[k]]
        new_parent[k] = rank[above] if above >= 0 else -1
    return new_perm, new_parent, post, rank


@jit
def _short_tree(indptr, indices, perm, weights):
    """Run `postordered_tree` in one call, on one thread."""
    n = perm.size
    iperm, pointer, rows = _inverse(perm), np.zeros(n + 1, np.int64), np.empty_like(indices)
    _degrees(indptr, perm, pointer, 0, n)
    for k in range(n):
        pointer[k + 1] += pointer[k]
    _permute(indptr, indices, perm, iperm, pointer, rows, 0, n)
    parent = short_elimination_tree(pointer, rows)
    perm, parent, post, rank = _refined(perm, parent)
    count = short_column_counts(pointer, rows, post, rank, parent, weights[perm])
    return perm, _inverse(perm), parent, count


def postordered_tree(
    graph: Graph, perm: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Postorder the elimination tree of `perm`; return (perm, iperm, parent, count)."""
    if is_short(graph.indptr):
        return _short_tree(graph.indptr, graph.indices, perm, weights)
    iperm = inverse(perm)
    permuted = _permuted(graph, perm, iperm)
    perm, parent, post, rank = _refined(perm, elimination_tree(*permuted))
    count = column_counts(*permuted, post, rank, parent, weights[perm])
    return perm, inverse(perm), parent, count


@jit
def _expanded(perm, iperm, parent, count, weights, begin, column_perm):
    """Expand the tree of groups to columns; group g has the columns from column_perm[begin[g]]."""
    columns = column_perm.size
    new_perm, new_parent = np.empty(columns, np.int32), np.empty(columns, np.int32)
    new_count = np.empty(columns, np.int32)
    place = np.empty(perm.size, np.int64)  # first column of each group
    k = 0
    for j in range(perm.size):
        place[j] = k
        k += weights[perm[j]]
    for j in range(perm.size):
        group = perm[j]
        for i in range(weights[group]):
            k = place[j] + i
            new_perm[k] = column_perm[begin[group] + i]
            new_parent[k] = k + 1
            new_count[k] = count[j] - i
        new_parent[k] = place[parent[j]] if parent[j] >= 0 else -1
    return new_perm, _inverse(new_perm), new_parent, new_count


@jit
def depths(parent):
    """Return the number of nodes on each path to the root; parents follow their children."""
    depth = np.empty(parent.size, np.int32)
    for j in range(parent.size - 1, -1, -1):
        depth[j] = depth[parent[j]] + 1 if parent[j] >= 0 else 1
    return depth


@jit
def _cost(parent, counts):
    """Return the attributes of a `Cost`."""
    entries, flops, height = np.int64(0), 0.0, 0
    depth = depths(parent)
    for j in range(parent.size - 1, -1, -1):
        entries += counts[j]
        flops += np.float64(counts[j]) * counts[j]
        height = max(height, depth[j])
    return entries, flops, height


class EliminationTree(NamedTuple):
    """The elimination tree of a graph, with the elimination order refined to a postorder.

    In a tree from minimum degree, the parent of a column may be a descendant of its true parent.
    That descendant also has all rows of the column, so the counts are the same.

    Attributes
    ----------
    perm : (n,) int32 array
        ``perm[k]`` is the node eliminated k-th; the order is a postorder.
    iperm : (n,) int32 array
        Inverse of `perm`.
    parent : (n,) int32 array
        Parent of each column, -1 at roots.
    counts : (n,) int32 array
        Entries of each column of the Cholesky factor, with the diagonal.
    """

    perm: np.ndarray
    iperm: np.ndarray
    parent: np.ndarray
    counts: np.ndarray

    @classmethod
    def from_graph(cls, graph: Graph, perm: np.ndarray) -> EliminationTree:
        """Return the tree of `graph` with n nodes; ``perm[k]`` (n integers) is eliminated k-th.

        Examples
        --------
        A path cut at its middle node:

        >>> import scipy.sparse as sp
        >>> from frontal.ordering.graph import adjacency
        >>> path = adjacency(sp.diags_array([1.0, 1.0], offsets=1, shape=(3, 3)))
        >>> tree = EliminationTree.from_graph(path, np.array([0, 2, 1]))
        >>> tree.parent, tree.cost()
        (array([ 2,  2, -1], dtype=int32), Cost(nnz=5, flops=9.0, height=2))
        """
        perm = np.ascontiguousarray(perm, np.int32)
        return cls(*postordered_tree(graph, perm, np.ones(graph.n, np.int32)))

    @classmethod
    def from_groups(
        cls, merged: Graph, weights: np.ndarray, group: np.ndarray, perm: np.ndarray
    ) -> EliminationTree:
        """Return the tree from the graph of groups of indistinguishable nodes.

        Parameters
        ----------
        merged : Graph
            Graph of the groups.
        weights : (merged.n,) int array
            Number of nodes in each group.
        group : (n,) int32 array
            Group of each node.
        perm : (n,) int32 array
            Elimination order; the nodes of a group are consecutive.
        """
        weights = np.ascontiguousarray(weights, np.int32)
        order, begin = np.empty(merged.n, np.int32), np.empty(merged.n, np.int64)
        named = group[perm]
        first = np.flatnonzero(np.diff(named, prepend=-1))
        order[:] = named[first]
        begin[order] = first
        tree = postordered_tree(merged, order, weights)
        return cls(*_expanded(*tree, weights, begin, np.ascontiguousarray(perm, np.int32)))

    def cost(self) -> Cost:
        """Return the exact cost of a Cholesky factorization in this order."""
        entries, flops, height = _cost(self.parent, self.counts)
        return Cost(int(entries), float(flops), int(height))
