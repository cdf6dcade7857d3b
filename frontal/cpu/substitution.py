"""Solutions by the factors on the host, without refinement, in one compiled call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from ..compile.jit import jit
from ..symbolic.phase import Symbolic
from .blas import routines
from .blas_limit import single_threaded_blas
from .residual import as_rows, measure
from .sweeps import MAX_LOOP_PANEL_ENTRIES, substitute

WIDTH = 32  # right-hand sides solved together by BLAS
_MIN_BLAS_RHS = 16  # right-hand sides from which BLAS is called although all fronts are small
_NO_FACTORS = np.empty(0)
_NO_MATRIX = np.zeros(1, np.int64), np.zeros(0, np.int32)
_NO_LIMITS = np.zeros(9)


class ScaledPermutation(NamedTuple):
    """Positions in a vector, in elimination order, and scaling factors; empty for no scaling."""

    place: np.ndarray
    factors: np.ndarray = _NO_FACTORS


class Substitution:
    """Solver of op(A) X = B by a factor, of which it references only the arrays it needs.

    Parameters
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Offset of the panels of each front.
    numbers : tuple of arrays
        Panels and pivots of a `HostFactor`, then the diagonal and the subdiagonal of D.
    trans : {"N", "T", "H"}
    rhs_side, solution_side : ScaledPermutation
        Permutation and scaling of B and of X.

    Attributes
    ----------
    n, dtype : int, numpy.dtype
        Order and scalar type of the factors.
    bound : tuple
        Arguments of `substitute` that describe the factor and the sides.
    calls_blas : bool
        Whether a single right-hand side needs BLAS too.
    """

    def __init__(
        self,
        symbolic: Symbolic,
        panel: np.ndarray,
        numbers: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        trans: str,
        rhs_side: ScaledPermutation,
        solution_side: ScaledPermutation,
    ) -> None:
        plan, method = symbolic.plan, symbolic.method
        panels, pivots, diagonal, coupling = numbers
        self.n, self.dtype = symbolic.n, panels.dtype
        widest, largest = symbolic.largest
        self.calls_blas = largest > MAX_LOOP_PANEL_ENTRIES
        conjugate = method.one_triangle and method.adjoint and panels.dtype.kind == "c"
        self.bound = (
            *(plan.start, plan.pointer, plan.rows, panel, panels, pivots),
            *(x.astype(panels.dtype, copy=False) for x in (diagonal, coupling)),
            *routines(panels.dtype),
            *(method.one_triangle, method.pivots, method.indefinite, conjugate),
            *(trans != "N", trans == "H", *rhs_side, *solution_side, max(1, widest)),
        )

    def __call__(self, B: np.ndarray) -> np.ndarray:
        """Return X, in the common scalar type of B (n, k) and the factors."""
        rhs, dtype = as_rows(B), B.dtype
        X = np.empty(rhs.shape, dtype if dtype == self.dtype else self._common(dtype))
        self._solve(False, _nothing(dtype), rhs, X, *_no_residuals(X.dtype))
        return X.T

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

    def _solve(
        self, measured: bool, matrix: tuple[object, ...], rhs: np.ndarray, *outputs: np.ndarray
    ) -> tuple[float, bool]:
        if self.calls_blas or rhs.shape[0] >= _MIN_BLAS_RHS:
            with single_threaded_blas():
                return _substitute(*self.bound, WIDTH, measured, *matrix, rhs, *outputs)
        return _substitute(*self.bound, 1, measured, *matrix, rhs, *outputs)

    def _common(self, dtype: np.dtype) -> np.dtype:
        return np.result_type(dtype, self.dtype)


@cache
def _nothing(dtype: np.dtype) -> tuple[object, ...]:
    """Return an empty matrix, for compiled code that does not read it."""
    return *_NO_MATRIX, np.zeros(0, dtype), False, False, 0.0, _NO_LIMITS


@cache
def _no_residuals(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return empty arrays of residuals and sizes."""
    return np.zeros((0, 0), dtype), np.zeros((0, 0), dtype.char.lower())


@jit
def substitute_and_measure(
    start, pointer, rows, panel, panels, pivots, diagonal, coupling, table, scalars, reals, adjoint,
    one_triangle, unit, indefinite, conjugate, transposed, conjugated,
    into, rhs_factors, out, solution_factors, widest, most, measured,
    indptr, indices, data, flipped, by_component, norm, limits, B, X, R, sizes,
):  # fmt: skip
    """Run `substitute`, then `measure` if `measured`: one function compiles each only once."""
    substitute(
        start, pointer, rows, panel, panels, pivots, diagonal, coupling, table, scalars, reals,
        adjoint, one_triangle, unit, indefinite, conjugate, transposed, conjugated,
        into, rhs_factors, out, solution_factors, widest, most, B, X,
    )  # fmt: skip
    if not measured:
        return 0.0, True
    return measure(indptr, indices, data, flipped, by_component, norm, limits, X, B, R, sizes)


# typed without its arguments, which are too many to write out
_substitute: Callable[..., tuple[float, bool]] = substitute_and_measure
