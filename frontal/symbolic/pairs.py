"""Pairs of nodes for 2x2 pivots, from a matching of a matrix of symmetric pattern.

A row permutation would destroy the symmetry of a saddle point matrix. Instead, the cycles of its
matching are broken into pairs: two nodes with a large off-diagonal entry, which share a
front.

Reference: I. S. Duff and S. Pralet, "Strategies for scaling and pivoting for sparse symmetric
indefinite problems", SIAM J. Matrix Anal. Appl. 27 (2005).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..compile.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._typing import Sparse
    from .matching import Matching

MIN_PIVOT_DIAGONAL = 0.1  # least scaled diagonal entry that is a 1x1 pivot


@jit
def _break_cycles(rows, diagonal, degree):
    """Break the cycles (and open paths) of a matching into pairs; return each node's partner."""
    n = rows.size
    partner = np.arange(n).astype(np.int32)
    is_row = np.zeros(n, np.bool_)
    for j in range(n):
        if rows[j] >= 0:
            is_row[rows[j]] = True
    seen = np.zeros(n, np.bool_)
    walk = np.empty(n, np.int32)
    for step in range(2 * n):  # paths from their ends, then cycles
        j = step % n
        if seen[j] or (step < n and is_row[j]):
            continue
        size = 0
        while j >= 0 and not seen[j]:
            seen[j] = True
            walk[size] = j
            size += 1
            j = rows[j]
        start = 0
        if size % 2 and step >= n:  # the single node: largest diagonal, then longest column
            for k in range(1, size):
                a, b = walk[k], walk[start]
                equal = diagonal[a] == diagonal[b]
                if diagonal[a] > diagonal[b] or (equal and degree[a] > degree[b]):
                    start = k
            start += 1
        elif step >= n:  # of both ways to pair, take the smaller diagonal products
            excess = 0.0
            for k in range(size):
                product = diagonal[walk[k]] * diagonal[walk[(k + 1) % size]]
                excess += product if k % 2 == 0 else -product
            start = 1 if excess > 0.0 else 0
        for k in range(start, start + size - 1, 2):
            a, b = walk[k % size], walk[(k + 1) % size]
            if min(diagonal[a], diagonal[b]) < MIN_PIVOT_DIAGONAL:
                partner[a], partner[b] = b, a
    return partner


def symmetric_pairs(matching: Matching, A: Sparse) -> NDArray[np.int32]:
    """Break the cycles of a matching into pairs for 2x2 pivots that preserve the symmetry.

    Even cycles are broken in the way with the smaller diagonal products. In an odd cycle the node
    with the largest scaled diagonal entry stays single or, among equal entries, the node with the
    longest column, which fill-reducing orderings eliminate last. Pairs with two acceptable
    diagonal entries are not formed.

    Parameters
    ----------
    matching : Matching
        Matching of A.
    A : (n, n) sparse matrix or array
        Matrix of symmetric pattern.

    Returns
    -------
    (n,) int32 array
        ``partner[i]`` is the second node of the pair of i, or i itself.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from frontal.symbolic.matching import maximum_product_matching
    >>> A = sp.csc_array([[1e-3, 0.0, 5.0], [0.0, 1.0, 0.1], [5.0, 0.1, 0.0]])
    >>> symmetric_pairs(maximum_product_matching(A), A)
    array([2, 1, 0], dtype=int32)
    """
    A = sp.csc_array(A)
    return pairs_of(matching, A.diagonal(), np.diff(A.indptr).astype(np.int64))


def pairs_of(matching: Matching, diagonal: np.ndarray, degree: np.ndarray) -> NDArray[np.int32]:
    """Run `symmetric_pairs` for the diagonal of A and the numbers of entries of its columns."""
    scaled = matching.row_scale * np.abs(diagonal).astype(np.float64) * matching.col_scale
    return _break_cycles(matching.rows, scaled, degree)
