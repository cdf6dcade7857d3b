"""Solutions by the factors on the host alone: one compiled call for up to 32 right-hand sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..symbolic.symbolic import Symbolic
from .blas import routines
from .blas_limit import single_threaded_blas
from .residual import as_rows, measure
from .triangular import SMALL, extent, substitute

WIDTH = 32  # right-hand sides solved together by BLAS,
_MANY = 16  # by which so many are solved in small fronts too
_NO_FACTORS = np.empty(0)
_substitute: Callable[..., None] = substitute  # of more arguments than are written out


class Side(NamedTuple):
    """Where the elimination order finds its rows in a vector, and their factors; none if empty."""

    place: np.ndarray
    factors: np.ndarray = _NO_FACTORS


class Substitution:
    """X for op(A) X = B. It holds the arrays that it needs, and not the factor.

    Parameters
    ----------
    symbolic : Symbolic
    panel : (f + 1,) int64 array
        Where the panels of each front begin.
    panels, pivots, diagonal, coupling : arrays
        As `HostFactor` has them, and the diagonal of D.
    trans : {"N", "T", "H"}
    given, found : Side
        Of B and of X.

    Attributes
    ----------
    bound : tuple
        What `substitute` is told of the factor.
    calls_blas : bool
        For a single right-hand side too.
    """

    def __init__(
        self,
        symbolic: Symbolic,
        panel: np.ndarray,
        numbers: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        trans: str,
        given: Side,
        found: Side,
    ) -> None:
        plan, method = symbolic.plan, symbolic.method
        panels, pivots, diagonal, coupling = numbers
        self._dtype = panels.dtype
        widest, largest = extent(plan.start, plan.pointer)
        self.calls_blas = largest > SMALL
        conjugate = method.one_triangle and method.adjoint and panels.dtype.kind == "c"
        self.bound = (
            *(plan.start, plan.pointer, plan.rows, panel, panels, pivots),
            *(diagonal, coupling.astype(panels.dtype, copy=False)),
            *routines(panels.dtype),
            *(method.one_triangle, method.pivots, method.indefinite, conjugate),
            *(trans != "N", trans == "H", *given, *found, max(1, widest)),
        )

    def __call__(self, B: np.ndarray) -> np.ndarray:
        """X, in the common scalar type of B (n, k) and the factors."""
        given, dtype = as_rows(B), B.dtype
        X = np.empty(given.shape, dtype if dtype == self._dtype else self._common(dtype))
        if self.calls_blas or given.shape[0] >= _MANY:
            with single_threaded_blas():
                _substitute(*self.bound, WIDTH, given, X)
        else:
            _substitute(*self.bound, 1, given, X)
        return X.T

    def measured(
        self, B: np.ndarray, of: tuple[object, ...], sizes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, tuple[float, float, bool]]:
        """X, residuals and what `residual.measure` says of them, in one compiled call.

        Parameters
        ----------
        B : (n, k) array
        of : tuple
            The matrix, its norm and the limits, as `residual.measure` takes them.
        sizes : (4, k) array
        """
        given = as_rows(B)
        X, R = np.empty(given.shape, given.dtype), np.empty(given.shape, given.dtype)
        if self.calls_blas or given.shape[0] >= _MANY:
            with single_threaded_blas():
                found = _substitute_and_measure(*self.bound, WIDTH, *of, given, X, R, sizes)
        else:
            found = _substitute_and_measure(*self.bound, 1, *of, given, X, R, sizes)
        return X.T, R.T, found

    def _common(self, dtype: np.dtype) -> np.dtype:
        return np.result_type(dtype, self._dtype)


@jit
def substitute_and_measure(
    start, pointer, rows, panel, panels, pivots, diagonal, coupling, table, scalars, reals, adjoint,
    one_triangle, unit, indefinite, conjugate, transposed, conjugated,
    into, left, out, right, widest, most,
    indptr, indices, data, flipped, badly_scaled, norm, limits, B, X, R, sizes,
):  # fmt: skip
    """`substitute`, then `measure`."""
    substitute(
        start, pointer, rows, panel, panels, pivots, diagonal, coupling, table, scalars, reals,
        adjoint, one_triangle, unit, indefinite, conjugate, transposed, conjugated,
        into, left, out, right, widest, most, B, X,
    )  # fmt: skip
    return measure(indptr, indices, data, flipped, badly_scaled, norm, limits, X, B, R, sizes)


_substitute_and_measure: Callable[..., tuple[float, float, bool]] = substitute_and_measure
