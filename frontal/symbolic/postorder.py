"""Fronts in a postorder that minimizes the stack of contribution blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import allocating, brief, inner, jit
from ..machine.resources import FrontCost
from ..machine.threads import is_short, parallel_for
from ..ordering.etree import depth_first
from ..ordering.groups import members_of
from .supernodes import Merged, amalgamate, amalgamate_short, fundamental_supernodes, shorten


class FrontOrder(NamedTuple):
    """An elimination order and its fronts.

    Attributes
    ----------
    perm, iperm : (n,) int32 arrays
        ``perm[k]`` is the node eliminated k-th, and the inverse. In a front descendants come first.
    start : (fronts + 1,) int32 array
        First column of each front.
    parent : (fronts,) int32 array
        Assembly tree, -1 at roots; every parent follows its children.
    updates : (fronts,) int32 array
        Number of update rows of each front.
    """

    perm: np.ndarray
    iperm: np.ndarray
    start: np.ndarray
    parent: np.ndarray
    updates: np.ndarray


@allocating
def _front_tree(into, above):
    """Number the unmerged supernodes; return (front of each supernode, parent front)."""
    total = into.size
    front = np.empty(total, np.int32)
    fronts = 0
    for s in range(total - 1, -1, -1):  # parents first
        if into[s] == s:
            front[s] = fronts
            fronts += 1
        else:
            front[s] = front[into[s]]
    parent = np.full(fronts, -1, np.int32)
    for s in range(total):
        front[s] = fronts - 1 - front[s]
    for s in range(total):
        if into[s] == s and above[s] >= 0:
            parent[front[s]] = front[above[s]]
    return front, parent


@inner
def _sort_by_need(children, block, peak, spare):
    """Sort children by decreasing ``peak - block``, stably; NumPy's sort compiles for seconds."""
    size, width = children.size, 1
    while width < size:
        for begin in range(0, size, 2 * width):
            middle, end = min(begin + width, size), min(begin + 2 * width, size)
            i, j = begin, middle
            for at in range(begin, end):
                first = j == end
                if not first and i < middle:
                    a, b = children[i], children[j]
                    first = block[a] - peak[a] <= block[b] - peak[b]
                if first:
                    spare[at] = children[i]
                    i += 1
                else:
                    spare[at] = children[j]
                    j += 1
        for at in range(size):
            children[at] = spare[at]
        width *= 2


@allocating
def _stack_order(parent, updates):
    """Return the postorder of the fronts that minimizes the stack of contribution blocks.

    Liu (1986): children are ordered by decreasing difference of the peak of their subtree and
    their contribution block.
    """
    fronts = parent.size
    pointer, children = members_of(parent)
    block = updates.astype(np.float64) ** 2
    peak = np.zeros(fronts, np.float64)
    stack = np.empty(fronts, np.int32)
    for s in range(fronts):
        mine = children[pointer[s] : pointer[s + 1]]
        _sort_by_need(mine, block, peak, stack)
        held = 0.0
        for c in mine:
            peak[s] = max(peak[s], held + peak[c])
            held += block[c]
        peak[s] = max(peak[s], held + block[s])
    return depth_first(parent, pointer, children)


class _Moves(NamedTuple):
    """Columns of supernodes on their way to fronts.

    `front` is the front of each supernode, `top` the last supernode of each front, and `free` its
    next free position in `new_perm`.
    """

    first: np.ndarray
    cut: np.ndarray
    perm: np.ndarray
    front: np.ndarray
    top: np.ndarray
    free: np.ndarray
    new_perm: np.ndarray
    new_iperm: np.ndarray


@jit
def _numbered(first, into, above, columns, updates, cut, perm):
    """Number the fronts in their final order; return `_Moves`, start, parent and updates."""
    front, tree = _front_tree(into, above)
    fronts = tree.size
    k, m, top = np.empty(fronts, np.int32), np.empty(fronts, np.int32), np.empty(fronts, np.int32)
    for s in range(front.size):
        if into[s] == s:
            k[front[s]], m[front[s]], top[front[s]] = columns[s], updates[s], s
    visit = _stack_order(tree, m)
    rank, start = np.empty(fronts, np.int32), np.zeros(fronts + 1, np.int32)
    for i in range(fronts):
        rank[visit[i]] = i
        start[i + 1] = start[i] + k[visit[i]]
    parent = np.full(fronts, -1, np.int32)
    for s in range(fronts):
        if tree[s] >= 0:
            parent[rank[s]] = rank[tree[s]]
    for s in range(front.size):
        front[s] = rank[front[s]]
    free, new_perm, new_iperm = start[:-1].copy(), np.empty_like(perm), np.empty_like(perm)
    moves = _Moves(first, cut, perm, front, top[visit], free, new_perm, new_iperm)
    return moves, start, parent, m[visit]


@inner
def _move_columns(moves, s):
    """Move the columns of a supernode to the next free positions of its front."""
    f = moves.front[s]
    k = moves.free[f]
    for j in range(moves.first[s], moves.first[s + 1]):
        moves.new_perm[k], moves.new_iperm[moves.perm[j]] = moves.perm[j], k
        k += 1
    moves.free[f] = k


@jit
def _move(moves, begin, end):
    """Move the supernodes of a range; return those that wait because their front crosses it."""
    top, cut, waiting, late = moves.top, moves.cut, np.empty(end - begin, np.int32), 0
    for s in range(begin, end):
        f = moves.front[s]
        if top[f] >= end or cut[top[f]]:
            waiting[late] = s
            late += 1
        else:
            _move_columns(moves, s)
    return waiting[:late].copy()


@jit
def _move_rest(moves, waiting):
    for s in waiting:
        _move_columns(moves, s)


@brief
def _arrange(first, into, above, columns, updates, cut, perm):
    """Compute `arrange_fronts` in one compiled call."""
    moves, start, parent, sizes = _numbered(first, into, above, columns, updates, cut, perm)
    _move(moves, 0, into.size)
    return moves.new_perm, moves.new_iperm, start, parent, sizes


def arrange_fronts(first: np.ndarray, merged: Merged, perm: np.ndarray) -> FrontOrder:
    """Return the final elimination order after amalgamation.

    Parameters
    ----------
    first : (s + 1,) int32 array
        Fundamental supernodes.
    merged : Merged
    perm : (n,) int32 array
        Previous elimination order: ``perm[k]`` is the node eliminated k-th.
    """
    if is_short(first):
        return FrontOrder(*_arrange(first, *merged, perm))
    moves, *tree = _numbered(first, *merged, perm)
    waiting = parallel_for(lambda *bounds: _move(moves, *bounds), first)
    if any(part.size for part in waiting):
        _move_rest(moves, np.concatenate(waiting))
    return FrontOrder(moves.new_perm, moves.new_iperm, *tree)


def fronts_of(
    perm: np.ndarray, parent: np.ndarray, count: np.ndarray, tie: np.ndarray, model: FrontCost
) -> FrontOrder:
    """Return the fronts of an elimination tree, from supernodes merged by a cost model.

    Parameters
    ----------
    perm, parent, count : (n,) int32 arrays
        As in `EliminationTree`.
    tie, model
        See `amalgamate`.
    """
    if is_short(parent.size) and not model.latency:
        return FrontOrder(*_short_fronts(perm, parent, count, tie, model))
    first = fundamental_supernodes(parent, count)
    merged = amalgamate(first, parent, count, tie, model)
    if model.latency:
        shorten(merged.into, merged.above, merged.columns, merged.updates, model)
    return arrange_fronts(first, merged, perm)


@brief
def _short_fronts(perm, parent, count, tie, model):
    """Run `fronts_of` in one compiled call."""
    first = fundamental_supernodes(parent, count)
    into, above, columns, updates, cut = amalgamate_short(first, parent, count, tie, model)
    return _arrange(first, into, above, columns, updates, cut, perm)
