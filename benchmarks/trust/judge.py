"""What is right about the solution of one small system, by dense linear algebra.

The reference is a dense solution whose residuals are computed in long double, of the system as it
was rounded; where double precision does not get there, Gaussian elimination is in long double too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import structural_rank

import frontal
from benchmarks.trust.systems import System
from frontal.symbolic.matching import maximum_product_matching

FORWARD = 0.1  # relative error of x that must not pass without a word
BACKWARD = 5  # roundings: four, and what those of the solver's own residual may hide
REFUSED = 0.2  # refusals begin at this condition, times the rounding: 1e15 in double precision
ALARM = 2e-6  # warnings should not come below this one: 1e10 in double precision
_SETTLED = 1e-3  # corrections of a reference
VIOLATIONS = (
    "silent forward error",
    "silent backward error",
    "refused a regular matrix",
    "no rank",
    "wrong rank",
    "wrong null columns",
    "wrong inertia",
    "unexpected error",
)


@dataclass
class Judgement:
    """What happened (solved, warned or refused) and what of it must not be, with a number each.

    `inertia` and `nulls` tell whether that of the matrix, and the null columns of a refusal, were
    compared with eigenvalues and singular values, or are a matter of taste.
    """

    outcome: str = "solved"
    violations: dict[str, str] = field(default_factory=dict)
    false_alarm: str = ""
    inertia: str = ""
    nulls: str = ""
    forward: float = 0.0
    backward: float = 0.0


def judge(system: System, backend: str = "cpu", inertia: bool = False) -> Judgement:
    """Solve a system and judge what came of it.

    Parameters
    ----------
    system : System
    backend : str
    inertia : bool
        Whether the inertia of a symmetric or Hermitian matrix is compared with eigenvalues, too.

    Returns
    -------
    Judgement
    """
    found, options = Judgement(), {"kind": system.kind, "backend": backend}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x, _ = frontal.solve(system.A, system.b, return_info=True, **options)
        except frontal.SingularMatrixError as error:
            found.outcome = "refused"
            _judge_refusal(system.A, error, found)
        except Exception as error:  # whatever it is belongs into the report
            found.outcome = "failed"
            if not (isinstance(error, frontal.SolutionOverflowError) and _overflows(system)):
                found.violations["unexpected error"] = f"{type(error).__name__}: {error}"[:200]
        else:
            told = [w for w in caught if issubclass(w.category, frontal.IllConditionedWarning)]
            others = [w for w in caught if w not in told]
            if others:
                found.violations["unexpected error"] = str(others[0].message)[:200]
            if told:
                found.outcome = "warned"
                _judge_warning(system, x, str(told[0].message), found)
            else:
                _judge_solution(system, x, found)
    if inertia:
        _judge_inertia(system.A, backend, found)
    return found


# --- solutions ---------------------------------------------------------------------------------


def _judge_solution(system: System, x: np.ndarray, found: Judgement) -> None:
    """Errors of a solution that came without a word."""
    eps = np.finfo(system.A.dtype).eps
    A, b, x = (_extended(v) for v in (system.A, system.b, x))
    size = abs(A).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    found.backward = float(np.abs(b - A @ x).max() / size / eps) if size else 0.0
    if not found.backward <= BACKWARD:
        found.violations["silent backward error"] = f"{found.backward:.3g} eps"
    reference = solution(A, b)
    if reference is None:
        found.violations["silent forward error"] = "singular to long double"
        return
    largest = np.abs(reference).max()
    found.forward = float(np.abs(x - reference).max() / largest) if largest else 0.0
    if not found.forward <= FORWARD:
        found.violations["silent forward error"] = f"{found.forward:.3g}"


def solution(A: sp.csc_array, b: np.ndarray) -> np.ndarray | None:
    """The solution to a few digits at least, in long double, or None where there is none.

    Parameters
    ----------
    A : (n, n) csc_array of longdouble or clongdouble
    b : (n,) array
        Of the same type.

    Returns
    -------
    (n,) array or None
    """
    row, column = equilibrated(A)
    S, b = sp.diags_array(row) @ A @ sp.diags_array(column), b * row
    dense = S.toarray()
    for factorize in (_double, _eliminated):
        solve = factorize(dense)
        y = None if solve is None else _refined(S, b, solve, column)
        if y is not None:
            return y * column
    return None


def _refined(S: sp.csr_array, b: np.ndarray, solve, column: np.ndarray) -> np.ndarray | None:
    """Refine until corrections are small, scaled by columns or not; None if they do not shrink."""
    y, last = solve(b), np.inf
    for _ in range(8):
        correction = solve(b - S @ y)
        sizes = [np.abs(correction * by).max() / (np.abs(y * by).max() or 1) for by in (1, column)]
        size = max(sizes)
        y = y + correction
        if size <= _SETTLED:
            return y
        if not size <= 0.2 * last:
            return None
        last = size
    return None


def _double(dense: np.ndarray):
    """Solutions by LAPACK, in double precision."""
    A = dense.astype(np.complex128 if dense.dtype.kind == "c" else np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factors = scipy.linalg.lu_factor(A, check_finite=False)
    if not factors[0].diagonal().all():
        return None

    def solve(b: np.ndarray) -> np.ndarray:
        size = np.abs(b).max()
        if size == 0:
            return b
        y = scipy.linalg.lu_solve(factors, (b / size).astype(A.dtype), check_finite=False)
        return y.astype(b.dtype) * size

    return solve


def _eliminated(dense: np.ndarray):
    """Solutions by Gaussian elimination with partial pivoting, in long double."""
    L, n = dense.copy(), dense.shape[0]
    order = np.arange(n)
    for k in range(n):
        p = k + int(np.abs(L[k:, k]).argmax())
        if L[p, k] == 0:
            return None
        if p != k:
            L[[k, p]], order[[k, p]] = L[[p, k]], order[[p, k]]
        L[k + 1 :, k] /= L[k, k]
        rows = k + 1 + np.flatnonzero(L[k + 1 :, k])
        L[rows, k + 1 :] -= np.outer(L[rows, k], L[k, k + 1 :])

    def solve(b: np.ndarray) -> np.ndarray:
        y = b[order].copy()
        for k in range(n):
            y[k + 1 :] -= L[k + 1 :, k] * y[k]
        for k in range(n - 1, -1, -1):
            y[k] /= L[k, k]
            y[:k] -= L[:k, k] * y[k]
        return y

    return solve


def _overflows(system: System) -> bool:
    """Whether the solution really is too large for its type."""
    x = solution(_extended(system.A), _extended(system.b))
    return x is not None and bool(np.abs(x).max() > 0.1 * np.finfo(system.A.dtype).max)


def _extended(values):
    return values.astype(np.result_type(values.dtype, np.longdouble))


# --- conditions --------------------------------------------------------------------------------


def equilibrated(A: sp.csc_array, power: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two for rows and columns that bring their largest entries near to 1.

    With `power` 0.5 rows and columns take turns (Ruiz); with 1 rows are first, then columns.
    """
    C = sp.coo_array(abs(A)).astype(np.longdouble)
    (i, j), n = C.coords, A.shape[0]
    with np.errstate(divide="ignore"):
        size = np.where(C.data > 0, np.log2(C.data), -np.inf).astype(np.float64)
    row, column = np.zeros(n), np.zeros(n)
    for _ in range(12 if power < 1 else 1):
        for place, side in ((i, row), (j, column)):
            largest = np.full(n, -np.inf)
            np.maximum.at(largest, place, size + row[i] + column[j])
            side -= np.where(np.isfinite(largest), power * largest, 0)
    two = np.longdouble(2)
    return two ** np.round(row), two ** np.round(column)


def balanced(A: sp.csc_array) -> tuple[np.ndarray, np.ndarray]:
    """Powers of two that bring the logarithms of all entries near to zero (Curtis and Reid)."""
    C, n = sp.coo_array(abs(A)), A.shape[0]
    there = C.data > 0
    (i, j), size = C.coords, C.data[there].astype(np.longdouble)
    sides, logs = (i[there], j[there]), np.log2(size).astype(np.float64)
    scale, counts = (
        [np.zeros(n), np.zeros(n)],
        [np.maximum(np.bincount(k, minlength=n), 1) for k in sides],
    )
    for turn in range(100):
        one = turn % 2
        left = logs + scale[0][sides[0]] + scale[1][sides[1]]
        scale[one] -= np.bincount(sides[one], left, n) / counts[one]
    return tuple(np.longdouble(2) ** np.round(side) for side in scale)


def matched(A: sp.csc_array) -> tuple[np.ndarray, np.ndarray]:
    """Scalings of a matching, by which no entry is above 1 and those of the matching are 1."""
    found = maximum_product_matching(sp.csc_array(A.astype(np.result_type(A.dtype, np.float64))))
    return found.row_scale.astype(np.longdouble), found.col_scale.astype(np.longdouble)


def singular_values(A: sp.csc_array) -> Iterator[np.ndarray]:
    """Those of the matrix in several scalings, one after the other."""
    for scaled in (equilibrated, partial(equilibrated, power=1.0), balanced, matched):
        row, column = scaled(A)
        S = (sp.diags_array(row) @ _extended(A) @ sp.diags_array(column)).toarray()
        dense = S.astype(np.complex128 if A.dtype.kind == "c" else np.float64)
        if np.isfinite(dense).all() and dense.any():
            yield np.linalg.svd(dense, compute_uv=False)


def _condition(size: np.ndarray) -> float:
    return float(size[0] / size[-1]) if size[-1] > 0 else np.inf


def _judge_refusal(A: sp.csc_array, error: frontal.SingularMatrixError, found: Judgement) -> None:
    eps, n = float(np.finfo(A.dtype).eps), A.shape[0]
    sizes = list(singular_values(A))
    condition = min(map(_condition, sizes))
    if condition < REFUSED / eps:
        found.violations["refused a regular matrix"] = f"condition {condition:.2g}: {error}"[:120]
    if error.rank is None:
        found.violations["no rank"] = str(error)[:120]
        return
    if "structurally" in str(error):
        least = most = structural_rank(sp.csr_array(A))
    else:  # what is between is a matter of taste
        least = min(_above(size, 100 * n * eps) for size in sizes)
        most = max(_above(size, 0.1 * eps) for size in sizes)
    certain = least == most == error.rank or any(
        _above(size, 100 * n * eps) == _above(size, 10 * n**0.5 * eps) == error.rank
        for size in sizes  # a gap above what zeros become shows the rank
    )
    found.nulls = "checked" if certain else "unsure"
    if error.null_columns.size != n - error.rank or (certain and not _independent(A, error)):
        found.violations["wrong null columns"] = str(error.null_columns)[:120]
    if not least <= error.rank <= most:
        found.violations["wrong rank"] = f"{error.rank} of {n}, not {least} to {most}"


def _above(size: np.ndarray, least: float) -> int:
    """How many singular values are above a part of the largest one."""
    return int((size > least * size[0]).sum())


def _independent(A: sp.csc_array, error: frontal.SingularMatrixError) -> bool:
    """Whether the columns that are not null columns are linearly independent."""
    others = sp.csc_array(A, copy=True)
    nulls = np.isin(np.arange(A.shape[0]), error.null_columns)
    others.data[np.repeat(nulls, np.diff(A.indptr))] = 0
    others.eliminate_zeros()
    if "structurally" in str(error):
        return structural_rank(sp.csr_array(others)) == error.rank
    if error.rank == 0:
        return True
    least = 10 * float(np.finfo(A.dtype).eps)
    return any(size[error.rank - 1] > least * size[0] for size in singular_values(others))


def _judge_warning(system: System, given: np.ndarray, message: str, found: Judgement) -> None:
    """See whether the condition of the solution explains it.

    That is | |A^-1| (|A||x| + |b| + |r| / eps) | / |x| with the residual r that is left, which is
    large in small rows of a badly scaled matrix.
    """
    A, b, eps = _extended(system.A), _extended(system.b), np.finfo(system.A.dtype).eps
    x = solution(A, b)
    row, column = equilibrated(A)
    dense = (sp.diags_array(row) @ A @ sp.diags_array(column)).toarray()
    with np.errstate(all="ignore"):
        try:
            inverse = np.linalg.inv(dense.astype(np.result_type(system.A.dtype, np.float64)))
        except np.linalg.LinAlgError:
            return
        if x is None or not np.abs(x).max() > 0:
            return
        errors = abs(A) @ np.abs(x) + np.abs(b) + np.abs(b - A @ _extended(given)) / eps
        change = column * (np.abs(inverse) @ (row * errors))
        condition = float(change.max() / np.abs(x).max())
    if condition < ALARM / eps:
        found.false_alarm = f"condition {condition:.2g}: {message}"[:120]


# --- inertia -----------------------------------------------------------------------------------


def _judge_inertia(A: sp.csc_array, backend: str, found: Judgement) -> None:
    """Compare the inertia with eigenvalues, if there is one and it is told."""
    if abs(A - A.conj().T).max() != 0:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = "hermitian" if A.dtype.kind == "c" else "symmetric"
            told = frontal.factorize(A, kind=kind, backend=backend, singular="allow").inertia
    except (frontal.InertiaUncertainError, frontal.SingularMatrixError):
        found.inertia = "refused"
        return
    except Exception as error:  # as above
        found.violations["unexpected error"] = f"{type(error).__name__}: {error}"[:200]
        return
    row, column = equilibrated(A)
    S = sp.diags_array(np.sqrt(row * column)) @ _extended(A) @ sp.diags_array(np.sqrt(row * column))
    dense = S.toarray().astype(np.complex128 if A.dtype.kind == "c" else np.float64)
    values = np.linalg.eigvalsh(dense)
    unsure = 10 * values.size * np.finfo(np.float64).eps * np.abs(values).max(initial=0.0)
    positive, negative = int((values > unsure).sum()), int((values < -unsure).sum())
    found.inertia = "equal" if positive + negative == values.size else "unsure"
    n = values.size
    if not (positive <= told.positive <= n - negative and told.negative == n - told.positive):
        found.violations["wrong inertia"] = f"{tuple(told)}, not ({positive}, {negative})"
