"""Weighted graphs of a dissection: the part of a graph that is cut, and its coarser levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner, jit

SEPARATOR = 2  # beside 0 and 1, the sides of a bisection


class Weighted(NamedTuple):
    """A graph whose nodes and edges stand for several of a finer one.

    Attributes
    ----------
    begin : (n + 1,) int64 array
        Where the neighbours of each node start.
    near : (nnz,) int32 array
        Neighbours.
    edge : (nnz,) int32 array
        Weight of each edge, the same from both its ends.
    weight : (n,) int32 array
        Weight of each node.
    """

    begin: np.ndarray
    near: np.ndarray
    edge: np.ndarray
    weight: np.ndarray


class Levels(NamedTuple):
    """A graph and coarser ones: all their nodes one after the other, the finest first.

    Attributes
    ----------
    graph : Weighted
        All levels; neighbours are numbered within their level.
    coarse_of : (graph.n,) int32 array
        The node of the next level, numbered within it, that each node belongs to; on the last
        level of no meaning.
    first : (levels + 1,) int64 array
        The first node of each level.
    """

    graph: Weighted
    coarse_of: np.ndarray
    first: np.ndarray


@jit
def level(levels, k):
    """The graph of a level."""
    graph, first, last = levels.graph, levels.first[k], levels.first[k + 1]
    return Weighted(graph.begin[first : last + 1], graph.near, graph.edge, graph.weight[first:last])


@jit
def scrambled(a, b):
    """A hash of two integers, 32 bits: ties are broken by it, in any order of the nodes alike."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(x >> np.uint64(32))


@inner
def edge_hash(u, v, seed):
    """A hash of an edge, the same from both its ends; sum and product are one pair's alone."""
    total, product = np.uint64(np.int64(u) + v), np.uint64(np.int64(u) * v)
    x = (total * np.uint64(0x9E3779B97F4A7C15) + product) ^ np.uint64(seed)
    return np.int64((x * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(32))
