"""Multilevel bisection by a separator: coarsen, cut the coarsest graph, refine on finer levels.

The coarser graphs of a part are split together with it, so its sides need coarsening only below
the levels that they inherit: large graphs are matched once for all parts of a component.

Reference: G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20 (1998).
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, jit
from .coarsen import coarser
from .graph import Levels, Weighted, level, scrambled
from .improve import SideLimits, make_work, refine
from .start import ALL, first_separator

COARSEST_NODES = 100  # at which coarsening ends
MIN_LEVEL_NODES = 120  # levels with more nodes are split together with the part
MAX_COARSE_SHARE = 0.95  # ratio of coarse to fine nodes above which coarsening ends
MAX_SIDE_SHARE = 0.6  # weight of a side over the total weight


@allocating
def _coarsened(graph, total, count, min_nodes, seed, stop):
    """Return the graph, level `count` of its component, with coarser graphs, and maps to them."""
    graphs, maps = [graph], [np.empty(0, np.int32)]
    while graphs[-1].weight.size > min_nodes and stop[0] == 0:
        fine = graphs[-1]
        coarse, coarse_of = coarser(fine, total, scrambled(seed, count + len(graphs)))
        if coarse.weight.size > MAX_COARSE_SHARE * fine.weight.size:
            break
        graphs.append(coarse)
        maps.append(coarse_of)
    return graphs, maps


@jit
def with_levels(graph, count, seed, stop):
    """Return level `count` of a component with coarser levels down to `MIN_LEVEL_NODES` nodes."""
    total = graph.weight.astype(np.int64).sum()
    graphs, maps = _coarsened(graph, total, count, MIN_LEVEL_NODES, seed, stop)
    first = np.zeros(len(graphs) + 1, np.int64)
    entry = np.zeros(len(graphs) + 1, np.int64)
    for k in range(len(graphs)):
        first[k + 1] = first[k] + graphs[k].weight.size
        entry[k + 1] = entry[k] + graphs[k].near.size
    begin = np.empty(first[-1] + 1, np.int64)
    near, edge = np.empty(entry[-1], np.int32), np.empty(entry[-1], np.int32)
    weight, coarse_of = np.empty(first[-1], np.int32), np.empty(first[-1], np.int32)
    for k in range(len(graphs)):
        begin[first[k] : first[k + 1] + 1] = graphs[k].begin + entry[k]
        near[entry[k] : entry[k + 1]] = graphs[k].near
        edge[entry[k] : entry[k + 1]] = graphs[k].edge
        weight[first[k] : first[k + 1]] = graphs[k].weight
        if k > 0:
            coarse_of[first[k - 1] : first[k]] = maps[k]
    coarse_of[first[-2] :] = 0
    return Levels(Weighted(begin, near, edge, weight), coarse_of, first)


@allocating
def _finer(graph, coarse_of, coarse, weight, work, limits, stop):
    """Project the sides of a coarser graph to a graph, refine them, and return them."""
    where = np.empty(coarse_of.size, np.int8)
    for v in range(coarse_of.size):
        where[v] = coarse[coarse_of[v]]
    if stop[0] == 0:
        refine(graph, where, weight, work, limits)
    return where


@jit
def bisect(levels, seed, stop):
    """Return the side of each node: 0, 1 or `SEPARATOR`; end early if ``stop[0]`` is nonzero."""
    count = levels.first.size - 1
    coarsest = level(levels, count - 1)
    total = np.int64(0)
    for v in range(coarsest.weight.size):
        total += coarsest.weight[v]
    limits = SideLimits(np.int64(MAX_SIDE_SHARE * total), np.int64(ALL))
    graphs, maps = _coarsened(coarsest, total, count - 1, COARSEST_NODES, seed, stop)
    work = make_work(levels.first[1])
    where = np.zeros(graphs[-1].weight.size, np.int8)
    weight = np.empty(3, np.int64)
    if stop[0] == 0:
        limits = first_separator(graphs[-1], total, limits, work, seed, where, weight)
    for k in range(len(graphs) - 1, 0, -1):
        where = _finer(graphs[k - 1], maps[k], where, weight, work, limits, stop)
    for k in range(count - 2, -1, -1):
        coarse_nodes = levels.coarse_of[levels.first[k] : levels.first[k + 1]]
        where = _finer(level(levels, k), coarse_nodes, where, weight, work, limits, stop)
    return where
