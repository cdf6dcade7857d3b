"""Fronts in a postorder that minimizes the stack of contribution blocks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import allocating, brief, inner, jit
from ..machine.threads import is_short, parallel_for
from .supernodes import Merged


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


@jit
def children_of(parent):
    """Return the extents of the children of each front, and the children, ascending."""
    pointer = np.zeros(parent.size + 1, np.int64)
    for p in parent:
        if p >= 0:
            pointer[p + 1] += 1
    for s in range(parent.size):
        pointer[s + 1] += pointer[s]
    cursor = pointer[:-1].copy()
    children = np.empty(pointer[-1], np.int32)
    for s in range(parent.size):
        p = parent[s]
        if p >= 0:
            children[cursor[p]] = s
            cursor[p] += 1
    return pointer, children


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
    pointer, children = children_of(parent)
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
    order = np.empty(fronts, np.int32)
    cursor = pointer[:-1].copy()
    done = 0
    for root in range(fronts):
        if parent[root] >= 0:
            continue
        stack[0] = root
        top = 1
        while top > 0:
            s = stack[top - 1]
            if cursor[s] == pointer[s + 1]:
                top -= 1
                order[done] = s
                done += 1
            else:
                stack[top] = children[cursor[s]]
                cursor[s] += 1
                top += 1
    return order


@allocating
def _numbered(into, above, columns, updates):
    """Number the fronts in their final order.

    Return the front of each supernode; the last supernode of each front; and start, parent and
    updates as in `FrontOrder`.
    """
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
    return front, top[visit], start, parent, m[visit]


@jit
def _numbered_fronts(into, above, columns, updates):
    return _numbered(into, above, columns, updates)


@inner
def _place_columns(first, perm, free, new_perm, new_iperm, s, f):
    """Move the columns of supernode s to the next free positions of front f."""
    k = free[f]
    for j in range(first[s], first[s + 1]):
        new_perm[k], new_iperm[perm[j]] = perm[j], k
        k += 1
    free[f] = k


@inner
def _place(first, perm, front, top, cut, free, new_perm, new_iperm, begin, end, waiting):
    """Place the supernodes of a range; return how many wait because their front crosses it."""
    late = 0
    for s in range(begin, end):
        f = front[s]
        if top[f] >= end or cut[top[f]]:
            waiting[late] = s
            late += 1
        else:
            _place_columns(first, perm, free, new_perm, new_iperm, s, f)
    return late


@jit
def _place_range(first, perm, front, top, cut, free, new_perm, new_iperm, begin, end):
    waiting = np.empty(end - begin, np.int32)
    return waiting[
        : _place(first, perm, front, top, cut, free, new_perm, new_iperm, begin, end, waiting)
    ].copy()


@jit
def _place_rest(first, perm, front, free, new_perm, new_iperm, waiting):
    for s in waiting:
        _place_columns(first, perm, free, new_perm, new_iperm, s, front[s])


@brief
def _arrange(first, into, above, columns, updates, cut, perm):
    """Compute `arrange_fronts` in one compiled call."""
    front, top, start, parent, sizes = _numbered(into, above, columns, updates)
    new_perm, new_iperm = np.empty_like(perm), np.empty_like(perm)
    to = start[:-1].copy(), new_perm, new_iperm
    _place(first, perm, front, top, cut, *to, 0, into.size, np.empty(0, np.int32))
    return new_perm, new_iperm, start, parent, sizes


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
    front, top, start, parent, updates = _numbered_fronts(*merged[:4])
    new_perm, new_iperm = np.empty((2, perm.size), np.int32)
    to = start[:-1].copy(), new_perm, new_iperm
    args = first, perm, front, top, merged.cut, *to
    waiting = parallel_for(lambda *bounds: _place_range(*args, *bounds), first)
    if any(part.size for part in waiting):
        _place_rest(first, perm, front, *to, np.concatenate(waiting))
    return FrontOrder(new_perm, new_iperm, start, parent, updates)
