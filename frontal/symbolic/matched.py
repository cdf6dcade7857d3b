"""A large diagonal for LU: rows moved by a matching, or pairs of columns kept together.

Where the pattern of A is far from symmetric, rows are moved. Where it is symmetric and diagonal
entries are zero or tiny, as in saddle point problems, moved rows would destroy the symmetry and
cost fill: instead the two columns of each large entry off the diagonal go into one front, in which
LU may interchange rows (Duff and Pralet 2005).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..errors import SingularMatrixError
from ..matrix import Canonical
from ..ordering import Ordering, order
from ..ordering.etree import EliminationTree, inverse
from ..ordering.graph import Graph, adjacency
from .matching import Matching, maximum_product_matching, needs_matching, pattern_symmetry
from .pairs import symmetric_pairs

_SYMMETRIC = 0.99  # share of mirrored entries above which rows stay where they are


@dataclass(frozen=True)
class Matched:
    """What a matching says of a matrix.

    Attributes
    ----------
    matching : Matching or None
        None where the diagonal is fine as it is.
    column_of_row : (n,) int32 array
        The column that meets each row on the diagonal.
    partner : (n,) int32 array or None
        The other column of each pair, or the column itself; None where there are no pairs.
    """

    matching: Matching | None
    column_of_row: np.ndarray
    partner: np.ndarray | None = None


def match_rows(matrix: Canonical, pairs: bool) -> Matched:
    """Match a general matrix where it needs that.

    Parameters
    ----------
    matrix : Canonical
    pairs : bool
        Form pairs, rather than move rows, where the pattern is symmetric.

    Raises
    ------
    SingularMatrixError
        If the matrix is structurally singular.
    """
    in_place = np.arange(matrix.n, dtype=np.int32)
    A = as_csc(matrix, matrix.indices)
    if not needs_matching(A):
        return Matched(None, in_place)
    matching = maximum_product_matching(A)
    if matching.rank < matrix.n:
        column = int(np.flatnonzero(matching.rows < 0)[0])
        raise SingularMatrixError.structural(matrix.n, matching.rank, column)
    if pairs and pattern_symmetry(A) >= _SYMMETRIC:
        return Matched(matching, in_place, symmetric_pairs(matching, A))
    return Matched(matching, inverse(matching.rows))


def as_csc(matrix: Canonical, indices: np.ndarray) -> sp.csc_array:
    """The matrix with other row indices, sharing its arrays."""
    return sp.csc_array((matrix.data, indices, matrix.indptr), shape=matrix.shape)


def order_matched(
    graph: Graph, partner: np.ndarray | None, method: str, **options: Any
) -> Ordering:
    """Order a graph; with pairs, that in which each is one node: their columns come out adjacent.

    Parameters
    ----------
    partner : (n,) int array, optional
        The other column of each pair, the same one for columns alone.
    **options
        Of `order`.
    """
    if partner is None:
        return order(graph, method, **options)
    n = graph.n
    first = np.minimum(np.arange(n), partner)
    group = (np.cumsum(first == np.arange(n)) - 1)[first]
    columns = np.repeat(np.arange(n), np.diff(graph.indptr))
    ones = np.ones(graph.indices.size, np.int8)
    count = int(group.max(initial=-1)) + 1
    merged = sp.coo_array((ones, (group[graph.indices], group[columns])), shape=(count, count))
    chosen = order(adjacency(merged), method, **options)
    rank = inverse(chosen.perm)
    perm = np.argsort(rank[group], kind="stable").astype(np.int32)
    tree = EliminationTree.of(graph, perm)
    return replace(chosen, perm=perm, cost=tree.cost(), tree=tree)


def tied_columns(perm: np.ndarray, iperm: np.ndarray, partner: np.ndarray | None) -> np.ndarray:
    """Columns, by elimination order, that must share a front with their parent column."""
    if partner is None:
        return np.empty(0, np.bool_)
    return iperm[partner[perm]] > np.arange(perm.size)
