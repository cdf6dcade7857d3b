"""Maximum-product matching of rows to columns, and its scaling.

LU with static fronts needs large entries on the diagonal before the ordering. With the
costs ``c_ij = log max_k |a_kj| - log |a_ij|`` the row permutation of largest diagonal product is a
minimum-cost assignment. Its dual variables obey ``c_ij - u_i - v_j >= 0``, with equality on matched
entries: ``exp(u_i)`` and ``exp(v_j) / max_k |a_kj|`` scale the matrix to entries of modulus at
most 1, and exactly 1 on the matching.

Reference: I. S. Duff and J. Koster, "On algorithms for permuting large entries to the diagonal of
a sparse matrix", SIAM J. Matrix Anal. Appl. 22 (2001), whose code is MC64 (this is its job 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._typing import Sparse
from ..compile.jit import brief, inner, jit
from ..matrix.validate import checked
from .row_reduction import Assignment, augmenting_row_reduction

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_EXPONENT = 700.0  # largest modulus of an argument of exp: the result is finite and normal


@dataclass(frozen=True)
class Matching:
    """Rows matched to columns, and the scaling that makes the matched entries 1 in modulus.

    Attributes
    ----------
    rows : (n,) int32 array
        ``rows[j]`` is the row matched to column j, or -1.
    row_scale, col_scale : (n,) float64 arrays
        ``|row_scale[i] * A[i, j] * col_scale[j]|`` is at most 1, and 1 on matched entries.
    rank : int
        Number of matched columns: the structural rank without stored zeros.
    """

    rows: NDArray[np.int32]
    row_scale: NDArray[np.float64]
    col_scale: NDArray[np.float64]
    rank: int


@jit
def _cheap_assignment(problem):
    """Set dual variables and match columns without a search, or by rematching one other column."""
    indptr, indices, cost, u, v, entry, cols = problem
    n = entry.size
    cheapest = np.full(n, -1, np.int64)
    owner = np.empty(n, np.int32)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if cost[p] < u[i]:
                u[i] = cost[p]
                cheapest[i] = p
                owner[i] = j
    for i in range(n):
        if cheapest[i] < 0:
            u[i] = 0.0
        elif entry[owner[i]] < 0:
            entry[owner[i]] = cheapest[i]
            cols[i] = owner[i]
    look = indptr[:-1].copy()  # where each column continues its search for a free row
    for j in range(n):
        if entry[j] >= 0 or indptr[j] == indptr[j + 1]:
            continue
        min_cost = np.inf
        for p in range(indptr[j], indptr[j + 1]):
            min_cost = min(min_cost, cost[p] - u[indices[p]])
        v[j] = min_cost
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if cost[p] - u[i] > min_cost:
                continue
            rival = cols[i]
            if rival >= 0:
                while look[rival] < indptr[rival + 1]:
                    q = look[rival]
                    k = indices[q]
                    if cols[k] < 0 and cost[q] - u[k] <= v[rival]:
                        break
                    look[rival] += 1
                if look[rival] == indptr[rival + 1]:
                    continue
                entry[rival] = look[rival]
                cols[indices[look[rival]]] = rival
            entry[j] = p
            cols[i] = j
            break


@inner
def _push(keys, items, size, key, item):
    """Insert an item into a binary heap of `size` items with the least key on top."""
    k = size
    while k > 0:
        above = (k - 1) >> 1
        if keys[above] <= key:
            break
        keys[k] = keys[above]
        items[k] = items[above]
        k = above
    keys[k] = key
    items[k] = item


@inner
def _pop(keys, items, size):
    """Remove the top of a binary heap of `size` items."""
    size -= 1
    key = keys[size]
    k = 0
    while True:
        below = 2 * k + 1
        if below >= size:
            break
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[k] = keys[below]
        items[k] = items[below]
        k = below
    keys[k] = key
    items[k] = items[size]


class _PathSearch(NamedTuple):
    """State of the search for a shortest augmenting path.

    A row has a distance (-1: excluded), and the entry ``came`` of column ``source`` by which it was
    reached. `pushed` lists the rows reached, `tree` those whose distance is final, `stack` those at
    the current distance; the heap (`keys`, `items`) has the farther ones.
    """

    dist: np.ndarray
    came: np.ndarray
    source: np.ndarray
    tree: np.ndarray
    pushed: np.ndarray
    stack: np.ndarray
    keys: np.ndarray
    items: np.ndarray


@inner
def _shortest_path(root, problem, search):
    """Find the shortest augmenting path from column `root`, by Dijkstra in the reduced costs.

    Return the free row at the end or -1, its distance, and the numbers of rows in the tree and
    pushed.
    """
    indptr, indices, cost, u, v, _, cols = problem
    dist, came, source, tree, pushed, stack, keys, items = search
    best, best_row = np.inf, np.int64(-1)
    size = top = n_tree = n_pushed = 0
    j, distance = root, 0.0
    while True:
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            d = distance + max(cost[p] - u[i] - v[j], 0.0)
            if d >= best or d >= dist[i]:
                continue  # final rows fail here: their distance is at most `distance`
            if dist[i] == np.inf:
                pushed[n_pushed] = i
                n_pushed += 1
            dist[i] = d
            came[i] = p
            source[i] = j
            if cols[i] < 0:
                best, best_row = d, np.int64(i)
            elif d <= distance:
                stack[top] = i  # at the current distance: the heap is not needed
                top += 1
            else:
                _push(keys, items, size, d, i)
                size += 1
        i = np.int64(-1)
        if top > 0:
            top -= 1
            i = np.int64(stack[top])
        while i < 0 and size > 0:
            key, item = keys[0], items[0]
            _pop(keys, items, size)
            size -= 1
            if key == dist[item]:  # else a shorter path was found later
                i = np.int64(item)
        if i < 0 or dist[i] >= best:
            return best_row, best, n_tree, n_pushed
        tree[n_tree] = i
        n_tree += 1
        j, distance = np.int64(cols[i]), dist[i]


@jit
def _augment(problem, group, row_group):
    """Match the free columns by shortest augmenting paths; return the number of failures.

    If the search of a column fails, all rows that it reaches are matched and stay matched, and the
    columns matched to them reach no other rows. The k-th failed column, these rows and these
    columns form group k, which is not searched again.
    """
    _, indices, cost, u, v, entry, cols = problem
    n, capacity = entry.size, indices.size + 1
    dist = np.full(n, np.inf)
    came, source = np.empty((2, n), np.int64)
    tree, pushed, stack = np.empty((3, n), np.int32)
    keys, items = np.empty(capacity), np.empty(capacity, np.int32)
    search = _PathSearch(dist, came, source, tree, pushed, stack, keys, items)
    failures = 0
    for root in range(n):
        if entry[root] >= 0:
            continue
        row, length, n_tree, n_pushed = _shortest_path(np.int64(root), problem, search)
        if row < 0:
            group[root] = failures
            for k in range(n_tree):
                i = tree[k]
                dist[i] = -1.0  # less than any distance: never reached again
                row_group[i] = group[cols[i]] = failures
            failures += 1
            continue
        last = source[row]
        for k in range(n_tree):
            u[tree[k]] += dist[tree[k]] - length
        while True:
            j = source[row]
            previous = entry[j]
            entry[j] = came[row]
            cols[row] = j
            if j == root:
                break
            row = np.int64(indices[previous])
        v[last] = cost[entry[last]] - u[indices[entry[last]]]
        for k in range(n_tree):  # all other searched columns are now matched to rows of the tree
            j = cols[tree[k]]
            v[j] = cost[entry[j]] - u[indices[entry[j]]]
        for k in range(n_pushed):
            dist[pushed[k]] = np.inf
    return failures


@jit
def _mend_duals(problem, order, group, row_group, failures):
    """Restore the feasibility of the dual variables if searches skipped rows of earlier groups.

    The columns of a group have entries only in rows of this and of earlier groups. So the groups
    can be shifted one after another, the last first: ``u - shift`` and ``v + shift`` do not change
    the reduced costs inside a group.
    """
    indptr, indices, cost, u, v, _, _ = problem
    shift = np.zeros(failures + 1)
    for j in order:
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if row_group[i] < group[j]:
                need = shift[group[j]] + u[i] + v[j] - cost[p]
                shift[row_group[i]] = max(shift[row_group[i]], need)
    for k in range(u.size):
        u[k] -= shift[row_group[k]]
        v[k] += shift[group[k]]


@brief
def _costs(indptr, log):
    """Return the costs of entries from their logs, and the largest log of each column.

    The largest log of an empty column is 0.
    """
    cost, largest = np.empty_like(log), np.zeros(indptr.size - 1)
    for j in range(largest.size):
        begin, end = indptr[j], indptr[j + 1]
        if begin == end:
            continue
        most = log[begin]
        for p in range(begin + 1, end):
            most = max(most, log[p])
        for p in range(begin, end):
            cost[p] = most - log[p]
        largest[j] = most
    return cost, largest


def _problem(indptr: NDArray, indices: NDArray, data: NDArray) -> tuple[Assignment, NDArray]:
    """Return the assignment of the nonzero entries, and the largest log of each column."""
    size, n = np.abs(data).astype(np.float64, copy=False), indptr.size - 1
    keep = (size > 0) & np.isfinite(size)
    if not keep.all():
        indptr = np.concatenate([[0], np.cumsum(keep)])[indptr]
        indices, size = indices[keep], size[keep]
    cost, largest = _costs(indptr, np.log(size))
    u, v = np.full(n, np.inf), np.zeros(n)
    entry, cols = np.full(n, -1, np.int64), np.full(n, -1, np.int32)
    return Assignment(indptr, indices, cost, u, v, entry, cols), largest


@brief
def _outcome(problem, largest):
    """Return the matched rows and their number; center the dual variables of |A| around 0.

    u + t and v - t scale A identically: this t keeps both ranges from overflow.
    """
    _, indices, _, u, v, entry, _ = problem
    rows, rank = np.full(entry.size, np.int32(-1)), 0
    low, high, least, most = np.inf, -np.inf, np.inf, -np.inf
    for j in range(entry.size):
        if entry[j] >= 0:
            rows[j] = indices[entry[j]]
            rank += 1
        v[j] -= largest[j]
        low, high = min(low, u[j]), max(high, u[j])
        least, most = min(least, v[j]), max(most, v[j])
    middle = (low + high - least - most) / 4
    for j in range(entry.size):
        u[j] -= middle
        v[j] += middle
    return rows, rank


def by_columns(A: Sparse) -> sp.csc_array:
    """Return A if it is a CSC matrix without duplicates, else convert it; raise if not square."""
    A = checked(A, "A")
    if A.format != "csc" or not A.has_canonical_format:
        A = sp.csc_array(A, copy=True)
        A.sum_duplicates()
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"a matching needs a square matrix, not one of shape {A.shape}")
    return A


def maximum_product_matching(A: Sparse) -> Matching:
    """Match rows to columns so that the product of the moduli of the matched entries is largest.

    The method is shortest augmenting paths after a cheap assignment (Duff and Koster 2001) and
    up to 8 rounds of augmenting row reduction (Jonker and Volgenant 1987). The time is
    O(n (n + nnz) log n) at worst, near-linear in practice. Stored zeros are never matched.
    A structurally singular matrix gets a matching of maximum cardinality.

    Parameters
    ----------
    A : (n, n) sparse matrix or array
        Real or complex; CSC without duplicates is used directly, any other format is converted.

    Returns
    -------
    Matching
        Rows, scalings and structural rank. ``A[matching.rows]`` has the matched entries on its
        diagonal, if the rank is n.

    Raises
    ------
    ValueError
        If A is not square.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> A = sp.csc_array([[0.0, 4.0, 0.0], [1.0, 8.0, 2.0], [0.5, 0.0, 0.0]])
    >>> matching = maximum_product_matching(A)
    >>> matching.rows, matching.rank
    (array([2, 0, 1], dtype=int32), 3)
    >>> S = matching.row_scale[:, None] * A.toarray() * matching.col_scale
    >>> bool(abs(S).max() <= 1 + 1e-12), S[matching.rows].diagonal().round(12).tolist()
    (True, [1.0, 1.0, 1.0])
    """
    A = by_columns(A)
    indptr, indices = A.indptr.astype(np.int64), A.indices.astype(np.int32, copy=False)
    return matching_of(indptr, indices, A.data)


def matching_of(indptr: NDArray, indices: NDArray, data: NDArray) -> Matching:
    """Run `maximum_product_matching` for CSC arrays without duplicates."""
    problem, largest = _problem(indptr, indices, data)
    n, entry = indptr.size - 1, problem.entry
    _cheap_assignment(problem)
    if (entry < 0).any():
        augmenting_row_reduction(problem)
    if (entry < 0).any():
        group, row_group = np.full(n, n, np.int32), np.full(n, n, np.int32)
        failures = _augment(problem, group, row_group)
        if failures:
            group, row_group = np.minimum(group, failures), np.minimum(row_group, failures)
            order = np.argsort(-group, kind="stable")
            _mend_duals(problem, order, group, row_group, failures)
    rows, rank = _outcome(problem, largest)
    logs = problem.u, problem.v
    scales = (np.exp(np.clip(log, -MAX_EXPONENT, MAX_EXPONENT)) for log in logs)
    return Matching(rows, *scales, rank=rank)
