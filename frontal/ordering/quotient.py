"""The quotient graph of minimum degree: records of nodes, lists of degrees, and a workspace."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..compile.jit import inner

NONE = np.int32(-1)
# One record, less than a cache line, holds all that a step reads about a node.
NODE = np.dtype(
    [
        ("start", np.int64),  # start of the node's list in the workspace
        ("mark", np.int64),  # stamp of the last scan that met the node; later scans: larger stamps
        ("length", np.int32),  # entries of the list; 0 once the node is absorbed
        ("elements", np.int32),  # number of elements in the list; they precede the variables
        ("weight", np.int32),  # nodes represented; 0: absorbed; < 0: in the pivot's list
        ("degree", np.int32),  # variable: approximate external degree; element: list's weight
        ("next", np.int32),  # next in the list of equal degrees or in the bucket of equal hashes
        ("previous", np.int32),  # previous in the list of equal degrees; or the bucket's number
        ("parent", np.int32),  # absorbing node: the parent in the assembly tree
        ("group", np.int32),  # constraint class, from 0 up
    ]
)
# Inlined: calls would count references to their array arguments, which takes a third of the time.
inlined = njit(inline="always")


@inlined
def quotient_graph(indptr, indices, node, work, weights, reach, dense):
    """Copy the adjacency without dense nodes into the workspace; return (used, weight)."""
    free = total = np.int64(0)
    for i in range(node.size):
        node[i].start = free
        node[i].parent = NONE
        if reach[i] > dense:
            continue
        degree = np.int64(0)
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j != i and reach[j] <= dense:
                work[free] = j
                free += 1
                degree += weights[j]
        node[i].length, node[i].degree = free - node[i].start, degree
        node[i].weight = weights[i]
        total += weights[i]
    return free, total


@inlined
def insert(node, head, i):
    """Insert variable i at the front of its degree list."""
    after = head[node[i].degree]
    head[node[i].degree] = i
    node[i].next = after
    node[i].previous = NONE
    if after != NONE:
        node[after].previous = i


@inlined
def remove(node, head, i):
    """Remove variable i from its degree list."""
    before, after = node[i].previous, node[i].next
    if after != NONE:
        node[after].previous = before
    if before != NONE:
        node[before].next = after
    else:
        head[node[i].degree] = after


@inlined
def open_group(node, head, members):
    """Insert the variables of a class into degree lists; return (least degree, their weight)."""
    min_degree, weight = head.size, 0
    for i in members:
        if node[i].weight > 0:
            insert(node, head, i)
            min_degree = min(min_degree, node[i].degree)
            weight += node[i].weight
    return min_degree, weight


@inner
def collect_garbage(node, work, free):
    """Move the lists in use to the front of the workspace; return the first free position."""
    n = node.size
    for i in range(n):  # save the first entry of each list, and overwrite it with a mark of i
        if node[i].length > 0:
            p = node[i].start
            node[i].start = work[p]
            work[p] = n + i
    target = p = 0
    while p < free:
        i = np.int64(work[p]) - n
        p += 1
        if i >= 0:
            work[target] = node[i].start
            node[i].start = target
            target += 1
            for _ in range(1, node[i].length):
                work[target] = work[p]
                target += 1
                p += 1
    return target
