"""Orders that keep the matrix a band: the given one, and reverse Cuthill-McKee.

They suit long thin meshes. Their elimination trees are chains, with little to do in parallel.

Reference: E. Cuthill, J. McKee, ACM National Conference (1969); A. George, J. W. H. Liu, Computer
Solution of Large Sparse Positive Definite Systems (1981), chapter 4.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from .graph import Graph


def natural(graph: Graph) -> np.ndarray:
    """The order of the matrix as it is given: (n,) int32 array."""
    return np.arange(graph.n, dtype=np.int32)


def rcm(graph: Graph) -> np.ndarray:
    """Order by reverse Cuthill-McKee: (n,) int32 array ``perm``, the node eliminated k-th."""
    pattern = (np.ones(graph.nnz, np.int8), graph.indices, graph.indptr)
    matrix = sp.csr_array(pattern, shape=(graph.n, graph.n))
    return csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int32)


def envelope_flops(graph: Graph, perm: np.ndarray | None = None) -> float:
    """Bound of the flops of Cholesky in an order, by default the given one.

    The factor fills no more than each row from its first entry to the diagonal. With w entries
    there in row i, the sum of w² bounds the flops in time O(n), or O(nnz) for an order `perm`.

    Examples
    --------
    >>> from frontal.ordering.graph import adjacency
    >>> path = adjacency(sp.diags_array([1.0] * 3, offsets=1, shape=(4, 4)))
    >>> envelope_flops(path)
    13.0
    """
    place = np.arange(graph.n)
    if perm is not None:
        place[perm] = np.arange(graph.n)
    linked = np.flatnonzero(graph.degree)
    start = graph.indptr[linked]
    first = place.copy()
    if perm is None:
        first[linked] = graph.indices[start]  # rows are sorted
    elif linked.size:
        first[linked] = np.minimum.reduceat(place[graph.indices], start)
    width = (place - np.minimum(first, place) + 1).astype(np.float64)
    return float(width @ width)
