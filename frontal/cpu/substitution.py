"""Solutions by the factors on the host, without refinement, in one compiled call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from ..compile.jit import jit
from ..symbolic.phase import Symbolic
from .blas import routines
from .blas_limit import single_threaded_blas
from .by_reference import keep_alive, reference
from .part_sweeps import Steps, substitute_part
from .residual import as_rows, measure
from .sweeps import MAX_LOOP_PANEL_ENTRIES, substitute, triangular_factors

_WIDTH = 32  # right-hand sides solved together by BLAS
_MIN_BLAS_RHS = 16  # right-hand sides from which BLAS is called although all fronts are small
_NO_FACTORS = np.empty(0)
_NO_MATRIX = np.zeros(1, np.int64), np.zeros(0, np.int32)
_NO_LIMITS = np.zeros(9)


class ScaledPermutation(NamedTuple):
    """Positions in a vector, in elimination order, and scaling factors; empty for no scaling."""

    place: np.ndarray
    factors: np.ndarray = _NO_FACTORS


class FusedSolver(ABC):
    """Solver of op(A) X = B by a factor, without refinement, in one compiled call."""

    @abstractmethod
    def __call__(self, B: np.ndarray) -> np.ndarray:
        """Return X, in the common scalar type of B (n, k) and the factors."""

    @abstractmethod
    def _solve(
        self, measured: bool, matrix: tuple[object, ...], rhs: np.ndarray, *outputs: np.ndarray
    ) -> tuple[float, bool]:
        """Solve for the rows of `rhs`, into X, R and sizes; return the result of `measure`."""

    def measured(
        self, B: np.ndarray, matrix: tuple[object, ...], sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, tuple[float, bool]]:
        """Return X, its residuals and the result of `residual.measure`, from one compiled call.

        Parameters
        ----------
        B : (n, k) array
        matrix : tuple
            The matrix, its norm and the limits, as arguments of `residual.measure`.
        sizes : (5, k) array
            See `residual.measure`.
        """
        rhs = as_rows(B)
        X, R = np.empty(rhs.shape, rhs.dtype), np.empty(rhs.shape, rhs.dtype)
        summary = self._solve(True, matrix, rhs, X, R, sizes)
        return X.T, R.T, summary


class Substitution(FusedSolver):
    """Solver of op(A) X = B by fronts, of which it references only the arrays it needs.

    Parameters
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Offset of the panels of each front.
    numbers : tuple of arrays
        Panels and pivots of a `HostFactor`, then the diagonal and the subdiagonal of D.
    trans : {"N", "T", "H"}
    rows, columns : ScaledPermutation
        Of A.

    Attributes
    ----------
    n, dtype : int, numpy.dtype
        Order and scalar type of the factors.
    factors : tuple
        The fields of `TriangularFactors` except `most`; compiled code takes plain tuples faster.
    transposed, conjugated : bool
        See `substitute`.
    calls_blas : bool
        Whether a single right-hand side needs BLAS too.
    """

    def __init__(
        self,
        symbolic: Symbolic,
        panel: np.ndarray,
        numbers: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        trans: str,
        rows: ScaledPermutation,
        columns: ScaledPermutation,
    ) -> None:
        plan, method = symbolic.plan, symbolic.method
        panels, pivots, diagonal, coupling = numbers
        self.n, self.dtype = symbolic.n, panels.dtype
        self.transposed, self.conjugated = trans != "N", trans == "H"
        widest, largest = symbolic.largest
        self.calls_blas = largest > MAX_LOOP_PANEL_ENTRIES
        conjugate = method.one_triangle and method.adjoint and panels.dtype.kind == "c"
        self.factors = (
            *(plan.start, plan.pointer, plan.rows, panel, panels, pivots),
            *(x.astype(panels.dtype, copy=False) for x in (diagonal, coupling)),
            tuple(routines(panels.dtype)),
            *(method.one_triangle, method.unit, method.indefinite, conjugate),
            *(*rows, *columns, max(1, widest)),
        )

    def __call__(self, B: np.ndarray) -> np.ndarray:
        """See `FusedSolver`."""
        rhs, dtype = as_rows(B), B.dtype
        X = np.empty(rhs.shape, dtype if dtype == self.dtype else self._common(dtype))
        self._solve(False, no_matrix(dtype), rhs, X, *no_residuals(X.dtype))
        return X.T

    def _solve(
        self, measured: bool, matrix: tuple[object, ...], rhs: np.ndarray, *outputs: np.ndarray
    ) -> tuple[float, bool]:
        op, most = (self.transposed, self.conjugated), self.most(rhs.shape[0])
        if most > 1:
            with single_threaded_blas():
                return _substitute((*self.factors, most), op, measured, matrix, rhs, *outputs)
        return _substitute((*self.factors, most), op, measured, matrix, rhs, *outputs)

    def most(self, count: int) -> int:
        """Return how many of `count` right-hand sides are swept together; several by BLAS."""
        return _WIDTH if self.calls_blas or count >= _MIN_BLAS_RHS else 1

    def _common(self, dtype: np.dtype) -> np.dtype:
        return np.result_type(dtype, self.dtype)


@cache
def no_matrix(dtype: np.dtype) -> tuple[object, ...]:
    """Return an empty matrix, for compiled code that does not read it."""
    return *_NO_MATRIX, np.zeros(0, dtype), False, False, 0.0, _NO_LIMITS


@cache
def no_residuals(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return empty arrays of residuals and sizes."""
    return np.zeros((0, 0), dtype), np.zeros((0, 0), dtype.char.lower())


@jit
def substitute_and_measure(fields, op, measured, matrix, B, X, R, sizes):
    """Run `substitute`, then `measure` if `measured`: one function compiles each only once.

    `fields` are those of `TriangularFactors`, and op = `transposed`, `conjugated`.
    """
    factors = triangular_factors(fields)
    substitute(reference(factors), op[0], op[1], B, X)
    keep_alive(factors)
    return measure(matrix, X, B, R, sizes) if measured else (0.0, True)


_substitute: Callable[..., tuple[float, bool]] = substitute_and_measure
_substitute_part: Callable[..., None] = substitute_part


class PartialSubstitution:
    """Solver with a part of the factors, by some steps of a `Substitution`.

    Parameters
    ----------
    solver : Substitution
        Of A. Its sides are the orders and scalings of right-hand sides and solutions of the part.
    steps : Steps
    """

    def __init__(self, solver: Substitution, steps: Steps) -> None:
        self._solver, self._steps = solver, steps

    def __call__(self, B: np.ndarray) -> np.ndarray:
        """Return X, in the common scalar type of B (n, k) and the factors."""
        rhs, solver = as_rows(B), self._solver
        X, most = np.empty(rhs.shape, np.result_type(B.dtype, solver.dtype)), solver.most(len(rhs))
        fields = *solver.factors, most
        if most > 1:
            with single_threaded_blas():
                _substitute_part(fields, self._steps, rhs, X)
        else:
            _substitute_part(fields, self._steps, rhs, X)
        return X.T
