"""First separators, of graphs that are coarse enough to try several times.

Half of the graph is grown by breadth from a node, its edge cut refined, and the lighter boundary
made a separator, which is refined in turn.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner
from .graph import SEPARATOR, scrambled
from .improve import is_better, refine

STARTS = 8
CUT_PASSES = 4
CUT_PATIENCE = 20  # moves without a better cut that end a pass
HEAVY = 3  # times a separator is more than all weight, if it is heavy
FAIR, ALL = 60, 100  # hundredths of what both sides have, that one may have then, and otherwise
MAX_EDGE_CUT_NODES = (
    400  # nodes up to which the edge cut is refined, by looking at all for each move
)


@allocating
def _grow(graph, half, seed, where):
    """Side 0 grown by breadth from a node to half of the weight, everything else on side 1."""
    n = where.size
    queue = np.empty(n, np.int32)
    where[:] = 1
    weight = head = tail = 0
    following = scrambled(seed, 1) % n
    while weight < half:
        if head == tail:  # a component is done
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
    """By how much the cut gets lighter if a node changes sides."""
    for v in range(where.size):
        gain[v] = 0
        for p in range(graph.begin[v], graph.begin[v + 1]):
            is_cut = where[graph.near[p]] != where[v]
            gain[v] += graph.edge[p] if is_cut else -graph.edge[p]


@inner
def _flip(graph, where, gain, v):
    """Let v change sides."""
    where[v] = 1 - where[v]
    gain[v] = -gain[v]
    for p in range(graph.begin[v], graph.begin[v + 1]):
        u = graph.near[p]
        gain[u] += -2 * graph.edge[p] if where[u] == where[v] else 2 * graph.edge[p]


@inner
def _best_flip(graph, where, gain, fixed, weight, total, max_weight):
    """The node whose change of sides makes the lightest cut and no side too heavy; -1: none."""
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
    """Fiduccia and Mattheyses on the edge cut; `weight` is that of side 0."""
    n = where.size
    gain = np.empty(n, np.int64)
    history = np.empty(n, np.int32)
    _cut_gains(graph, where, gain)
    for _ in range(CUT_PASSES):
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
    """Make the lighter boundary of an edge cut the separator; sets the weights."""
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
def first_separator(graph, total, max_weight, work, seed, best, best_weight):
    """The best of several separators: `best` gets the side of each node.

    Returns the share of both sides that one may have. Where all separators are heavy, as in the
    coarse graphs of expanders and around hubs, the lightest is what one large side leaves: without
    such a limit the other side comes to nothing, on this level and on all finer ones.
    """
    n = best.size
    where = np.empty((STARTS, n), np.int8)
    weight = np.empty((STARTS, 3), np.int64)
    lightest = total
    for turn in range(STARTS):
        grown = _grow(graph, total // 2, scrambled(seed, turn), where[turn])
        if n <= MAX_EDGE_CUT_NODES:
            _refine_cut(graph, where[turn], grown, total, max_weight)
        _cover(graph, where[turn], weight[turn])
        lightest = min(lightest, weight[turn, SEPARATOR])
    share = FAIR if HEAVY * lightest > total else ALL
    chosen = 0
    for turn in range(1, STARTS):
        if is_better(weight[turn], weight[chosen], max_weight, share):
            chosen = turn
    best[:], best_weight[:] = where[chosen], weight[chosen]
    refine(graph, best, best_weight, work, max_weight, share)
    return share
