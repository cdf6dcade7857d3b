"""Queries about the inverse of A: its diagonal, sparse parts, traces and quadratic forms."""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from .._typing import Sparse, Untyped, for_scipy, is_sparse
from ..compile.jit import jit
from ..cpu.inverse.entries import entries_of_factor
from ..errors import IllConditionedWarning, NonFiniteInputError, warn
from ..info import InverseInfo
from ..matrix.exact import refuse_inexact
from ..matrix.norms import first_non_finite
from ..matrix.validate import checked
from ..numeric.method import CHOLESKY
from .inverse_check import residual_entries
from .inverse_entries import (
    MAX_SOLVED_COLUMNS,
    checked_entries,
    entries_inside,
    finite,
    inverse_entries,
    solved_entries,
    solved_unit_vectors,
    warn_of_solves,
)
from .solve import FactorSolver

_CHECKED_COLUMNS = 4  # of a diagonal, compared with solutions
_MAX_ROW_ENTRIES = 32  # entries of a row whose pairs are entries of the inverse; longer: a solve


def diagonal_of_inverse(solver: FactorSolver) -> np.ndarray:
    """Return the diagonal of A^-1; warn if that of a positive definite matrix is not positive."""
    places = np.arange(solver.factor.symbolic.n, dtype=np.int32)
    diagonal = inverse_entries(solver, places, places)
    if _is_positive(solver, diagonal) is False:
        warn(
            "a diagonal entry of the inverse is not positive, although the matrix is positive "
            "definite: the entries have no correct digits. Likely cause: the matrix is singular to "
            "working precision. Try: fix one unknown of each free motion",
            IllConditionedWarning,
        )
    return diagonal


def _is_positive(solver: FactorSolver, diagonal: np.ndarray) -> bool | None:
    """Return whether entries are positive; None if the method does not imply it."""
    if solver.factor.symbolic.method != CHOLESKY:
        return None
    return bool((np.real(diagonal) > 0).all())


def report_of_diagonal(solver: FactorSolver, diagonal: np.ndarray, seconds: float) -> InverseInfo:
    """Return the report of a diagonal, compared with refined solutions."""
    n, error = diagonal.size, 0.0
    count = min(_CHECKED_COLUMNS, n)
    columns = np.random.default_rng(0).choice(n, count, replace=False)
    if count:
        X = solved_unit_vectors(solver, columns)
        difference = np.abs(X[columns, np.arange(count)] - diagonal[columns])
        error = float((difference / np.abs(X).max(axis=0)).max())
    return InverseInfo(
        columns=tuple(columns.tolist()),
        error=error,
        positive=_is_positive(solver, diagonal),
        seconds=seconds,
    )


def reported_diagonal(solver: FactorSolver) -> tuple[np.ndarray, InverseInfo]:
    """Return the diagonal of A^-1 and its report."""
    began = time.perf_counter()
    diagonal = diagonal_of_inverse(solver)
    return diagonal, report_of_diagonal(solver, diagonal, time.perf_counter() - began)


def selected_inverse(solver: FactorSolver, pattern: Untyped) -> sp.csc_array:
    """Return the entries of A^-1 in a pattern; see `Factor.selected_inverse`."""
    n = solver.factor.symbolic.n
    if isinstance(pattern, str):
        if pattern not in ("A", "factor"):
            raise ValueError(f"pattern is {pattern!r}; choose 'A', 'factor' or a sparse array")
        if pattern == "factor":
            return _factor_inverse(solver)
        indptr, indices = solver.factor.symbolic.indptr, solver.factor.symbolic.indices
    else:
        B = _sparse(pattern, "pattern", (n, n)).tocoo()
        ones = np.ones(B.row.size, np.int8)
        B = sp.csc_array((ones, (B.row, B.col)), shape=(n, n))  # sums duplicates
        indptr, indices = B.indptr, B.indices
    columns = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
    values = inverse_entries(solver, indices, columns)
    return sp.csc_array((values, indices.copy(), indptr.copy()), shape=(n, n))


def _factor_inverse(solver: FactorSolver) -> sp.csc_array:
    """Return the entries of A^-1 in the pattern of L + U, in the numbering of A."""
    symbolic = solver.factor.symbolic
    indptr, indices, wanted = entries_of_factor(
        symbolic.plan, symbolic.perm, symbolic.row_perm, symbolic.method.one_triangle
    )
    columns = np.repeat(np.arange(symbolic.n, dtype=np.int32), np.diff(indptr))
    values = entries_inside(solver, wanted, indices, columns)
    if symbolic.method.unit:
        values = _checked_inverse(solver, values, indices, columns)
    values = finite(values)
    Z = sp.csc_array((values, indices, indptr), shape=(symbolic.n, symbolic.n))
    Z.sort_indices()
    return Z


def _checked_inverse(
    solver: FactorSolver, values: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return entries in the pattern of L + U, by solves if those by fronts are inaccurate."""
    residual, n = residual_entries(solver.factor), solver.factor.symbolic.n
    Z = sp.csr_array((values, (rows, columns)), shape=(n, n))
    if residual.accurate(np.asarray(Z[residual.rows, residual.columns]).ravel()):
        return values
    warn_of_solves()
    return solved_entries(solver, rows, columns)


def trace_of_product(solver: FactorSolver, B: Untyped) -> np.number:
    """Return tr(A^-1 B); see `Factor.trace_inv`."""
    n = solver.factor.symbolic.n
    B = _sparse(B, "B", (n, n)).tocoo()
    with np.errstate(over="ignore", invalid="ignore"):
        trace = (inverse_entries(solver, B.col, B.row) * B.data).sum()
    finite(np.asarray(trace))
    return trace


def quadratic_diagonal(solver: FactorSolver, M: Untyped) -> np.ndarray:
    """Return diag(M A^-1 M^H); see `Factor.quadratic_diag`."""
    M = sp.csr_array(_sparse(M, "M", (None, solver.factor.symbolic.n)), copy=True)
    M.sum_duplicates()
    out = np.zeros(M.shape[0], np.result_type(solver.dtype, M.dtype))
    short = np.diff(M.indptr) <= _MAX_ROW_ENTRIES
    left, right = _pairs(M.indptr, short)
    rows, columns = M.indices[left], M.indices[right]
    values, absent = checked_entries(solver, rows, columns)
    row = np.repeat(np.arange(M.shape[0]), np.diff(M.indptr))[left]
    np.add.at(out, row, M.data[left] * values * M.data[right].conj())
    short[row[absent]] = False
    solved = np.flatnonzero(~short)
    for low in range(0, solved.size, MAX_SOLVED_COLUMNS):
        chosen = solved[low : low + MAX_SOLVED_COLUMNS]
        B = np.asfortranarray(M[chosen].conj().T.toarray())
        X, _ = solver.solve(B, "N", None, None)
        out[chosen] = M[chosen].multiply(X.T).sum(axis=1)
    return finite(out)


@jit
def _pairs(indptr, chosen):
    """Return all pairs of entries in the same row, for the chosen rows."""
    total = 0
    for i in range(chosen.size):
        total += chosen[i] * np.int64(indptr[i + 1] - indptr[i]) ** 2
    left, right = np.empty(total, np.int64), np.empty(total, np.int64)
    e = 0
    for i in range(chosen.size):
        if chosen[i]:
            for p in range(indptr[i], indptr[i + 1]):
                for q in range(indptr[i], indptr[i + 1]):
                    left[e], right[e] = p, q
                    e += 1
    return left, right


def _sparse(B: Untyped, name: str, shape: tuple[int | None, int]) -> Sparse:
    """Return a sparse argument after checks of its indices and shape."""
    B = for_scipy(B)
    if not is_sparse(B):
        raise TypeError(
            f"{name} is a {type(B).__name__}, not a sparse array. Try: "
            f"scipy.sparse.csc_array({name})"
        )
    B = checked(B, name)
    if len(B.shape) != 2 or B.shape[1] != shape[1] or shape[0] not in (None, B.shape[0]):
        expected = tuple("any" if x is None else x for x in shape)
        raise ValueError(f"{name} has shape {B.shape}, expected {expected}")
    if name != "pattern":  # whose values are ignored
        refuse_inexact(B.data, name)
        _refuse_non_finite(B, name)
    return B


def _refuse_non_finite(B: Sparse, name: str) -> None:
    """Raise `NonFiniteInputError` for the first stored entry that is NaN or infinite."""
    coo = B.tocoo()
    p = first_non_finite(coo.data) if coo.dtype.kind in "fc" else -1
    if p >= 0:
        raise NonFiniteInputError(name, (int(coo.row[p]), int(coo.col[p])), coo.data[p])
