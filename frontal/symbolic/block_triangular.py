"""Block triangular form: rows and columns permuted so that entries of A below the blocks are zero.

With the rows in the order of their matched columns, the diagonal blocks are the strong components
of the graph with an edge from column j to each column whose row meets column j. They do not depend
on the matching. Only the diagonal blocks are factorized.

Reference: A. Pothen and C.-J. Fan, "Computing the block triangular form of a sparse matrix", ACM
Trans. Math. Software 16 (1990).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..compile.jit import allocating, brief, jit
from ..ordering.graph import Graph, graph_of


class BlockForm(NamedTuple):
    """Diagonal blocks, numbered so that A is block upper triangular.

    Attributes
    ----------
    block : (n,) int32 array
        The block of each column and of the row matched to it.
    sizes : (blocks,) int64 array
    between : int
        Number of entries outside of the diagonal blocks.
    """

    block: np.ndarray
    sizes: np.ndarray
    between: int

    @property
    def first(self) -> np.ndarray:
        """(blocks + 1,) int32: the first column of each block, if columns are in block order."""
        return np.append(0, np.cumsum(self.sizes)).astype(np.int32)

    def sorted(self, perm: np.ndarray) -> np.ndarray:
        """Return an elimination order with the blocks in sequence, and unchanged inside each."""
        return perm[np.argsort(self.block[perm], kind="stable")]

    def graph(self, indptr: np.ndarray, rows: np.ndarray) -> Graph:
        """Return the graph of the diagonal blocks, without the entries between blocks."""
        return graph_of(*_inside_blocks(indptr, rows, self.block))


def block_form(indptr: np.ndarray, rows: np.ndarray) -> BlockForm | None:
    """Return the block triangular form of a matrix; None if there is one block.

    Parameters
    ----------
    indptr : (n + 1,) int64 array
    rows : (nnz,) int32 array
        The pattern by columns, with each row named by its matched column.

    Examples
    --------
    >>> pattern = sp.csc_array([[1, 1, 0], [1, 1, 0], [1, 0, 1]])
    >>> form = block_form(pattern.indptr.astype(np.int64), pattern.indices)
    >>> form.block.tolist(), form.first.tolist()
    ([1, 1, 0], [0, 1, 3])
    """
    from scipy.sparse.csgraph import connected_components  # imports all of sparse.linalg

    n = indptr.size - 1
    # the transposed pattern has the same components
    pattern = sp.csr_array((np.ones(rows.size), rows, indptr.astype(np.int32)), shape=(n, n))
    count, block = connected_components(pattern, connection="strong")
    if count <= 1:
        return None
    block = block.astype(np.int32, copy=False)
    upper, lower, between = _directions(indptr, rows, block)
    if not upper and lower:
        block = np.int32(count - 1) - block
    elif not upper:
        block = _topological(indptr, rows, block, count)
    return BlockForm(block, np.bincount(block, minlength=count), int(between))


@brief
def _directions(indptr, rows, block):
    """Return whether no entry is below the diagonal blocks, whether none is above, and the rest."""
    upper, lower, between = True, True, 0
    for j in range(indptr.size - 1):
        for p in range(indptr[j], indptr[j + 1]):
            upper &= block[rows[p]] <= block[j]
            lower &= block[rows[p]] >= block[j]
            between += block[rows[p]] != block[j]
    return upper, lower, between


@jit
def _topological(indptr, rows, block, count):
    """Renumber strong components so that entries between blocks are above the diagonal."""
    n = indptr.size - 1
    waiting = np.zeros(count, np.int64)  # entries between blocks, by the block of their column
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            waiting[block[j]] += block[rows[p]] != block[j]
    by_row, start = _members(block[rows], count)
    column = np.empty(rows.size, np.int32)
    for j in range(n):
        column[indptr[j] : indptr[j + 1]] = j
    ready, number = np.empty(count, np.int32), np.empty(count, np.int32)
    head = tail = 0
    for b in range(count):
        if waiting[b] == 0:
            ready[tail] = b
            tail += 1
    while head < tail:
        b = ready[head]
        number[b] = head
        head += 1
        for t in range(start[b], start[b + 1]):
            c = block[column[by_row[t]]]
            if c != b:
                waiting[c] -= 1
                if waiting[c] == 0:
                    ready[tail] = c
                    tail += 1
    return number[block]


@allocating
def _members(block, count):
    """Return the items of each block, ascending, and where those of each block begin."""
    start = np.zeros(count + 1, np.int64)
    for b in block:
        start[b + 1] += 1
    start = np.cumsum(start)
    fill, items = start.copy(), np.empty(block.size, np.int64)
    for i in range(block.size):
        items[fill[block[i]]] = i
        fill[block[i]] += 1
    return items, start


@jit
def _inside_blocks(indptr, rows, block):
    """Return the pattern by columns without the entries between blocks."""
    pointer, inside, size = np.empty_like(indptr), np.empty_like(rows), 0
    for j in range(indptr.size - 1):
        pointer[j] = size
        for p in range(indptr[j], indptr[j + 1]):
            if block[rows[p]] == block[j]:
                inside[size] = rows[p]
                size += 1
    pointer[-1] = size
    return pointer, inside[:size].copy()
