"""Derivatives of solutions with respect to the values of A and to b, as products with vectors.

With op(A) x = b, the gradient of any function of x needs one solve with the adjoint of op(A): its
part for A has the products of that solution and x at the entries of A. See Giles, Pierce, "An
introduction to the adjoint approach to design" (2000). Gradients for complex numbers are those of
PyTorch; those of JAX are their conjugates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import Untyped
from ..backend.protocol import NumericFactor
from ..errors import (
    SingularMatrixError,
    SolutionOverflowError,
    StaleFactorError,
)
from ..matrix.canonical import check_finite_rhs, on_device, prepare_rhs, working_dtype
from ..matrix.exact import refuse_inexact, refuse_masked
from ..matrix.value_map import ValueMap
from ..numeric.linear_system import Vectors
from .inverse_entries import finite, inverse_entries
from .state import FactorState
from .vector_blocks import of_parts, side_by_side

_Restore = Callable[[Vectors], Untyped]


class Derivatives:
    """The part of `Factor` for derivatives of its solutions."""

    _numbers: FactorState
    _order: ValueMap | None
    solve: Callable[..., Untyped]

    @property
    def version(self) -> int:
        """Number of times that `refactorize` was called."""
        return self._numbers.version

    def solve_vjp(
        self, x: Untyped, x_bar: Untyped, trans: str = "N", *, version: int | None = None
    ) -> tuple[Untyped, Untyped]:
        """Return the gradients of a function of x, the solution of op(A) x = b, for A and b.

        Parameters
        ----------
        x : array (n,) or (n, k)
            Solutions by this factor, on the host or on the GPU.
        x_bar : array of x's shape
            Gradient for x.
        trans : {"N", "T", "H"}
            op(A), as for the solution.
        version : int, optional
            `version` of the factor that solved; a later `refactorize` is an error then.

        Returns
        -------
        values_bar : array of the shape of ``A.data``, real if A is
            Gradient for the values of A in the order of `refactorize`. If `kind` has promised a
            symmetric or Hermitian matrix, so is the gradient; a triangle that is stored alone has
            the sum of both triangles.
        b_bar : array of x's shape
            Gradient for b: the solution with the adjoint of op(A) for `x_bar`.

        Raises
        ------
        SingularMatrixError
            If A is singular: solutions have no derivatives.
        StaleFactorError
            If `version` is not that of the factor.
        NonFiniteInputError, SolutionOverflowError
            If x or `x_bar` has NaN or infinity; if a gradient is too large for its type.
        ValueError
            If the shapes differ, or the last matrix had no array with one value for each entry.

        Examples
        --------
        The sensitivity of the mean of x to each entry of A:

        >>> import frontal, numpy as np
        >>> A = frontal.problems.convdiff2d(3)
        >>> factor = frontal.factorize(A)
        >>> x = factor.solve(np.ones(9))
        >>> values_bar, b_bar = factor.solve_vjp(x, np.full(9, 1 / 9))
        >>> A.data[4] += 1e-6
        >>> change = frontal.solve(A, np.ones(9)).mean() - x.mean()
        >>> bool(abs(change / 1e-6 - values_bar[4]) < 1e-6)
        True
        """
        factor, order = self._differentiable(version)
        x, x_bar = _arrays(x, x_bar=x_bar)
        b_bar = adjoint_solution(self.solve, x_bar, trans)
        X, Y, restore = _blocks(factor, x, b_bar)
        rows, columns = gradient_vectors(X, Y, trans)
        promised = factor.symbolic.method.one_triangle and not self._numbers.analysis.fallback
        values_bar = restore(_gradient(factor, order, rows, columns, promised))
        _refuse_non_finite(factor, values_bar, x)
        return values_bar.reshape(order.shape), b_bar

    def solve_jvp(
        self,
        x: Untyped,
        values_dot: Untyped = None,
        b_dot: Untyped = None,
        trans: str = "N",
        *,
        version: int | None = None,
    ) -> Untyped:
        """Return the derivative of x, the solution of op(A) x = b, along changes of A and b.

        Parameters
        ----------
        x : array (n,) or (n, k)
            Solutions by this factor.
        values_dot : array of the shape of ``A.data``, optional
            Change of the values of A, in the order of `refactorize`; by default none.
        b_dot : array of x's shape, optional
            Change of b; by default none.
        trans, version
            As for `solve_vjp`, with the same errors.

        Returns
        -------
        x_dot : array of x's shape

        Examples
        --------
        >>> import frontal, numpy as np, scipy.sparse as sp
        >>> factor = frontal.factorize(sp.diags_array([2.0, 4.0]).tocsc())
        >>> factor.solve_jvp(factor.solve(np.ones(2)), values_dot=np.ones(2))
        array([-0.25  , -0.0625])
        """
        factor, order = self._differentiable(version)
        (x,) = _arrays(x)
        x, b_dot = _arrays(x, b_dot=0 * x if b_dot is None else b_dot)
        if values_dot is None:
            return self.solve(b_dot, trans)
        X, B, restore = _blocks(factor, x, b_dot)
        values = _by_columns(factor, order, values_dot)
        return self.solve(restore(_residual(factor, values, X, B, trans)), trans)

    def logdet_vjp(self, g: float = 1.0) -> np.ndarray:
        """Return the gradient of g times the logarithm of |det A| for the values of A.

        These are entries of the inverse, on the host: see `inverse_entries`.

        Parameters
        ----------
        g : float
            Gradient for the logarithm.

        Returns
        -------
        values_bar : array of the shape of ``A.data``
            As for `solve_vjp`.

        Raises
        ------
        InverseInaccurateError, SolutionOverflowError, FactorMemoryError
            As for `diag_inv`.
        ValueError
            If g is no finite number, or the last matrix had no array with one value for each entry.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> factor = frontal.factorize(sp.csc_array([[2.0, 0.0], [1.0, 4.0]]), kind="general")
        >>> factor.logdet_vjp()
        array([0.5 , 0.  , 0.25])
        """
        if np.ndim(g) or np.iscomplexobj(g) or not np.isfinite(g):
            raise ValueError(f"g is {g!r}, but a finite real number is needed")
        factor, order = self._differentiable(None)
        symbolic = factor.symbolic
        row, column = order.coordinates(symbolic.indptr, symbolic.indices)
        entries = self._numbers.answer_by_fronts(
            lambda solver: inverse_entries(solver, column, row)
        )
        if order.triangle is not None:  # each value is that of two entries
            entries[row != column] *= 2
        with np.errstate(over="ignore"):
            values_bar = (g * entries.conj()).astype(entries.dtype, copy=False)
        return finite(values_bar).reshape(order.shape)

    def _differentiable(self, version: int | None) -> tuple[NumericFactor, ValueMap]:
        """Return the factor and the order of its values; raise if there are no derivatives."""
        state = self._numbers
        if version is not None and version != state.version:
            raise StaleFactorError(
                f"the solution is of version {version} of this factor, which has version "
                f"{state.version} now. Likely cause: refactorize() was called in between. Try: "
                "derivatives before the next refactorize, or a factor for each set of values"
            )
        solver = state.solver
        factor, null = solver.factor, solver.verdict.null_space
        if null is not None:
            raise SingularMatrixError.of_rank(factor.symbolic.n, null.columns)
        return factor, self._order or ValueMap.by_columns(factor.symbolic.indices.size)


def _arrays(x: Untyped, **others: Untyped) -> list[Untyped]:
    """Return arrays of one shape; raise ValueError if the shapes differ."""
    for name, a in ("x", x), *others.items():
        refuse_masked(a, name)
    arrays = [a if on_device(a) else np.asarray(a) for a in (x, *others.values())]
    for name, a in zip(others, arrays[1:], strict=True):
        if a.shape != arrays[0].shape:
            raise ValueError(f"{name} has shape {a.shape}, but x has shape {arrays[0].shape}")
    return arrays


def _refuse_non_finite(factor: NumericFactor, values_bar: Untyped, x: Untyped) -> None:
    """Raise if a gradient has NaN or infinity: because x has, or since it overflows."""
    if np.isfinite(values_bar).all():
        return
    X, _ = prepare_rhs(x, factor.symbolic.n, factor.matrix_dtype, check_finite=False)
    check_finite_rhs(X, x.ndim, "x")
    raise SolutionOverflowError(str(values_bar.dtype))


def adjoint_solution(
    solve: Callable[[Untyped, str], Untyped], x_bar: Untyped, trans: str
) -> Untyped:
    """Return the solution with the adjoint of op(A), for arrays or tensors, by a given solve."""
    if trans != "T":
        return solve(x_bar, {"N": "H", "H": "N"}.get(trans, trans))
    return solve(x_bar.conj(), "N").conj()


def gradient_vectors(x: Untyped, b_bar: Untyped, trans: str) -> tuple[Untyped, Untyped]:
    """Return vectors whose products, of row i and row j, are minus the gradient for entry (i, j).

    Parameters
    ----------
    x, b_bar : (n, k) arrays or tensors
        Solutions with op(A) and with its adjoint.
    trans : str
    """
    if trans == "N":
        return b_bar, x.conj()
    return (x.conj(), b_bar) if trans == "T" else (x, b_bar.conj())


def _blocks(factor: NumericFactor, x: Untyped, y: Untyped) -> tuple[Vectors, Vectors, _Restore]:
    """Return x and y as (n, k) arrays of the factor's backend, and the way back for results."""
    X, Y = factor.block(x), factor.block(y)
    if X is not None and Y is not None:
        return *_of_one_type(X, Y), lambda result: result[:, 0] if result.ndim > x.ndim else result
    n, dtype = factor.symbolic.n, factor.matrix_dtype
    (B, back), (C, _) = (prepare_rhs(a, n, dtype, check_finite=False) for a in (x, y))

    def restore(result: Vectors) -> Untyped:
        """Return (n, k) vectors as x was given, or values where x is."""
        result = factor.download(result)
        return back(result[:, None] if result.ndim == x.ndim == 1 else result)

    return *_of_one_type(factor.upload(B), factor.upload(C)), restore


def _of_one_type(X: Vectors, Y: Vectors) -> tuple[Vectors, Vectors]:
    dtype = np.result_type(X.dtype, Y.dtype)
    return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)


def _gradient(
    factor: NumericFactor, order: ValueMap, rows: Vectors, columns: Vectors, symmetric: bool
) -> Vectors:
    """Return minus the products of rows i and columns j for the values (i, j) of A.

    A value that stands for two entries of a symmetric or Hermitian matrix has both their products,
    and if A must be `symmetric`, each of two entries has their mean.
    """
    method, half = factor.symbolic.method, order.triangle
    adjoint = method.adjoint if half is None else half.adjoint
    diagonal = beside = -1.0
    if half is not None or symmetric:
        mirrored = (columns.conj(), rows.conj()) if adjoint else (columns, rows)
        rows, columns = (
            side_by_side(factor, *pair) for pair in zip((rows, columns), mirrored, strict=True)
        )
        diagonal, beside = -0.5, -0.5 if half is None else -1.0
    if factor.matrix_dtype.kind != "c" and rows.dtype.kind == "c":  # the real part
        rows, columns = (
            side_by_side(factor, rows.real, rows.imag),
            side_by_side(factor, columns.real, -columns.imag),
        )
    found = factor.entry_products(order, rows, columns, diagonal, beside)
    return found.astype(factor.matrix_dtype, copy=False)


def _by_columns(factor: NumericFactor, order: ValueMap, values: Untyped) -> Vectors:
    """Return values in the user's order by columns, in the memory and the type of the factor."""
    dtype = factor.matrix_dtype
    on_backend = factor.device_values(values, order)
    if on_backend is not None:
        found = on_backend[0]
    else:
        refuse_masked(values, "values_dot")
        host = values.get() if on_device(values) else np.asarray(values)
        refuse_inexact(host, "values_dot")
        symbolic, work = factor.symbolic, working_dtype(host.dtype, "values_dot")
        found = order.arranged(host, work, symbolic.indptr, symbolic.indices)
        found = factor.upload(found[:, None])[:, 0]
    if found.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError(f"values_dot has dtype {found.dtype}, but A is real")
    return found.astype(dtype, copy=False)


def _residual(
    factor: NumericFactor, values: Vectors, X: Vectors, B: Vectors, trans: str
) -> Vectors:
    """Return B - op(M) X for the matrix M of these values."""
    if X.dtype.kind != "c" or values.dtype.kind == "c":
        return factor.residual_with(values, X, B, trans)
    X, B = (side_by_side(factor, V.real, V.imag) for V in (X, B))
    return of_parts(factor.residual_with(values, X, B, trans))
