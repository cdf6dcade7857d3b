"""Refinement of vertex separators by Fiduccia and Mattheyses: nodes move to a side.

A node that moves to one side pulls its neighbours on the opposite side into the separator. In a
pass each node moves at most once, the best move first, even if the separator grows; at the end the
moves after the best state are undone. The work is proportional to the edges around the separator.

References: C. M. Fiduccia, R. M. Mattheyses, 19th DAC (1982); C. Ashcraft, J. W. H. Liu, SIAM J.
Matrix Anal. Appl. 19 (1998), and G. Karypis's METIS, for separators of nodes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating, inner
from .graph import SEPARATOR

MAX_PASSES = 3  # over the nodes beside a separator
PATIENCE = 100  # moves without a better state that end a pass
ABSENT = -1  # position of a node that is not in the heap

# Columns of `Separator.state`: all that a move reads about a node, in half a cache line.
INSIDE = 0  # and 1: weight of the node's neighbours on side 0 and 1
PLACE = 2  # and 3: position of the node in the heap of side 0 and 1
WEIGHT, RANK, MOVED = 4, 5, 6
COLUMNS = 8
# Entries of `Separator.sizes`, after the lengths of both heaps.
MEMBERS, PULLED, MOVES, PASS = 2, 3, 4, 5


class SideLimits(NamedTuple):
    """SideLimits of the weight of a side: absolute, and in percent of the weight of both sides."""

    weight: np.int64
    share: np.int64


class Bisection(NamedTuple):
    """A graph (`node`: weights of nodes) and the side of each node."""

    begin: np.ndarray
    near: np.ndarray
    node: np.ndarray
    where: np.ndarray


class Separator(NamedTuple):
    """State of a separator.

    Attributes
    ----------
    state : (n, COLUMNS) int32 array
        State of nodes that are, or were, in the separator.
    heap : (2, n) int32 array
        Nodes that may move to side 0 and to side 1, the best first.
    member : (n,) int32 array
        Nodes of the separator.
    pulled : int32 array
        Nodes pulled in during this pass.
    sizes : (6,) int64 array
        Lengths of both heaps, of `member`, `pulled`, `history`, and the number of the pass.
    """

    state: np.ndarray
    heap: np.ndarray
    member: np.ndarray
    pulled: np.ndarray
    sizes: np.ndarray


class RefinementWorkspace(NamedTuple):
    """A separator, the nodes moved in this pass, and the length of `pulled` before each move."""

    separator: Separator
    history: np.ndarray
    until: np.ndarray


@allocating
def make_work(n):
    """Return a workspace for graphs of up to n nodes."""
    separator = Separator(
        np.zeros((n, COLUMNS), np.int32),
        np.empty((2, n), np.int32),
        np.empty(n, np.int32),
        np.empty(2 * n, np.int32),  # a node can be pulled before its move and once after
        np.zeros(6, np.int64),
    )
    return RefinementWorkspace(separator, np.empty(n, np.int32), np.empty(n + 1, np.int32))


@inner
def _gain(state, side, v):
    """Return the decrease of the separator's weight if v moves to a side."""
    return state[v, WEIGHT] - state[v, INSIDE + 1 - side]


@inner
def _sift(state, heap, count, side, v, hole):
    """Sift v up or down a heap from the free position `hole` to its position."""
    size, gain = count[side], _gain(state, side, v)
    while hole > 0:  # towards the root
        above = (hole - 1) >> 1
        u = heap[side, above]
        rival_gain = _gain(state, side, u)
        if rival_gain > gain or (rival_gain == gain and u < v):
            break
        heap[side, hole] = u
        state[u, PLACE + side] = hole
        hole = above
    while True:  # towards the leaves
        below = 2 * hole + 1
        if below >= size:
            break
        u = heap[side, below]
        rival_gain = _gain(state, side, u)
        if below + 1 < size:
            w = heap[side, below + 1]
            second = _gain(state, side, w)
            if second > rival_gain or (second == rival_gain and w < u):
                below, u, rival_gain = below + 1, w, second
        if gain > rival_gain or (gain == rival_gain and v < u):
            break
        heap[side, hole] = u
        state[u, PLACE + side] = hole
        hole = below
    heap[side, hole] = v
    state[v, PLACE + side] = hole


@inner
def _push(state, heap, count, side, v):
    count[side] += 1
    _sift(state, heap, count, side, v, count[side] - 1)


@inner
def _drop(state, heap, count, side, v):
    """Remove v from a heap if it is in it."""
    hole = state[v, PLACE + side]
    if hole == ABSENT:
        return
    state[v, PLACE + side] = ABSENT
    count[side] -= 1
    last = heap[side, count[side]]
    if last != v:
        _sift(state, heap, count, side, last, hole)


@inner
def _change(state, heap, count, v, side, amount):
    """Update separator node v after a neighbour of weight `amount` joined (< 0: left) a side."""
    state[v, INSIDE + side] += amount
    place = state[v, PLACE + 1 - side]
    if place != ABSENT:
        _sift(state, heap, count, 1 - side, v, place)


@inner
def _join(parts, state, member, count, v):
    """Make v a member of the separator, in no heap."""
    begin, near, node, where = parts
    weight0 = weight1 = 0
    for p in range(begin[v], begin[v + 1]):
        u = near[p]
        if where[u] == 0:
            weight0 += node[u]
        elif where[u] == 1:
            weight1 += node[u]
    state[v, INSIDE], state[v, INSIDE + 1] = weight0, weight1
    state[v, PLACE] = state[v, PLACE + 1] = ABSENT
    state[v, WEIGHT], state[v, RANK] = node[v], count[MEMBERS]
    where[v] = SEPARATOR
    member[count[MEMBERS]] = v
    count[MEMBERS] += 1


@inner
def _leave(where, state, member, count, v, side):
    """Remove v from the separator to a side."""
    count[MEMBERS] -= 1
    last = member[count[MEMBERS]]
    member[state[v, RANK]] = last
    state[last, RANK] = state[v, RANK]
    where[v] = side


@inner
def _pull(parts, weight, separator, u):
    """Pull u from its side into the separator."""
    begin, near, node, where = parts
    state, heap, member, pulled, count = separator
    side = where[u]
    _join(parts, state, member, count, u)
    weight[side] -= node[u]
    weight[SEPARATOR] += node[u]
    for p in range(begin[u], begin[u + 1]):
        x = near[p]
        if where[x] == SEPARATOR:
            _change(state, heap, count, x, side, -node[u])
    if state[u, MOVED] != count[PASS]:
        _push(state, heap, count, 0, u)
        _push(state, heap, count, 1, u)
    pulled[count[PULLED]] = u
    count[PULLED] += 1


@inner
def _move(parts, weight, separator, v, side):
    """Move v from the separator to a side, and pull in its neighbours on the opposite side."""
    begin, near, node, where = parts
    state, heap, member, _, count = separator
    _drop(state, heap, count, 0, v)
    _drop(state, heap, count, 1, v)
    _leave(where, state, member, count, v, side)
    state[v, MOVED] = count[PASS]
    weight[SEPARATOR] -= node[v]
    weight[side] += node[v]
    for p in range(begin[v], begin[v + 1]):
        u = near[p]
        if where[u] == SEPARATOR:
            _change(state, heap, count, u, side, node[v])
        elif where[u] == 1 - side:
            _pull(parts, weight, separator, u)


@inner
def _undo(parts, weight, work):
    """Undo the last move."""
    begin, near, node, where = parts
    state, _, member, pulled, count = work.separator
    count[MOVES] -= 1
    v = work.history[count[MOVES]]
    side = where[v]
    first = work.until[count[MOVES]]
    while count[PULLED] > first:
        count[PULLED] -= 1
        u = pulled[count[PULLED]]
        _leave(where, state, member, count, u, 1 - side)
        weight[SEPARATOR] -= node[u]
        weight[1 - side] += node[u]
        for p in range(begin[u], begin[u + 1]):
            x = near[p]
            if where[x] == SEPARATOR:
                state[x, INSIDE + 1 - side] += node[u]
    _join(parts, state, member, count, v)
    weight[side] -= node[v]
    weight[SEPARATOR] += node[v]
    for p in range(begin[v], begin[v + 1]):
        x = near[p]
        if where[x] == SEPARATOR:
            state[x, INSIDE + side] -= node[v]


@inner
def _may_move(weight, state, v, side, limits):
    """Return whether v may move to a side; the share limits only the heavier side."""
    new_weight = weight[side] + state[v, WEIGHT]
    if new_weight > limits.weight:
        return False
    both = new_weight + weight[1 - side] - state[v, INSIDE + 1 - side]
    return 100 * new_weight <= limits.share * both or weight[side] <= weight[1 - side]


@inner
def _next(weight, state, heap, count, limits):
    """Return the best move that leaves no side too heavy: (node, side); node -1 if none."""
    while count[0] + count[1] > 0:
        side = np.int64(weight[1] < weight[0])  # ties: move to the lighter side
        if count[side] == 0:
            side = 1 - side
        elif count[1 - side] > 0 and weight[1 - side] <= limits.weight:
            rival = heap[1 - side, 0]
            better = _gain(state, 1 - side, rival) > _gain(state, side, heap[side, 0])
            if better and _may_move(weight, state, rival, 1 - side, limits):
                side = 1 - side
        v = heap[side, 0]
        if _may_move(weight, state, v, side, limits):
            return v, side
        _drop(state, heap, count, side, v)
    return np.int32(-1), np.int64(0)


@inner
def _overweight(weight, limits):
    limit = min(limits.weight, limits.share * (weight[0] + weight[1]) // 100)
    return max(max(weight[0], weight[1]) - limit, 0)


@inner
def is_better(weight, reference, limits):
    """Return whether a state is better: by overweight, then separator weight, then balance."""
    over, reference_over = _overweight(weight, limits), _overweight(reference, limits)
    if over != reference_over:
        return over < reference_over
    if weight[SEPARATOR] != reference[SEPARATOR]:
        return weight[SEPARATOR] < reference[SEPARATOR]
    return abs(weight[0] - weight[1]) < abs(reference[0] - reference[1])


@inner
def _copy(weight, best):
    for side in range(3):
        best[side] = weight[side]


@inner
def _run_pass(parts, weight, work, limits, best):
    """Run one pass; return whether it found a better state."""
    separator, history, until = work
    state, heap, member, _, count = separator
    count[0] = count[1] = count[PULLED] = count[MOVES] = until[0] = 0
    count[PASS] += 1
    for k in range(count[MEMBERS]):
        for side in range(2):
            _push(state, heap, count, side, member[k])
    _copy(weight, best)
    best_moves = 0
    patience = min(PATIENCE, count[MEMBERS] // 2 + 10)
    while count[MOVES] - best_moves < patience:
        v, side = _next(weight, state, heap, count, limits)
        if v < 0:
            break
        _move(parts, weight, separator, v, side)
        history[count[MOVES]] = v
        count[MOVES] += 1
        until[count[MOVES]] = count[PULLED]
        if is_better(weight, best, limits):
            _copy(weight, best)
            best_moves = count[MOVES]
    for side in range(2):
        for k in range(count[side]):
            state[heap[side, k], PLACE + side] = ABSENT
    while count[MOVES] > best_moves:
        _undo(parts, weight, work)
    return best_moves > 0


@allocating
def refine(graph, where, weight, work, limits):
    """Make a separator lighter, and the sides within the limits, as far as possible.

    `where` holds the side of each node, `weight` the weights of both sides and the separator.
    """
    parts = Bisection(graph.begin, graph.near, graph.weight, where)
    state, _, member, _, count = work.separator
    best = np.empty_like(weight)
    count[MEMBERS] = 0
    for v in range(where.size):
        if where[v] == SEPARATOR:
            _join(parts, state, member, count, v)
    for _ in range(MAX_PASSES):
        if not _run_pass(parts, weight, work, limits, best):
            break
