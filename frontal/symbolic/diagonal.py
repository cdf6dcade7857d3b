"""The diagonal of a matrix: which entries are tiny, and which columns get no pivot from it.

A column whose diagonal entry is tiny need not be paired with another: elimination of a neighbour
fills its diagonal, and in its own front a neighbour makes a 2x2 pivot with it, or gives LU a row.
Only a column without either is *stranded*: it must have a partner in its front, or be delayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..compile.jit import brief, jit
from ..machine.threads import is_short, parallel_for
from ..matrix.symmetry import compare_triangles
from .matching import by_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._typing import Sparse

MIN_SYMMETRY = 0.6  # below this share of mirrored entries the matching repays itself in fill
TINY_DIAGONAL = 1e-8  # of the largest entry of row and column


@brief
def _tiny_diagonal(indptr, indices, size):
    n = indptr.size - 1
    diagonal, by_row, by_column = np.zeros(n), np.zeros(n), np.zeros(n)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            by_row[i] = max(by_row[i], size[p])
            by_column[j] = max(by_column[j], size[p])
            if i == j:
                diagonal[j] = size[p]
    bound = TINY_DIAGONAL * np.minimum(by_row, by_column)
    return ~((diagonal > 0) & (diagonal >= bound))


def _stands_out(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> bool:
    """Whether no diagonal entry is tiny beside any entry at all, which is seen in passing."""
    extremes = parallel_for(lambda *bounds: _extremes(indptr, indices, data, *bounds), indptr)
    smallest, largest = min(one for one, _ in extremes), max(other for _, other in extremes)
    return bool(0 < TINY_DIAGONAL * largest <= smallest)


@jit
def _extremes(indptr, indices, data, first, last):
    """The least diagonal entry of some columns, and their largest one; (0, 0) if there is NaN."""
    smallest, largest = np.inf, 0.0
    for j in range(first, last):
        diagonal = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            size = np.float64(abs(data[p]))
            if not size < np.inf:
                return 0.0, 0.0
            largest = max(largest, size)
            if indices[p] == j:
                diagonal = size
        smallest = min(smallest, diagonal)
    return smallest, largest


def tiny_diagonal(A: sp.csc_array) -> NDArray[np.bool_]:
    """Columns whose diagonal entry is 0, missing or below 1e-8 of the largest of row and column.

    Parameters
    ----------
    A : (n, n) csc_array
        Without duplicates, real or complex.

    Returns
    -------
    (n,) bool array
    """
    return tiny_entries(A.indptr.astype(np.int64, copy=False), A.indices, A.data)


def tiny_entries(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> NDArray[np.bool_]:
    """As `tiny_diagonal`, of arrays by columns."""
    if not is_short(indptr) and _stands_out(indptr, indices, data):
        return np.zeros(indptr.size - 1, np.bool_)
    if data.dtype.kind != "c":
        return _tiny_diagonal(indptr, indices, np.abs(data))
    with np.errstate(over="ignore"):
        return _tiny_diagonal(indptr, indices, np.abs(data))


@jit
def _stranded(indptr, indices, data, tiny, place, start):
    n = tiny.size
    front = np.empty(n, np.int32)
    for s in range(start.size - 1):
        front[start[s] : start[s + 1]] = s
    early, stranded = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for j in range(n):
        if not tiny[j]:
            continue
        early[j] = stranded[j] = True
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i == j or data[p] == 0:
                continue
            if place[i] < place[j]:
                early[j] = stranded[j] = False
                break
            if front[place[i]] == front[place[j]]:
                stranded[j] = False
    return early, stranded


def columns_without_pivot(
    A: sp.csc_array, tiny: NDArray[np.bool_], place: NDArray[np.int32], start: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Columns with tiny diagonal entries that elimination leaves as they are.

    Parameters
    ----------
    A : (n, n) csc_array
        Of symmetric pattern. Stored zeros are no entries.
    tiny : (n,) bool array
        As `tiny_diagonal` says.
    place : (n,) int32 array
        When each column is eliminated.
    start : (fronts + 1,) int32 array
        First pivot column of each front, in elimination order.

    Returns
    -------
    early : (n,) bool array
        Columns before all their neighbours: the pivot is the diagonal entry of A.
    stranded : (n,) bool array
        Those of them that have no neighbour among the pivot columns of their front.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.csc_array([[0.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 0.0]])
    >>> order, fronts = np.arange(3, dtype=np.int32), np.array([0, 1, 3], np.int32)
    >>> early, alone = columns_without_pivot(A, tiny_diagonal(A), order, fronts)
    >>> early.tolist(), alone.tolist()
    ([True, False, False], [True, False, False])
    """
    return _stranded(A.indptr, A.indices, A.data, tiny, place, start)


def needs_matching(A: Sparse) -> bool:
    """Tell whether LU should permute rows by a matching before it orders ``A + A^T``.

    So it should where the pattern is far from symmetric (there the matching saves fill, up to a
    factor of 80, while above 60 % symmetry it saves none), and where a diagonal entry is zero,
    missing or below 1e-8 of the largest entries of its row and of its column.

    Parameters
    ----------
    A : (n, n) sparse matrix or array
        Real or complex.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> needs_matching(sp.csc_array([[4.0, 1.0], [2.0, 3.0]]))
    False
    >>> needs_matching(sp.csc_array([[4.0, 1.0], [2.0, 0.0]]))
    True
    """
    A = by_columns(A)
    return bool(tiny_diagonal(A).any() or pattern_symmetry(A) < MIN_SYMMETRY)


def pattern_symmetry(A: Sparse) -> float:
    """Return the share of stored off-diagonal entries whose mirror image is stored too.

    Parameters
    ----------
    A : (n, n) sparse matrix or array
        Values do not matter: stored zeros count.

    Returns
    -------
    float
        Between 0 and 1; 1 for a diagonal matrix.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> pattern_symmetry(sp.csc_array([[1, 2, 0], [3, 0, 0], [4, 5, 0]]))
    0.5
    """
    A = by_columns(A)
    return mirrored_share(A.indptr.astype(np.int64, copy=False), A.indices)


def mirrored_share(indptr: np.ndarray, indices: np.ndarray) -> float:
    """As `pattern_symmetry`, of a pattern by columns whose rows ascend."""
    if not is_short(indptr) and compare_triangles(indptr, indices, None, False):
        return 1.0  # as it is most often, and threads have seen that sooner
    return _mirrored_share(indptr, indices)


@brief
def _mirrored_share(indptr, indices):
    cursor = indptr[:-1].copy()  # columns are visited from left to right
    mirrored = entries = 0
    for j in range(cursor.size):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i == j:
                continue
            q, end = cursor[i], indptr[i + 1]
            while q < end and indices[q] < j:
                q += 1
            cursor[i] = q
            mirrored += q < end and indices[q] == j
            entries += 1
    return mirrored / entries if entries > 0 else 1.0
