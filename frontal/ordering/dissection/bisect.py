"""Multilevel bisection by a separator: coarsen, cut the coarsest graph, refine on the way back.

Reference: G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20 (1998).
"""

from __future__ import annotations

import numpy as np

from ..._jit import allocating, jit
from .coarsen import coarser
from .graph import scrambled
from .improve import make_work, refine
from .start import first_separator

COARSEST = 100  # nodes
STALLED = 0.95  # of its nodes that a coarser graph has, from which on coarsening ends
LARGEST_SIDE = 0.6  # of the weight


@allocating
def _coarsened(graph, total, level, seed, stop):
    """The graph and coarser ones, and the maps between them."""
    graphs, maps = [graph], [np.empty(0, np.int32)]
    while graphs[-1].weight.size > COARSEST and stop[0] == 0:
        fine = graphs[-1]
        coarse, coarse_of = coarser(fine, total, scrambled(seed, level + len(graphs)))
        if coarse.weight.size > STALLED * fine.weight.size:
            break
        graphs.append(coarse)
        maps.append(coarse_of)
    return graphs, maps


@allocating
def _finer(graph, coarse_of, coarse, weight, most, work, stop):
    """The side of each node of a graph, from those of a coarser one, refined."""
    where = np.empty(coarse_of.size, np.int8)
    for v in range(coarse_of.size):
        where[v] = coarse[coarse_of[v]]
    if stop[0] == 0:
        refine(graph, where, weight, work, most)
    return where


@jit
def finer(graph, coarse_of, coarse, weight, stop):
    """The side of each node of a graph, from those of a coarser one, refined.

    `weight` has the weights of sides and separator, before and afterwards.
    """
    most = np.int64(LARGEST_SIDE * weight.sum())
    return _finer(graph, coarse_of, coarse, weight, most, make_work(coarse_of.size), stop)


@jit
def bisect(graph, level, seed, stop):
    """Side of each node, 0, 1 or `SEPARATOR`, and the weights of these three.

    The graph may be a coarser one, of this level. It ends early where ``stop[0]`` becomes nonzero.
    """
    total = np.int64(0)
    for v in range(graph.weight.size):
        total += graph.weight[v]
    most = np.int64(LARGEST_SIDE * total)
    graphs, maps = _coarsened(graph, total, level, seed, stop)
    work = make_work(graph.weight.size)
    where = np.zeros(graphs[-1].weight.size, np.int8)
    weight = np.empty(3, np.int64)
    if stop[0] == 0:
        first_separator(graphs[-1], total, most, work, seed, where, weight)
    for k in range(len(graphs) - 1, 0, -1):
        where = _finer(graphs[k - 1], maps[k], where, weight, most, work, stop)
    return where, weight
