"""Supernodes and fronts: groups of columns eliminated together.

A front has k pivot columns and m update rows. Fundamental supernodes have no zeros in their
panels; amalgamation merges a child into its parent if, by a cost model, one larger front with its
zeros is cheaper than two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import brief, inner, jit
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


@inner
def _tied(tie, first, s):
    """Return whether the last column of supernode s must share a front with the next column."""
    return tie.size > 0 and tie[first[s + 1] - 1]


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
        return Merged(*_amalgamate(first, parent, count, tie, model))
    owner, size = np.empty(parent.size, np.int32), first.size - 1
    into, above, columns, updates = np.empty((4, size), np.int32)
    seconds, cut = np.empty(size), np.zeros(size, np.bool_)
    parallel_for(lambda begin, end: _set_owners_range(first, owner, begin, end), first)
    for beyond in parallel_for(
        lambda begin, end: _begin_range(
            first, parent, count, owner, into, above, columns, updates, seconds, model, begin, end
        ),
        first,
    ):
        cut[beyond] = True
    waiting = parallel_for(
        lambda begin, end: _settle_range(
            first, tie, into, above, columns, updates, cut, seconds, model, begin, end
        ),
        first,
    )
    if any(part.size for part in waiting):
        _settle_rest(
            first, tie, into, above, columns, updates, cut, seconds, model, np.concatenate(waiting)
        )
    return Merged(into, above, columns, updates, cut)


@brief
def _amalgamate(first, parent, count, tie, model):
    """Compute `amalgamate` in one compiled call."""
    size = first.size - 1
    owner, none = np.empty(parent.size, np.int32), np.empty(0, np.int32)
    into, above = np.empty(size, np.int32), np.empty(size, np.int32)
    columns, updates = np.empty(size, np.int32), np.empty(size, np.int32)
    seconds, cut = np.empty(size), np.zeros(size, np.bool_)
    _set_owners(first, owner, 0, size)
    _begin(
        first, parent, count, owner, into, above, columns, updates, seconds, model, 0, size, none
    )
    _settle(first, tie, into, above, columns, updates, cut, seconds, model, 0, size, none)
    return into, above, columns, updates, cut


@inner
def _set_owners(first, owner, begin, end):
    """Set the supernode of each column."""
    for s in range(begin, end):
        for j in range(first[s], first[s + 1]):
            owner[j] = s


@jit
def _set_owners_range(first, owner, begin, end):
    _set_owners(first, owner, begin, end)


@inner
def _begin(
    first, parent, count, owner, into, above, columns, updates, seconds, model, begin, end, beyond
):
    """Initialize the supernodes of a range unmerged; list parents beyond; return their number."""
    far = 0
    for s in range(begin, end):
        last = first[s + 1] - 1
        k, m = first[s + 1] - first[s], count[last] - 1
        into[s], above[s], columns[s], updates[s] = s, -1, k, m
        seconds[s] = _front_seconds(k, m, model)
        if parent[last] >= 0:
            p = owner[parent[last]]
            above[s] = p
            if p >= end:
                beyond[far] = p
                far += 1
    return far


@jit
def _begin_range(
    first, parent, count, owner, into, above, columns, updates, seconds, model, begin, end
):
    beyond = np.empty(end - begin, np.int32)
    return beyond[
        : _begin(
            first,
            parent,
            count,
            owner,
            into,
            above,
            columns,
            updates,
            seconds,
            model,
            begin,
            end,
            beyond,
        )
    ].copy()


@inner
def _weigh(first, tie, into, columns, updates, seconds, model, s, p):
    """Merge a supernode into its parent if that is cheaper or its last column is tied."""
    k = columns[s] + columns[p]
    merged = _front_seconds(k, updates[p], model)
    if merged < seconds[s] + seconds[p] or _tied(tie, first, s):
        into[s] = p
        columns[p], seconds[p] = k, merged


@inner
def _settle(
    first, tie, into, above, columns, updates, cut, seconds, model, begin, end, waiting
):  # fmt: skip
    """Merge the supernodes of a range, except roots; return how many wait.

    A supernode waits if its parent is cut or beyond the range. The first child of a cut supernode
    is cut, too, or before the range.
    """
    late = 0
    for s in range(begin, end):
        p = above[s]
        if p < 0:
            continue
        if cut[s] and p < end:
            cut[p] = True
        if p >= end or cut[p]:
            waiting[late] = s
            late += 1
        else:
            _weigh(first, tie, into, columns, updates, seconds, model, s, p)
    return late


@jit
def _settle_range(first, tie, into, above, columns, updates, cut, seconds, model, begin, end):
    waiting = np.empty(end - begin, np.int32)
    return waiting[
        : _settle(
            first, tie, into, above, columns, updates, cut, seconds, model, begin, end, waiting
        )
    ].copy()


@jit
def _settle_rest(first, tie, into, above, columns, updates, cut, seconds, model, waiting):
    for s in waiting:
        _weigh(first, tie, into, columns, updates, seconds, model, s, above[s])
