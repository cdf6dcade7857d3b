"""Coarsening: pairs of nodes with the highest mutual rating are merged.

Each free node proposes to its best free neighbour, and mutual proposals are matched. The result
does not depend on the order in which nodes are visited. The rating of an edge is
``edge^2 / (weight * weight)``; a hash of the edge breaks ties.

References: G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20 (1998), multilevel bisection; M. S.
Gilbert, K. Madduri, E. G. Boman, S. Rajamanickam, arXiv 2304.13194, pairs at distance two.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner, jit
from .graph import Weighted, edge_hash

MAX_ROUNDS = 6  # of proposals; later rounds match few nodes
MAX_NODE_SHARE = 0.015  # weight of a coarse node over the total weight
MATCHED = np.int32(2**31 - 1)  # weight that excludes a node from proposals
MAX_UNMATCHED_SHARE = 0.15  # share of unmatched nodes above which pairs at distance two are matched


@jit
def propose(graph, free, mate, open_weight, proposal, heaviest, seed):
    """Set `proposal` of each free node to its best free neighbour, or -1 if it has none."""
    for k in range(free.size):
        v = free[k]
        if proposal[v] >= 0 and mate[proposal[v]] < 0:
            continue  # best of a larger set, and still free
        best, best_hash = np.int32(-1), np.int64(-1)  # no hash before the first tie
        best_edge, best_weight = 0.0, 1.0
        limit = heaviest - graph.weight[v]
        for p in range(graph.begin[v], graph.begin[v + 1]):
            u = graph.near[p]
            weight = open_weight[u]
            if weight > limit:
                continue
            edge = np.float64(graph.edge[p])
            edge *= edge
            this, that = edge * best_weight, best_edge * weight
            if this < that:
                continue
            code = np.int64(-1)
            if this == that:
                code = edge_hash(u, v, seed)
                if best_hash < 0:
                    best_hash = edge_hash(best, v, seed)
                if code <= best_hash:
                    continue
            best, best_edge, best_weight, best_hash = u, edge, np.float64(weight), code
        proposal[v] = best


@jit
def accept(free, mate, open_weight, proposal):
    """Match mutual proposals; move nodes that may match later to the front; return their number."""
    for k in range(free.size):
        v = free[k]
        u = proposal[v]
        if u >= 0 and proposal[u] == v:
            mate[v] = u
            open_weight[v] = MATCHED
    count = 0
    for k in range(free.size):
        v = free[k]
        if mate[v] < 0 and proposal[v] >= 0:
            free[count] = v
            count += 1
    return count


@allocating
def pair_at_distance_two(graph, mate, heaviest):
    """Match free nodes in pairs that have the same best neighbour."""
    n = mate.size
    waiting = np.full(n, -1, np.int32)
    for v in range(n):
        if mate[v] >= 0:
            continue
        best, best_rating = -1, -1.0
        for p in range(graph.begin[v], graph.begin[v + 1]):
            edge = np.float64(graph.edge[p])
            rating = edge * edge / graph.weight[graph.near[p]]
            if rating > best_rating:
                best, best_rating = graph.near[p], rating
        if best < 0:
            continue
        u = waiting[best]
        if u >= 0 and graph.weight[u] + graph.weight[v] <= heaviest:
            mate[u], mate[v] = v, u
            waiting[best] = -1
        else:
            waiting[best] = v


@jit
def _match_the_rest(graph, mate, heaviest):
    """Match the remaining nodes in pairs at distance two if they are many, else with themselves."""
    n = mate.size
    alone = 0
    for v in range(n):
        alone += mate[v] < 0
    if alone > MAX_UNMATCHED_SHARE * n:
        pair_at_distance_two(graph, mate, heaviest)
    for v in range(n):
        if mate[v] < 0:
            mate[v] = v


@allocating
def _match(graph, heaviest, seed):
    """Return, for each node, the node that it is merged with, or itself."""
    n = graph.weight.size
    mate = np.full(n, -1, np.int32)
    proposal = np.full(n, -1, np.int32)
    free = np.arange(n).astype(np.int32)
    open_weight = graph.weight.copy()
    free_count = n
    for _ in range(MAX_ROUNDS):
        propose(graph, free[:free_count], mate, open_weight, proposal, heaviest, seed)
        free_count = accept(free[:free_count], mate, open_weight, proposal)
        if free_count == 0:
            break
    _match_the_rest(graph, mate, heaviest)
    return mate


@inner
def _append_neighbours(graph, v, coarse_of, place, coarse, base, count):
    """Add the coarse neighbours of fine node v to the row at `base`; return its new length."""
    near, edge = coarse.near, coarse.edge
    for p in range(graph.begin[v], graph.begin[v + 1]):
        c = coarse_of[graph.near[p]]
        if c == coarse_of[v]:
            continue
        q = place[c]
        if q < 0:
            place[c] = count
            near[base + count] = c
            edge[base + count] = graph.edge[p]
            count += 1
        else:
            edge[base + q] += graph.edge[p]
    return count


@jit
def count_pairs(mate, first, last):
    """Return the number of pairs whose smaller node is in a range."""
    count = 0
    for v in range(first, last):
        count += mate[v] >= v
    return count


@jit
def number_pairs(mate, first, last, coarse, coarse_of):
    """Number the pairs whose smaller node is in a range, from `coarse` on."""
    for v in range(first, last):
        if mate[v] >= v:
            coarse_of[v] = coarse_of[mate[v]] = coarse
            coarse += 1


@inner
def count_max_entries(graph, mate, first, last):
    """Return an upper bound of the row entries of pairs whose smaller node is in a range."""
    entries = 0
    for v in range(first, last):
        if mate[v] >= v:
            entries += graph.begin[v + 1] - graph.begin[v]
            if mate[v] > v:
                entries += graph.begin[mate[v] + 1] - graph.begin[mate[v]]
    return entries


@allocating
def contract(graph, mate, coarse_of, coarse, first, last, k, q):
    """Write the rows of the coarse graph for the pairs of a range, from row k and entry q on.

    ``coarse.begin[k + 1]`` receives the end of row k, relative to the first entry of the range.
    Return the number of entries.
    """
    start, place = q, np.full(coarse.weight.size, -1, np.int32)
    for v in range(first, last):
        u = mate[v]
        if u < v:
            continue
        length = _append_neighbours(graph, v, coarse_of, place, coarse, q, 0)
        coarse.weight[k] = graph.weight[v]
        if u != v:
            length = _append_neighbours(graph, u, coarse_of, place, coarse, q, length)
            coarse.weight[k] += graph.weight[u]
        for p in range(q, q + length):
            place[coarse.near[p]] = -1
        q += length
        k += 1
        coarse.begin[k] = q - start
    return q - start


@jit
def heaviest_node(total):
    """Return the largest weight of a coarse node for a graph of weight `total`."""
    return max(np.int64(MAX_NODE_SHARE * total), np.int64(2))


@allocating
def coarser(graph, total, seed):
    """Return a coarser graph of about half the nodes, and the coarse node of each node."""
    n = graph.weight.size
    mate = _match(graph, heaviest_node(total), seed)
    coarse_of = np.empty(n, np.int32)
    count = count_pairs(mate, 0, n)
    number_pairs(mate, 0, n, 0, coarse_of)
    capacity = count_max_entries(graph, mate, 0, n)
    begin, weight = np.zeros(count + 1, np.int64), np.empty(count, np.int32)
    near, edge = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    coarse = Weighted(begin, near, edge, weight)
    used = contract(graph, mate, coarse_of, coarse, 0, n, 0, 0)
    return Weighted(begin, near[:used], edge[:used], weight), coarse_of
