"""Preprocessing for large pivots: rows permuted by a matching, or columns tied in pairs.

LU permutes rows if the pattern of A is far from symmetric. If the pattern is symmetric and diagonal
entries are zero or tiny, as in saddle point problems, a row permutation would destroy the symmetry
and cause fill. Rows then stay, and columns are tied to their partners in a matching (Duff and
Pralet 2005): the stranded columns of `columns_without_pivot`, or all columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ..errors import SingularMatrixError
from ..matrix.canonical import Canonical
from ..matrix.symmetry import diagonal_of
from ..numeric.method import Method
from ..ordering import Ordering, order
from ..ordering.etree import EliminationTree, inverse
from ..ordering.graph import Graph, contracted
from .diagonal import MIN_SYMMETRY, mirrored_share, tiny_entries
from .matching import Matching, matching_of
from .pairs import pairs_of
from .scaling import equilibrated

Pairs = Literal["auto", "all", "none"]

_SYMMETRIC = 0.99  # least share of mirrored entries for which rows are not permuted
_MAX_TIED_SHARE = 0.01  # largest share of stranded columns for which no other columns are tied


@dataclass(frozen=True)
class Preprocessing:
    """Row permutation and pairs of a matrix, from a matching.

    Attributes
    ----------
    matching : Matching or None
        None if the diagonal is acceptable, or neither the scaling nor a column needs a matching.
    column_of_row : (n,) int32 array
        The column that meets each row on the diagonal: column i for row i without a permutation.
    partner : (n,) int32 array or None
        The second column of each pair, or the column itself; None if there are no pairs.
    tiny : (n,) bool array or None
        Columns with tiny diagonal entries, if rows are not permuted.
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
        """Whether rows are not permuted."""
        if self.matching is None:
            return True
        return bool((self.column_of_row == np.arange(self.column_of_row.size)).all())

    def tied(self, matrix: Canonical, columns: np.ndarray) -> Preprocessing:
        """Return a copy with `columns` tied to their partners, or with all pairs if they are many.

        Raises
        ------
        SingularMatrixError
            If no matching of nonzero entries has all columns: the pattern is structurally
            singular, or stored zeros make the matrix singular.
        """
        matching = self.matching or _matching(matrix, matrix.data)
        diagonal = diagonal_of(matrix.indptr, matrix.indices, matrix.data)
        partner = pairs_of(matching, diagonal, np.diff(matrix.indptr))
        if columns.size <= _MAX_TIED_SHARE * matrix.n:
            alone = np.ones(matrix.n, np.bool_)
            alone[columns] = alone[partner[columns]] = False
            partner = np.where(alone, self.column_of_row, partner)
        return replace(self, matching=matching, partner=partner)


def match_rows(matrix: Canonical, method: Method, pairs: Pairs) -> Preprocessing:
    """Match rows and columns of a matrix, as far as they do not depend on the ordering.

    Parameters
    ----------
    matrix : Canonical
    method : Method
        A method of one triangle, or LU.
    pairs : {"auto", "all", "none"}
        The treatment of a symmetric pattern with tiny diagonal entries: none before the ordering,
        tie all pairs, or permute rows, which a method of one triangle cannot do.

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
    if method.one_triangle or (symmetry >= _SYMMETRIC and pairs != "none"):
        in_place = replace(in_place, tiny=tiny)
        if pairs == "all":
            return in_place.tied(matrix, in_place.column_of_row)
        if not equilibrated(matrix, method.one_triangle).even:
            return replace(in_place, matching=_matching(matrix, matrix.data))
        # check that a matching exists: with equal costs this is much faster than the best matching
        _matching(matrix, (matrix.data != 0).astype(float))
        return in_place
    matching = _matching(matrix, matrix.data)
    return Preprocessing(matching, inverse(matching.rows))


def looks_at_values(matrix: Canonical, method: Method) -> bool:
    """Return whether a symbolic phase depends on values beyond a diagonal that is not tiny."""
    if not method.scaling:
        return False
    tiny, symmetry = _diagonal(matrix, method)
    return bool(tiny.any()) or symmetry < MIN_SYMMETRY


def _diagonal(matrix: Canonical, method: Method) -> tuple[np.ndarray, float]:
    """Return the columns with tiny diagonal entries and the share of mirrored entries."""
    symmetric = method.one_triangle or matrix.hermitian
    return tiny_entries(
        matrix.indptr, matrix.indices, matrix.data
    ), 1.0 if symmetric else mirrored_share(matrix.indptr, matrix.indices)


def _matching(matrix: Canonical, data: np.ndarray) -> Matching:
    """Return a matching of all columns of a pattern with values `data`.

    Raises
    ------
    SingularMatrixError
        If there is none.
    """
    matching, n = matching_of(matrix.indptr, matrix.indices, data), matrix.n
    if matching.rank == n:
        return matching
    stored = matching_of(matrix.indptr, matrix.indices, np.ones(data.size))
    if stored.rank == n:
        raise SingularMatrixError.stored_zeros(n, np.flatnonzero(matching.rows < 0))
    raise SingularMatrixError.structural(n, np.flatnonzero(stored.rows < 0))


def order_matched(
    graph: Graph, partner: np.ndarray | None, method: str, **options: Any
) -> Ordering:
    """Order a graph; with pairs, order the graph with merged pairs, so their columns are adjacent.

    Parameters
    ----------
    partner : (n,) int array, optional
        The second column of each pair, or the column itself.
    **options
        Options of `order`.
    """
    if partner is None:
        return order(graph, method, **options)
    n = graph.n
    first = np.minimum(np.arange(n), partner)
    group = (np.cumsum(first == np.arange(n)) - 1)[first]
    count = int(group.max(initial=-1)) + 1
    merged = Graph(*contracted(graph.indptr, graph.indices, group, count), count)
    chosen = order(merged, method, **options)
    rank = inverse(chosen.perm)
    perm = np.argsort(rank[group], kind="stable").astype(np.int32)
    tree = EliminationTree.from_graph(graph, perm)
    return replace(chosen, perm=perm, cost=tree.cost(), tree=tree)


def tied_columns(perm: np.ndarray, iperm: np.ndarray, partner: np.ndarray | None) -> np.ndarray:
    """Return which columns, in elimination order, must share a front with their parent column."""
    if partner is None:
        return np.empty(0, np.bool_)
    return iperm[partner[perm]] > np.arange(perm.size)
