"""Recursive bisection: the levels of each side, the separator, and dissection down to leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating, inner, jit
from .bisect import MIN_LEVEL_NODES, bisect
from .graph import SEPARATOR, Levels, Weighted, scrambled

LEAF = 300  # nodes: least limit of a leaf
LARGEST_LEAF = 5_000  # nodes: largest limit; top separators of large graphs determine the cost
LEAVES = 100  # nodes of a graph over the limit of a leaf, between these bounds


def leaf_size(n: int) -> int:
    """Return the limit of the nodes of a leaf in a graph of n nodes."""
    return min(max(LEAF, n // LEAVES), LARGEST_LEAF)


@inner
def _number_level(levels, k, inside, label, weight, count):
    """Number the nodes of a level that are inside, from `count` on; return the next number.

    `weight` receives their weights: for a coarse node only the weight of its fine nodes inside.
    """
    start = count
    for v in range(levels.first[k], levels.first[k + 1]):
        if inside[v] > 0:
            label[v] = count - start
            weight[count] = inside[v]
            count += 1
        else:
            label[v] = -1
    return count


@jit
def number_side(levels, where, side):
    """Number the nodes of a side on all levels that it inherits.

    Return the number of each node within its level (-1 outside the side), the weights of the
    numbered nodes, and the first node of each level.
    """
    n, all_levels = levels.coarse_of.size, levels.first.size - 1
    inside = np.zeros(n, np.int32)  # weight inside the side
    label = np.empty(n, np.int32)
    weight = np.empty(n, np.int32)
    first = np.zeros(all_levels + 1, np.int64)
    for v in range(where.size):
        if where[v] == side:
            inside[v] = levels.graph.weight[v]
    level_count = 0
    for k in range(all_levels):
        count = _number_level(levels, k, inside, label, weight, first[k])
        if k > 0 and count - first[k] <= MIN_LEVEL_NODES:
            label[levels.first[k] :] = -1
            break
        level_count = k + 1
        first[level_count] = count
        if level_count < all_levels:
            for v in range(levels.first[k], levels.first[level_count]):
                inside[levels.first[level_count] + levels.coarse_of[v]] += inside[v]
    return label, weight[: first[level_count]].copy(), first[: level_count + 1].copy()


class _Rows(NamedTuple):
    """Rows of labelled nodes; `coarse_of` as in `Levels`."""

    begin: np.ndarray
    near: np.ndarray
    edge: np.ndarray
    coarse_of: np.ndarray


@inner
def _cut_out_rows(levels, k, label, from_, to, rows, count):
    """Append the rows of one level after `count` rows; return the new number of rows."""
    graph, offset, q = levels.graph, levels.first[k], rows.begin[count]
    coarse = levels.first[k + 1] if k + 2 < levels.first.size else np.int64(-1)
    for v in range(from_, to):
        if label[v] < 0:
            continue
        for p in range(graph.begin[v], graph.begin[v + 1]):
            u = label[offset + graph.near[p]]
            if u >= 0:
                rows.near[q], rows.edge[q] = u, graph.edge[p]
                q += 1
        up = label[coarse + levels.coarse_of[v]] if coarse >= 0 else np.int32(0)
        rows.coarse_of[count] = max(up, np.int32(0))
        count += 1
        rows.begin[count] = q
    return count


@jit
def cut_out(levels, label, from_, to):
    """Return the rows of labelled nodes in a range: begin, near, edge, and their coarse nodes."""
    capacity = count = 0
    for v in range(from_, to):
        if label[v] >= 0:
            capacity += levels.graph.begin[v + 1] - levels.graph.begin[v]
            count += 1
    begin, coarse_of = np.empty(count + 1, np.int64), np.empty(count, np.int32)
    near, edge = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    rows = _Rows(begin, near, edge, coarse_of)
    begin[0] = done = 0
    for k in range(levels.first.size - 1):
        low, high = max(from_, levels.first[k]), min(to, levels.first[k + 1])
        done = _cut_out_rows(levels, k, label, low, high, rows, done)
    return begin, near[: begin[done]], edge[: begin[done]], coarse_of


@allocating
def _side(levels, names, leaf, where, side):
    """Return the levels of one side (none for a leaf) and the names of its nodes."""
    inside = names[where == side]
    if inside.size <= leaf:
        none, begin = np.empty(0, np.int32), np.zeros(1, np.int64)
        return Levels(Weighted(begin, none, none, none), none, begin), inside
    label, weight, first = number_side(levels, where, side)
    begin, near, edge, coarse_of = cut_out(levels, label, 0, label.size)
    return Levels(Weighted(begin, near, edge, weight), coarse_of, first), inside


@jit
def split(levels, names, leaf, seed, stop):
    """Bisect a graph whose nodes have the names `names`.

    Return the levels and names of both sides, and the names in the separator. The result is
    invalid once ``stop[0]`` is nonzero. A side of at most `leaf` nodes has no levels.
    """
    where = bisect(levels, seed, stop)
    levels0, names0 = _side(levels, names, leaf, where, 0)
    levels1, names1 = _side(levels, names, leaf, where, 1)
    return levels0, names0, levels1, names1, names[where == SEPARATOR]


@jit
def dissect_to_leaves(levels, names, leaf, seed, stop):
    """Dissect a graph down to leaves of at most `leaf` nodes.

    Return the class of each node: the number of its leaf or separator in elimination order. End
    early if ``stop[0]`` becomes nonzero.
    """
    class_of = np.zeros(names.size, np.int32)
    stack = [(levels, np.arange(names.size).astype(np.int32), seed)]
    count = np.int32(0)
    while len(stack) > 0 and stop[0] == 0:  # from the last class to the first
        subgraph, members, subgraph_seed = stack.pop()
        last = members
        if members.size > leaf:
            levels0, members0, levels1, members1, separator = split(
                subgraph, members, leaf, subgraph_seed, stop
            )
            if max(members0.size, members1.size) < members.size:
                stack.append((levels0, members0, scrambled(subgraph_seed, 0)))
                stack.append((levels1, members1, scrambled(subgraph_seed, 1)))
                last = separator
        for v in last:
            class_of[v] = count
        count += 1
    return count - 1 - class_of
