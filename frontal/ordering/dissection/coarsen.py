"""Coarsening: nodes that attract each other most become one.

Each free node proposes to its best free neighbour, and those that propose to each other are
matched: no result depends on the order in which nodes are looked at. An edge attracts by
``edge^2 / (weight * weight)``, equal ones by a hash of the edge.

References: G. Karypis, V. Kumar, SIAM J. Sci. Comput. 20 (1998), multilevel bisection; M. S.
Gilbert, K. Madduri, E. G. Boman, S. Rajamanickam, arXiv 2304.13194, pairs at distance two.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner, jit
from .graph import Weighted, edge_hash

ROUNDS = 6  # of proposals; later ones match few
HEAVIEST = 0.015  # of the weight of a graph that a node of a coarser one may have
MATCHED = np.int32(2**31 - 1)  # weight of a node that nobody may propose to
MAX_UNMATCHED_SHARE = (
    0.15  # of all nodes that were not matched, from which distant pairs are sought
)


@jit
def propose(graph, free, mate, open_weight, proposal, heaviest, seed):
    """Best free neighbour of each free node, -1 where it has none."""
    for k in range(free.size):
        v = free[k]
        if proposal[v] >= 0 and mate[proposal[v]] < 0:
            continue  # it was the best of more
        best, best_hash = np.int32(-1), np.int64(-1)  # no hash while there was no tie
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
    """Match mutual proposals; how many nodes may still be matched is returned, first in `free`."""
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
    """Match free nodes that have the same best neighbour, two by two."""
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
    """Match what proposals left over: distant pairs, if it is much, or nodes with themselves."""
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
    """The node that each node is merged with, or itself."""
    n = graph.weight.size
    mate = np.full(n, -1, np.int32)
    proposal = np.full(n, -1, np.int32)
    free = np.arange(n).astype(np.int32)
    open_weight = graph.weight.copy()
    free_count = n
    for _ in range(ROUNDS):
        propose(graph, free[:free_count], mate, open_weight, proposal, heaviest, seed)
        free_count = accept(free[:free_count], mate, open_weight, proposal)
        if free_count == 0:
            break
    _match_the_rest(graph, mate, heaviest)
    return mate


@inner
def _append_neighbours(graph, v, coarse, coarse_of, place, base, near, edge, count):
    """Add the coarse neighbours of fine node v to a row that begins at `base`; its new length."""
    for p in range(graph.begin[v], graph.begin[v + 1]):
        c = coarse_of[graph.near[p]]
        if c == coarse:
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
    """How many pairs have their smaller node in a range."""
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
    """Entries of the rows of the pairs whose smaller node is in a range, at most."""
    entries = 0
    for v in range(first, last):
        if mate[v] >= v:
            entries += graph.begin[v + 1] - graph.begin[v]
            if mate[v] > v:
                entries += graph.begin[mate[v] + 1] - graph.begin[mate[v]]
    return entries


@inner
def contract(graph, mate, coarse_of, first, last, place, k, q, begin, near, edge, weight):
    """The rows of the coarse graph for the pairs of a range: the k-th, from the q-th entry on.

    `place` is -1 for each coarse node, before and afterwards. Of each row `begin` gets its end, one
    place later, counted from the first entry. Returns how many entries there are.
    """
    start = q
    for v in range(first, last):
        u, c = mate[v], coarse_of[v]
        if u < v:
            continue
        length = _append_neighbours(graph, v, c, coarse_of, place, q, near, edge, 0)
        weight[k] = graph.weight[v]
        if u != v:
            length = _append_neighbours(graph, u, c, coarse_of, place, q, near, edge, length)
            weight[k] += graph.weight[u]
        for p in range(q, q + length):
            place[near[p]] = -1
        q += length
        k += 1
        begin[k] = q - start
    return q - start


@jit
def heaviest_node(total):
    """Weight that a node of a coarser graph may have, of a graph of this weight."""
    return max(np.int64(HEAVIEST * total), np.int64(2))


@allocating
def coarser(graph, total, seed):
    """A graph of about half the nodes, and the node of it that each node belongs to."""
    n = graph.weight.size
    mate = _match(graph, heaviest_node(total), seed)
    coarse_of = np.empty(n, np.int32)
    count = count_pairs(mate, 0, n)
    number_pairs(mate, 0, n, 0, coarse_of)
    capacity = count_max_entries(graph, mate, 0, n)
    begin, weight = np.zeros(count + 1, np.int64), np.empty(count, np.int32)
    near, edge = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    place = np.full(count, -1, np.int32)
    used = contract(graph, mate, coarse_of, 0, n, place, 0, 0, begin, near, edge, weight)
    return Weighted(begin, near[:used], edge[:used], weight), coarse_of
