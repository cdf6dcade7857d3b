"""Whether a matrix is symmetric or Hermitian, exactly or up to rounding, and who promised it."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ._jit import brief

UNSYMMETRIC, SYMMETRIC, POSITIVE_DIAGONAL = 0, 1, 2
ROUNDING = 100.0  # entries of a promised symmetry may differ by so many eps of the largest one


@brief
def compare_triangles(indptr, indices, data, conjugate, tolerance):
    """Compare A with its adjoint, or its transpose, in one pass over the entries.

    Columns are visited from left to right, so that the entries of row j right of the diagonal are
    asked for in the order in which their columns store them: one cursor per column finds them.
    """
    n = indptr.size - 1
    cursor = indptr[:-1].copy()
    positive = 0
    for j in range(n):
        p = cursor[j]
        end = indptr[j + 1]
        if p < end and indices[p] < j:
            return UNSYMMETRIC
        while p < end:
            i = indices[p]
            q = cursor[i]
            if q == indptr[i + 1] or indices[q] != j:
                return UNSYMMETRIC
            a = data[p]
            b = np.conj(data[q]) if conjugate else data[q]
            both_nan = a != a and b != b  # which is refused as such, or as a pivot
            if a != b and not abs(a - b) <= tolerance and not both_nan:
                return UNSYMMETRIC
            if i == j and a.real > 0:
                positive += 1
            cursor[i] = q + 1
            p += 1
    return POSITIVE_DIAGONAL if positive == n else SYMMETRIC


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
