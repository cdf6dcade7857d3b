"""Solutions by L and U by columns in one compiled call, with residuals and condition numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...compile.jit import jit
from ...numeric.acceptance import unpacked
from ...numeric.condition import KNOWN, UNMEASURED, enough
from ...numeric.linear_system import FastSolution
from ..by_reference import keep_alive, reference
from ..residual import as_rows, is_harmless, measure
from ..small.solve import condition_of, scratch_of
from ..substitution import FusedSolver, no_matrix, no_residuals
from .arrays import ColumnPattern, ColumnValues
from .sweeps import ColumnTriangles, substitute_by_columns

Sides = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class ColumnSubstitution(FusedSolver):
    """Solver of op(A) X = B by L and U by columns.

    Parameters
    ----------
    first : (blocks + 1,) int32 array
    pattern : ColumnPattern
    values : ColumnValues
    trans : {"N", "T", "H"}
    sides : tuple of arrays
        The last four fields of `ColumnTriangles`.

    Attributes
    ----------
    hopeful : bool
        Whether `fast` tries solutions: no earlier one needed refinement.
    """

    def __init__(
        self,
        first: np.ndarray,
        pattern: ColumnPattern,
        values: ColumnValues,
        trans: str,
        sides: Sides,
    ) -> None:
        self.n, self.dtype, self.hopeful = sides[0].size, values.diagonal.dtype, True
        self._op = trans != "N", trans == "H"
        self._factors = first, *pattern[:4], *values, *sides
        self._wide = scratch_of(self.dtype)

    def __call__(self, B: np.ndarray) -> np.ndarray:
        """See `FusedSolver`."""
        rhs, dtype = as_rows(B), B.dtype
        X = np.empty(rhs.shape, np.result_type(dtype, self.dtype))
        self._solve(False, no_matrix(dtype), rhs, X, *no_residuals(X.dtype))
        return X.T

    def _solve(
        self, measured: bool, matrix: tuple[object, ...], rhs: np.ndarray, *outputs: np.ndarray
    ) -> tuple[float, bool]:
        return _substitute(self._factors, self._op, measured, matrix, rhs, *outputs)

    def fast(self, b: object, matrix: tuple[object, ...], how: int) -> FastSolution | None:
        """Return the solution of `SmallSolver` for a plain vector, or None.

        `matrix` is op(A) as an argument of `residual.measure`.
        """
        if type(b) is not np.ndarray or b.shape != (self.n,) or b.dtype != self.dtype:
            return None
        measured = how != UNMEASURED
        if not (self.hopeful or not measured) or not b.flags.carray:
            return None
        x = np.empty(self.n, self.dtype)
        outcome = _solve_vector(self._factors, self._op, matrix, self._wide, b, x, *self._how(how))
        if not outcome[0] >= 0:
            self.hopeful &= not measured
            return None
        return FastSolution(x, *outcome)

    def condition(self, matrix: tuple[object, ...], how: int) -> tuple[float, bool]:
        """Return the condition number that comes with a solution, and whether it is a bound."""
        none = np.empty(0, self.dtype)
        vectors = self._wide, none, none
        return _solve_vector(self._factors, self._op, matrix, *vectors, *self._how(how))[1:]

    def _how(self, how: int) -> tuple[int, float]:
        return how, enough(self.dtype)


@jit
def substitute_and_measure(fields, op, measured, matrix, B, X, R, sizes):
    """Run `substitute_by_columns`, then `measure` if `measured`."""
    factors = ColumnTriangles(*fields)
    substitute_by_columns(reference(factors), op[0], op[1], B, X)
    keep_alive(factors)
    return measure(matrix, X, B, R, sizes) if measured else (0.0, True)


@jit
def solve_vector(fields, op, matrix, wide, b, x, how, enough):
    """Solve op(A) x = b as `solve_small`; an empty b asks for the condition number alone."""
    factors = ColumnTriangles(*fields)
    pointer, n, limits = reference(factors), factors.row_place.size, unpacked(matrix[6])
    R, sizes = np.empty((1, n), x.dtype), np.empty((5, 1), x.real.dtype)
    error, fine = 0.0, True
    if b.size > 0:
        B, X = b.reshape((1, n)), x.reshape((1, n))
        substitute_by_columns(pointer, op[0], op[1], B, X)
        if how == UNMEASURED:
            fine = is_harmless(matrix, x, b)
        else:
            error, fine = measure(matrix, X, B, R, sizes)
    condition, certified = -1.0, False
    if fine and how > KNOWN:
        condition, certified = condition_of(pointer, op[0], op[1], matrix, how, enough, wide, R)
    keep_alive(factors)
    return max(error, limits.eps) if fine else -1.0, condition, certified


_substitute: Callable[..., tuple[float, bool]] = substitute_and_measure
_solve_vector: Callable[..., tuple[float, float, bool]] = solve_vector
