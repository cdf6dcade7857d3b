"""Solutions by the factors on the host alone: one compiled call for up to 32 right-hand sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from .._jit import brief, jit
from .._typing import Untyped
from ..symbolic.symbolic import Symbolic
from .blas import routines
from .blas_limit import single_threaded_blas
from .residual import as_rows, measure
from .triangular import SMALL, extent, substitute

_Compiled: TypeAlias = Callable[..., Untyped]  # of more arguments than are written out

_WIDTH = 32  # right-hand sides solved together by BLAS,
_MANY = 16  # by which so many are solved in small fronts too
_LONG = 1 << 16  # entries of panels, each for one right-hand side, that take some 0.1 ms
_NO_FACTORS = np.empty(0)


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
        self._dtype, self._entries = panels.dtype, panels.size
        widest, largest = extent(plan.start, plan.pointer)
        self._calls_blas = largest > SMALL
        conjugate = method.one_triangle and method.adjoint and panels.dtype.kind == "c"
        self._bound = (
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
        self._run(_SUBSTITUTE, given, X)
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
        return X.T, R.T, self._run(_SUBSTITUTE_AND_MEASURE, given, X, R, sizes, of=of)

    def _run(
        self,
        entries: tuple[_Compiled, _Compiled],
        given: np.ndarray,
        *vectors: np.ndarray,
        of: tuple[object, ...] = (),
    ) -> Untyped:
        """Call compiled code, with the GIL if that is soon back."""
        k = given.shape[0]
        function = entries[self._entries * k < _LONG]
        if self._calls_blas or k >= _MANY:
            with single_threaded_blas():
                return function(*self._bound, _WIDTH, *of, given, *vectors)
        return function(*self._bound, 1, *of, given, *vectors)

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


@brief
def _substitute_with_gil(*given):
    substitute(*given)


@brief
def _substitute_and_measure_with_gil(*given):
    return substitute_and_measure(*given)


# Threads that let the GIL go have to wait for each other to have it back, which takes longer than
# a short call. What keeps it calls the same compiled code.
_SUBSTITUTE: tuple[_Compiled, _Compiled] = substitute, _substitute_with_gil
_SUBSTITUTE_AND_MEASURE: tuple[_Compiled, _Compiled] = (
    substitute_and_measure,
    _substitute_and_measure_with_gil,
)
