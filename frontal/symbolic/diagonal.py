"""The diagonal of a matrix: tiny entries, and columns that they leave without a pivot.

A column with a tiny diagonal entry need not be paired: elimination of an earlier neighbour
fills its diagonal entry, and a neighbour in its front forms a 2x2 pivot with it, or offers LU a
row. Only a column without both is *stranded*: it needs a partner in its front, or is delayed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from ..compile.jit import brief, jit
from ..machine.threads import is_short, parallel_for
from ..matrix.symmetry import compare_triangles

if TYPE_CHECKING:
    from numpy.typing import NDArray


MIN_SYMMETRY = 0.6  # share of mirrored entries below which a matching saves fill
TINY_DIAGONAL = 1e-8  # bound of a tiny diagonal entry over the largest entries of row and column


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
    """Return whether no diagonal entry is tiny relative to any entry: a quick sufficient test."""
    extremes = parallel_for(lambda *bounds: _extremes(indptr, indices, data, *bounds), indptr)
    smallest, largest = min(one for one, _ in extremes), max(other for _, other in extremes)
    return bool(0 < TINY_DIAGONAL * largest <= smallest)


@jit
def _extremes(indptr, indices, data, first, last):
    """Return least diagonal and largest entry of some columns; (0, 0) if one is not finite."""
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
    """Return the columns with a diagonal entry that is 0, missing or below 1e-8 relatively.

    The entry is compared with the largest entries of its row and of its column. A has no
    duplicates.
    """
    return tiny_entries(A.indptr.astype(np.int64, copy=False), A.indices, A.data)


def tiny_entries(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> NDArray[np.bool_]:
    """Return `tiny_diagonal` of CSC arrays."""
    if not is_short(indptr) and _stands_out(indptr, indices, data):
        return np.zeros(indptr.size - 1, np.bool_)
    if data.dtype.kind != "c":
        return _tiny_diagonal(indptr, indices, np.abs(data))
    with np.errstate(over="ignore"):
        return _tiny_diagonal(indptr, indices, np.abs(data))


@jit
def early_and_stranded(indptr, indices, data, tiny, place, start):
    """Run `columns_without_pivot` for CSC arrays."""
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
    """Return the columns whose tiny diagonal entries are unchanged by elimination.

    Parameters
    ----------
    A : (n, n) csc_array
        Matrix of symmetric pattern. Stored zeros do not count as entries.
    tiny : (n,) bool array
        Result of `tiny_diagonal`.
    place : (n,) int32 array
        Elimination position of each column.
    start : (fronts + 1,) int32 array
        First pivot column of each front, in elimination order.

    Returns
    -------
    early : (n,) bool array
        Tiny columns eliminated before all their neighbours: the pivot is the diagonal entry of A.
    stranded : (n,) bool array
        Early columns without a neighbour among the pivot columns of their front.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = sp.csc_array([[0.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 0.0]])
    >>> order, fronts = np.arange(3, dtype=np.int32), np.array([0, 1, 3], np.int32)
    >>> early, alone = columns_without_pivot(A, tiny_diagonal(A), order, fronts)
    >>> early.tolist(), alone.tolist()
    ([True, False, False], [True, False, False])
    """
    return early_and_stranded(A.indptr, A.indices, A.data, tiny, place, start)


def mirrored_share(indptr: np.ndarray, indices: np.ndarray) -> float:
    """Return the share of stored off-diagonal entries whose mirror image is stored, else 1.

    The pattern is by columns with ascending rows. Stored zeros count as entries.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> A = sp.csc_array([[1, 2, 0], [3, 0, 0], [4, 5, 0]])
    >>> mirrored_share(A.indptr.astype(np.int64), A.indices)
    0.5
    """
    if not is_short(indptr) and compare_triangles(indptr, indices, None, False):
        return 1.0  # the usual case, which threads check faster
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
