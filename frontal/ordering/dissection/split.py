"""What a bisection leaves: a graph for each side and a separator, down to leaves."""

from __future__ import annotations

import numpy as np

from ..._jit import allocating, jit
from .bisect import bisect
from .graph import SEPARATOR, Weighted, scrambled

LEAF = 240  # nodes of a part that is dissected no further


@jit
def number_side(where, side, first, last, count, label):
    """Number the nodes of a side that lie in a range, from `count` on; the number after them."""
    for v in range(first, last):
        if where[v] == side:
            label[v] = count
            count += 1
    return count


@jit
def count_side(where, side, first, last):
    """How many nodes of a range are on a side."""
    count = 0
    for v in range(first, last):
        count += where[v] == side
    return count


@jit
def cut_out(graph, names, where, side, label, first, last, count):
    """The rows of a side's graph for the `count` nodes of it in a range, and their names."""
    room = 0
    for v in range(first, last):
        if where[v] == side:
            room += graph.begin[v + 1] - graph.begin[v]
    begin = np.empty(count + 1, np.int64)
    near = np.empty(room, np.int32)
    weight = np.empty(count, np.int32)
    of_side = np.empty(count, np.int32)
    begin[0] = q = k = 0
    for v in range(first, last):
        if where[v] != side:
            continue
        for p in range(graph.begin[v], graph.begin[v + 1]):
            u = graph.near[p]
            if where[u] == side:
                near[q] = label[u]
                q += 1
        weight[k], of_side[k] = graph.weight[v], names[v]
        k += 1
        begin[k] = q
    return Weighted(begin, near[:q], np.ones(q, np.int32), weight), of_side


@allocating
def _side(graph, names, where, side, label):
    """The graph of one side, and the names of its nodes."""
    count = number_side(where, side, 0, where.size, 0, label)
    return cut_out(graph, names, where, side, label, 0, where.size, count)


@jit
def split(graph, names, seed, stop):
    """Bisect a graph whose nodes have these names.

    Returns the graphs and names of both sides, and the names in the separator; they are of no use
    once ``stop[0]`` is nonzero.
    """
    where, _ = bisect(graph, 0, seed, stop)
    label = np.empty(where.size, np.int32)
    zero, zero_names = _side(graph, names, where, 0, label)
    one, one_names = _side(graph, names, where, 1, label)
    return zero, zero_names, one, one_names, names[where == SEPARATOR]


@jit
def dissect_to_leaves(graph, names, seed, stop):
    """Dissect a graph down to parts of at most `LEAF` nodes.

    Returns the class of each node: of its leaf or separator, in the order of elimination. It ends
    early where ``stop[0]`` becomes nonzero.
    """
    class_of = np.zeros(names.size, np.int32)
    parts = [(graph, np.arange(names.size).astype(np.int32), seed)]
    count = np.int32(0)
    while len(parts) > 0 and stop[0] == 0:  # from the last class to the first
        part, members, own = parts.pop()
        last = members
        if members.size > LEAF:
            zero, zero_members, one, one_members, separator = split(part, members, own, stop)
            if max(zero_members.size, one_members.size) < members.size:
                parts.append((zero, zero_members, scrambled(own, 0)))
                parts.append((one, one_members, scrambled(own, 1)))
                last = separator
        for v in last:
            class_of[v] = count
        count += 1
    return count - 1 - class_of
