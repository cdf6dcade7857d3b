"""The adjacency graph: the symmetric pattern of a matrix without its diagonal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._typing import Sparse
from ..compile.jit import allocating, brief, jit
from ..machine.lockfree_property import cached_property
from ..machine.threads import is_short, parallel_for
from ..matrix.csc import SORTED, inspect
from ..matrix.symmetry import compare_triangles
from ..matrix.validate import checked
from .groups import members_of


@dataclass(frozen=True, eq=False)
class Graph:
    """Adjacency of n nodes: symmetric, sorted in each row, no diagonal, no duplicates.

    Attributes
    ----------
    indptr : (n + 1,) int64 array
        Start of each node's neighbours in `indices`.
    indices : (nnz,) int32 array
        Neighbours; every edge is stored at both ends.
    n : int
        Number of nodes.
    """

    indptr: np.ndarray
    indices: np.ndarray
    n: int

    @property
    def nnz(self) -> int:
        """Entries of the pattern off the diagonal: twice the number of edges."""
        return self.indices.size

    @cached_property
    def degree(self) -> np.ndarray:
        """Number of neighbours of each node."""
        return np.diff(self.indptr)


def adjacency(A: Sparse) -> Graph:
    """Return the graph of the pattern of A + Aᵀ; stored zeros count as entries.

    Parameters
    ----------
    A : (n, n) SciPy sparse array or matrix
        Any format; duplicates and unsorted indices are allowed.

    Returns
    -------
    Graph
        The adjacency graph of A.

    Raises
    ------
    ValueError
        If A is not square, or its index arrays are corrupt.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> adjacency(sp.csc_array([[1.0, 2.0], [0.0, 3.0]])).indices
    array([1, 0], dtype=int32)
    """
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(
            f"A must be square to be ordered symmetrically, but its shape is {A.shape}"
        )
    A = checked(A, "A")
    A = A if A.format in ("csc", "csr") else A.tocsc()
    indices = A.indices[: A.indptr[-1]]
    return graph_of(A.indptr.astype(np.int64), indices.astype(np.int32, copy=False))


def graph_of(indptr: np.ndarray, indices: np.ndarray) -> Graph:
    """Return the graph of a valid pattern in int64 and int32 arrays, as `adjacency`."""
    is_sorted = inspect(indptr, indices) == SORTED
    if is_sorted and compare_triangles(indptr, indices, None, False):
        return without_diagonal(indptr, indices)
    return Graph(*_united(indptr, indices), indptr.size - 1)


def without_diagonal(indptr: np.ndarray, indices: np.ndarray) -> Graph:
    """Return the graph of a symmetric pattern with sorted rows without duplicates."""
    if is_short(indptr):
        return Graph(*_without_diagonal(indptr, indices), indptr.size - 1)
    counts = parallel_for(
        lambda *bounds: (_diagonal_entries(indptr, indices, *bounds), *bounds), indptr
    )
    before, total = {}, 0
    for count, first, _ in counts:
        before[first], total = total, total + int(count)
    pointer, neighbours = np.empty(indptr.size, np.int64), np.empty(indices.size - total, np.int32)
    pointer[0] = 0

    def work(first: int, last: int) -> None:
        _copy_neighbours(indptr, indices, pointer, neighbours, before[first], first, last)

    parallel_for(work, indptr)
    return Graph(pointer, neighbours, indptr.size - 1)


@brief
def _without_diagonal(indptr, indices):
    """Run `without_diagonal` in one compiled call."""
    pointer, neighbours = np.zeros(indptr.size, np.int64), np.empty(indices.size, np.int32)
    _copy_neighbours(indptr, indices, pointer, neighbours, 0, 0, indptr.size - 1)
    return pointer, neighbours[: pointer[-1]]


@jit
def _diagonal_entries(indptr, indices, first, last):
    """Return the number of diagonal entries in a range of rows."""
    count = 0
    for i in range(first, last):
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] >= i:
                count += indices[p] == i
                break
    return count


@allocating
def _transposed(indptr, indices):
    """Return the transpose of a pattern, with sorted rows."""
    n = indptr.size - 1
    pointer, out = np.zeros(n + 1, np.int64), np.empty(indices.size, np.int32)
    for i in indices:
        pointer[i + 1] += 1
    for i in range(n):
        pointer[i + 1] += pointer[i]
    cursor = pointer[:-1].copy()
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            out[cursor[i]] = j
            cursor[i] += 1
    return pointer, out


@jit
def _united(indptr, indices):
    """Return the union of a pattern and its transpose: sorted, no diagonal, no duplicates."""
    n = indptr.size - 1
    across, columns = _transposed(indptr, indices)
    along, rows = _transposed(across, columns)
    pointer, out = np.empty(n + 1, np.int64), np.empty(2 * indices.size, np.int32)
    count = np.int64(0)
    for j in range(n):
        pointer[j], last = count, -1
        p, end, q, stop = along[j], along[j + 1], across[j], across[j + 1]
        while p < end or q < stop:
            if q == stop or (p < end and rows[p] <= columns[q]):
                i, p = rows[p], p + 1
            else:
                i, q = columns[q], q + 1
            if i != last and i != j:
                out[count] = i
                count += 1
            last = i
    pointer[n] = count
    return pointer, out[:count].copy()


@jit
def contracted(indptr, indices, group, count):
    """Return the graph of `count` groups of nodes, as `Graph.indptr` and `Graph.indices`."""
    start, members = members_of(group)
    pointer, out = np.empty(count + 1, np.int64), np.empty(indices.size, np.int32)
    last, size = np.full(count, np.int32(-1)), np.int64(0)
    for g in range(count):
        pointer[g], last[g] = size, g
        for i in members[start[g] : start[g + 1]]:
            for p in range(indptr[i], indptr[i + 1]):
                h = group[indices[p]]
                if last[h] != g:
                    last[h], out[size] = g, h
                    size += 1
    pointer[count] = size
    return _transposed(pointer, out[:size])  # sorts the neighbours


@jit
def _copy_neighbours(indptr, indices, pointer, neighbours, skipped, first, last):
    """Copy off-diagonal entries of a range of rows; `skipped` diagonal entries precede them."""
    q = indptr[first] - skipped
    for i in range(first, last):
        for p in range(indptr[i], indptr[i + 1]):
            if indices[p] != i:
                neighbours[q] = indices[p]
                q += 1
        pointer[i + 1] = q


@jit
def _count_inside(indptr, indices, nodes, label, count, first, last):
    """Add to ``count[k + 1]`` the neighbours of ``nodes[k]`` that have a label."""
    for k in range(first, last):
        for p in range(indptr[nodes[k]], indptr[nodes[k] + 1]):
            count[k + 1] += label[indices[p]] >= 0


@jit
def _copy_inside(indptr, indices, nodes, label, new, first, last):
    """Write the labels of these neighbours of ``nodes[k]`` from ``new[0][k]`` on to ``new[1]``."""
    new_indptr, new_indices = new
    for k in range(first, last):
        q = new_indptr[k]
        for p in range(indptr[nodes[k]], indptr[nodes[k] + 1]):
            if label[indices[p]] >= 0:
                new_indices[q] = label[indices[p]]
                q += 1


class Inside:
    """The edges between some `nodes` of a graph, which are renumbered from `base` on."""

    def __init__(self, graph: Graph, nodes: np.ndarray, base: int = 0) -> None:
        self.label = np.full(graph.n, -1, np.int32)
        self.label[nodes] = np.arange(base, base + nodes.size, dtype=np.int32)
        self._pattern = graph.indptr, graph.indices, nodes, self.label
        self._ends = np.append(0, np.cumsum(graph.indptr[nodes + 1] - graph.indptr[nodes]))

    def count(self, count: np.ndarray) -> None:
        """Add the number of neighbours of the k-th node to ``count[k + 1]``."""
        parallel_for(lambda *bounds: _count_inside(*self._pattern, count, *bounds), self._ends)

    def copy(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Write the neighbours of the k-th node to `indices`, from ``indptr[k]`` on."""
        new = indptr, indices
        parallel_for(lambda *bounds: _copy_inside(*self._pattern, new, *bounds), self._ends)


def induced(graph: Graph, nodes: np.ndarray) -> Graph:
    """Return the subgraph of ascending `nodes`; its node k is ``nodes[k]``."""
    inside = Inside(graph, np.ascontiguousarray(nodes, np.int32))
    indptr = np.zeros(nodes.size + 1, np.int64)
    inside.count(indptr)
    np.cumsum(indptr, out=indptr)
    indices = np.empty(int(indptr[-1]), np.int32)
    inside.copy(indptr, indices)
    return Graph(indptr, indices, nodes.size)


@brief
def _keys(n):
    """Return a hash of each node (splitmix64 of Steele, Lea and Flood, OOPSLA 2014)."""
    keys = np.empty(n, np.uint64)
    for i in range(n):
        key = np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        keys[i] = key ^ (key >> np.uint64(31))
    return keys


@jit
def _sum_keys(indptr, indices, key, closed, first, last):
    """Sum, for each node of a range, its key and the keys of its neighbours."""
    for i in range(first, last):
        total = key[i]
        for p in range(indptr[i], indptr[i + 1]):
            total += key[indices[p]]  # wraps around
        closed[i] = total


@jit
def _find_equal(indptr, indices, closed, equal, first, last):
    """Find the first node with the same closed neighbourhood; equal nodes are adjacent."""
    for j in range(first, last):
        equal[j] = j
        degree = indptr[j + 1] - indptr[j]
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i > j:
                break
            if closed[i] != closed[j] or indptr[i + 1] - indptr[i] != degree:
                continue
            a = indptr[i]
            b = indptr[j]
            same = True
            for _ in range(degree - 1):  # all neighbours except i and j
                a += indices[a] == j
                b += indices[b] == i
                same &= indices[a] == indices[b]
                a += 1
                b += 1
            if same:
                equal[j] = i
                break


def indistinguishable(graph: Graph) -> np.ndarray:
    """Return, for each node, the first node with the same closed neighbourhood.

    Returns
    -------
    (n,) int32 array
        ``first[i] <= i``; nodes with equal values can be eliminated consecutively with the
        fill of one (Ashcraft, SIAM J. Sci. Comput. 16, 1995).
    """
    key, closed, equal = (
        _keys(graph.n),
        np.empty(graph.n, np.uint64),
        np.empty(graph.n, np.int32),
    )
    parallel_for(
        lambda *bounds: _sum_keys(graph.indptr, graph.indices, key, closed, *bounds), graph.indptr
    )
    parallel_for(
        lambda *bounds: _find_equal(graph.indptr, graph.indices, closed, equal, *bounds),
        graph.indptr,
    )
    return equal


@jit
def weighted_degree(indptr, indices, weights):
    """Return the degrees in the uncompressed graph: node i represents ``weights[i]`` nodes."""
    degree = np.empty(weights.size, np.int64)
    for i in range(weights.size):
        degree[i] = weights[i] - 1
        for p in range(indptr[i], indptr[i + 1]):
            degree[i] += weights[indices[p]]
    return degree


@brief
def are_nodes(indices, n):
    """Return whether all indices are from 0 to n - 1."""
    good = True
    for i in indices:
        good &= 0 <= i < n
    return good


@brief
def _dense_limit(indptr):
    """Return `dense_limit` of a graph with these starts of neighbours."""
    n, above = indptr.size - 1, 0
    root = math.sqrt(n)
    hub = max(16.0, 50.0 * indptr[n] / max(n, 1))
    for i in range(n):
        above += indptr[i + 1] - indptr[i] > hub
    limit = max(16.0, 10.0 * root)
    return min(hub, limit) if above <= root else limit


def dense_limit(graph: Graph) -> float:
    """Return the number of neighbours above which a node is dense: left out and ordered last.

    The limit is AMD's ``max(16, 10 sqrt(n))``, or 50 times the mean if at most ``sqrt(n)`` nodes
    exceed that: a hundred rows of density 0.02 make minimum degree a hundred times slower.
    """
    return _dense_limit(graph.indptr)


def components(graph: Graph) -> tuple[int, np.ndarray]:
    """Return the number of connected components, and that of each node (int32), by first nodes."""
    return _components(graph.indptr, graph.indices)


@jit
def _components(indptr, indices):
    n = indptr.size - 1
    label, queue = np.full(n, -1, np.int32), np.empty(n, np.int32)
    count = done = end = 0
    for root in range(n):
        if label[root] >= 0:
            continue
        label[root], queue[end] = count, root
        end += 1
        while done < end:
            i = queue[done]
            done += 1
            for p in range(indptr[i], indptr[i + 1]):
                if label[indices[p]] < 0:
                    label[indices[p]] = count
                    queue[end] = indices[p]
                    end += 1
        count += 1
    return count, label
