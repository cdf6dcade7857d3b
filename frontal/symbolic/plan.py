"""The plan of a numeric factorization: where every number goes, computed once per pattern.

Front s has pivot columns ``start[s]:start[s+1]`` (k of them) and update rows
``rows[pointer[s]:pointer[s+1]]`` (m of them, ascending). Its panel is the (k + m) by k
column-major [L11; L21] at ``panel[s]`` in the factor; LU keeps a second panel, the m by k
transpose of U12, behind it. Its m by m contribution block lives for a while in the arena of
contribution blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import inner, jit


class Plan(NamedTuple):
    """Index arrays of a factorization, f fronts, n columns.

    Attributes
    ----------
    start : (f + 1,) int32
        First pivot column of each front.
    parent : (f,) int32
        Assembly tree, -1 at roots; fronts are in postorder.
    pointer : (f + 1,) int64
        Extent of each front's update rows in `rows` and `relative`.
    rows : int32
        Update rows, ascending inside a front.
    relative : int32
        Position of each update row among the rows of the parent front (pivots, then updates).
    child_pointer : (f + 1,) int64
        Extent of each front's children in `children`.
    children : int32
        Children of each front, ascending: the order in which they are added.
    panel : (f + 1,) int64
        Offset of each front's panels in the factor.
    entry_pointer : (f + 1,) int64
        Extent of each front's entries of A in `source` and `target`.
    source : int64
        Position of an entry among the values of A.
    target : int64
        Position of that entry in the factor.
    """

    start: np.ndarray
    parent: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    relative: np.ndarray
    child_pointer: np.ndarray
    children: np.ndarray
    panel: np.ndarray
    entry_pointer: np.ndarray
    source: np.ndarray
    target: np.ndarray


def _children(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Children of each front, ascending, and where each list begins."""
    below = np.flatnonzero(parent >= 0)
    children = below[np.argsort(parent[below], kind="stable")].astype(np.int32)
    pointer = np.zeros(parent.size + 1, np.int64)
    np.cumsum(np.bincount(parent[below], minlength=parent.size), out=pointer[1:])
    return pointer, children


@jit
def _relative_rows(start, parent, pointer, rows):
    """Merge each front's rows with its parent's, both ascending."""
    relative = np.empty(rows.size, np.int32)
    for s in range(parent.size):
        above = parent[s]
        if above < 0:
            continue
        first, end = start[above], start[above + 1]
        base = pointer[above]
        q = base
        for p in range(pointer[s], pointer[s + 1]):
            row = rows[p]
            if row < end:
                relative[p] = row - first
            else:
                while rows[q] < row:
                    q += 1
                relative[p] = end - first + (q - base)
    return relative


def _panel_offsets(start: np.ndarray, pointer: np.ndarray, panels: int) -> np.ndarray:
    """Offsets of fronts that keep `panels` blocks: 1 for Cholesky, 2 for LU."""
    k, m = np.diff(start).astype(np.int64), np.diff(pointer)
    offset = np.zeros(start.size, np.int64)
    np.cumsum(k * (k + panels * m), out=offset[1:])
    return offset


@jit
def _entry_maps(indptr, indices, perm, row_rank, symmetric, start, pointer, rows, panel):
    """Send each stored entry of A to its place in the factor.

    Entry (i, j) belongs to the front that eliminates the earlier of its row and column. With
    `symmetric` the upper triangle of the permuted matrix is left out.
    """
    n = perm.size
    fronts = start.size - 1
    front_of = np.empty(n, np.int32)
    for s in range(fronts):
        front_of[start[s] : start[s + 1]] = s
    count = np.zeros(fronts + 1, np.int64)
    for j in range(n):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            if i >= j or not symmetric:
                count[front_of[min(i, j)] + 1] += 1
    for s in range(fronts):
        count[s + 1] += count[s]
    cursor = count[:-1].copy()
    source = np.empty(count[fronts], np.int64)
    row = np.empty(count[fronts], np.int32)
    column = np.empty(count[fronts], np.int32)
    for j in range(n):
        for p in range(indptr[perm[j]], indptr[perm[j] + 1]):
            i = row_rank[indices[p]]
            if i >= j or not symmetric:
                s = front_of[min(i, j)]
                q = cursor[s]
                source[q], row[q], column[q] = p, i, j
                cursor[s] = q + 1
    target = np.empty(count[fronts], np.int64)
    local = np.empty(n, np.int32)
    for s in range(fronts):
        first, end = start[s], start[s + 1]
        k = np.int64(end - first)
        m = pointer[s + 1] - pointer[s]
        for r in range(m):
            local[rows[pointer[s] + r]] = k + r
        for q in range(count[s], count[s + 1]):
            i, j = row[q], column[q]
            if j < end:
                below = i - first if i < end else local[i]
                target[q] = panel[s] + (j - first) * (k + m) + below
            else:  # U12, kept transposed: m rows
                target[q] = panel[s] + k * (k + m) + (i - first) * m + (local[j] - k)
    return count, source, target


def make_plan(indptr, indices, perm, row_rank, symmetric, start, parent, pointer, rows) -> Plan:
    """Gather every index array that a factorization of this pattern needs.

    Parameters
    ----------
    indptr, indices : int64 and int32 arrays
        A by columns.
    perm : (n,) int32 array
        ``perm[k]`` is the column of A eliminated k-th.
    row_rank : (n,) int32 array
        Elimination position of each row of A.
    symmetric : bool
        Cholesky: only the lower triangle of the permuted matrix is read, one panel is kept.
    start, parent, pointer, rows
        Fronts, as `supernodes` returns them.
    """
    child_pointer, children = _children(parent)
    panel = _panel_offsets(start, pointer, 1 if symmetric else 2)
    entry_pointer, source, target = _entry_maps(
        indptr, indices, perm, row_rank, symmetric, start, pointer, rows, panel
    )
    relative = _relative_rows(start, parent, pointer, rows)
    return Plan(
        start,
        parent,
        pointer,
        rows,
        relative,
        child_pointer,
        children,
        panel,
        entry_pointer,
        source,
        target,
    )


def front_flops(start: np.ndarray, pointer: np.ndarray) -> np.ndarray:
    """Multiplications and additions of a Cholesky factorization of each front (LU: twice)."""
    k, m = np.diff(start).astype(np.float64), np.diff(pointer).astype(np.float64)
    return k * (k + 1) * (2 * k + 1) / 6 + k * k * m + k * m * (m + 1)


@jit
def _cut_tree(parent, flops, parts):
    """Weight and first front of each front's subtree, and the fronts heavier than a share."""
    fronts = parent.size
    weight = flops.copy()
    low = np.empty(fronts, np.int32)
    whole = 0.0
    for s in range(fronts):
        low[s] = s
    for s in range(fronts):
        p = parent[s]
        if p >= 0:
            weight[p] += weight[s]
            low[p] = min(low[p], low[s])
        else:
            whole += weight[s]
    is_top = np.zeros(fronts, np.bool_)
    for s in range(fronts - 1, -1, -1):
        if parent[s] < 0 or is_top[parent[s]]:
            is_top[s] = weight[s] > whole / parts and low[s] < s
    return weight, low, is_top


def split_subtrees(
    parent: np.ndarray, flops: np.ndarray, parts: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut the assembly tree into subtrees for threads.

    Subtrees lighter than 1/`parts` of all flops are kept whole.

    Returns
    -------
    low, root : int32 arrays
        First and last front of each subtree (fronts are in postorder), heaviest first.
    top : int32 array
        The fronts above all subtrees, in postorder.
    """
    weight, low, is_top = _cut_tree(parent, flops, parts)
    under_top = np.append(is_top, True)[parent]  # parent -1 picks the appended entry
    root = np.nonzero(~is_top & under_top)[0]
    root = root[np.argsort(-weight[root], kind="stable")]
    return low[root], root.astype(np.int32), np.nonzero(is_top)[0].astype(np.int32)


@inner
def _allocate(start, size, count, need):
    """First fit in a sorted list of free intervals; the last one is endless."""
    i = 0
    while i < count and size[i] < need:
        i += 1
    where = start[i]
    start[i] += need
    size[i] -= need
    return where


@inner
def _release(start, size, count, where, length):
    """Give an interval back, merged with its neighbours; return the number of intervals."""
    i = count
    while i > 0 and start[i - 1] > where:
        start[i], size[i] = start[i - 1], size[i - 1]
        i -= 1
    start[i], size[i] = where, length
    last = max(i - 1, 0)  # the interval that the next ones are merged into
    for j in range(last + 1, count + 1):
        if start[last] + size[last] == start[j]:
            size[last] += size[j]
        else:
            last += 1
            start[last], size[last] = start[j], size[j]
    return last + 1


@inner
def _visit(plan, s, block, local, start, size, count):
    """Place the block of front s, then free those of its children that are in the same arena."""
    m = plan.pointer[s + 1] - plan.pointer[s]
    if m > 0:
        block[s] = _allocate(start, size, count, m * m)
    used = start[count - 1]  # everything below the endless interval
    for p in range(plan.child_pointer[s], plan.child_pointer[s + 1]):
        c = plan.children[p]
        mc = plan.pointer[c + 1] - plan.pointer[c]
        if local[c] == local[s] and mc > 0:
            count = _release(start, size, count, block[c], mc * mc)
    return count, used


@jit
def lay_out_blocks(plan, low, root, top):
    """Places of the contribution blocks: first fit, by lifetime.

    The fronts inside a subtree use the arena of the thread that works on it; the roots of
    subtrees and the fronts above them share one. A block lives until its parent is factorized.

    Parameters
    ----------
    plan : Plan
    low, root, top : int32 arrays
        The cut of `split_subtrees`.

    Returns
    -------
    block : (f,) int64 array
        Offset of each block in its arena.
    local : (f,) bool array
        Whether that is a thread's own arena.
    shared, own : int
        Sizes of the shared arena and of a thread's, in entries.
    """
    fronts = plan.parent.size
    block = np.zeros(fronts, np.int64)
    local = np.zeros(fronts, np.bool_)
    start = np.zeros(fronts + 2, np.int64)
    size = np.zeros(fronts + 2, np.int64)
    endless = np.int64(1) << 62
    shared, own = np.int64(0), np.int64(0)
    for t in range(root.size):
        start[0], size[0], count = np.int64(0), endless, np.int64(1)
        for s in range(np.int64(low[t]), np.int64(root[t])):
            local[s] = True
            count, used = _visit(plan, s, block, local, start, size, count)
            own = max(own, used)
    start[0], size[0], count = np.int64(0), endless, np.int64(1)
    for i in range(root.size + top.size):
        s = np.int64(root[i] if i < root.size else top[i - root.size])
        count, used = _visit(plan, s, block, local, start, size, count)
        shared = max(shared, used)
    return block, local, shared, own
