"""The order inside a part: leaves and separators by constrained minimum degree.

Neighbours outside of the part come later in any case. They count for the degrees, which keeps the
nodes next to them for the end, and are never eliminated.
"""

from __future__ import annotations

import numpy as np

from ..._jit import jit
from ..amd import amd
from ..graph import Graph


@jit
def _with_halo(indptr, indices, names, label):
    """The graph of some nodes and, after them, of their neighbours outside: (indptr, indices).

    `label` is -1 for all nodes, before and afterwards.
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
    return begin, near


def order_inside(
    graph: Graph, names: np.ndarray, class_of: np.ndarray, label: np.ndarray
) -> np.ndarray:
    """Order of a part of a graph, class by class.

    Parameters
    ----------
    graph : Graph
        All nodes.
    names : (m,) int32 array
        Those of the part.
    class_of : (m,) int32 array
        The class of each.
    label : (graph.n,) int32 array
        Room: -1 everywhere, now and afterwards.

    Returns
    -------
    (m,) int32 array
        `names` in the order of their elimination.
    """
    indptr, indices = _with_halo(graph.indptr, graph.indices, names, label)
    above = class_of.max(initial=-1) + 1  # all classes
    constraint = np.full(indptr.size - 1, above, np.int32)
    constraint[: names.size] = class_of
    perm = amd(indptr, indices, constraint=constraint, dense=-1)
    return names[perm[: names.size]]
