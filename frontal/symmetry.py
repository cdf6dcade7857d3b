"""Whether a matrix is symmetric or Hermitian, exactly or up to rounding, and who promised it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ._jit import allocating, brief, inner, jit
from .method import CHOLESKY, LDLT, LU, Method, symmetric_method
from .parts import in_parts

UNSYMMETRIC, SYMMETRIC, POSITIVE_DIAGONAL, TRANSPOSED = 0, 1, 2, 3
ROUNDING = 100.0  # entries of a promised symmetry may differ by so many eps of the largest one


@inner
def _first_from(indices, begin, end, row):
    """The first entry of a column, between these, in this row or below."""
    while begin < end:
        middle = (begin + end) // 2
        if indices[middle] < row:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def _compare(indptr, indices, data, conjugate, tolerance, following, first, last):
    """Compare some columns from their diagonals on with the rows of the same numbers.

    Columns are visited from left to right, so that the entries of row j right of the diagonal are
    asked for in the order in which their columns store them: `following`, zero at first, has for
    each column from `first` on the place behind the last one that was asked for, and one more.

    Returns
    -------
    alike : bool
    excess : int
        Entries of these columns below the diagonal, less those above it. Each one below has had
        another one above, in any column; where sums over all columns are equal, all have.
    positive : int
        Positive diagonal entries.
    """
    excess, positive = 0, 0
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        p = following[j - first] - 1
        if p < 0:
            p = _first_from(indices, begin, end, first)
        if p < end and indices[p] < j:
            return False, excess, positive
        excess -= p - begin
        while p < end:
            i = indices[p]
            q = p
            if i > j:
                q = following[i - first] - 1
                if q < 0:
                    q = _first_from(indices, indptr[i], indptr[i + 1], first)
                if q == indptr[i + 1] or indices[q] != j:
                    return False, excess, positive
                following[i - first] = q + 2
                excess += 1
            if data is not None:
                a = data[p]
                b = np.conj(data[q]) if conjugate else data[q]
                both_nan = a != a and b != b  # which is refused as such, or as a pivot
                if a != b and not abs(a - b) <= tolerance and not both_nan:
                    return False, excess, positive
                if i == j and a.real > 0:
                    positive += 1
            p += 1
    return True, excess, positive


def compare_triangles(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray | None,
    conjugate: bool,
    tolerance: float,
) -> int:
    """Compare A, by columns with rows ascending, with its adjoint or its transpose.

    Without `data` the pattern alone.
    """
    n = indptr.size - 1

    def compare(first: int, last: int) -> tuple[bool, int, int]:
        following = np.zeros(n - first, np.int64)
        return _compare(indptr, indices, data, conjugate, tolerance, following, first, last)

    alike, excess, positive = zip(*in_parts(compare, indptr), strict=True)
    if not all(alike) or sum(excess):
        return UNSYMMETRIC
    return POSITIVE_DIAGONAL if sum(positive) == n else SYMMETRIC


@allocating
def structure(indptr, indices, data):
    """What `compare_triangles` tells of A, exactly; `TRANSPOSED` if it is its transpose alone."""
    n = indptr.size - 1
    for conjugate in (True, False):
        following = np.zeros(n, np.int64)
        alike, excess, positive = _compare(indptr, indices, data, conjugate, 0.0, following, 0, n)
        if alike and excess == 0:
            if not conjugate:
                return TRANSPOSED
            return POSITIVE_DIAGONAL if positive == n else SYMMETRIC
    return UNSYMMETRIC


def method_of(
    kind: str, structure: int, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray
) -> Method:
    """The method for a promised kind, or for what A is exactly."""
    if kind == "spd":
        return CHOLESKY
    if kind in ("symmetric", "hermitian"):
        return symmetric_method(data.dtype, kind == "hermitian")
    if kind == "general":
        return LU
    if structure == UNSYMMETRIC and data.dtype.kind == "c":
        same = compare_triangles(indptr, indices, data, False, 0.0) != UNSYMMETRIC
        structure = TRANSPOSED if same else UNSYMMETRIC
    return method_for(structure, data.dtype)


def method_for(structure: int, dtype: np.dtype) -> Method:
    """The method for what a matrix is exactly, as `structure` tells: of the least work."""
    if structure == POSITIVE_DIAGONAL:
        return CHOLESKY
    if structure == SYMMETRIC:
        return symmetric_method(dtype, True)
    return LDLT if structure == TRANSPOSED else LU


@brief
def diagonal_of(indptr, indices, data):
    """Diagonal of a matrix by columns whose rows ascend; SciPy would check the whole of it."""
    n = indptr.size - 1
    out = np.zeros(n, data.dtype)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            if indices[p] >= j:
                if indices[p] == j:
                    out[j] = data[p]
                break
    return out


def is_symmetric(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, adjoint: bool = True
) -> bool:
    """Whether A == A^H, or A == A^T, up to the rounding that a promised symmetry may have."""
    return compare_triangles(indptr, indices, data, adjoint, _tolerance(data)) != UNSYMMETRIC


def is_hermitian(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> bool:
    """Whether exactly A == A^H."""
    return compare_triangles(indptr, indices, data, True, 0.0) != UNSYMMETRIC


def _tolerance(data: np.ndarray) -> float:
    largest = np.fmax.reduce(np.abs(data), initial=0.0)
    return ROUNDING * float(np.finfo(data.dtype).eps) * float(largest)


def check_promise(kind: str, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> None:
    """Refuse a matrix that lacks, beyond rounding, the symmetry that `kind` promises."""
    if kind in ("auto", "general"):
        return
    adjoint = kind != "symmetric"
    tolerance = _tolerance(data)
    if compare_triangles(indptr, indices, data, adjoint, tolerance) != UNSYMMETRIC:
        return
    n = indptr.size - 1
    A = sp.csc_array((data, indices, indptr), shape=(n, n))
    gap = abs(A - (A.conj().T if adjoint else A.T)).tocoo()
    worst = int(np.argmax(gap.data)) if gap.nnz else 0
    if gap.nnz and not gap.data[worst] <= tolerance:
        i, j = int(gap.row[worst]), int(gap.col[worst])
        reason = f"A[{i}, {j}] = {A[i, j]} and A[{j}, {i}] = {A[j, i]}"
    else:
        reason = "an entry is stored whose counterpart is not"
    raise ValueError(
        f"kind={kind!r} promises a {'Hermitian' if adjoint else 'symmetric'} matrix with both "
        f"triangles stored, but {reason}. Likely causes: (a) only one triangle was given: "
        "A + scipy.sparse.tril(A, -1).conj().T completes a lower one, (b) rows were replaced, as "
        "for boundary conditions, without their columns, (c) it is not symmetric: kind='auto'"
    )
