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

from ..compile.jit import inner, jit
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
    >>> import scipy.sparse as sp
    >>> pattern = sp.csc_array([[1, 1, 0], [1, 1, 0], [1, 0, 1]])
    >>> form = block_form(pattern.indptr.astype(np.int64), pattern.indices)
    >>> form.block.tolist(), form.first.tolist()
    ([1, 1, 0], [0, 1, 3])
    """
    block, count, between = _strong_components(indptr, rows)
    if count <= 1:
        return None
    return BlockForm(block, np.bincount(block, minlength=count), int(between))


class _Search(NamedTuple):
    """State of a depth first search of the columns.

    `low` is the least number of a column on the stack that a column reaches: -1 before the search,
    n once its component is complete. The path has columns, their numbers, and the positions of
    their next entries; the stack has the columns whose component is not complete.
    """

    low: np.ndarray
    path: np.ndarray
    number: np.ndarray
    entry: np.ndarray
    stack: np.ndarray


@jit
def _strong_components(indptr, rows):
    """Return the block of each column, the number of blocks, and of the entries between blocks.

    A component is complete after those that its columns have rows of. Numbered in this order, all
    entries between blocks are above the diagonal (Tarjan, SIAM J. Comput. 1, 1972).
    """
    n = indptr.size - 1
    block, count, visited, between = np.empty(n, np.int32), 0, 0, 0
    search = _Search(
        np.full(n, np.int32(-1)), np.empty(n, np.int32), np.empty(n, np.int32),
        np.empty(n, np.int64), np.empty(n, np.int32),
    )  # fmt: skip
    for root in range(n):
        if search.low[root] < 0:
            count, visited = _visit(indptr, rows, root, search, block, count, visited)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            between += block[rows[p]] != block[j]
    return block, count, between


@inner
def _visit(indptr, rows, root, search, block, count, visited):
    """Number the components that a column reaches; return how many are complete, and visited."""
    low, path, number, entry, stack = search
    n, depth, size, j = low.size, -1, 0, root
    while True:
        if low[j] < 0:
            depth += 1
            path[depth], number[depth], entry[depth] = j, visited, indptr[j]
            low[j], stack[size] = visited, j
            visited, size = visited + 1, size + 1
        deeper, p = -1, entry[depth]
        while p < indptr[j + 1] and deeper < 0:
            i = rows[p]
            if low[i] < 0:
                deeper = i
            else:
                low[j], p = min(low[j], low[i]), p + 1
        entry[depth] = p
        if deeper >= 0:
            j = deeper
            continue
        if low[j] == number[depth]:
            while low[j] < n:
                size -= 1
                low[stack[size]], block[stack[size]] = n, count
            count += 1
        depth -= 1
        if depth < 0:
            return count, visited
        j = path[depth]


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
