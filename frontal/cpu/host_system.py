"""Systems with vectors on the host: solutions by any backend's factor, residuals in one pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp

from ..machine.lockfree_property import cached_property
from ..matrix.canonical import Canonical
from ..numeric.acceptance import ErrorLimits, limits_of, packed, with_long_rows
from ..numeric.backward_error import row_sums
from ..numeric.condition import certificate
from ..numeric.linear_system import BackwardErrors, eps_of
from ..symbolic.phase import Symbolic
from ..symbolic.scaling import Scaling
from .probes import HostProbes
from .residual import as_rows, measured, weights
from .substitution import FusedSolver

_measure: Callable[..., tuple[float, bool]] = measured
# op(A), as an argument of `residual.measure`
MeasuredMatrix: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, bool, bool, float, np.ndarray]
_REAL = {"f": np.float32, "d": np.float64, "F": np.float32, "D": np.float64}


class HostSweeps(Protocol):
    """Factor on the host or on a device that solves for vectors on the host."""

    symbolic: Symbolic

    @property
    def scaling(self) -> Scaling | None:
        """See `NumericFactor`."""
        ...

    @property
    def matrix(self) -> Canonical:
        """The factorized matrix."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factor."""
        ...

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        ...


def direct(factor: HostSweeps, B: np.ndarray, trans: str, *, scaled: bool = True) -> np.ndarray:
    """Return X for op(A) X = B by the factors, without refinement; B is (n, k).

    Unless `scaled`, A is the scaled matrix that was factorized.
    """
    if trans == "H":
        return direct(factor, B.conj(), "T", scaled=scaled).conj()
    dtype = np.result_type(B.dtype, factor.dtype)
    scaling = factor.scaling if scaled else None
    rows, columns = factor.symbolic.row_perm, factor.symbolic.perm
    if trans == "T":
        rows, columns = columns, rows
    rhs_factors = solution_factors = None
    if scaling is not None:
        rhs_factors, solution_factors = scaling.row, scaling.column
        if trans == "T":
            rhs_factors, solution_factors = solution_factors, rhs_factors
        B = B * rhs_factors[:, None]
    # row-major in the scalar type of the factor, for the sweeps
    y = np.ascontiguousarray(B[rows], factor.dtype)
    factor.sweep(y, trans == "T")
    X = np.empty(B.shape, dtype)
    X[columns] = y
    if solution_factors is not None:
        X *= solution_factors[:, None]
    return X


@dataclass(eq=False)
class HostSystem:
    """A `LinearSystem` of arrays on the host.

    Attributes
    ----------
    indptr, indices, data : arrays
        op(A), the matrix, its transpose or its adjoint, by columns; by rows if `flipped`.
    flipped : bool
    norm : float
        Infinity norm of op(A).
    solver : callable
        Returns X for an (n, k) right-hand side, by the factors.
    by_component : bool
        See `BackwardErrors`.
    limits : ErrorLimits
    most : int
        See `LinearSystem`.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    flipped: bool
    norm: float
    solver: Callable[[np.ndarray], np.ndarray]
    by_component: bool
    limits: ErrorLimits
    most: int = sys.maxsize

    @classmethod
    def from_matrix(
        cls,
        A: sp.sparray,
        norm: float,
        solver: Callable[[np.ndarray], np.ndarray],
        factor: np.dtype | None = None,
    ) -> HostSystem:
        """Return the system of a CSC or CSR matrix; no solution of it is `BackwardErrors.fine`.

        `factor` is the scalar type of the factors, by default that of the matrix.
        """
        indptr = A.indptr.astype(np.int64, copy=False)
        indices = A.indices.astype(np.int32, copy=False)  # SciPy gives both one type
        limits = limits_of(A.dtype if factor is None else factor, A.dtype)
        limits = limits._replace(smallest=np.inf)  # no exponent is harmless
        return cls(indptr, indices, A.data, A.format == "csr", norm, solver, True, limits)

    @cached_property
    def A(self) -> sp.sparray:
        """op(A), sharing the arrays."""
        n, form = self.indptr.size - 1, sp.csr_array if self.flipped else sp.csc_array
        return form((self.data, self.indices, self.indptr), shape=(n, n))

    @cached_property
    def magnitude(self) -> sp.sparray:
        """|op(A)|."""
        return abs(self.A)

    @property
    def eps(self) -> float:
        """Precision of X."""
        return eps_of(self.data.dtype)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """See `LinearSystem`."""
        return self.solver(B)

    def empty(self, n: int, k: int) -> np.ndarray:
        """See `LinearSystem`."""
        return np.empty((n, k), self.data.dtype, order="F")

    def residual(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return B - op(A) X."""
        return B - self.A @ X

    def solved(
        self, B: np.ndarray, probing: bool = False
    ) -> tuple[np.ndarray, np.ndarray, BackwardErrors]:
        """See `LinearSystem`; `probing` has no effect, as estimates are made separately."""
        if not isinstance(self.solver, FusedSolver):
            X = self.solve(B)
            return X, *self.measure(X, B)
        sizes = np.empty((5, B.shape[1]), _REAL[B.dtype.char])
        X, R, summary = self.solver.measured(B, self.bound, sizes)
        return X, R, self._errors(sizes, summary)

    def measure(self, X: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, BackwardErrors]:
        """See `LinearSystem`."""
        x, b = as_rows(X), as_rows(B)
        R, sizes = np.empty_like(x), np.empty((5, x.shape[0]), _REAL[x.dtype.char])
        summary = _measure(self.bound, x, b, R, sizes)
        return R.T, self._errors(sizes, summary)

    @cached_property
    def bound(self) -> MeasuredMatrix:
        """The matrix of `residual.measure`."""
        matrix = self.indptr, self.indices, self.data, self.flipped
        return *matrix, self.by_component, self.norm, packed(self.limits)

    def _errors(self, sizes: np.ndarray, summary: tuple[float, bool]) -> BackwardErrors:
        residual, solution, rhs, component, row = sizes
        errors = BackwardErrors(
            residual, solution, rhs, self.norm, component, row, self.by_component
        )
        errors.summary = summary
        return errors

    def corrected(self, X: np.ndarray, R: np.ndarray) -> np.ndarray:
        """See `LinearSystem`."""
        with np.errstate(all="ignore"):
            return X + self.solve(R)

    def chosen(self, better: np.ndarray, trial: np.ndarray, X: np.ndarray) -> np.ndarray:
        """See `LinearSystem`."""
        return np.where(better, trial, X)

    def estimated(self, weights: np.ndarray, small: float, decided: float) -> None:
        """See `LinearSystem`; None: all columns cost the same, and no device is waited for."""

    @cached_property
    def _row_sums(self) -> np.ndarray:
        return row_sums(self.indptr, self.indices, self.data, self.flipped)

    def certified(self) -> float:
        """See `LinearSystem`."""
        sums, dtype = self._row_sums, self.data.dtype
        with np.errstate(all="ignore"):
            z = self.solve(sums.astype(dtype).reshape(-1, 1))[:, 0]
        return certificate(
            self.indptr, self.indices, self.data, self.flipped, sums, np.ascontiguousarray(z, dtype)
        )

    def bounded(self, enough: float) -> float | None:
        """See `LinearSystem`; None: all columns cost the same, and no device is waited for."""
        return None

    def row_probes(self) -> HostProbes:
        """See `LinearSystem`."""
        return self.probes(self._row_sums)

    def probes(self, weights: np.ndarray, width: int = 1) -> HostProbes:
        """See `LinearSystem`."""
        return HostProbes(weights, np.complex128 if self.data.dtype.kind == "c" else np.float64)

    def weights(
        self, X: np.ndarray, B: np.ndarray, solution: np.ndarray, error: float
    ) -> np.ndarray | None:
        """See `LinearSystem`."""
        if not ((solution > 0) & np.isfinite(solution)).any():
            return None
        row_weights = np.empty(X.shape[0])
        weights(self.bound, as_rows(X), as_rows(B), solution, error, row_weights)
        return row_weights

    def ratios(
        self, weights: np.ndarray, references: Sequence[np.ndarray | None]
    ) -> list[tuple[float, float]]:
        """See `LinearSystem`."""
        with np.errstate(all="ignore"):
            found = [weights / (self._row_sums if v is None else v) for v in references]
        return [(float(ratio.min()), float(ratio.max())) for ratio in found]


def host_system(
    factor: HostSweeps,
    trans: str,
    dtype: np.dtype,
    solver: Callable[[np.ndarray], np.ndarray] | None = None,
) -> HostSystem:
    """Return op(A) X = B for host vectors of a scalar type; the factor may be on a device.

    The sweeps of the factor solve the system, unless `solver` is given.
    """
    indptr, indices, data, flipped, scaled, norm, _ = matrix_of(factor, trans, dtype)
    limits = _limits(factor, trans, dtype)
    solver = solver or (lambda B: direct(factor, B, trans))
    return HostSystem(indptr, indices, data, flipped, norm, solver, scaled, limits)


def matrix_of(factor: HostSweeps, trans: str, dtype: np.dtype) -> MeasuredMatrix:
    """Return op(A) in a scalar type, as the matrix of `residual.measure`."""
    matrix, complex_ = factor.matrix, dtype.kind == "c"
    data = matrix.data if matrix.dtype == dtype else matrix.data.astype(dtype)
    # sums over rows do not wait for memory: they are used if the rows of op(A) are columns of A
    flipped = trans != "N" or (matrix.hermitian and not complex_)
    return (
        *(matrix.indptr, matrix.indices, data.conj() if trans == "H" and complex_ else data),
        *(flipped, factor.scaling is not None, matrix.norms[0 if trans == "N" else 1]),
        packed(_limits(factor, trans, dtype)),
    )


def _limits(factor: HostSweeps, trans: str, dtype: np.dtype) -> ErrorLimits:
    limits, matrix = limits_of(factor.dtype, dtype), factor.matrix
    if trans == "N" and not matrix.hermitian:
        return limits
    return with_long_rows(limits, factor.symbolic.longest_column)  # rows of op(A) are columns of A
