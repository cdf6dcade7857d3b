"""Elimination tree and column counts by threads over ranges of the columns.

Each range computes what depends on its columns alone: parents and counts of columns whose subtrees
lie in the range. One thread completes the remaining columns afterwards: few in orders of nested
dissection, most in orders of a band matrix. The result does not depend on the ranges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import allocating, inner, jit
from ..machine.threads import parallel_for

NONE, WAITS = -1, -2  # values of `ancestor`: a root, and a column left to the second pass


@jit
def _link(pointer, rows, parent, ancestor, first, last, second_pass):
    """Link the subtrees below the columns of a range; in the `second_pass`, below waiting columns.

    A column waits if it has a neighbour before the range or a waiting descendant. Its subtree is
    then incomplete, so it is not linked to its ancestors in the first pass.
    """
    for j in range(first, last):
        if second_pass:
            if ancestor[j] != WAITS:
                continue
            ancestor[j] = NONE
        for p in range(pointer[j], pointer[j + 1]):
            i = rows[p]
            if i >= j:
                continue
            if i < first:
                ancestor[j] = WAITS
                continue
            root, above = i, ancestor[i]
            while above >= 0:
                root, above = above, ancestor[above]
            target = np.int32(j)
            if root != j and above == WAITS:
                ancestor[j], target = WAITS, root
            elif root != j:
                parent[root] = ancestor[root] = j
            while i != root:  # path compression
                above = ancestor[i]
                ancestor[i] = target
                i = above


def elimination_tree(pointer: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the parent of each column, -1 at roots (Liu 1986: path compression by ancestors).

    `pointer` and `rows` are the neighbours of each column, in elimination order.
    """
    n = pointer.size - 1
    parent, ancestor = np.full(n, NONE, np.int32), np.full(n, NONE, np.int32)

    def work(first: int, last: int) -> None:
        _link(pointer, rows, parent, ancestor, first, last, False)

    if len(parallel_for(work, pointer)) > 1:
        _link(pointer, rows, parent, ancestor, 0, n, True)
    return parent


@allocating
def short_elimination_tree(pointer, rows):
    """Run `elimination_tree` on one thread, in compiled code."""
    n = pointer.size - 1
    parent, ancestor = np.full(n, np.int32(NONE)), np.full(n, np.int32(NONE))
    _link(pointer, rows, parent, ancestor, 0, n, False)
    return parent


class _Counted(NamedTuple):
    """Input and state of `column_counts`.

    `low` is the first column of each subtree, `counts` are partial counts, and `ancestor` is an
    ancestor of a counted column or, for any other column, the column itself.
    """

    pointer: np.ndarray
    rows: np.ndarray
    post: np.ndarray
    rank: np.ndarray
    parent: np.ndarray
    weights: np.ndarray
    low: np.ndarray
    ancestor: np.ndarray
    counts: np.ndarray


class _Events(NamedTuple):
    """Updates that a range leaves to the sequential completion.

    A run consists of consecutive columns whose subtrees lie in the range. Between two runs is a
    column whose subtree begins before the range. A `row` outside the run has leaves in the run, the
    last of which is `leaf`; for ``leaf = -1 - j`` its weight is subtracted from the count of column
    j. Each run ends at column `cut` and event `upto`.
    """

    row: np.ndarray
    leaf: np.ndarray
    cut: np.ndarray
    upto: np.ndarray


@inner
def _common(ancestor, leaf):
    """Return the first ancestor that is not counted yet; compress the path to it."""
    common = leaf
    while common != ancestor[common]:
        common = ancestor[common]
    while leaf != common:
        above = ancestor[leaf]
        ancestor[leaf] = common
        leaf = above
    return common


@inner
def _count_column(tree, events, latest, k, j, begin, bounds):
    """Count a column of a run that begins at `begin`, after k events; return their new number.

    `latest` is the latest leaf of each row subtree; leaves before `begin` are ignored.
    """
    low, weights, count, (first, last) = tree.low, tree.weights, tree.counts, bounds
    if low[j] == j:
        count[j] += weights[j]
    column = tree.post[j]
    for p in range(tree.pointer[column], tree.pointer[column + 1]):
        i = tree.rank[tree.rows[p]]
        leaf = latest[i]
        if i <= j or leaf >= low[j]:
            continue  # not below the diagonal, or j is no leaf of row subtree i
        latest[i] = j
        count[j] += weights[i]
        if leaf >= begin:
            common = _common(tree.ancestor, leaf)
            if common < last and low[common] >= first:
                count[common] -= weights[i]
            else:
                events.row[k], events.leaf[k] = i, -1 - common
                k += 1
        elif i >= last or low[i] < first:
            events.row[k], events.leaf[k] = i, 0
            k += 1
    above = tree.parent[j]
    if above >= 0:
        tree.ancestor[j] = above
        if above < last and low[above] >= first:
            count[above] += count[j] - weights[j]
    return k


@jit
def _count_range(tree, events, latest, first, last):
    """Count the columns whose subtrees lie in a range; return the number of its runs."""
    runs = k = old = np.int64(0)
    begin = first
    for j in range(first, last + 1):
        if j < last and tree.low[j] >= first:
            k = _count_column(tree, events, latest, k, j, begin, (first, last))
            continue
        for e in range(old, k):
            if events.leaf[e] >= 0:
                events.leaf[e] = latest[events.row[e]]
        events.cut[runs], events.upto[runs] = j, k
        runs, begin, old = runs + 1, j + 1, k
    return runs


@jit
def _count_rest(tree, events, latest, runs, first, last):
    """Apply the events of a range, and count its columns between the runs."""
    begin, e, zero = first, 0, np.int64(0)
    for run in range(runs):
        end = np.int64(events.cut[run])
        while e < events.upto[run]:
            i, leaf = events.row[e], events.leaf[e]
            if leaf < 0:
                tree.counts[-1 - leaf] -= tree.weights[i]
            else:
                if latest[i] >= 0:
                    tree.counts[_common(tree.ancestor, latest[i])] -= tree.weights[i]
                latest[i] = leaf
            e += 1
        for j in range(begin, end):
            above = tree.parent[j]
            if above >= end:
                tree.counts[above] += tree.counts[j] - tree.weights[j]
        if end < last:
            everywhere = zero, np.int64(tree.parent.size)
            _count_column(tree, events, latest, zero, end, zero, everywhere)
        begin = end + 1


@jit
def _lowest(parent):
    """Return the first column of each subtree, in a postorder."""
    low = np.empty(parent.size, np.int32)
    for j in range(parent.size):
        low[j] = j
    for j in range(parent.size):
        above = parent[j]
        if above >= 0:
            low[above] = min(low[above], low[j])
    return low


@allocating
def short_column_counts(pointer, rows, post, rank, parent, weights):
    """Run `column_counts` on one thread, in compiled code."""
    n = parent.size
    low, ancestor, counts = _lowest(parent), np.empty(n, np.int32), np.zeros(n, np.int32)
    for j in range(n):
        ancestor[j] = j
    tree = _Counted(pointer, rows, post, rank, parent, weights, low, ancestor, counts)
    nothing, cut, upto = np.empty(0, np.int32), np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    events = _Events(nothing, nothing, cut, upto)
    _count_range(tree, events, np.full(n, np.int32(NONE)), 0, n)
    return counts


def column_counts(
    pointer: np.ndarray,
    rows: np.ndarray,
    post: np.ndarray,
    rank: np.ndarray,
    parent: np.ndarray,
    weights: np.ndarray,
) -> np.ndarray:
    """Return the total weight of each column of the factor, with the diagonal, in a postorder.

    Gilbert, Ng and Peyton (1994): a row of the factor is a subtree of the elimination tree, so
    its leaves and their least common ancestors give the counts by differences.

    Parameters
    ----------
    pointer, rows : (n + 1,) int64 array, int32 array
        Neighbours of each column, in an order that need not be a postorder.
    post, rank : (n,) int32 arrays
        A postorder and its inverse: column ``post[k]`` of `pointer` is the k-th in postorder.
    parent, weights : (n,) int32 arrays
        The elimination tree, and the number of columns each one represents, in the postorder.
    """
    n = parent.size
    low, ancestor = _lowest(parent), np.arange(n, dtype=np.int32)
    tree = _Counted(
        pointer, rows, post, rank, parent, weights, low, ancestor, np.zeros(n, np.int32)
    )

    def work(first: int, last: int) -> tuple[_Events, int, int, int]:
        # Unused pages of these arrays are never touched.
        is_complete = last - first == n
        capacity = 0 if is_complete else int(np.diff(pointer)[post[first:last]].sum())
        row, leaf = np.empty((2, capacity), np.int32)
        cut, upto = np.empty((2, last - first + 1), np.int32)
        events = _Events(row, leaf, cut, upto)
        latest = np.full(n, NONE, np.int32)
        runs = int(_count_range(tree, events, latest, first, last))
        return events, runs, first, last

    outcomes = parallel_for(work, pointer)
    if len(outcomes) > 1:
        latest = np.full(n, NONE, np.int32)
        for events, runs, first, last in outcomes:
            _count_rest(tree, events, latest, runs, first, last)
    return tree.counts
