"""Supernodes and fronts: groups of columns eliminated together, and the rows of each front.

A front has k pivot columns and m update rows. Fundamental supernodes have no zeros in their
panels; amalgamation then merges a child into its parent wherever a cost model says that one larger
front is cheaper than two, zeros included.
"""

from __future__ import annotations

import numpy as np

from .._jit import allocating, brief, inner, jit
from ..parts import in_parts

_SCANNED = 16  # rows among which one is a front's: fewer are not sorted, but looked at
_SHORT = 32  # rows that are sorted by insertion
TILE = 64  # rows of fronts that a GPU takes whole, and of the tiles of larger ones


@brief
def fundamental_supernodes(parent, count):
    """First column of each fundamental supernode, and n as last entry (Liu, Ng, Peyton 1993).

    Column j + 1 continues the supernode of j if j is its only child and their structures nest.
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
    """Whether the last column of supernode s must share a front with the next column."""
    return tie.size > 0 and tie[first[s + 1] - 1]


@brief
def amalgamate(first, parent, count, tie, model):
    """Merge supernodes into their parents while the cost model gains.

    Parameters
    ----------
    first : (s + 1,) int32 array
        Fundamental supernodes.
    parent, count : (n,) int32 arrays
        Elimination tree and column counts.
    tie : (n,) or (0,) bool array
        ``tie[j]`` forces column j into the front of its parent column.
    model : FrontCost

    Returns
    -------
    into : (s,) int32 array
        The supernode that each one is merged into, itself where it stays.
    above : (s,) int32 array
        Parent in the tree of fundamental supernodes, -1 at roots.
    columns, updates : (s,) int32 arrays
        k and m of each supernode that stays.
    """
    fronts = first.size - 1
    owner = np.empty(parent.size, np.int32)
    for s in range(fronts):
        owner[first[s] : first[s + 1]] = s
    into = np.empty(fronts, np.int32)
    above = np.full(fronts, -1, np.int32)
    columns = np.empty(fronts, np.int32)
    updates = np.empty(fronts, np.int32)
    for s in range(fronts):
        into[s] = s
        last = first[s + 1] - 1
        columns[s] = first[s + 1] - first[s]
        updates[s] = count[last] - 1
        if parent[last] >= 0:
            above[s] = owner[parent[last]]
    # Children come before parents: when s is reached its own children are settled, and it is
    # weighed against the parent as merged so far.
    for s in range(fronts):
        p = above[s]
        if p < 0:
            continue
        k, m = columns[s], updates[s]
        apart = _front_seconds(k, m, model) + _front_seconds(columns[p], updates[p], model)
        merged = _front_seconds(k + columns[p], updates[p], model)
        if merged < apart or _tied(tie, first, s):
            into[s] = p
            columns[p] += k
    return into, above, columns, updates


@allocating
def _front_tree(into, above):
    """Number the supernodes that stay; return (front of each supernode, parent front)."""
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
    """Children of each front, ascending, and where each list begins."""
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
    """Merge sort: largest need first, stable; NumPy's takes seconds to compile."""
    size, width = children.size, 1
    while width < size:
        for left in range(0, size, 2 * width):
            middle, right = min(left + width, size), min(left + 2 * width, size)
            one, other = left, middle
            for at in range(left, right):
                first = other == right
                if not first and one < middle:
                    a, b = children[one], children[other]
                    first = block[a] - peak[a] <= block[b] - peak[b]
                if first:
                    spare[at] = children[one]
                    one += 1
                else:
                    spare[at] = children[other]
                    other += 1
        for at in range(size):
            children[at] = spare[at]
        width *= 2


@allocating
def _stack_order(parent, updates):
    """Postorder of the fronts that keeps the stack of contribution blocks lowest.

    Liu (1986): children in the order of what their subtrees need beyond what they leave, the
    largest first.
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


@jit
def arrange_fronts(first, into, above, columns, all_updates):
    """Final elimination order after amalgamation.

    Returns
    -------
    order : (n,) int32 array
        ``order[k]`` is the column (in the old numbering) that is eliminated k-th.
    start : (fronts + 1,) int32 array
        First column of each front, in the new numbering.
    parent : (fronts,) int32 array
        Assembly tree, -1 at roots; every parent comes after its children.
    updates : (fronts,) int32 array
        Number of update rows of each front.
    """
    front, tree = _front_tree(into, above)
    fronts = tree.size
    k = np.empty(fronts, np.int32)
    m = np.empty(fronts, np.int32)
    for s in range(into.size):
        if into[s] == s:
            k[front[s]] = columns[s]
            m[front[s]] = all_updates[s]
    visit = _stack_order(tree, m)
    rank = np.empty(fronts, np.int32)
    start = np.zeros(fronts + 1, np.int32)
    for i in range(fronts):
        rank[visit[i]] = i
        start[i + 1] = start[i] + k[visit[i]]
    cursor = start[:-1].copy()
    order = np.empty(first[-1], np.int32)
    for s in range(into.size):  # ascending: descendants first inside a front
        f = rank[front[s]]
        for j in range(first[s], first[s + 1]):
            order[cursor[f]] = j
            cursor[f] += 1
    parent = np.full(fronts, -1, np.int32)
    for s in range(fronts):
        if tree[s] >= 0:
            parent[rank[s]] = rank[tree[s]]
    updates = np.empty(fronts, np.int32)
    for s in range(fronts):
        updates[s] = m[visit[s]]
    return order, start, parent, updates


def front_rows(
    indptr: np.ndarray,
    indices: np.ndarray,
    perm: np.ndarray,
    iperm: np.ndarray,
    start: np.ndarray,
    parent: np.ndarray,
    updates: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Update rows of every front, ascending: (pointer int64, rows int32).

    The rows of a front are those of its children and of its own columns, less its pivot columns.
    Threads take fronts whose subtrees are theirs alone; those above come after.
    """
    pointer = np.append(0, np.cumsum(updates, dtype=np.int64))
    rows, n = np.empty(int(pointer[-1]), np.int32), perm.size
    head, sibling, low = _families(parent)
    done = np.zeros(parent.size, np.bool_)
    of = indptr, indices, perm, iperm, start, pointer, head, sibling, low, done, rows

    def work(first: int, last: int) -> None:
        _collect_rows(*of, np.zeros(n, np.int32), np.empty(n, np.int32), first, last)

    in_parts(work, pointer)
    if not done.all():
        work(0, parent.size)
    return pointer, rows


@jit
def _families(parent):
    """Last child and next older sibling of each front, and the first front of its subtree."""
    fronts = parent.size
    head, sibling = np.full(fronts, -1, np.int32), np.full(fronts, -1, np.int32)
    low = np.arange(fronts)
    for s in range(fronts):
        p = parent[s]
        if p >= 0:
            low[p] = min(low[p], low[s])
            sibling[s] = head[p]
            head[p] = s
    return head, sibling, low


@inner
def _insert(rows, begin, end):
    """Sort what is short."""
    for p in range(begin + 1, end):
        row, q = rows[p], p
        while q > begin and rows[q - 1] > row:
            rows[q] = rows[q - 1]
            q -= 1
        rows[q] = row


@inner
def _merge_runs(rows, at, out, to, size):
    """Merge every two ascending runs of a list with no equal ones; how many are left."""
    runs = first = 0
    while first < size:
        middle = first + 1
        while middle < size and rows[at + middle - 1] < rows[at + middle]:
            middle += 1
        last = min(middle + 1, size)
        while last < size and rows[at + last - 1] < rows[at + last]:
            last += 1
        p, q = first, middle
        for k in range(first, last):
            lower = q == last or (p < middle and rows[at + p] < rows[at + q])
            out[to + k] = rows[at + p] if lower else rows[at + q]
            p += lower
            q += not lower
        first = last
        runs += 1
    return runs


@inner
def _sort_runs(rows, begin, end, spare):
    """Sort a list of few ascending runs; `spare` has room for it."""
    size = end - begin
    while size > 0:
        if _merge_runs(rows, begin, spare, 0, size) == 1:
            for k in range(size):
                rows[begin + k] = spare[k]
            break
        if _merge_runs(spare, 0, rows, begin, size) == 1:
            break


@jit
def _collect_rows(
    indptr, indices, perm, iperm, start, pointer, head, sibling, low, done, found, mark, spare,
    first, last,
):  # fmt: skip
    """Find the rows of fronts whose subtrees begin at `first` or later, unless that is done.

    `mark` is a zero for each row, and `spare` room for one. Many of the rows that are left are
    sorted by their marks; of others those that come from a child are sorted already.
    """
    for s in range(first, last):
        if done[s] or low[s] < first:
            continue
        done[s] = True
        end = start[s + 1]
        free = pointer[s]
        for j in range(start[s], end):
            for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
                i = iperm[indices[p]]
                if i >= end and mark[i] != s + 1:
                    mark[i] = s + 1
                    found[free] = i
                    free += 1
        if free - pointer[s] <= _SHORT:
            _insert(found, pointer[s], free)
        child = head[s]
        while child >= 0:
            for p in range(pointer[child], pointer[child + 1]):
                i = found[p]
                if i >= end and mark[i] != s + 1:
                    mark[i] = s + 1
                    found[free] = i
                    free += 1
            child = sibling[child]
        if mark.size - end > _SCANNED * (free - pointer[s]):
            _sort_runs(found, pointer[s], free, spare)
            continue
        free = pointer[s]
        for i in range(end, mark.size):
            if mark[i] == s + 1:
                found[free] = i
                free += 1
