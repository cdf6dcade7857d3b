"""Update rows of every front and their relative indices, by walks up the assembly tree.

Row i has entries in the fronts on the paths from the fronts of its earlier eliminated neighbours up
to its own front. Rows are processed in order: the rows of each front are found in ascending order,
and a walk ends at a front whose last row is i (Liu 1986, for columns).

Threads process ranges of the fronts, and in each range the fronts whose subtrees lie in it. The
rows of the remaining fronts are computed afterwards, from the rows of their children and their own
columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import allocating, brief, inner, jit
from ..machine.threads import is_short, parallel_for
from ..ordering.graph import Graph
from .postorder import FrontOrder

NONE = -1


# One record, half a cache line, holds all that a walk reads about a front.
FRONT = np.dtype(
    [
        ("free", np.int64),  # position of the front's next row in `rows`
        ("shift", np.int64),  # relative index of an update row minus its position in `rows`
        ("last", np.int32),  # the last row found, or the pivot row in process
        ("up", np.int32),  # parent, or -1 if walks end here
        ("begin", np.int32),  # first pivot column
        ("low", np.int32),  # first front of the subtree
    ]
)


class _FrontRows(NamedTuple):
    """A graph, its elimination order, its fronts, and their rows found so far.

    `at` is the front of each node, `front` the state of each front; other arrays are as in `Plan`.
    """

    indptr: np.ndarray
    indices: np.ndarray
    perm: np.ndarray
    iperm: np.ndarray
    at: np.ndarray
    start: np.ndarray
    parent: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    relative: np.ndarray
    front: np.ndarray


def front_rows(graph: Graph, fronts: FrontOrder) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the ascending update rows of every front: pointer (int64), rows and relative (int32).

    The update rows of a front are the rows of its children and of its own columns, without its
    pivot columns. Pointer, rows and relative are arrays of a `Plan`.
    """
    indptr, indices = graph.indptr, graph.indices
    if is_short(indptr):
        return _front_rows(indptr, indices, *fronts)
    state = _begun(indptr, indices, *fronts)
    columns = state.pointer + state.start
    parallel_for(lambda *bounds: _set_fronts(state, *bounds), columns)
    around = graph.nnz // max(graph.n, 1)  # neighbours of a column, which are read, too
    rest = parallel_for(
        lambda *bounds: _find_rows(state, *bounds), columns + state.start * np.int64(around)
    )
    if any(part.size for part in rest):
        _find_rest(state, np.concatenate(rest))
    return state.pointer, state.rows, state.relative


@brief
def _front_rows(indptr, indices, perm, iperm, start, parent, updates):
    """Compute `front_rows` in one compiled call."""
    state, fronts = _begun(indptr, indices, perm, iperm, start, parent, updates), parent.size
    _set_fronts(state, 0, fronts)
    none = np.empty(0, np.int32)
    _find(state, 0, fronts, none, none, none)
    return state.pointer, state.rows, state.relative


@jit
def _begun(indptr, indices, perm, iperm, start, parent, updates):
    """Return the extents of rows, empty arrays for rows and relative indices, and the fronts."""
    pointer, front = np.zeros(start.size, np.int64), np.empty(parent.size, FRONT)
    for s in range(parent.size):
        pointer[s + 1] = pointer[s] + updates[s]
        front[s].free = pointer[s]
        front[s].shift = start[s + 1] - start[s] - pointer[s]
        front[s].last, front[s].up = NONE, parent[s]
        front[s].begin, front[s].low = start[s], s
    for s in range(parent.size):
        above = int(parent[s])
        if above >= 0:
            front[above].low = min(front[above].low, front[s].low)
    rows, relative = np.empty(pointer[-1], np.int32), np.empty(pointer[-1], np.int32)
    at = np.empty(perm.size, np.int32)
    return _FrontRows(
        indptr, indices, perm, iperm, at, start, parent, pointer, rows, relative, front
    )


@jit
def _set_fronts(state, first, last):
    """Set the front of each node of a range of fronts."""
    for s in range(first, last):
        for j in range(state.start[s], state.start[s + 1]):
            state.at[state.perm[j]] = s


@inner
def _climb(front, rows, relative, i, s, child):
    """Append row i to front s and its ancestors, up to a front that has it.

    `child` is the position of the row in a child of front s, or negative.
    """
    while s >= 0 and front[s].last != i:
        front[s].last = i
        q = front[s].free
        front[s].free = q + 1
        rows[q] = i
        if child >= 0:
            relative[child] = q + front[s].shift
        child, s = q, front[s].up
    if s >= 0 and child >= 0:
        # row i is a pivot column of the front, or the last row appended to it
        relative[child] = min(i - front[s].begin, front[s].free - 1 + front[s].shift)


@allocating
def _by_row(row, front, child, low, high):
    """Sort pairs of a row, ``low <= row < high``, and a front; return extents, fronts, children."""
    begin = np.zeros(high - low + 1, np.int32)
    for k in range(row.size):
        begin[row[k] - low + 1] += 1
    for k in range(high - low):
        begin[k + 1] += begin[k]
    free = begin[:-1].copy()
    fronts, children = np.empty(row.size, np.int32), np.empty(child.size, np.int64)
    for k in range(row.size):
        q = free[row[k] - low]
        free[row[k] - low] = q + 1
        fronts[q] = front[k]
        if child.size > 0:
            children[q] = child[k]
    return begin, fronts, children


@inner
def _neighbours(state, s):
    """Return the number of neighbours of the pivot columns of a front."""
    count = np.int64(0)
    for j in range(state.start[s], state.start[s + 1]):
        count += state.indptr[state.perm[j] + 1] - state.indptr[state.perm[j]]
    return count


@inner
def _stay_inside(state, first, last):
    """End walks before fronts outside a range; return the number of neighbours of its columns."""
    total = np.int64(0)
    for s in range(first, last):
        above = state.parent[s]
        if above >= last or state.front[above].low < first:
            state.front[s].up = NONE
        total += _neighbours(state, s)
    return total


@inner
def _find(state, first, last, row, owner, rest):
    """Find the rows inside a range for the fronts whose subtrees lie in the range.

    Store pairs of a later row and a front that has a neighbour of it in `row` and `owner`, and the
    fronts with other subtrees in `rest`; return both numbers.
    """
    indptr, indices, perm, iperm, at, start, _, _, rows, relative, front = state
    pairs = others = 0
    for s in range(first, last):
        inside = front[s].low >= first
        if not inside:
            rest[others] = s
            others += 1
        for i in range(start[s], start[s + 1]):
            front[s].last = i
            v = perm[i]
            for p in range(indptr[v], indptr[v + 1]):
                t = at[indices[p]]
                if t < s:
                    if t >= first and front[t].last != i and front[t].low >= first:
                        _climb(front, rows, relative, i, t, NONE)
                elif t >= last and inside:
                    row[pairs], owner[pairs] = iperm[indices[p]], s
                    pairs += 1
    return pairs, others


@jit
def _find_rows(state, first, last):
    """Find the rows of a range's fronts whose subtrees lie in it; return the other fronts."""
    # Unused pages of these arrays are never touched.
    row, owner = np.empty((2, _stay_inside(state, first, last)), np.int32)
    rest = np.empty(last - first, np.int32)
    pairs, others = _find(state, first, last, row, owner, rest)
    if pairs > 0:
        low, end, none = state.start[last], state.perm.size, np.empty(0, np.int64)
        begin, fronts, _ = _by_row(row[:pairs], owner[:pairs], none, low, end)
        for i in range(low, end):
            for k in range(begin[i - low], begin[i - low + 1]):
                _climb(state.front, state.rows, state.relative, i, fronts[k], NONE)
    return rest[:others].copy()


@allocating
def _remaining_pairs(state, rest):
    """Return the rows of remaining fronts, from their columns and from completed children.

    The result is three arrays: row, front, and position of the row in the child (-1: none). The
    relative indices of child rows that are pivot columns of the parent are set here.
    """
    indptr, indices, perm, iperm, at, start, parent, pointer, rows, relative, front = state
    late, capacity = np.zeros(parent.size, np.bool_), np.int64(0)
    for s in rest:
        late[s], front[s].up = True, parent[s]
        capacity += _neighbours(state, s)
    for s in range(parent.size):
        if not late[s] and parent[s] >= 0 and late[parent[s]]:
            capacity += pointer[s + 1] - pointer[s]
    row, owner = np.empty((2, capacity), np.int32)
    child = np.empty(capacity, np.int64)
    pairs = 0
    for s in rest:
        for j in range(start[s], start[s + 1]):
            for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
                if at[indices[p]] > s:
                    row[pairs], owner[pairs], child[pairs] = iperm[indices[p]], s, NONE
                    pairs += 1
    for s in range(parent.size):
        t = parent[s]
        if late[s] or t < 0 or not late[t]:
            continue
        for q in range(pointer[s], pointer[s + 1]):
            if rows[q] < start[t + 1]:
                relative[q] = rows[q] - start[t]
            else:
                row[pairs], owner[pairs], child[pairs] = rows[q], t, q
                pairs += 1
    return row[:pairs], owner[:pairs], child[:pairs]


@jit
def _find_rest(state, rest):
    """Find the rows of the remaining fronts once all ranges are complete."""
    front, n = state.front, state.perm.size
    begin, fronts, children = _by_row(*_remaining_pairs(state, rest), 0, n)
    for i in range(n):
        if begin[i] < begin[i + 1]:
            front[state.at[state.perm[i]]].last = i
        for k in range(begin[i], begin[i + 1]):
            _climb(front, state.rows, state.relative, i, fronts[k], children[k])
