"""Systems near the borders of the exponent: solved and judged in variables of moderate size.

Where A, b or x come near the largest or the smallest number of their type, or of the factor's, the
sweeps and the norms that judge x overflow or underflow, though x itself may be a number. Powers of
two round nothing: with A' = D_r A D_c, whose entries are about 1, and b' = s D_r b, a column of
which is about 1, A' x' = b' is solved in double precision around the sweeps, and x = D_c x' / s.
Whether x is no number of its type is seen where it is scaled back. Columns that are far from the
borders are left alone, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..backend.protocol import NumericFactor
from ..cpu.host_system import HostSystem, direct, host_system
from ..errors import IllConditionedWarning, SolutionOverflowError, warn
from ..numeric.linear_system import BackwardErrors, Vectors, borders
from ..numeric.thresholds import THRESHOLDS
from ..symbolic.scaling import shifted
from . import refine

ZERO = -(1 << 20)  # an exponent for zero


def exponents(M: np.ndarray) -> np.ndarray:
    """Exponents of the larger part of each entry, that of the smallest number for zero."""
    size = np.maximum(np.abs(np.real(M)), np.abs(np.imag(M)))
    exponent = np.frexp(size)[1].astype(np.int64)
    return np.where(size > 0, exponent, ZERO)


def _largest_exponents(M: np.ndarray) -> np.ndarray:
    """Exponent of the largest part of an entry in each column, 0 for a column of zeros."""
    parts = (np.real(M), np.imag(M)) if M.dtype.kind == "c" else (M,)
    return np.frexp(np.max([np.abs(part).max(axis=0) for part in parts], axis=0))[1]


def near_border(errors: BackwardErrors, factor: np.dtype, vectors: np.dtype) -> np.ndarray:
    """Columns whose solution, or what is said of it, is not to be trusted for its exponents.

    Parameters
    ----------
    errors : BackwardErrors
        Of the solution as it was computed without regard to exponents.
    factor, vectors : data types
        Of the factor, in which the sweeps compute, and of right-hand sides and solutions.
    """
    low, high, most = borders(factor, vectors)
    rhs, solution = (np.asarray(a, np.float64) for a in (errors.rhs, errors.solution))
    with np.errstate(all="ignore"):
        inside = (low <= errors.norm) & (errors.norm <= high) & np.isfinite(errors.normwise)
        inside &= (low <= rhs) & (rhs <= high) & (low <= solution) & (solution <= high)
        inside &= errors.norm * solution <= most
    return ~inside & (rhs != 0)


def mended(
    factor: NumericFactor,
    X: Vectors,
    B: Vectors,
    trans: str,
    steps: int | None,
    errors: BackwardErrors,
    taken: int,
) -> tuple[Vectors, BackwardErrors, int]:
    """Solve again for the columns that `near_border` finds; the others stay as they are.

    Parameters
    ----------
    factor : NumericFactor
    X, B : (n, k) arrays
        Solutions and right-hand sides, with the factor; no complex ones of a real factor.
    trans, steps
        As for `Factor.solve`.
    errors, taken
        Errors of X, and corrections kept.

    Returns
    -------
    X, errors, taken
        Errors of the columns solved again are those of the scaled system.
    """
    columns = np.flatnonzero(near_border(errors, factor.dtype, B.dtype))
    if not columns.size:
        return X, errors, taken
    x, b = factor.download(X), factor.download(B)
    columns = columns[np.isfinite(b[:, columns]).all(axis=0)]
    if not columns.size:  # what is not finite is refused elsewhere, by name
        return X, errors, taken
    fine = _is_fine(factor, x[:, columns], b[:, columns], trans)
    columns = columns[~(fine & np.isfinite(errors.normwise[columns]))]
    if not columns.size:
        return X, errors, taken
    subset = x[:, columns], b[:, columns]
    solved, scaled_errors, more = _solve_scaled(factor, *subset, trans, steps)
    x = np.array(x, order="F")
    x[:, columns] = solved
    return factor.upload(x), _joined(errors, scaled_errors, columns), max(taken, more)


@np.errstate(all="ignore")
def _is_fine(factor: NumericFactor, X: np.ndarray, B: np.ndarray, trans: str) -> np.ndarray:
    """Columns where each component has a small backward error, and numbers to be judged by.

    Their exponents may well differ by more than any scaling of all components can hold.
    """
    system, info = host_system(factor, trans, B.dtype), np.finfo(B.dtype)
    R = np.abs(system.residual(X, B))
    scale = system.magnitude @ np.abs(X) + np.abs(B)
    judged = ((info.tiny <= scale) & (scale <= info.max)) | ((scale == 0) & (B == 0))
    small = THRESHOLDS.unrefined * info.eps * scale >= R
    return (judged & small & np.isfinite(X)).all(axis=0)


@np.errstate(all="ignore")
def _solve_scaled(
    factor: NumericFactor, X: np.ndarray, B: np.ndarray, trans: str, steps: int | None
) -> tuple[np.ndarray, BackwardErrors, int]:
    """Solutions for host arrays, their errors in the scaled system, and the steps taken."""
    scaled_matrix = Scaled.from_factor(factor)
    system, (row, column) = scaled_matrix.system(factor, trans), scaled_matrix.sides(trans)
    size = (exponents(B) + row[:, None]).max(axis=0, initial=ZERO)
    scaled = shifted(B, row[:, None] - size)
    back = column[:, None] + size
    Y = _better(system, shifted(X, -back), system.solve(scaled), scaled)
    Y, before, taken = refine.refine(system, Y, scaled, steps)
    if steps is None and before.insufficient(system.limits):
        Y, _, more = refine.rescue(system, Y, scaled, before.rowwise)
        before, taken = system.measure(Y, scaled)[1], taken + more
    X = shifted(Y, back).astype(B.dtype)
    good = before.normwise <= float(np.finfo(B.dtype).eps) ** 0.75
    overflow = good & ~np.isfinite(X).all(axis=0)
    rounded = np.where(overflow, Y, shifted(X, -back))
    after = system.measure(rounded, scaled)[1]
    underflow = good & ~(after.normwise <= float(np.finfo(B.dtype).eps) ** 0.75)
    return X, replace(after, lost=np.where(overflow, 1, np.where(underflow, -1, 0))), taken


def _better(system: HostSystem, X: np.ndarray, Y: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Of two solutions the better one, for each column: components that differ by more than the
    numbers do may be right in one of them only."""
    X_errors, Y_errors = system.measure(X, B)[1], system.measure(Y, B)[1]
    return np.where(X_errors.merit(system.limits) < Y_errors.merit(system.limits), X, Y)


class Scaled(NamedTuple):
    """A' = D_r A D_c in double precision, its entries about 1.

    Attributes
    ----------
    A, magnitude : sparse arrays
        A' and |A'|.
    row, column : (n,) int64 arrays
        Exponents of D_r and D_c.
    row_shift, column_shift : (n, 1) or (1, 1) int64 arrays
        Exponents of the scalings that make A' of the matrix that was factorized: none where that
        was scaled so, and D_r and D_c for Cholesky.
    """

    A: sp.csc_array
    magnitude: sp.csc_array
    row: np.ndarray
    column: np.ndarray
    row_shift: np.ndarray
    column_shift: np.ndarray

    @classmethod
    def from_factor(cls, factor: NumericFactor) -> Scaled:
        """The matrix of a factor, as that was scaled or to a diagonal of about 1."""
        row, column = scaling_exponents(factor, "N")
        row_shift = column_shift = (
            row[:, None] if factor.scaling is None else np.zeros((1, 1), np.int64)
        )
        return cls(*_scaled_by(factor.matrix.A, row, column), row, column, row_shift, column_shift)

    def rescaled(self, row: np.ndarray, column: np.ndarray) -> Scaled:
        """The same for other exponents of the scalings of the matrix's rows and columns."""
        by_row, by_column = row - self.row, column - self.column
        sides = self.row_shift + by_row[:, None], self.column_shift + by_column[:, None]
        return Scaled(*_scaled_by(self.A, by_row, by_column), row, column, *sides)

    @property
    def holds(self) -> bool:
        """Whether all entries of A' are numbers."""
        return bool(np.isfinite(self.magnitude.data).all())

    def system(self, factor: NumericFactor, trans: str) -> HostSystem:
        """op(A'), solved by the factor of A."""
        A, magnitude = self.op(trans)
        norm = float(magnitude.sum(1).max(initial=0.0))
        return HostSystem.from_matrix(A, norm, self.solver(factor, trans), factor.dtype)

    def solver(self, factor: NumericFactor, trans: str) -> Callable[[np.ndarray], np.ndarray]:
        """Solves with op(A'), by the factor of A."""
        row_shift, column_shift = (
            (self.row_shift, self.column_shift)
            if trans == "N"
            else (self.column_shift, self.row_shift)
        )

        def solve(R: np.ndarray) -> np.ndarray:
            size = _largest_exponents(R)
            Y = direct(factor, shifted(R, -row_shift - size), trans, scaled=False)
            return shifted(Y, size - column_shift)

        return solve

    def op(self, trans: str) -> tuple[sp.sparray, sp.sparray]:
        """op(A') and its moduli."""
        if trans == "N":
            return self.A, self.magnitude
        return (self.A.T if trans == "T" else self.A.conj().T), self.magnitude.T

    def sides(self, trans: str) -> tuple[np.ndarray, np.ndarray]:
        """Exponents of the scalings of op(A)'s rows and columns."""
        return _sides(self.row, self.column, trans)


def scaling_exponents(factor: NumericFactor, trans: str) -> tuple[np.ndarray, np.ndarray]:
    """Return `Scaled.sides`, (n,) int64 each, without scaling the matrix."""
    scaling = factor.scaling
    if scaling is not None:
        row, column = (np.log2(a).astype(np.int64) for a in (scaling.row, scaling.column))
        return _sides(row, column, trans)
    size = np.abs(factor.matrix.A.diagonal()).astype(np.float64)
    both = -np.round(np.log2(np.where(size > 0, size, 1.0)) / 2).astype(np.int64)
    return both, both


def _sides(row: np.ndarray, column: np.ndarray, trans: str) -> tuple[np.ndarray, np.ndarray]:
    """Return what belongs to the rows and to the columns of op(A)."""
    return (row, column) if trans == "N" else (column, row)


def _scaled_by(
    A: sp.csc_array, row: np.ndarray, column: np.ndarray
) -> tuple[sp.csc_array, sp.csc_array]:
    """A in rows and columns times powers of two of such exponents, and its moduli."""
    values = shifted(A.data, row[A.indices] + np.repeat(column, np.diff(A.indptr)))
    scaled, moduli = (
        sp.csc_array((data, A.indices, A.indptr), shape=A.shape)
        for data in (values, np.abs(values))
    )
    return scaled, moduli


def _joined(
    errors: BackwardErrors, scaled_errors: BackwardErrors, columns: np.ndarray
) -> BackwardErrors:
    """Errors in which those of some columns are replaced."""

    def updated(old: Any, new: Any) -> np.ndarray:
        out = np.broadcast_to(np.asarray(old, np.float64), errors.rhs.shape).copy()
        out[columns] = new
        return out

    names = ("residual", "solution", "rhs", "norm", "componentwise", "rowwise", "lost")
    pairs = {name: (getattr(errors, name), getattr(scaled_errors, name)) for name in names}
    pairs["lost"] = (0, scaled_errors.lost)
    return replace(errors, **{name: updated(*pair) for name, pair in pairs.items()})


def refuse_overflow(errors: BackwardErrors, dtype: np.dtype) -> None:
    """Raise where a solution is too large for its type.

    Raises
    ------
    SolutionOverflowError
    """
    if errors.lost is not None and (errors.lost > 0).any():
        raise SolutionOverflowError(str(dtype))


def warned_of_underflow(errors: BackwardErrors, dtype: np.dtype) -> BackwardErrors:
    """Warn where a solution is too small for its type, and return the errors of the others."""
    if errors.lost is None or not (errors.lost < 0).any():
        return errors
    warn(
        f"a solution is so small that {dtype} holds few of its digits or none: what was computed "
        "has been rounded to the nearest numbers, zero perhaps. Try: scale the right-hand side",
        IllConditionedWarning,
    )
    names = ("residual", "componentwise", "rowwise")
    return replace(errors, **{f: np.where(errors.lost < 0, 0.0, getattr(errors, f)) for f in names})
