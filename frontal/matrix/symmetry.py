"""Tests for symmetric and Hermitian matrices, exact or up to rounding, and for a stated kind."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..compile.jit import allocating, brief, jit
from ..machine.threads import parallel_for
from ..numeric.method import CHOLESKY, LDLT, LU, SIGNED_LDLH, Method, symmetric_method
from ..numeric.thresholds import THRESHOLDS
from .csc import first_from

UNSYMMETRIC, SYMMETRIC, POSITIVE_DIAGONAL, TRANSPOSED = 0, 1, 2, 3
_EXACT = np.empty(0)  # no slack: transposed entries must be equal


@jit
def _compare(indptr, indices, data, conjugate, slack, following, first, last):
    """Compare columns, from the diagonal down, with the rows of the same numbers.

    Entries may differ by the smaller `slack` of their row and column; not if `slack` is empty.

    Columns are visited from left to right, so the entries of row j right of the diagonal are read
    in the order in which their columns store them. `following`, zero at first, holds for each
    column from `first` on the position behind the last entry read, plus 1.

    Return whether the entries match, their excess and the number of positive diagonal entries. The
    excess is the number of entries below the diagonal minus those above it. Each entry below had
    its own partner above, in any column; so if the excess sums to 0 over all columns, all have one.
    """
    excess, positive = 0, 0
    for j in range(first, last):
        begin, end = indptr[j], indptr[j + 1]
        p = following[j - first] - 1
        if p < 0:
            p = first_from(indices, begin, end, first)
        if p < end and indices[p] < j:
            return False, excess, positive
        excess -= p - begin
        while p < end:
            i = indices[p]
            q = p
            if i > j:
                q = following[i - first] - 1
                if q < 0:
                    q = first_from(indices, indptr[i], indptr[i + 1], first)
                if q == indptr[i + 1] or indices[q] != j:
                    return False, excess, positive
                following[i - first] = q + 2
                excess += 1
            if data is not None:
                a = data[p]
                b = np.conj(data[q]) if conjugate else data[q]
                differ = a != b and (a == a or b == b)  # NaN is refused elsewhere, or as a pivot
                if differ and not (slack.size > 0 and abs(a - b) <= min(slack[i], slack[j])):
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
    slack: np.ndarray = _EXACT,
) -> int:
    """Compare A, by columns with rows ascending, with its adjoint or its transpose.

    Without `data` only the pattern is compared; with `slack`, values up to rounding (`slack_of`).
    """
    n = indptr.size - 1

    def compare(first: int, last: int) -> tuple[bool, int, int]:
        following = np.zeros(n - first, np.int64)
        return _compare(indptr, indices, data, conjugate, slack, following, first, last)

    matches, excess, positive = zip(*parallel_for(compare, indptr), strict=True)
    if not all(matches) or sum(excess):
        return UNSYMMETRIC
    return POSITIVE_DIAGONAL if sum(positive) == n else SYMMETRIC


@allocating
def compare_all(indptr, indices, data):
    """Return the result of `compare_triangles` with the adjoint, exactly."""
    n = indptr.size - 1
    following = np.zeros(n, np.int64)
    matches, excess, positive = _compare(indptr, indices, data, True, np.empty(0), following, 0, n)
    if not matches or excess != 0:
        return UNSYMMETRIC
    return POSITIVE_DIAGONAL if positive == n else SYMMETRIC


@allocating
def structure(indptr, indices, data):
    """Return the result of `compare_triangles`, exactly; `TRANSPOSED` if only A == A^T."""
    found = compare_all(indptr, indices, data)
    if found != UNSYMMETRIC:
        return found
    n = indptr.size - 1
    following = np.zeros(n, np.int64)
    matches, excess, _ = _compare(indptr, indices, data, False, np.empty(0), following, 0, n)
    return TRANSPOSED if matches and excess == 0 else UNSYMMETRIC


def method_of(
    kind: str, structure: int, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray
) -> Method:
    """Return the method for a stated kind, or for the symmetry of A up to rounding."""
    if kind == "spd":
        return CHOLESKY
    if kind in ("symmetric", "hermitian"):
        return symmetric_method(data.dtype, kind == "hermitian")
    if kind == "quasidefinite":
        return SIGNED_LDLH
    if kind == "general":
        return LU
    if structure == UNSYMMETRIC:
        structure = _structure_up_to_rounding(indptr, indices, data)
    return method_for(structure, data.dtype)


def _structure_up_to_rounding(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> int:
    """Return the result of `structure` for a matrix that is not exactly Hermitian.

    Assembled matrices are symmetric up to the rounding of their sums (`slack_of`).
    """
    if compare_triangles(indptr, indices, None, False) == UNSYMMETRIC:
        return UNSYMMETRIC
    slack = slack_of(indptr, indices, data, roundings_of(data.dtype))
    found = compare_triangles(indptr, indices, data, True, slack)
    if found == UNSYMMETRIC and data.dtype.kind == "c":
        same = compare_triangles(indptr, indices, data, False, slack) != UNSYMMETRIC
        return TRANSPOSED if same else UNSYMMETRIC
    return found


@brief
def lone_triangle(indptr, indices):
    """Return 1 if entries off the diagonal are all below it, 2 if they are all above it; else 0."""
    below = above = False
    for j in range(indptr.size - 1):
        for p in range(indptr[j], indptr[j + 1]):
            below |= indices[p] > j
            above |= indices[p] < j
        if below and above:
            return 0
    return 1 if below else 2 if above else 0


def method_for(structure: int, dtype: np.dtype) -> Method:
    """Return the method of least work for an exact symmetry, as `structure` returns it."""
    if structure == POSITIVE_DIAGONAL:
        return CHOLESKY
    if structure == SYMMETRIC:
        return symmetric_method(dtype, True)
    return LDLT if structure == TRANSPOSED else LU


@brief
def diagonal_of(indptr, indices, data):
    """Return the diagonal of a matrix by columns with rows ascending; SciPy checks all entries."""
    n = indptr.size - 1
    out = np.zeros(n, data.dtype)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            if indices[p] >= j:
                if indices[p] == j:
                    out[j] = data[p]
                break
    return out


@jit
def slack_of(indptr, indices, data, roundings):
    """Return by how much the entries of each row and column may differ from transposed entries.

    It is a number of `roundings` of the largest modulus in the row and the column: that of all of A
    would hide differences beside a huge entry. NaN is ignored.
    """
    largest = np.zeros(indptr.size - 1)
    for j in range(largest.size):
        for p in range(indptr[j], indptr[j + 1]):
            i, size = indices[p], np.float64(np.abs(data[p]))
            if size > largest[j]:
                largest[j] = size
            if size > largest[i]:
                largest[i] = size
    for j in range(largest.size):
        largest[j] *= roundings
    return largest


def roundings_of(dtype: np.dtype) -> float:
    """Return the relative difference of transposed entries that counts as rounding."""
    return THRESHOLDS.symmetry * float(np.finfo(dtype).eps)


def is_symmetric(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, adjoint: bool = True
) -> bool:
    """Return whether A == A^H, or A == A^T, up to the rounding of each row and column."""
    if compare_triangles(indptr, indices, data, adjoint) != UNSYMMETRIC:
        return True
    slack = slack_of(indptr, indices, data, roundings_of(data.dtype))
    return compare_triangles(indptr, indices, data, adjoint, slack) != UNSYMMETRIC


def is_hermitian(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> bool:
    """Return whether exactly A == A^H."""
    return compare_triangles(indptr, indices, data, True) != UNSYMMETRIC


def check_promise(kind: str, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> None:
    """Raise ValueError if A lacks, beyond rounding, the symmetry that `kind` states."""
    if kind in ("auto", "general"):
        return
    adjoint = kind != "symmetric"
    if is_symmetric(indptr, indices, data, adjoint):
        return
    n = indptr.size - 1
    slack = slack_of(indptr, indices, data, roundings_of(data.dtype))
    A = sp.csc_array((data, indices, indptr), shape=(n, n))
    gap = abs(A - (A.conj().T if adjoint else A.T)).tocoo()
    excess = gap.data - np.minimum(slack[gap.row], slack[gap.col])
    worst = int(np.argmax(excess)) if gap.nnz else 0
    if gap.nnz and not excess[worst] <= 0:
        i, j = int(gap.row[worst]), int(gap.col[worst])
        reason = f"A[{i}, {j}] = {A[i, j]} and A[{j}, {i}] = {A[j, i]}"
    else:
        reason = "an entry is stored without its counterpart"
    raise ValueError(
        f"kind={kind!r} requires a {'Hermitian' if adjoint else 'symmetric'} matrix with both "
        f"triangles stored, but {reason}. Likely causes: (a) only one triangle was given: "
        "A + scipy.sparse.tril(A, -1).conj().T completes a lower one, (b) rows were replaced, for "
        "example for boundary conditions, but not their columns, (c) the matrix is not symmetric. "
        "Try: kind='auto'"
    )
