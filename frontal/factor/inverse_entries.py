"""Entries of the inverse of A: by the recurrence inside the pattern of L + U, else by solves."""

from __future__ import annotations

import numpy as np

from ..cpu.inverse.entries import WantedEntries, locate
from ..cpu.inverse.selected import selected_entries
from ..errors import IllConditionedWarning, PerformanceWarning, SolutionOverflowError, warn
from ..numeric.thresholds import THRESHOLDS
from ..ordering.etree import inverse
from ..symbolic.phase import Symbolic
from ..symbolic.scaling import Scaling, extreme, shifted
from .inverse_check import residual_entries
from .replaced_pivots import require_exact_pivots
from .solve import FactorSolver

MAX_SOLVED_COLUMNS = 32  # right-hand sides of one solve


def inverse_entries(solver: FactorSolver, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return entries of A^-1.

    Parameters
    ----------
    solver : FactorSolver
        Of a factor with fronts in the precision of the matrix.
    rows, columns : (e,) int arrays
        In the numbering of A.

    Returns
    -------
    values : (e,) array of the factor's scalar type

    Raises
    ------
    InverseInaccurateError
        If pivots were replaced.
    SolutionOverflowError
        If an entry is too large for its type.
    FactorMemoryError
        If the inverses of fronts do not fit.

    Warns
    -----
    PerformanceWarning
        If the entries by fronts are inaccurate, so that all are computed by solves.
    """
    values, absent = checked_entries(solver, rows, columns)
    if absent.size:
        values[absent] = solved_entries(solver, rows[absent], columns[absent])
    return finite(values)


def checked_entries(
    solver: FactorSolver, rows: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return entries of A^-1 by fronts, and the numbers of those that need solves.

    These are outside of all fronts; or all, with a warning, if the entries are inaccurate.
    """
    factor = solver.factor
    if not factor.symbolic.method.unit:
        wanted, absent = locate_entries(factor.symbolic, rows, columns)
        return entries_inside(solver, wanted, rows, columns), absent
    residual, size = residual_entries(factor, np.union1d(rows, columns)), rows.size
    rows, columns = np.append(rows, residual.rows), np.append(columns, residual.columns)
    wanted, absent = locate_entries(factor.symbolic, rows, columns)
    values = entries_inside(solver, wanted, rows, columns)
    if residual.accurate(values[size:]):
        return values[:size], absent
    warn_of_solves()
    return values[:size], np.arange(size)


def warn_of_solves() -> None:
    """Warn that columns of the inverse are computed by solves."""
    warn(
        "columns of the inverse are computed by solves, which takes longer: the entries by fronts "
        "are inaccurate. Likely cause: many pivots are much smaller than their columns. Try: "
        "another ordering, or kind='general'",
        PerformanceWarning,
    )


def finite(values: np.ndarray) -> np.ndarray:
    """Return entries of an inverse; raise `SolutionOverflowError` if they are not finite."""
    if not np.isfinite(values).all():
        raise SolutionOverflowError(str(values.dtype))
    return values


def locate_entries(
    symbolic: Symbolic, rows: np.ndarray, columns: np.ndarray
) -> tuple[WantedEntries, np.ndarray]:
    """Return the entries of A^-1 by fronts, and the numbers of those outside of all fronts.

    Rows of the inverse are columns of A: a matching may move entries of A's pattern outside.
    """
    row, column = inverse(symbolic.perm)[rows], inverse(symbolic.row_perm)[columns]
    return locate(symbolic.plan, row, column, symbolic.method.one_triangle)


def entries_inside(
    solver: FactorSolver, wanted: WantedEntries, rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Return the entries that fronts compute, and zeros for all others.

    A factor on a GPU is copied to the host, where the entries are computed.
    """
    require_exact_pivots(solver)
    factor = solver.factor
    if wanted.pointer[-1] == 0:
        return np.zeros(rows.size, factor.dtype)
    values = selected_entries(factor.symbolic, factor.to_host(), wanted, rows.size)
    if factor.scaling is None:
        root = np.sqrt(np.abs(factor.matrix.A.diagonal()))
        _warn_if_ill_conditioned(np.abs(values) * root[rows] * root[columns])
        return values
    _warn_if_ill_conditioned(np.abs(values))
    return _unscaled(values, rows, columns, factor.scaling)


def _warn_if_ill_conditioned(scaled: np.ndarray) -> None:
    """Warn if entries of the inverse of the scaled matrix, whose entries are about 1, are huge.

    The largest one is a lower bound of the condition number of that matrix.
    """
    condition = float(scaled.max(initial=0.0))
    if condition * np.finfo(scaled.dtype).eps > THRESHOLDS.warned:
        warn(
            "the entries of the inverse may have less than two correct digits: the condition "
            f"number of the scaled matrix is at least {condition:.0e}. Likely causes: (a) boundary "
            "conditions are missing, (b) equations nearly repeat each other. Try: fix one unknown "
            "of each free motion, or remove dependent equations",
            IllConditionedWarning,
        )


def _unscaled(
    values: np.ndarray, rows: np.ndarray, columns: np.ndarray, scaling: Scaling
) -> np.ndarray:
    """Return entries of D_c Z D_r from those of Z, the inverse of D_r A D_c."""
    by_row, by_column = scaling.column[rows], scaling.row[columns]
    if extreme(scaling.row, scaling.column):
        exponent = np.log2(by_row).astype(np.int64) + np.log2(by_column).astype(np.int64)
        with np.errstate(over="ignore", under="ignore"):
            return shifted(values, exponent).astype(values.dtype, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        return (values * (by_row * by_column)).astype(values.dtype, copy=False)


def solved_entries(solver: FactorSolver, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return entries of A^-1 by solves with the unit vectors of their columns."""
    order = np.argsort(columns, kind="stable")
    distinct, first = np.unique(columns[order], return_index=True)
    first = np.append(first, order.size)
    values = np.empty(order.size, solver.dtype)
    for low in range(0, distinct.size, MAX_SOLVED_COLUMNS):
        high = min(low + MAX_SOLVED_COLUMNS, distinct.size)
        X = solved_unit_vectors(solver, distinct[low:high])
        chosen = order[first[low] : first[high]]
        values[chosen] = X[rows[chosen], np.searchsorted(distinct[low:high], columns[chosen])]
    return values


def solved_unit_vectors(solver: FactorSolver, columns: np.ndarray) -> np.ndarray:
    """Return the (n, c) refined columns of A^-1, for c distinct columns."""
    B = np.zeros((solver.factor.symbolic.n, columns.size), solver.dtype, order="F")
    B[columns, np.arange(columns.size)] = 1
    return solver.solve(B, "N", None, None)[0]
