"""The quotient graph of minimum degree: records of nodes, lists of degrees, and a workspace."""

from __future__ import annotations

import numpy as np
from numba import njit

from ..compile.jit import inner

NONE = np.int32(-1)
# What a step reads of a node lies together: one record is less than a cache line.
NODE = np.dtype(
    [
        ("start", np.int64),  # where its list starts in the workspace
        ("mark", np.int64),  # of the last scan that met the node; larger scans have larger marks
        ("length", np.int32),  # entries of the list, 0 once the node is absorbed
        ("elements", np.int32),  # how many of these, in front of the others, are elements
        ("weight", np.int32),  # nodes it stands for; 0: absorbed; < 0: in the pivot's list
        ("degree", np.int32),  # variable: approximate external degree; element: list's weight
        ("next", np.int32),  # in the list of equal degrees, or in the bucket of equal hashes
        ("previous", np.int32),  # in the list of equal degrees; or the bucket
        ("parent", np.int32),  # what absorbed it: the parent in the assembly tree
        ("group", np.int32),  # constraint class, from 0 up
    ]
)
# Compiled into the caller: calls would count references to their arrays, a third of the time.
inlined = njit(inline="always")


@inlined
def quotient_graph(indptr, indices, node, work, weights, reach, dense):
    """Copy the adjacency, but for dense nodes, into the workspace: (used, weight)."""
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
    """Put variable i first in the list of its degree."""
    after = head[node[i].degree]
    head[node[i].degree] = i
    node[i].next = after
    node[i].previous = NONE
    if after != NONE:
        node[after].previous = i


@inlined
def remove(node, head, i):
    """Take variable i out of the list of its degree."""
    before, after = node[i].previous, node[i].next
    if after != NONE:
        node[after].previous = before
    if before != NONE:
        node[before].next = after
    else:
        head[node[i].degree] = after


@inlined
def open_group(node, head, members):
    """Make the variables of a class candidates for elimination: (least degree, their weight)."""
    min_degree, weight = head.size, 0
    for i in members:
        if node[i].weight > 0:
            insert(node, head, i)
            min_degree = min(min_degree, node[i].degree)
            weight += node[i].weight
    return min_degree, weight


@inner
def collect_garbage(node, work, free):
    """Move the lists in use to the front of the workspace; returns the first free place."""
    n = node.size
    for i in range(n):  # the first entry of each list changes places with a mark that names i
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
