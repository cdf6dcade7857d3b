"""Factor: a factorized matrix, which solves systems and answers questions about A."""

from __future__ import annotations

import copy
import logging
import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from . import refine
from .backend import NumericFactor, PivotFailure, Progress
from .condition import scaled_condition, witnessed_condition
from .errors import IllConditionedWarning, NotPositiveDefiniteError, SingularMatrixError, warn
from .factors import TriangularFactors
from .info import SolveInfo
from .matrix import Canonical, canonical, prepare_rhs
from .scaling import Scaling, equilibrate, scaled

if TYPE_CHECKING:
    from .analysis import Analysis

log = logging.getLogger("frontal")

_UNREACHED = 0.01  # of a random right-hand side, by the solution of a regular system


class Factor(TriangularFactors):
    """A factorized matrix: A = L L^H, or P_r D_r A D_c P_c = L U.

    Made by `frontal.factorize` or `Analysis.factorize`. It keeps the values of A, with which
    residuals are computed: later changes of A are not seen.

    Attributes
    ----------
    analysis : Analysis
        Ordering, tree and plan.
    shape : tuple of int
    dtype : numpy.dtype
        Scalar type of the factors.
    """

    def __init__(self, analysis: Analysis, matrix: Canonical, progress: Progress | None) -> None:
        self.analysis = analysis
        self._factorize(matrix, progress, None)

    @classmethod
    def compute(
        cls, matrix: Canonical, analysis: Analysis, progress: Progress | None = None
    ) -> Factor:
        """Factorize a canonical matrix of the analyzed pattern."""
        return cls(analysis, matrix, progress)

    # --- factorization -----------------------------------------------------------------------

    def _factorize(
        self, matrix: Canonical, progress: Progress | None, previous: NumericFactor | None
    ) -> None:
        began = time.perf_counter()
        for cached in ("A", "_magnitude", "_norms", "growth"):
            self.__dict__.pop(cached, None)
        self.matrix = replace(matrix, data=matrix.data.copy())  # the user may go on to change A
        try:
            self._numeric = self._compute(progress, previous)
        except PivotFailure as failure:
            column = int(self.analysis.perm[failure.position])
            if not self.analysis.fallback:
                raise NotPositiveDefiniteError(column) from None
            log.info("not positive definite at column %d: going on with LU", column)
            self.analysis = self.analysis.as_general(matrix)
            self._numeric = self._compute(progress, None)
        self.seconds = {"factorization": time.perf_counter() - began}
        try:
            self._judge()
        except SingularMatrixError:
            if not self.analysis.paired:
                raise
            self.analysis = self.analysis.unpaired(matrix)
            self._factorize(matrix, progress, None)

    def _compute(self, progress: Progress | None, previous: NumericFactor | None) -> NumericFactor:
        matrix, analysis = self.matrix, self.analysis
        values = matrix.data
        self._scaling = None
        if analysis.kind == "general":
            start = analysis.matching
            row, column = equilibrate(
                matrix.indptr,
                matrix.indices,
                values,
                start.row_scale if start else None,
                start.col_scale if start else None,
            )
            self._scaling = Scaling(row, column)
            values = scaled(matrix.indptr, matrix.indices, values, row, column)
        values = np.require(values, requirements=["C", "W"])
        tiny = float(np.sqrt(np.finfo(values.dtype).eps))
        return analysis.runner.factorize(values, tiny, progress, previous)

    def _judge(self) -> None:
        """Refuse a singular matrix, warn of a nearly singular one.

        Only suspicious factors are looked at: with replaced pivots, a system with a random
        right-hand side must be solvable; with pivots near rounding, the condition is estimated.
        """
        eps = np.finfo(self.dtype).eps
        condition = 0.0
        if self._numeric.perturbed:
            # The part of b outside the range of a singular A stays in the residual, while x grows
            # along the null space until even the backward error looks small: so compare with b.
            b = np.random.default_rng(0).standard_normal((self.shape[0], 1)).astype(self.dtype)
            x, error, _ = self._solve_refined(b, "N", None)
            left = np.abs(b - self.A @ x).max(initial=0.0) / np.abs(b).max(initial=1.0)
            if not (error[0] <= eps**0.75 and left <= _UNREACHED):
                raise SingularMatrixError.numerical(self._smallest_pivot_column())
            condition = witnessed_condition(self.A, self._scaling, x, b)
        elif not self._pivot_ratio() < 1e3 * eps:
            return
        condition = max(condition, scaled_condition(self.A, self._scaling, self._direct))
        if condition * eps > 0.1:
            warn(
                f"the matrix is singular to working precision or nearly so: its condition number "
                f"is about {condition:.0e}; solutions have a small residual and few right digits",
                IllConditionedWarning,
            )

    def _relative_pivots(self) -> np.ndarray:
        """Pivots over the size of what they came from: diag(A) for Cholesky, 1 for scaled LU."""
        pivots = np.abs(self._diagonal)
        if self._scaling is None:
            return pivots**2 / np.abs(self.A.diagonal()[self.analysis.perm])
        return pivots / pivots.max(initial=np.finfo(pivots.dtype).tiny)

    def _pivot_ratio(self) -> float:
        return float(self._relative_pivots().min(initial=1.0))

    def _smallest_pivot_column(self) -> int:
        return int(self.analysis.perm[int(np.argmin(self._relative_pivots()))])

    def refactorize(self, A: Any, *, check_finite: bool = True) -> Factor:
        """Factorize new values of the same pattern, in place.

        Parameters
        ----------
        A : sparse matrix or array (n, n), or (nnz,) array
            The matrix, or its values by columns with rows ascending (as ``A.data`` of a sorted
            CSC matrix).
        check_finite : bool
            Refuse NaN and infinity.

        Returns
        -------
        Factor
            This one.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> from frontal.problems import poisson2d
        >>> A = poisson2d(4)
        >>> factor = frontal.factorize(A)
        >>> growth = -factor.logdet() + factor.refactorize(2 * A).logdet()
        >>> round(float(growth / np.log(2)), 9)
        16.0
        """
        if not sp.issparse(A) and np.ndim(A) == 1:
            values = np.asarray(A)
            if values.size != self.matrix.data.size:
                raise ValueError(
                    f"{values.size} values given, the pattern has {self.matrix.data.size} entries"
                )
            A = sp.csc_array((values, self.matrix.indices, self.matrix.indptr), shape=self.shape)
        matrix = canonical(A, kind="general", check_finite=check_finite)
        self._factorize(self.analysis.matching_pattern(matrix), None, self._numeric)
        return self

    # --- solution ----------------------------------------------------------------------------

    def solve(
        self, b: Any, trans: str = "N", *, refine: int | None = None, return_info: bool = False
    ) -> Any:
        """Solve op(A) x = b.

        Parameters
        ----------
        b : array (n,) or (n, k), or sparse (n, k)
            Right-hand sides, any layout. Complex ones are fine with a real factor.
        trans : {"N", "T", "H"}
            op(A): the matrix, its transpose or its adjoint.
        refine : int, optional
            Most steps of iterative refinement; by default as many as help, 0 for none.
        return_info : bool
            Return (x, SolveInfo).

        Returns
        -------
        x : array of b's shape and kind
            In the common scalar type of A and b.
        info : SolveInfo
            If `return_info`.

        Raises
        ------
        ValueError
            If b does not fit, or for another `trans`.
        NonFiniteInputError
            If b has NaN or infinity.
        SingularMatrixError
            If no accurate solution could be computed.

        Warns
        -----
        IllConditionedWarning
            If the backward error stays above what is usual.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> from frontal.problems import poisson2d
        >>> A = poisson2d(10)
        >>> x, info = frontal.factorize(A).solve(np.ones(100), return_info=True)
        >>> bool(info.backward_error < 1e-15)
        True
        """
        if trans not in ("N", "T", "H"):
            raise ValueError(f"trans is {trans!r}; choose 'N', 'T' or 'H'")
        began = time.perf_counter()
        B, restore = prepare_rhs(b, self.shape[0], self.dtype)
        k = B.shape[1]
        split = np.iscomplexobj(B) and not np.iscomplexobj(self.matrix.data)
        if split:
            B = np.concatenate([np.real(B), np.imag(B)], axis=1)
        X, error, steps = self._solve_refined(B, trans, refine)
        self._warn_of(error, refine)
        info = self._report(X, B, trans, error, steps, began) if return_info else None
        if split:
            X = X[:, :k] + 1j * X[:, k:]
        x = restore(X)
        return (x, info) if return_info else x

    __call__ = solve

    def _solve_refined(self, B: np.ndarray, trans: str, steps: int | None):
        """Solution, backward error of each column, refinement steps."""
        B = B.astype(np.result_type(B.dtype, self.dtype), copy=False)
        system = self._system(trans, B.dtype)
        X = system.solve(B)
        X, error, taken = refine.refine(system, X, B, steps)
        if steps is None and self._numeric.perturbed:
            target = 10 * np.finfo(B.dtype).eps
            X, error, more = refine.rescue(system, X, B, error, target)
            taken += more
        return X, error, taken

    def _warn_of(self, error: np.ndarray, steps: int | None) -> None:
        if steps is not None:
            return  # the caller decides how much to refine, and can ask for the error
        worst = float(error.max(initial=0.0))
        limit = float(np.finfo(self.dtype).eps) ** 0.75
        if not worst <= limit:
            if self._numeric.perturbed or not np.isfinite(worst):
                raise SingularMatrixError.numerical(
                    self._smallest_pivot_column(), f"the backward error stays at {worst:.1e}"
                )
            warn(
                f"the backward error of the solution stays at {worst:.1e}; scale the matrix, or "
                "use float64",
                IllConditionedWarning,
            )

    def _system(self, trans: str, dtype: np.dtype) -> refine.System:
        op = {"N": lambda A: A, "T": lambda A: A.T, "H": lambda A: A.conj().T}[trans]
        A = op(self.A)
        return refine.System(
            A if A.dtype == dtype else A.astype(dtype),
            self._norms[0 if trans == "N" else 1],
            lambda B: self._direct(B, trans),
            self._magnitude if trans == "N" else self._magnitude.T,
            self._scaling is not None,
        )

    def _direct(self, B: np.ndarray, trans: str) -> np.ndarray:
        """One solution with the factors, no refinement; B is (n, k)."""
        if trans == "H":
            return self._direct(B.conj(), "T").conj()
        analysis, scaling = self.analysis, self._scaling
        dtype = np.result_type(B.dtype, self.dtype)
        rows, columns = analysis.row_perm, analysis.perm
        if trans == "T":
            rows, columns = columns, rows
        if scaling is not None:
            left, right = scaling.row, scaling.column
            if trans == "T":
                left, right = right, left
            B = B * left[:, None]
        # the layout that the sweeps want, in the scalar type of the factor
        y = np.ascontiguousarray(B[rows], self.dtype)
        self._numeric.solve(y, trans == "T")
        X = np.empty(B.shape, dtype)
        X[columns] = y
        if scaling is not None:
            X *= right[:, None]
        return X

    def _report(self, X, B, trans: str, error, steps: int, began: float) -> SolveInfo:
        system = self._system(trans, X.dtype)
        info = self.info
        return SolveInfo(
            **{name: info[name] for name in info if name != "seconds"},
            backward_error=float(error.max(initial=0.0)),
            componentwise_error=float(
                refine.componentwise_error(system, X, B, system.residual(X, B)).max(initial=0.0)
            ),
            refinement_steps=steps,
            seconds={**info["seconds"], "solve": time.perf_counter() - began},
        )

    # --- questions ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors."""
        return self.matrix.data.dtype

    @property
    def nnz(self) -> int:
        """Stored entries of the factors, zeros of merged fronts included."""
        return self.analysis.nnz_factor

    @cached_property
    def A(self) -> sp.csc_array:
        """The factorized matrix, sharing the user's arrays where they were canonical."""
        matrix = self.matrix
        return sp.csc_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)

    @cached_property
    def _magnitude(self) -> sp.csc_array:
        """|A|."""
        return abs(self.A)

    @cached_property
    def _norms(self) -> tuple[float, float]:
        """Infinity norm and 1-norm of A."""
        size = self._magnitude
        return float(size.sum(1).max(initial=0.0)), float(size.sum(0).max(initial=0.0))

    @cached_property
    def growth(self) -> float:
        """Largest entry of the factors over the largest of the (scaled) matrix."""
        panels = self._numeric.panels
        parts = (np.real(panels), np.imag(panels)) if np.iscomplexobj(panels) else (panels,)
        largest = max(max(x.max(initial=0.0), -x.min(initial=0.0)) for x in parts)
        matrix = self._norms[0] if self._scaling is None else 1.0
        return float(largest / matrix) if matrix else 0.0

    @property
    def info(self) -> dict[str, Any]:
        """Backend, method, ordering, cost and health of this factorization."""
        analysis = self.analysis
        return {
            "backend": analysis.runner.name,
            "device": analysis.runner.device,
            "method": analysis.method,
            "ordering": analysis.ordering.method,
            "dtype": str(self.dtype),
            "perturbed_pivots": self._numeric.perturbed,
            "growth": self.growth,
            "nnz_factor": analysis.nnz_factor,
            "flops": analysis.flops,
            "memory": int(self._numeric.panels.nbytes),
            "seconds": {**analysis.seconds, **self.seconds},
        }

    def copy(self) -> Factor:
        """An independent factor: refactorizing one leaves the other alone."""
        twin = copy.copy(self)
        twin._numeric = copy.deepcopy(self._numeric, {id(self.analysis.plan): self.analysis.plan})
        return twin

    def __repr__(self) -> str:
        analysis = self.analysis
        return (
            f"<Factor of a {self.shape[0]} x {self.shape[1]} {self.dtype} matrix: "
            f"{analysis.method}, {analysis.nnz_factor} entries, {analysis.ordering.method}>"
        )
