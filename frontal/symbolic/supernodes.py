"""Supernodes and fronts: groups of columns eliminated together.

A front has k pivot columns and m update rows. Fundamental supernodes have no zeros in their
panels; amalgamation merges a child into its parent if, by a cost model, one larger front with its
zeros is cheaper than two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import allocating, brief, inner, jit
from ..machine.resources import FrontCost
from ..machine.threads import is_short, parallel_for

TILE = 64  # rows of the largest front that a GPU handles as one tile, and of tiles of larger fronts


@brief
def fundamental_supernodes(parent, count):
    """Return the first column of each fundamental supernode, then n (Liu, Ng, Peyton 1993).

    Column j + 1 belongs to the supernode of j if j is its only child and their structures nest.
    """
    n = parent.size
    children = np.zeros(n, np.int32)
    for j in range(n):
        if parent[j] >= 0:
            children[parent[j]] += 1
    first = np.empty(n + 1, np.int32)
    fronts = 0
    for j in range(n):
        nested = j > 0 and parent[j - 1] == j and count[j - 1] == count[j] + 1
        if not (nested and children[j] == 1):
            first[fronts] = j
            fronts += 1
    first[fronts] = n
    return first[: fronts + 1]


@inner
def _front_seconds(k, m, model):
    flops = k * (k * (k / 3.0 + m) + m * float(m))
    traffic = (k + m) * float(k) + 2.0 * m * float(m)
    seconds = model.front + model.entry * traffic + flops * (k + model.half) / (model.rate * k)
    if k + m > TILE:
        tiles = -(-k // TILE) - (-m // TILE)
        seconds += model.tile * 0.5 * tiles * (tiles + 1.0)
    return seconds + model.stored * k * (0.5 * k + m)


class Merged(NamedTuple):
    """Supernodes after amalgamation.

    Attributes
    ----------
    into : (s,) int32 array
        The supernode that each supernode is merged into; itself if it is not merged.
    above : (s,) int32 array
        Parent in the tree of fundamental supernodes, -1 at roots.
    columns, updates : (s,) int32 arrays
        k and m of each supernode that is not merged.
    cut : (s,) bool array
        Supernodes whose subtrees begin before the range of `parallel_for` that they end in.
    """

    into: np.ndarray
    above: np.ndarray
    columns: np.ndarray
    updates: np.ndarray
    cut: np.ndarray


class _Amalgamation(NamedTuple):
    """Arguments, result and state of `amalgamate`.

    `owner` is the supernode of each column, `seconds` the modelled time of each supernode.
    """

    first: np.ndarray
    parent: np.ndarray
    counts: np.ndarray
    tie: np.ndarray
    owner: np.ndarray
    into: np.ndarray
    above: np.ndarray
    columns: np.ndarray
    updates: np.ndarray
    seconds: np.ndarray
    cut: np.ndarray


def amalgamate(
    first: np.ndarray, parent: np.ndarray, count: np.ndarray, tie: np.ndarray, model: FrontCost
) -> Merged:
    """Merge supernodes into their parents where the cost model predicts a gain.

    Children are processed before parents: a supernode, merged with its children or not, is compared
    with the parent as merged so far. Threads process ranges of the supernodes; supernodes next to
    a subtree that crosses a range are processed afterwards.

    Parameters
    ----------
    first : (s + 1,) int32 array
        Fundamental supernodes.
    parent, count : (n,) int32 arrays
        Elimination tree and column counts.
    tie : (n,) or (0,) bool array
        ``tie[j]`` forces column j into the front of its parent column.
    model : FrontCost
    """
    if is_short(first):
        return Merged(*amalgamate_short(first, parent, count, tie, model))
    state = _begun(first, parent, count, tie)
    parallel_for(lambda *bounds: _set_owners(state, *bounds), first)
    for beyond in parallel_for(lambda *bounds: _begin(state, model, *bounds), first):
        state.cut[beyond] = True
    waiting = parallel_for(lambda *bounds: _merge(state, model, *bounds), first)
    if any(part.size for part in waiting):
        _merge_rest(state, model, np.concatenate(waiting))
    return Merged(state.into, state.above, state.columns, state.updates, state.cut)


@brief
def amalgamate_short(first, parent, count, tie, model):
    """Compute `amalgamate` in one compiled call."""
    state, size = _begun(first, parent, count, tie), first.size - 1
    _set_owners(state, 0, size)
    _begin(state, model, 0, size)
    _merge(state, model, 0, size)
    return state.into, state.above, state.columns, state.updates, state.cut


@jit
def _begun(first, parent, count, tie):
    """Return the state of `amalgamate` with new arrays; no supernode is cut yet."""
    size, owner = first.size - 1, np.empty(parent.size, np.int32)
    into, above = np.empty(size, np.int32), np.empty(size, np.int32)
    columns, updates = np.empty(size, np.int32), np.empty(size, np.int32)
    seconds, cut = np.empty(size), np.zeros(size, np.bool_)
    return _Amalgamation(
        first, parent, count, tie, owner, into, above, columns, updates, seconds, cut
    )


@jit
def _set_owners(state, begin, end):
    """Set the supernode of each column."""
    for s in range(begin, end):
        for j in range(state.first[s], state.first[s + 1]):
            state.owner[j] = s


@jit
def _begin(state, model, begin, end):
    """Initialize the supernodes of a range unmerged; return the parents beyond it."""
    first, parent, beyond = state.first, state.parent, np.empty(end - begin, np.int32)
    far = 0
    for s in range(begin, end):
        last = first[s + 1] - 1
        k, m = first[s + 1] - first[s], state.counts[last] - 1
        state.into[s], state.above[s], state.columns[s], state.updates[s] = s, -1, k, m
        state.seconds[s] = _front_seconds(k, m, model)
        if parent[last] >= 0:
            p = state.owner[parent[last]]
            state.above[s] = p
            if p >= end:
                beyond[far] = p
                far += 1
    return beyond[:far].copy()


@inner
def _weigh(state, model, s, p):
    """Merge a supernode into its parent if that is cheaper or its last column is tied."""
    columns, seconds, tie = state.columns, state.seconds, state.tie
    k = columns[s] + columns[p]
    merged = _front_seconds(k, state.updates[p], model)
    is_tied = tie.size > 0 and tie[state.first[s + 1] - 1]
    if merged < seconds[s] + seconds[p] or is_tied:
        state.into[s] = p
        columns[p], seconds[p] = k, merged


@jit
def _merge(state, model, begin, end):
    """Merge the supernodes of a range, except roots; return the waiting ones.

    A supernode waits if its parent is cut or beyond the range. The first child of a cut supernode
    is cut, too, or before the range.
    """
    cut, waiting, late = state.cut, np.empty(end - begin, np.int32), 0
    for s in range(begin, end):
        p = state.above[s]
        if p < 0:
            continue
        if cut[s] and p < end:
            cut[p] = True
        if p >= end or cut[p]:
            waiting[late] = s
            late += 1
        else:
            _weigh(state, model, s, p)
    return waiting[:late].copy()


@jit
def _merge_rest(state, model, waiting):
    for s in waiting:
        _weigh(state, model, s, state.above[s])


@jit
def shorten(into, above, columns, updates, model):
    """Merge the last of a front's children to end into it where that shortens the longest path.

    The arguments are arrays of `Merged`, which change, and a model with a latency. The path to a
    front becomes shorter by what its last child ends after the others, at most by the latency:
    pivot columns follow each other in one front or in two. Where a level has more children than the
    machine works on at once, they need not wait.
    """
    size = into.size
    top, late = np.empty(size, np.int32), np.zeros(size)
    children = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
    for s in range(size - 1, -1, -1):
        top[s] = s if into[s] == s else top[into[s]]
    level, fronts = _levels(top, above)
    for p in range(size):
        if top[p] != p:
            continue
        s, last, second = _last_two(children, late, p)
        while s >= 0 and fronts[level[s]] <= model.width:
            m, k = updates[p], columns[s] + columns[p]
            apart = _front_seconds(columns[s], updates[s], model)
            apart += _front_seconds(columns[p], m, model)
            gain = model.share * min(last - second, model.latency)
            if _front_seconds(k, m, model) - apart >= gain:
                break
            into[s], columns[p] = p, k
            child, last, other = _last_two(children, late, s)
            s = child if last > second else np.int32(-1)
            last, second = max(last, second), max(min(last, second), other)
        _adopt(children, into, p)
        late[p] = last + model.latency + model.pivot * columns[p]
        if above[p] >= 0:
            first, following = children
            following[p], first[top[above[p]]] = first[top[above[p]]], p


@allocating
def _levels(top, above):
    """Return the height of each front over the leaves, and the number of fronts of each height."""
    level, fronts = np.zeros(top.size, np.int32), np.zeros(top.size, np.int32)
    for s in range(top.size):
        if top[s] == s:
            fronts[level[s]] += 1
            if above[s] >= 0:
                p = top[above[s]]
                level[p] = max(level[p], level[s] + np.int32(1))
    return level, fronts


@inner
def _last_two(children, late, p):
    """Return the child that ends last, or -1, its end and that of the next to last.

    `children` are the first child of each supernode, and the next one of the same parent.
    """
    first, following = children
    best, last, second = np.int32(-1), 0.0, 0.0
    s = first[p]
    while s >= 0:
        if late[s] > last:
            best, last, second = s, late[s], last
        elif late[s] > second:
            second = late[s]
        s = following[s]
    return best, last, second


@inner
def _adopt(children, into, p):
    """Replace merged children by theirs, of which at most one is merged, too."""
    first, following = children
    head, owner = np.int32(-1), np.int32(p)
    while owner >= 0:
        s, owner = first[owner], np.int32(-1)
        while s >= 0:
            after = following[s]
            if into[s] == s:
                following[s], head = head, s
            else:
                owner = s
            s = after
    first[p] = head
