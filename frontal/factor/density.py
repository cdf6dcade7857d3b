"""Draws and densities of the Gaussian distribution whose precision matrix is A."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..errors import IllConditionedWarning, NonFiniteInputError, warn
from ..matrix.canonical import on_device, to_device, working_dtype
from ..matrix.exact import refuse_inexact, refuse_masked
from ..numeric.linear_system import eps_of
from ..numeric.thresholds import THRESHOLDS
from .part_solver import PartSolver
from .solve import FactorSolver
from .state import FactorState


class GaussianDensity:
    """The part of `Factor` for the distribution N(A^-1 b, A^-1), by Cholesky's L.

    See Rue, Held, "Gaussian Markov Random Fields" (2005), section 2.3. For complex A it is the
    circular distribution with E (x - m)(x - m)^H = A^-1. Computed on the host.
    """

    _numbers: FactorState
    solve: Callable[..., Untyped]
    logdet: Callable[[], float]

    def sample(
        self,
        size: int | tuple[int, ...] | None = None,
        rng: np.random.Generator | int | None = None,
        mean_b: Untyped = None,
    ) -> Untyped:
        """Draw x = A^-1 b + P^T L^-H z, with z white noise: of precision A and mean A^-1 b.

        A draw takes half an unrefined solve. The same seed gives the same bits on any number of
        threads, for the same ordering.

        Parameters
        ----------
        size : int or tuple of int, optional
            Shape of the array of draws; None for one draw, as ``Generator.multivariate_normal``.
        rng : numpy.random.Generator or int, optional
            Source of z, or a seed; by default new entropy from the system.
        mean_b : array (n,), optional
            b: the mean is the refined solution of A m = b. By default the mean is zero.

        Returns
        -------
        x : array (n,) or (\\*size, n)
            In the scalar type of A and b; on the GPU if b is.

        Raises
        ------
        ValueError
            If the factor is not Cholesky's; if a size is negative; if b does not fit.
        TypeError, NonFiniteInputError
            As for `solve`; if b is complex but A is not.
        SolutionOverflowError
            If a draw is too large for its type.
        FactorFreedError, FactorInvalidError
            As for `solve`.

        Warns
        -----
        IllConditionedWarning
            If the covariance may have less than two correct digits. The first draw of each
            factorization estimates the condition number.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> factor = frontal.factorize(frontal.problems.poisson2d(10), kind="spd")
        >>> x = factor.sample(1000, rng=0)
        >>> x.shape, bool(abs(x.var(axis=0) / factor.diag_inv() - 1).max() < 0.2)
        ((1000, 100), True)
        """
        state = self._numbers
        require_density(state)
        shape, n, dtype = _shape_of(size), state.analysis.n, state.factor.matrix_dtype
        mean, restore = self._mean(mean_b)
        Z = white_noise(np.random.default_rng(rng), math.prod(shape), n, dtype)
        X = state.answer_by_parts(lambda parts: _deviations(parts, Z))
        if mean is not None:
            X = X + mean
        return restore(X.reshape(*shape, n))

    def logpdf(self, x: Untyped, mean: Untyped = None) -> Untyped:
        """Return the logarithm of the density of the Gaussian distribution of precision A.

        For real A it is (log det A - n log 2 pi - (x - m)^T A (x - m)) / 2; for complex A
        log det A - n log pi - (x - m)^H A (x - m).

        Parameters
        ----------
        x : array (n,) or (..., n)
            The last axis has the unknowns, as in the result of `sample`.
        mean : array (n,), optional
            m; by default zero.

        Returns
        -------
        log_density : float, or array of the leading shape of x
            In double precision; on the GPU if x is an array of several vectors there.

        Raises
        ------
        ValueError
            If the factor is not Cholesky's; if the shapes do not fit.
        TypeError, NonFiniteInputError
            If x or m is complex but A is not; if x or m has NaN or infinity.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> factor = frontal.factorize(sp.diags_array([1.0, 4.0]).tocsc(), kind="spd")
        >>> round(factor.logpdf([0.0, 0.5]), 6)
        -1.64473
        """
        state = self._numbers
        require_density(state)
        n, dtype = state.analysis.n, state.factor.matrix_dtype
        X = host_rows(x, n, dtype, "x")
        if mean is not None:
            m = host_rows(mean, n, dtype, "mean")
            if m.ndim != 1:
                raise ValueError(f"mean has shape {m.shape}, expected ({n},)")
            X = X - m
        values = log_density(self.logdet(), n, quadratic_form(state.factor.matrix.A, X), dtype)
        if values.ndim == 0:
            return float(values)
        return to_device(values) if on_device(x) else values

    def _mean(self, b: Untyped) -> tuple[np.ndarray | None, Callable[[np.ndarray], Untyped]]:
        """Return the solution for b on the host, and the function that moves draws to b's place."""
        if b is None:
            return None, lambda X: X
        n, dtype = self._numbers.analysis.n, self._numbers.factor.matrix_dtype
        if host_rows(b, n, dtype, "mean_b").ndim != 1:
            raise ValueError(f"mean_b has shape {b.shape}, expected ({n},)")
        m = self.solve(b)
        return (m.get(), to_device) if on_device(m) else (np.asarray(m), lambda X: X)


def require_density(state: FactorState) -> None:
    """Raise ValueError if the factor is not that of a positive definite matrix, by Cholesky."""
    analysis, solver = state.analysis, state.solver
    method = solver.factor.symbolic.method
    need = "a Gaussian distribution needs Cholesky's factor of its precision matrix, but "
    if method.unit and not analysis.fallback:
        raise ValueError(
            f"{need}the method is {method.name}, whose factors have no square root of the matrix. "
            "Try: kind='spd' for factorize, if the matrix is positive definite"
        )
    null = solver.verdict.null_space
    if method.unit or null is not None:
        singular = "singular" if null is not None else "not positive definite"
        raise ValueError(
            f"{need}the matrix is {singular}. Likely causes: (a) it is the precision of an "
            "intrinsic field, (b) a sign is wrong. Try: frontal.gaussian.GMRF(Q, constraint=C), "
            "which fixes the free motions of an intrinsic field, or add the precision of "
            "observations to the matrix"
        )


def _shape_of(size: Untyped) -> tuple[int, ...]:
    if size is None:
        return ()
    shape = tuple(np.atleast_1d(size).tolist()) if np.ndim(size) else (size,)
    for count in shape:
        if isinstance(count, bool) or not isinstance(count, int | np.integer):
            raise TypeError(f"size is {size!r}: an integer or a tuple of integers is needed")
        if count < 0:
            raise ValueError(f"size is {size!r}, but numbers of draws are not negative")
    return tuple(int(count) for count in shape)


def white_noise(rng: np.random.Generator, count: int, n: int, dtype: np.dtype) -> np.ndarray:
    """Return (count, n) independent standard normal numbers, circular if complex."""
    real = np.dtype(dtype.char.lower())
    if dtype.kind != "c":
        return rng.standard_normal((count, n), dtype=real.type)
    Z = rng.standard_normal((count, 2 * n), dtype=real.type)
    Z *= real.type(np.sqrt(0.5))
    return Z.view(dtype)


def _deviations(parts: PartSolver, Z: np.ndarray) -> np.ndarray:
    """Return the draws of white noise (count, n), with the covariance A^-1."""
    _warn_of_condition(parts.solver)
    return parts.deviations(Z.T).T if Z.size else Z


def _warn_of_condition(solver: FactorSolver) -> None:
    """Warn if rounding in L may change the covariance by more than the limit of solutions."""
    factor = solver.factor
    if factor.symbolic.n == 0:
        return
    condition = solver.verdict.condition("N", factor.matrix_dtype).value
    if not condition * eps_of(factor.dtype) <= THRESHOLDS.warned:
        warn(
            "the covariance of draws may have less than two correct digits: the condition number "
            f"of the precision matrix is about {condition:.0e}. Likely cause: it is nearly that of "
            "an intrinsic field. Try: frontal.gaussian.GMRF(Q, constraint=C) with the precision of "
            "the intrinsic field, or a larger diagonal",
            IllConditionedWarning,
        )


def host_rows(x: Untyped, n: int, dtype: np.dtype, name: str) -> np.ndarray:
    """Return finite vectors (..., n) on the host, in the common scalar type of x and A.

    Raises
    ------
    ValueError, TypeError, NonFiniteInputError
        If the last axis has another length; if x is complex but A is not; if an entry is not
        finite.
    """
    refuse_masked(x, name)
    host = x.get() if on_device(x) else x
    if sp.issparse(host):
        raise TypeError(f"{name} is sparse, but a dense array is needed. Try: {name}.toarray()")
    host = np.asarray(host)
    if host.ndim == 0 or host.shape[-1] != n:
        raise ValueError(f"{name} has shape {host.shape}, but its last axis must have {n} entries")
    work = working_dtype(np.result_type(host.dtype, dtype), name)
    refuse_inexact(host, name)
    if work.kind == "c" and dtype.kind != "c":
        raise TypeError(f"{name} has dtype {host.dtype}, but the matrix is real")
    host = host.astype(work, copy=False)
    if not np.isfinite(host).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(host))[0])
        raise NonFiniteInputError(name, index, host[index].item())
    return host


def quadratic_form(A: sp.csc_array, X: np.ndarray) -> np.ndarray:
    """Return x^H A x for each vector of X (..., n), in double precision."""
    double = np.result_type(X.dtype, np.float64)
    rows = X.reshape(math.prod(X.shape[:-1]), X.shape[-1]).astype(double, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.real(rows.conj() * (A @ rows.T).T).sum(axis=1)
    return values.reshape(X.shape[:-1])


def log_density(logdet: float, n: int, quadratic: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the log density of n unknowns from log det A and the quadratic form."""
    if dtype.kind == "c":
        return logdet - n * np.log(np.pi) - quadratic
    return 0.5 * (logdet - n * np.log(2 * np.pi) - quadratic)
