"""First separators of the coarsest graphs, which are small enough for several attempts.

Each attempt grows half of the graph from a node by breadth-first search, refines the edge cut, and
takes the lighter boundary as the separator. The best separator is refined.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner
from .graph import SEPARATOR, scrambled
from .improve import SideLimits, is_better, refine

ATTEMPTS = 8  # start cuts of a coarsest graph; the best one is taken
MAX_CUT_PASSES = 4  # passes over an edge cut
CUT_PATIENCE = 20  # moves without a better cut that end a pass
HEAVY_FRACTION = 3  # a separator is heavy if it weighs more than 1 / HEAVY_FRACTION of the total
FAIR, ALL = 60, 100  # most percent of both sides on one: with heavy separators, and otherwise
MAX_EDGE_CUT_NODES = (
    400  # nodes up to which the edge cut is refined, since each move scans all nodes
)


@allocating
def _grow(graph, half, seed, where):
    """Grow side 0 from a node to half of the weight; put all other nodes on side 1."""
    n = where.size
    queue = np.empty(n, np.int32)
    where[:] = 1
    weight = head = tail = 0
    following = scrambled(seed, 1) % n
    while weight < half:
        if head == tail:  # a component is complete
            while where[following] == 0:
                following = (following + 1) % n
            queue[tail], where[following] = following, 0
            tail += 1
        v = queue[head]
        head += 1
        weight += graph.weight[v]
        if weight >= half:
            break
        for p in range(graph.begin[v], graph.begin[v + 1]):
            u = graph.near[p]
            if where[u] == 1:
                where[u] = 0
                queue[tail] = u
                tail += 1
    for k in range(head, tail):
        where[queue[k]] = 1
    return weight


@inner
def _cut_gains(graph, where, gain):
    """Set `gain` to the decrease of the cut if a node changes sides."""
    for v in range(where.size):
        gain[v] = 0
        for p in range(graph.begin[v], graph.begin[v + 1]):
            is_cut = where[graph.near[p]] != where[v]
            gain[v] += graph.edge[p] if is_cut else -graph.edge[p]


@inner
def _flip(graph, where, gain, v):
    """Move v to the opposite side and update the gains."""
    where[v] = 1 - where[v]
    gain[v] = -gain[v]
    for p in range(graph.begin[v], graph.begin[v + 1]):
        u = graph.near[p]
        gain[u] += -2 * graph.edge[p] if where[u] == where[v] else 2 * graph.edge[p]


@inner
def _best_flip(graph, where, gain, fixed, weight, total, max_weight):
    """Return the node of largest gain whose move leaves no side too heavy, or -1."""
    best, best_gain = -1, np.iinfo(np.int64).min
    for v in range(where.size):
        if gain[v] <= best_gain or fixed[v]:
            continue
        to = total - weight if where[v] == 0 else weight
        if to + graph.weight[v] <= max_weight:
            best, best_gain = v, gain[v]
    return best


@allocating
def _refine_cut(graph, where, weight, total, max_weight):
    """Refine the edge cut by Fiduccia and Mattheyses; `weight` is the weight of side 0."""
    n = where.size
    gain = np.empty(n, np.int64)
    history = np.empty(n, np.int32)
    _cut_gains(graph, where, gain)
    for _ in range(MAX_CUT_PASSES):
        fixed = np.zeros(n, np.bool_)
        moves = best_moves = saved = best_saved = 0
        while moves - best_moves < CUT_PATIENCE:
            v = _best_flip(graph, where, gain, fixed, weight, total, max_weight)
            if v < 0:
                break
            saved += gain[v]
            weight += graph.weight[v] if where[v] == 1 else -graph.weight[v]
            _flip(graph, where, gain, v)
            fixed[v] = True
            history[moves] = v
            moves += 1
            if saved > best_saved:
                best_saved, best_moves = saved, moves
        for k in range(moves - 1, best_moves - 1, -1):
            v = history[k]
            weight += graph.weight[v] if where[v] == 1 else -graph.weight[v]
            _flip(graph, where, gain, v)
        if best_moves == 0:
            break


@allocating
def _cover(graph, where, weight):
    """Make the lighter boundary of an edge cut the separator; set the weights."""
    boundary = np.zeros(2, np.int64)
    weight[:] = 0
    touched = np.zeros(where.size, np.bool_)
    for v in range(where.size):
        weight[where[v]] += graph.weight[v]
        for p in range(graph.begin[v], graph.begin[v + 1]):
            if where[graph.near[p]] != where[v]:
                touched[v] = True
        if touched[v]:
            boundary[where[v]] += graph.weight[v]
    side = np.int64(boundary[1] < boundary[0])
    if boundary[0] == boundary[1]:
        side = np.int64(weight[1] > weight[0])
    for v in range(where.size):
        if touched[v] and where[v] == side:
            where[v] = SEPARATOR
    weight[side] -= boundary[side]
    weight[SEPARATOR] = boundary[side]


@allocating
def first_separator(graph, total, limits, work, seed, best, best_weight):
    """Compute several separators; store the sides of the best, refined one in `best`.

    Return the limits for this and all finer levels. If all separators are heavy, as in coarse
    graphs of expanders and around hubs, the lightest one leaves one large side. Without a limit of
    its share the small side would vanish.
    """
    n = best.size
    where = np.empty((ATTEMPTS, n), np.int8)
    weight = np.empty((ATTEMPTS, 3), np.int64)
    lightest = total
    for turn in range(ATTEMPTS):
        grown = _grow(graph, total // 2, scrambled(seed, turn), where[turn])
        if n <= MAX_EDGE_CUT_NODES:
            _refine_cut(graph, where[turn], grown, total, limits.weight)
        _cover(graph, where[turn], weight[turn])
        lightest = min(lightest, weight[turn, SEPARATOR])
    share = np.int64(FAIR if HEAVY_FRACTION * lightest > total else ALL)
    limits = SideLimits(limits.weight, share)
    chosen = 0
    for turn in range(1, ATTEMPTS):
        if is_better(weight[turn], weight[chosen], limits):
            chosen = turn
    best[:], best_weight[:] = where[chosen], weight[chosen]
    refine(graph, best, best_weight, work, limits)
    return limits
