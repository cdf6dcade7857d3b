"""Systems with extreme exponents: solved and measured in variables of moderate size.

If A, b or x come near the largest or the smallest number of their type, or of the factor's, the
sweeps and the norms for the errors overflow or underflow, although x may be finite. Powers of two
cause no rounding: with A' = D_r A D_c, whose entries are about 1, and b' = s D_r b, whose columns
are about 1, A' x' = b' is solved in double precision around the sweeps, and x = D_c x' / s.
Overflow and underflow of x are detected when it is scaled back. Columns with moderate exponents
are bitwise unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ..backend.protocol import NumericFactor
from ..cpu.host_system import HostSystem, direct, host_system
from ..errors import IllConditionedWarning, SolutionOverflowError, warn
from ..matrix.symmetry import diagonal_of
from ..numeric.acceptance import limits_of
from ..numeric.linear_system import BackwardErrors, Vectors
from ..numeric.thresholds import THRESHOLDS
from ..symbolic.scaling import shifted
from . import refine

ZERO = -(1 << 20)  # exponent assigned to zero, below that of any number


def exponents(M: np.ndarray) -> np.ndarray:
    """Return exponents of the larger of real and imaginary part of each entry; `ZERO` for zero."""
    size = np.maximum(np.abs(np.real(M)), np.abs(np.imag(M)))
    exponent = np.frexp(size)[1].astype(np.int64)
    return np.where(size > 0, exponent, ZERO)


def _largest_exponents(M: np.ndarray) -> np.ndarray:
    """Return exponents of the largest real or imaginary part in each column; 0 for zeros."""
    parts = (np.real(M), np.imag(M)) if M.dtype.kind == "c" else (M,)
    return np.frexp(np.max([np.abs(part).max(axis=0) for part in parts], axis=0))[1]


def mended(
    factor: NumericFactor,
    X: Vectors,
    B: Vectors,
    trans: str,
    steps: int | None,
    errors: BackwardErrors,
    taken: int,
) -> tuple[Vectors, BackwardErrors, int]:
    """Solve again for the columns near the borders of their types, and leave the others unchanged.

    Parameters
    ----------
    factor : NumericFactor
    X, B : (n, k) arrays
        Solutions and right-hand sides, of the factor's backend; real if the factor is real.
    trans, steps
        `trans` and `refine` of `Factor.solve`.
    errors, taken
        Errors of X, and accepted corrections.

    Returns
    -------
    X, errors, taken
        Errors of the columns solved again are those of the scaled system.
    """
    columns = np.flatnonzero(errors.near_border(limits_of(factor.dtype, B.dtype)))
    if not columns.size:
        return X, errors, taken
    x, b = factor.download(X), factor.download(B)
    columns = columns[np.isfinite(b[:, columns]).all(axis=0)]
    if not columns.size:  # the caller refuses non-finite right-hand sides, by column
        return X, errors, taken
    fine = _is_fine(factor, x[:, columns], b[:, columns], trans)
    columns = columns[~(fine & np.isfinite(errors.normwise[columns]))]
    if not columns.size:
        return X, errors, taken
    solved, scaled_errors, more = _solve_scaled(factor, x[:, columns], b[:, columns], trans, steps)
    x = np.array(x, order="F")
    x[:, columns] = solved
    return factor.upload(x), _joined(errors, scaled_errors, columns), max(taken, more)


@np.errstate(all="ignore")
def _is_fine(factor: NumericFactor, X: np.ndarray, B: np.ndarray, trans: str) -> np.ndarray:
    """Return a mask of columns with a small and measurable backward error in each component.

    Their exponents may differ by more than one scaling of all components can represent.
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
    """Return solutions for host arrays, errors in the scaled system, and steps taken."""
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
    """Return, for each column, the solution with smaller errors.

    Components whose exponents differ by more than the type's range may be correct in only one.
    """
    X_errors, Y_errors = system.measure(X, B)[1], system.measure(Y, B)[1]
    return np.where(X_errors.merit(system.limits) < Y_errors.merit(system.limits), X, Y)


class Scaled(NamedTuple):
    """The matrix A' = D_r A D_c in double precision, with entries of about 1.

    Attributes
    ----------
    A, magnitude : sparse arrays
        A' and |A'|.
    row, column : (n,) int64 arrays
        Exponents of D_r and D_c.
    row_shift, column_shift : (n, 1) or (1, 1) int64 arrays
        Exponents of the scalings from the factorized matrix to A': zero if the factorization used
        D_r and D_c, those of D_r and D_c for Cholesky.
    """

    A: sp.csc_array
    magnitude: sp.csc_array
    row: np.ndarray
    column: np.ndarray
    row_shift: np.ndarray
    column_shift: np.ndarray

    @classmethod
    def from_factor(cls, factor: NumericFactor) -> Scaled:
        """Scale the matrix of a factor as for the factorization, or to a diagonal of about 1."""
        row, column = _scaling_exponents(factor)
        row_shift = column_shift = (
            row[:, None] if factor.scaling is None else np.zeros((1, 1), np.int64)
        )
        return cls(*_scaled_by(factor.matrix.A, row, column), row, column, row_shift, column_shift)

    def rescaled(self, row: np.ndarray, column: np.ndarray) -> Scaled:
        """Return the matrix scaled by other exponents of its rows and columns."""
        by_row, by_column = row - self.row, column - self.column
        return Scaled(
            *_scaled_by(self.A, by_row, by_column),
            row=row,
            column=column,
            row_shift=self.row_shift + by_row[:, None],
            column_shift=self.column_shift + by_column[:, None],
        )

    @property
    def holds(self) -> bool:
        """Return whether all entries of A' are finite."""
        return bool(np.isfinite(self.magnitude.data).all())

    def system(self, factor: NumericFactor, trans: str) -> HostSystem:
        """Return the system with op(A'), solved by the factor of A."""
        A, magnitude = self.op(trans)
        norm = float(magnitude.sum(1).max(initial=0.0))
        return HostSystem.from_matrix(A, norm, self.solver(factor, trans), factor.dtype)

    def solver(self, factor: NumericFactor, trans: str) -> Callable[[np.ndarray], np.ndarray]:
        """Return a solver with op(A'), by the factor of A."""
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
        """Return op(A') and its moduli."""
        if trans == "N":
            return self.A, self.magnitude
        return (self.A.T if trans == "T" else self.A.conj().T), self.magnitude.T

    def sides(self, trans: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the exponents of the row and column scalings of op(A)."""
        return (self.row, self.column) if trans == "N" else (self.column, self.row)


def column_units(factor: NumericFactor, trans: str) -> np.ndarray:
    """Return the entries of D_c of op(A), (n,) float64; for Cholesky not rounded to powers of 2."""
    scaling = factor.scaling
    if scaling is None:
        return _diagonal_sizes(factor) ** -0.5
    return scaling.column if trans == "N" else scaling.row


def _scaling_exponents(factor: NumericFactor) -> tuple[np.ndarray, np.ndarray]:
    """Return `Scaled.row` and `Scaled.column`, without scaling the matrix."""
    scaling = factor.scaling
    if scaling is not None:
        row, column = (np.log2(a).astype(np.int64) for a in (scaling.row, scaling.column))
        return row, column
    both = -np.round(np.log2(_diagonal_sizes(factor)) / 2).astype(np.int64)
    return both, both


def _diagonal_sizes(factor: NumericFactor) -> np.ndarray:
    """Return the moduli of A's diagonal, (n,) float64, with 1 for zero."""
    matrix = factor.matrix
    size = np.abs(diagonal_of(matrix.indptr, matrix.indices, matrix.data)).astype(np.float64)
    size[size == 0] = 1
    return size


def _scaled_by(
    A: sp.csc_array, row: np.ndarray, column: np.ndarray
) -> tuple[sp.csc_array, sp.csc_array]:
    """Return A with rows and columns scaled by powers of two of these exponents, and its moduli."""
    values = shifted(A.data, row[A.indices] + np.repeat(column, np.diff(A.indptr)))
    scaled, moduli = (
        sp.csc_array((data, A.indices, A.indptr), shape=A.shape)
        for data in (values, np.abs(values))
    )
    return scaled, moduli


def _joined(
    errors: BackwardErrors, scaled_errors: BackwardErrors, columns: np.ndarray
) -> BackwardErrors:
    """Return `errors` with those of `columns` replaced by `scaled_errors`."""

    def updated(old: ArrayLike, new: ArrayLike) -> np.ndarray:
        out = np.broadcast_to(np.asarray(old, np.float64), errors.rhs.shape).copy()
        out[columns] = new
        return out

    names = ("residual", "solution", "rhs", "norm", "componentwise", "rowwise", "lost")
    pairs = {name: (getattr(errors, name), getattr(scaled_errors, name)) for name in names}
    pairs["lost"] = (0, scaled_errors.lost)
    return replace(errors, **{name: updated(*pair) for name, pair in pairs.items()})


def refuse_overflow(errors: BackwardErrors, dtype: np.dtype) -> None:
    """Raise if a solution is too large for its type.

    Raises
    ------
    SolutionOverflowError
    """
    if errors.lost is not None and (errors.lost > 0).any():
        raise SolutionOverflowError(str(dtype))


def warned_of_underflow(errors: BackwardErrors, dtype: np.dtype) -> BackwardErrors:
    """Warn if a solution is too small for its type; return the errors, with zeros for it."""
    if errors.lost is None or not (errors.lost < 0).any():
        return errors
    warn(
        f"a solution is so small that {dtype} stores few of its digits or none: it was rounded to "
        "the nearest numbers, possibly to zero. Try: scale the right-hand side",
        IllConditionedWarning,
    )
    names = ("residual", "componentwise", "rowwise")
    return replace(errors, **{f: np.where(errors.lost < 0, 0.0, getattr(errors, f)) for f in names})
