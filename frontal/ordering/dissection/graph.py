"""Weighted graphs of a dissection: a part of a graph, and its coarser levels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner, jit

SEPARATOR = 2  # the side of separator nodes; 0 and 1 are the sides of a bisection


class Weighted(NamedTuple):
    """A graph whose nodes and edges represent several nodes and edges of a finer graph.

    Attributes
    ----------
    begin : (n + 1,) int64 array
        Start of each node's neighbours.
    near : (nnz,) int32 array
        Neighbours.
    edge : (nnz,) int32 array
        Weight of each edge, stored at both ends.
    weight : (n,) int32 array
        Weight of each node.
    """

    begin: np.ndarray
    near: np.ndarray
    edge: np.ndarray
    weight: np.ndarray


class Levels(NamedTuple):
    """A graph and its coarser graphs, concatenated, the finest first.

    Attributes
    ----------
    graph : Weighted
        All levels; neighbours are numbered within their level.
    coarse_of : (n,) int32 array
        For each of the n nodes of all levels its node of the next level, numbered within that
        level; undefined on the last level.
    first : (levels + 1,) int64 array
        The first node of each level.
    """

    graph: Weighted
    coarse_of: np.ndarray
    first: np.ndarray


@jit
def level(levels, k):
    """Return the graph of level k."""
    graph, first, last = levels.graph, levels.first[k], levels.first[k + 1]
    return Weighted(graph.begin[first : last + 1], graph.near, graph.edge, graph.weight[first:last])


@jit
def scrambled(a, b):
    """Return a 32-bit hash of two integers, which breaks ties independently of the node order."""
    x = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(x >> np.uint64(32))


@inner
def edge_hash(u, v, seed):
    """Return a hash of an edge, the same from both ends; sum and product identify the pair."""
    total, product = np.uint64(np.int64(u) + v), np.uint64(np.int64(u) * v)
    x = (total * np.uint64(0x9E3779B97F4A7C15) + product) ^ np.uint64(seed)
    return np.int64((x * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(32))
