"""Approximate minimum degree ordering, with or without order constraints.

At each step the variable of least approximate external degree becomes the pivot. The elimination
graph is never formed but represented by a quotient graph: an eliminated pivot is an *element*,
which represents the clique of the variables in its list; a *variable* has a list of elements and a
list of variables. One workspace holds all lists: an element needs no more than the lists it
replaces.

P. R. Amestoy, T. A. Davis and I. S. Duff, SIAM J. Matrix Anal. Appl. 17 (1996), and Algorithm 837,
ACM TOMS 30 (2004). Hash test: C. Ashcraft, SIAM J. Sci. Comput. 16 (1995). Constraints: Y. Chen,
T. A. Davis, W. W. Hager and S. Rajamanickam, Algorithm 887, ACM TOMS 35 (2008).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..compile.jit import allocating, jit
from .amd_tree import assembly_order, column_tree
from .graph import are_nodes, weighted_degree
from .quotient import (
    NODE,
    NONE,
    collect_garbage,
    inlined,
    insert,
    open_group,
    quotient_graph,
    remove,
)

MAX_BUCKETS = 1 << 16  # of the hash table


@inlined
def _form_element(node, work, head, pivot, free, group):
    """Turn the pivot into an element of its adjacent variables; return (first, last, weight).

    The variables of its list, ``work[first:last]``, get negative weights and leave the degree
    lists. The weight is that of the list.
    """
    start = node[pivot].start
    elements = node[pivot].elements
    in_place = elements == 0 and node[pivot].length > 0
    first = last = start if in_place else free
    weight = 0
    for k in range(elements + 1):
        source = start + elements
        end = start + node[pivot].length
        if k < elements:
            e = work[start + k]
            source = node[e].start
            end = source + node[e].length
            node[e].length = 0
            node[e].parent = pivot
        for p in range(source, end):
            i = work[p]
            if node[i].weight > 0:
                weight += node[i].weight
                node[i].weight = -node[i].weight
                work[last] = i
                last += 1
                if node[i].group == group:
                    remove(node, head, i)
    node[pivot].start = first
    return first, last, weight


@inlined
def _measure_overlaps(node, work, first, last, stamp):
    """Set mark - stamp of each element adjacent to the list to its weight outside the list."""
    for p in range(first, last):
        i = work[p]
        for q in range(node[i].start, node[i].start + node[i].elements):
            e = work[q]
            if node[e].mark < stamp:
                node[e].mark = stamp + node[e].degree
            node[e].mark += node[i].weight  # negative here


@inlined
def _prune(node, work, i, pivot, stamp, aggressive):
    """Remove from the lists of i what the pivot covers; return (degree outside the pivot, hash)."""
    start = target = node[i].start
    degree = key = 0
    for p in range(start, start + node[i].elements):
        e = work[p]
        if aggressive and node[e].mark == stamp and node[e].length > 0:  # the pivot covers e
            node[e].length = 0
            node[e].parent = pivot
        if node[e].length > 0:
            degree += node[e].mark - stamp
            key += e
            work[target] = e
            target += 1
    middle = target
    for p in range(start + node[i].elements, start + node[i].length):
        j = work[p]
        if node[j].weight > 0:
            degree += node[j].weight
            key += j
            work[target] = j
            target += 1
    # The new element goes first; the first entry of each list moves to the list's end.
    work[target] = work[middle]
    work[middle] = work[start]
    work[start] = pivot
    node[i].elements = middle - start + 1
    node[i].length = target - start + 1
    return degree, key


@inlined
def _update_variables(node, work, bucket, pivot, first, last, stamp, aggressive):
    """Prune and hash the variables of the list; return the weight eliminated with the pivot."""
    mass = 0
    for p in range(first, last):
        i = work[p]
        degree, key = _prune(node, work, i, pivot, stamp, aggressive)
        if degree == 0 and node[i].group == node[pivot].group:
            mass -= node[i].weight  # mass elimination: i has no neighbour outside the list
            node[i].weight = node[i].length = 0
            node[i].parent = pivot
        else:
            key &= bucket.size - 1
            node[i].degree = min(node[i].degree, degree)
            node[i].previous = key
            node[i].next = bucket[key]
            bucket[key] = i
    return mass


@inlined
def _merge_into(node, work, i, stamp):
    """Merge into variable i the later variables of its bucket with the same lists and class."""
    length = node[i].length
    for p in range(node[i].start + 1, node[i].start + length):  # the pivot is first in all lists
        node[work[p]].mark = stamp
    before, j = i, node[i].next
    while j != NONE:
        same = node[j].length == length and node[j].group == node[i].group
        p = 1
        while same and p < length:
            same = node[work[node[j].start + p]].mark == stamp
            p += 1
        if same:
            node[i].weight += node[j].weight
            node[j].weight = node[j].length = 0
            node[j].parent = i
            node[before].next = node[j].next
        else:
            before = j
        j = node[j].next


@inlined
def _merge_indistinguishable(node, work, bucket, first, last, stamp):
    """Merge the indistinguishable variables of the list; return a fresh stamp."""
    for p in range(first, last):
        i = work[p]
        if node[i].weight < 0:
            key = node[i].previous
            i = bucket[key]
            bucket[key] = NONE
            while i != NONE and node[i].next != NONE:
                _merge_into(node, work, i, stamp)
                stamp += 1
                i = node[i].next
    return stamp


@inlined
def _restore_variables(node, work, head, first, last, weight, remaining, group):
    """Restore weights and degrees of the list's variables; return (end of list, least degree)."""
    min_degree, end = head.size, first
    for p in range(first, last):
        i = work[p]
        if node[i].weight < 0:
            node[i].weight = -node[i].weight
            # The least of three upper bounds: old degree, weight around i, remaining weight.
            node[i].degree = min(node[i].degree + weight, remaining) - node[i].weight
            if node[i].group == group:
                insert(node, head, i)
                min_degree = min(min_degree, node[i].degree)
            work[end] = i
            end += 1
    return end, min_degree


@allocating
def _begun(indptr, indices, weights, group_of, dense) -> Any:
    """Return records, workspace, degree lists and hash buckets; used entries, total weight."""
    n, total = weights.size, np.int64(0)
    node = np.zeros(n, NODE)
    for i in range(n):
        node[i].group = group_of[i]
        total += weights[i]
    buckets = 1
    while buckets <= n and buckets < MAX_BUCKETS:
        buckets *= 2
    head, bucket = np.full(total + 1, NONE), np.full(buckets, NONE)  # by degree, by hash
    # Unsigned: indices that cannot be negative need no wraparound test, a fifth of the total time.
    work = np.empty(indices.size + indices.size // 5 + n + 1, np.uint32)
    limit = total if dense < 0 else np.int64(max(16.0, dense * math.sqrt(total)))
    reach = weighted_degree(indptr, indices, weights)
    free, remaining = quotient_graph(indptr, indices, node, work, weights, reach, limit)
    return node, work, head, bucket, free, remaining


@jit
def eliminate(indptr, indices, weights, groups, dense, aggressive, spared):
    """Eliminate the nodes that are not dense, class by class; return their records.

    `groups` is a tuple: the class of each node, the nodes class by class, and the class starts.
    Nodes with more than `dense` neighbours, by weight, are dense (< 0: none). Elimination stops at
    a remaining weight of `spared`. The parent of an element becomes the element that absorbed it.
    The parent of a variable (weight 0) becomes the variable that it was merged into or the pivot
    that it was eliminated with.
    """
    group_of, members, first_member = groups
    node, work, head, bucket, free, remaining = _begun(indptr, indices, weights, group_of, dense)
    stamp = np.int64(1)
    largest = min_degree = waiting = np.int64(0)  # waiting: remaining weight of the class
    group = -1
    while remaining > spared:
        while waiting == 0:
            group += 1
            now = members[first_member[group] : first_member[group + 1]]
            min_degree, waiting = open_group(node, head, now)
        while head[min_degree] == NONE:
            min_degree += 1
        pivot = head[min_degree]
        remove(node, head, pivot)
        pivots = node[pivot].weight
        node[pivot].weight = 0  # keeps the pivot out of its own list
        remaining -= pivots
        if free + remaining > work.size:
            free = collect_garbage(node, work, free)
        first, last, weight = _form_element(node, work, head, pivot, free, group)
        largest = max(largest, weight)
        _measure_overlaps(node, work, first, last, stamp)
        mass = _update_variables(node, work, bucket, pivot, first, last, stamp, aggressive)
        remaining -= mass
        weight -= mass
        waiting -= pivots + mass
        stamp = _merge_indistinguishable(node, work, bucket, first, last, stamp + largest + 1)
        end, low = _restore_variables(node, work, head, first, last, weight, remaining, group)
        min_degree = min(min_degree, low)
        node[pivot].weight = pivots + mass
        node[pivot].degree = weight
        node[pivot].length = end - first
        free = max(free, end)
    return node


def amd(
    indptr: np.ndarray,
    indices: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    constraint: np.ndarray | None = None,
    dense: float = 10.0,
    aggressive: bool = True,
) -> np.ndarray:
    """Return a fill-reducing order of a symmetric pattern by approximate minimum degree.

    Amestoy, Davis and Duff (1996, 2004); with `constraint`, the CAMD of Chen et al. (2008). The
    time is nearly linear in practice, O(n nnz) at worst; memory is 5 bytes per entry and 100 per
    node.

    Parameters
    ----------
    indptr, indices : (n + 1,) int64 array, (nnz,) int32 array
        Neighbours of each node. The pattern must be symmetric; a diagonal is ignored.
    weights : (n,) int array, optional
        Number of indistinguishable nodes that each node represents.
    constraint : (n,) int array, optional
        Class of each node: all nodes of a class precede the nodes of any larger class.
    dense : float
        Nodes with more than ``max(16, dense * sqrt(n))`` neighbours, both by weight, are dense and
        come last in their class; < 0: no node is dense.
    aggressive : bool
        Let a new element absorb all elements that it covers, not only those adjacent to the pivot.

    Returns
    -------
    (n,) int32 array
        ``perm[k]`` is the node eliminated k-th, in a postorder of the assembly tree (by class).

    Raises
    ------
    ValueError
        If `indices` are no nodes or `constraint` does not hold one class for each node.

    Examples
    --------
    The centre of a star is eliminated once it causes no fill:

    >>> import numpy as np
    >>> indptr = np.array([0, 3, 4, 5, 6])
    >>> indices = np.array([1, 2, 3, 0, 0, 0], np.int32)
    >>> amd(indptr, indices).tolist().index(0) >= 2
    True
    """
    classes = None if constraint is None else classes_of(constraint, indptr.size - 1)
    node, members, first = eliminated(indptr, indices, weights, classes, dense, aggressive)
    return assembly_order(node, members, first)[0]


def amd_tree(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None, dense: float
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Return the order of `amd`, and the elimination tree with column counts.

    The pattern is that of a `Graph`: it is not checked.

    Returns
    -------
    perm : (n,) int32 array
        ``perm[k]`` is the node eliminated k-th, in a postorder of the assembly tree.
    tree : (parent, counts) or None
        For each column that the nodes represent, as in `EliminationTree`; None if there are dense
        nodes, which are not eliminated. An element is a child of the element that covers it; in the
        elimination tree its parent may be a later column.
    """
    weights = np.ones(indptr.size - 1, np.int32) if weights is None else weights.astype(np.int32)
    perm, parent, counts, columns = _ordered_tree(indptr, indices, weights, float(dense))
    return perm, (parent, counts) if parent.size == columns else None


@jit
def _ordered_tree(indptr, indices, weights, dense):
    """Return the order and the tree of `amd_tree`, and the number of columns."""
    n, columns = weights.size, np.int64(0)
    group, members, first = np.zeros(n, np.int32), np.empty(n, np.int32), np.zeros(2, np.int64)
    for i in range(n):
        members[i] = i
        columns += weights[i]
    first[1] = n
    node = eliminate(indptr, indices, weights, (group, members, first), dense, True, 0)
    perm, pivots, parent, weight, degree = assembly_order(node, members, first)
    parent, counts = column_tree(pivots, parent, weight, degree)
    return perm, parent, counts, columns


def classes_of(constraint: np.ndarray, n: int) -> np.ndarray:
    """Return the constraint classes, renumbered 0, 1, 2, ... without gaps."""
    group = np.asarray(constraint)
    if group.shape != (n,):
        raise ValueError(f"constraint must hold a class for each of the {n} nodes")
    valid = n > 0 and group.dtype.kind in "iu" and group.min() >= 0 and group.max() < n
    if valid and np.bincount(group).all():  # no gaps
        return group
    return np.unique(group, return_inverse=True)[1]


def eliminated(
    indptr: np.ndarray,
    indices: np.ndarray,
    weights: np.ndarray | None,
    group: np.ndarray | None,
    dense: float,
    aggressive: bool,
    spared: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the node records after elimination, the nodes class by class, and the class starts."""
    indptr = np.ascontiguousarray(indptr, np.int64)
    indices = np.ascontiguousarray(indices, np.int32)
    n = indptr.size - 1
    if indices.size != indptr[-1] or not are_nodes(indices, n):
        raise ValueError(f"indices must hold indptr[-1] = {indptr[-1]} nodes from 0 to {n - 1}")
    members, first_member = np.arange(n, dtype=np.int32), np.array([0, n])
    if group is None:
        group = np.zeros(n, np.int32)
    else:
        is_narrow = group.max(initial=0) < 1 << 16  # NumPy sorts 16-bit integers by radix sort
        digits = group.astype(np.uint16) if is_narrow else group
        members = np.argsort(digits, kind="stable").astype(np.int32)
        first_member = np.append(0, np.cumsum(np.bincount(group)))
    weights = np.ones(n, np.int32) if weights is None else np.ascontiguousarray(weights, np.int32)
    groups = group.astype(np.int32, copy=False), members, first_member
    node = eliminate(indptr, indices, weights, groups, float(dense), bool(aggressive), spared)
    return node, members, first_member
