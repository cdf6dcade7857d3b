"""The public function lstsq, and LeastSquares, which factorizes once for many right-hand sides."""

from __future__ import annotations

import math
import numbers
import time

import numpy as np
import scipy.sparse as sp

from .._typing import MatrixLike, Untyped, for_scipy, is_on_cupy
from ..errors import (
    IllConditionedWarning,
    SingularMatrixError,
    SolutionOverflowError,
    warn,
)
from ..info import LeastSquaresInfo
from ..matrix.canonical import prepare_rhs
from ..matrix.rectangular import rectangular
from ..numeric.linear_system import eps_of
from ..numeric.thresholds import THRESHOLDS
from .augmented import FactorOptions
from .certificate import Certificate, certify
from .problem import Problem, SolvedProblem
from .scaling import Compact, power_of_two

_MAX_ERROR = 100  # roundings of a backward error without a warning
_SINGULAR = "raise", "warn", "allow"


def lstsq(
    A: MatrixLike,
    b: MatrixLike,
    damp: float = 0.0,
    *,
    singular: str = "warn",
    ordering: str = "auto",
    backend: str = "auto",
    check_finite: bool = True,
    return_info: bool = False,
) -> Untyped:
    """Minimize |A x - b|^2 + damp^2 |x|^2.

    The augmented system [I A; A^H -damp^2 I] is factorized as a quasidefinite matrix, with a small
    regularization that refinement removes. Normal equations are not formed. Of all minimizers, x
    has the least norm.

    Parameters
    ----------
    A : sparse matrix or array, (m, n)
        Any scipy.sparse format, or a dense array (with a warning); m and n are arbitrary.
    b : array (m,) or (m, k), or sparse (m, k)
        Right-hand sides; A is factorized once. Arrays of CuPy are supported; x is on the device of
        b.
    damp : float
        Damping, as of `scipy.sparse.linalg.lsmr`.
    singular : {"warn", "raise", "allow"}
        What to do if the rank of A is less than min(m, n). Singular values up to max(m, n) eps of
        the largest count as zero, after columns (of a wide A: rows) were scaled to equal norms.
    ordering : str
        A name that `solve` accepts, for the augmented system.
    backend : {"auto", "cpu", "gpu"}
        As for `solve`. Residuals are computed on the host.
    check_finite : bool
        Refuse NaN and infinity in A.
    return_info : bool
        Return (x, LeastSquaresInfo).

    Returns
    -------
    x : array (n,) or (n, k), or sparse (n, k)
        In the common scalar type of A and b. Single precision is solved in double.
    info : LeastSquaresInfo
        If `return_info`: errors, rank, condition.

    Raises
    ------
    RankUncertainError
        If singular values near the precision leave the rank open, and damp is 0.
    SingularMatrixError
        For a deficient rank with ``singular="raise"``.
    SolutionOverflowError, NonFiniteInputError, FactorMemoryError, ValueError, TypeError

    Warns
    -----
    IllConditionedWarning
        If the rank is deficient (not with ``singular="allow"``); if x may have fewer than two
        correct digits by its condition; if its backward error is larger than 100 eps.

    Examples
    --------
    >>> import frontal, numpy as np, scipy.sparse as sp
    >>> A = sp.csc_array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> x, info = frontal.lstsq(A, [0.0, 1.0, 5.0], return_info=True)
    >>> x.round(12), info.rank, round(info.residual_norm, 12)
    (array([-0.5,  2.5]), 2, 1.224744871392)
    """
    matrix = rectangular(A, check_finite=check_finite)
    _right_hand_sides(b, matrix)  # check b before other work is done
    more = {"singular": singular, "ordering": ordering, "backend": backend}
    return LeastSquares(matrix, damp, check_finite=False, **more).solve(b, return_info=return_info)


class LeastSquares:
    """A factorized least-squares problem min |A x - b|^2 + damp^2 |x|^2, for many calls of `solve`.

    Parameters
    ----------
    A, damp, singular, ordering, backend, check_finite
        As for `lstsq`; later changes of A have no effect.

    Attributes
    ----------
    shape : tuple of int
    rank : int or None
        Rank of A to working precision; None with `damp`.
    condition : float or None
        See `LeastSquaresInfo`.

    Examples
    --------
    >>> import frontal, scipy.sparse as sp
    >>> problem = frontal.LeastSquares(sp.csc_array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))
    >>> problem.solve([2.0, 4.0]), problem.rank
    (array([1., 1., 2.]), 2)
    """

    def __init__(
        self,
        A: MatrixLike,
        damp: float = 0.0,
        *,
        singular: str = "warn",
        ordering: str = "auto",
        backend: str = "auto",
        check_finite: bool = True,
    ) -> None:
        if singular not in _SINGULAR:
            raise ValueError(f"singular is {singular!r}; choose 'raise', 'warn' or 'allow'")
        began = time.perf_counter()
        self._matrix = rectangular(A, check_finite=check_finite)
        self.shape, self._damp = self._matrix.shape, _required_damp(damp)
        self._compact = Compact.from_matrix(self._matrix)
        self._problem: Problem | None = None
        self.rank: int | None = None if self._damp else 0
        self.condition: float | None = None
        if self._compact.A.nnz:
            options = FactorOptions(backend, ordering)
            damping = _relative(self._damp, self._compact.scale)
            self._problem = Problem(self._compact, damping, self._matrix.dtype, options)
            self.rank, self.condition = self._problem.rank, self._problem.condition
        self._factorized = time.perf_counter() - began
        if self.rank is not None and self.rank < min(self.shape) and singular != "allow":
            self._report_rank(singular)

    def solve(self, b: MatrixLike, *, return_info: bool = False) -> Untyped:
        """Return x, or (x, LeastSquaresInfo), for right-hand sides b as for `lstsq`."""
        began = time.perf_counter()
        B, restore = _right_hand_sides(b, self._matrix)
        dtype, compact = B.dtype, self._compact
        X = np.zeros((self.shape[1], B.shape[1]), dtype, order="F")
        scales = power_of_two(abs(B).max(axis=0, initial=0).astype(np.float64))
        scaled = B.astype(np.result_type(dtype, np.float64)) / scales
        solved, errors = self._certified(scaled[compact.rows], dtype)
        x = solved.x.astype(dtype)
        with np.errstate(over="ignore"):
            X[compact.columns] = x * (scales / compact.scale).astype(np.finfo(dtype).dtype)
        if np.isfinite(x).all() and not np.isfinite(X).all():
            raise SolutionOverflowError(str(dtype))
        forward = self._forward_error(errors, solved, eps_of(dtype))
        _warn_of_errors(errors, forward, eps_of(dtype))
        x = restore(X)
        if not return_info:
            return x
        scaled[compact.rows] = 0
        removed = np.linalg.norm(scaled, axis=0)
        norms = np.hypot(errors.residual_norm, removed) * scales
        seconds = {"factorize": self._factorized, "solve": time.perf_counter() - began}
        return x, self._info(errors, solved, forward, float(norms.max(initial=0)), seconds)

    def _certified(self, b: np.ndarray, dtype: np.dtype) -> tuple[SolvedProblem, Certificate]:
        """Return solutions for a block of the compact problem, and their errors in a scalar type.

        If refinement is not enough, pivots are searched.
        """
        problem, compact = self._problem, self._compact
        if problem is None or not b.shape[1]:
            solved = _trivial(compact, b)
            return solved, _errors(solved, compact, 0.0, b, dtype)
        while True:
            solved = problem.solve(b)
            errors = _errors(solved, compact, problem.damp, b, dtype)
            if errors.worst <= _MAX_ERROR * eps_of(dtype) or not problem.search_pivots():
                return solved, errors

    def _forward_error(
        self, errors: Certificate, solved: SolvedProblem, eps: float
    ) -> float | None:
        """Return an estimate of the relative error of x; None if the condition is unknown.

        (A^H A)^-1 (E^H r - A^H E x) is the first-order change of x for a change E of A.
        """
        if self.condition is None or self._problem is None:
            return None
        ratio = 0.0  # |r| / |x|
        with np.errstate(all="ignore"):
            if self._problem.tall:
                ratio = float(np.fmax(errors.residual_norm / solved.scaled, 0).max(initial=0))
            precision = max(eps, errors.worst)
            lowest = np.float64(self._problem.lowest)
            error = float(precision * (1 + 1 / lowest + ratio / lowest**2))
        return min(1.0, error) if np.isfinite(error) else 1.0

    def _info(
        self,
        errors: Certificate,
        solved: SolvedProblem,
        forward: float | None,
        residual_norm: float,
        seconds: dict[str, float],
    ) -> LeastSquaresInfo:
        factors = [] if self._problem is None else [x.factor for x in self._problem.systems]
        about = factors[0].info if factors else {"method": "none", "backend": "cpu"}
        return LeastSquaresInfo(
            residual_norm=residual_norm,
            optimality=float(errors.optimality.max(initial=0)),
            backward_error=errors.worst,
            norm_error=solved.norm_error,
            rank=self.rank,
            condition=self.condition,
            forward_error=forward,
            refinement_steps=solved.steps,
            method=about["method"],
            backend=about["backend"],
            nnz_factor=sum(x.nnz for x in factors),
            seconds=seconds,
        )

    def _report_rank(self, singular: str) -> None:
        """Warn of the deficient rank, or raise."""
        m, n = self.shape
        empty = n - self._compact.columns.size
        columns = f", and {empty} empty columns" if empty else ""
        message = (
            f"A of shape {(m, n)} has rank {self.rank}{columns}: the minimizers are not unique. "
            "Likely causes: (a) an unknown or an equation without entries, (b) rows or columns "
            "that depend on others. Try: damp > 0, or remove these; singular='allow' returns the "
            "solution of least norm without a warning"
        )
        if singular == "raise":
            raise SingularMatrixError(message, rank=self.rank)
        warn(f"{message}. x is the solution of least norm", IllConditionedWarning)


def _required_damp(damp: float) -> float:
    """Return `damp` as a float; raise if it is not a finite number >= 0."""
    if not isinstance(damp, numbers.Real) or isinstance(damp, bool):
        raise TypeError(f"damp is {damp!r}, not a real number")
    if not 0 <= damp < math.inf:
        raise ValueError(f"damp is {damp!r}, not a finite number >= 0")
    return float(damp)


def _relative(damp: float, scale: float) -> float:
    """Return the damping of the scaled matrix."""
    if damp / scale > 2.0**200:
        raise ValueError(f"damp is {damp}, but the norm of A is only about {scale}: x vanishes")
    return damp / scale


def _right_hand_sides(b: MatrixLike, matrix: sp.csc_array) -> Untyped:
    """Return b as a block and a function that restores its form, as `prepare_rhs`."""
    m = matrix.shape[0]
    array: Untyped = b if is_on_cupy(b) else for_scipy(b)
    shape = array.shape if hasattr(array, "shape") else np.shape(array)
    if len(shape) not in (1, 2) or shape[0] != m:
        raise ValueError(f"b has shape {shape}, but A has {m} rows: b must be ({m},) or ({m}, k)")
    return prepare_rhs(array, m, matrix.dtype)


def _errors(
    solved: SolvedProblem, compact: Compact, damp: float, b: np.ndarray, dtype: np.dtype
) -> Certificate:
    """Return the errors of solutions that are rounded to a scalar type."""
    x = solved.x.astype(dtype).astype(b.dtype)
    return certify(compact.A, compact.norm, damp, x=x, b=b, closer=solved.closer)


def _trivial(compact: Compact, b: np.ndarray) -> SolvedProblem:
    """Return the solution 0 of a matrix without entries."""
    k = b.shape[1]
    x = np.zeros((compact.A.shape[1], k), b.dtype)
    return SolvedProblem(x, b, None, np.zeros(k), 0)


def _warn_of_errors(errors: Certificate, forward: float | None, eps: float) -> None:
    """Warn if x is no solution of a nearby problem, or may have fewer than two correct digits."""
    worst = errors.worst
    if not worst <= _MAX_ERROR * eps:
        warn(
            f"x may not be a minimizer: its backward error is {worst:.1e}, of which 100 eps = "
            f"{_MAX_ERROR * eps:.1e} are usual. Likely cause: A is too ill-conditioned for its "
            "scalar type. Try: damp > 0, or scale rows and columns of A",
            IllConditionedWarning,
        )
    elif forward is not None and forward > THRESHOLDS.warned:
        warn(
            f"x may have fewer than two correct digits: an estimate of its relative error is "
            f"{forward:.1e}. Likely causes: (a) columns of A (rows, if it is wide) are nearly "
            "dependent, (b) the residual is large for such a matrix. Try: damp > 0",
            IllConditionedWarning,
        )
