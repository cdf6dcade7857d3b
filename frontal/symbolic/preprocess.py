"""A large diagonal where pivots are sought: rows moved by a matching, or columns kept together.

Where the pattern of A is far from symmetric, LU moves rows. Where it is symmetric and diagonal
entries are zero or tiny, as in saddle point problems, moved rows would destroy the symmetry and
cost fill: rows stay, and columns that could get no pivot in their front are tied to their partner
in a matching (Duff and Pralet 2005), those that `stranded` finds, or all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from ..errors import SingularMatrixError
from ..matrix.canonical import Canonical
from ..numeric.method import Method
from ..ordering import Ordering, order
from ..ordering.etree import EliminationTree, inverse
from ..ordering.graph import Graph, adjacency
from .diagonal import MIN_SYMMETRY, mirrored_share, tiny_entries
from .matching import Matching, maximum_product_matching
from .pairs import symmetric_pairs
from .scaling import equilibrated

Pairs = Literal["auto", "all", "none"]

_SYMMETRIC = 0.99  # share of mirrored entries above which rows stay where they are
_MAX_TIED_SHARE = 0.01  # share of columns up to which only those that are stranded are tied


@dataclass(frozen=True)
class Preprocessing:
    """What a matching says of a matrix.

    Attributes
    ----------
    matching : Matching or None
        None where the diagonal is fine as it is, or neither the scaling nor a column needs it.
    column_of_row : (n,) int32 array
        The column that meets each row on the diagonal; the same one without a matching.
    partner : (n,) int32 array or None
        The other column of each pair, or the column itself; None where there are no pairs.
    tiny : (n,) bool array or None
        Columns with tiny diagonal entries, where rows stay where they are.
    symmetric : bool
        Whether the pattern is known to be symmetric.
    """

    matching: Matching | None
    column_of_row: np.ndarray
    partner: np.ndarray | None = None
    tiny: np.ndarray | None = None
    symmetric: bool = False

    @property
    def in_place(self) -> bool:
        """Whether rows stay where they are."""
        if self.matching is None:
            return True
        return bool((self.column_of_row == np.arange(self.column_of_row.size)).all())

    def tied(self, matrix: Canonical, columns: np.ndarray) -> Preprocessing:
        """The same with these columns tied to their partners, or with all pairs if they are many.

        Raises
        ------
        SingularMatrixError
            If no matching of nonzero entries has all columns: the pattern is structurally
            singular, or stored zeros make the matrix singular.
        """
        A = as_csc(matrix, matrix.indices)
        matching = self.matching or _matching(A)
        partner = symmetric_pairs(matching, A)
        if columns.size <= _MAX_TIED_SHARE * matrix.n:
            alone = np.ones(matrix.n, np.bool_)
            alone[columns] = alone[partner[columns]] = False
            partner = np.where(alone, self.column_of_row, partner)
        return replace(self, matching=matching, partner=partner)


def match_rows(matrix: Canonical, method: Method, pairs: Pairs) -> Preprocessing:
    """Match a matrix as far as can be told before it is ordered.

    Parameters
    ----------
    matrix : Canonical
    method : Method
        Of one triangle, or LU.
    pairs : {"auto", "all", "none"}
        What is done where the pattern is symmetric and diagonal entries are tiny: nothing yet,
        all pairs tied, or rows moved, which a method of one triangle cannot do.

    Raises
    ------
    SingularMatrixError
        If no matching of nonzero entries has all columns: the pattern is structurally singular,
        or stored zeros make the matrix singular.
    """
    tiny, symmetry = _diagonal(matrix, method)
    rows = np.arange(matrix.n, dtype=np.int32)
    in_place = Preprocessing(None, rows, symmetric=symmetry == 1.0)
    if not tiny.any() and symmetry >= MIN_SYMMETRY:
        return in_place
    A = as_csc(matrix, matrix.indices)
    if method.one_triangle or (symmetry >= _SYMMETRIC and pairs != "none"):
        in_place = replace(in_place, tiny=tiny)
        if pairs == "all":
            return in_place.tied(matrix, in_place.column_of_row)
        if not equilibrated(matrix, method.one_triangle).even:
            return replace(in_place, matching=_matching(A))
        # whether there is one at all: far faster than the best, of many that are about as good
        _matching(sp.csc_array(((A.data != 0).astype(float), A.indices, A.indptr), A.shape))
        return in_place
    matching = _matching(A)
    return Preprocessing(matching, inverse(matching.rows))


def looks_at_values(matrix: Canonical, method: Method) -> bool:
    """Whether a symbolic phase follows from more of the values than a diagonal that is not tiny."""
    if not method.scaling:
        return False
    tiny, symmetry = _diagonal(matrix, method)
    return bool(tiny.any()) or symmetry < MIN_SYMMETRY


def _diagonal(matrix: Canonical, method: Method) -> tuple[np.ndarray, float]:
    """Columns with tiny diagonal entries, and how symmetric the pattern is."""
    pattern = matrix.indptr, matrix.indices
    symmetric = method.one_triangle or matrix.hermitian
    return tiny_entries(*pattern, matrix.data), 1.0 if symmetric else mirrored_share(*pattern)


def _matching(A: sp.csc_array) -> Matching:
    """The matching of all columns of A; raises SingularMatrixError if there is none."""
    matching, n = maximum_product_matching(A), A.shape[0]
    if matching.rank == n:
        return matching
    stored = maximum_product_matching(
        sp.csc_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    )
    if stored.rank == n:
        raise SingularMatrixError.stored_zeros(n, np.flatnonzero(matching.rows < 0))
    raise SingularMatrixError.structural(n, np.flatnonzero(stored.rows < 0))


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
    tree = EliminationTree.from_graph(graph, perm)
    return replace(chosen, perm=perm, cost=tree.cost(), tree=tree)


def tied_columns(perm: np.ndarray, iperm: np.ndarray, partner: np.ndarray | None) -> np.ndarray:
    """Columns, by elimination order, that must share a front with their parent column."""
    if partner is None:
        return np.empty(0, np.bool_)
    return iperm[partner[perm]] > np.arange(perm.size)
