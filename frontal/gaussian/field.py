"""GMRF: a Gaussian Markov random field with a sparse precision matrix."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .._typing import MatrixLike, Untyped
from ..api import factorize
from ..errors import NotPositiveDefiniteError, SingularMatrixError
from ..factor.density import host_rows, log_density, quadratic_form
from ..factor.factor import Factor
from ..machine.lockfree_property import cached_property
from .arguments import (
    dense_constraint,
    noise_variances,
    observation_weights,
    precision_matrix,
    variable_numbers,
)
from .constraints import Constraint

_RESERVED = "kind", "singular", "triangle"


class Marginal(NamedTuple):
    """The distribution of a few variables of a field: mean (k,) and covariance (k, k)."""

    mean: np.ndarray
    covariance: np.ndarray


class GMRF:
    """A Gaussian Markov random field, with density proportional to exp(-x^H Q x / 2 + b^H x).

    For complex Q the field is circular, with density proportional to exp(-x^H Q x + 2 Re b^H x).
    Means and draws are NumPy arrays; arrays on a GPU are copied to the host.

    Parameters
    ----------
    Q : sparse array (n, n)
        Precision matrix, positive definite. With a constraint it may be semidefinite, as for an
        intrinsic field: the constraint must fix all its null vectors.
    b : array (n,), optional
        Linear term of the log density: without constraint the mean is Q^-1 b. By default zero.
    mean : array (n,), optional
        Mean without constraint, instead of b.
    constraint : "sum-to-zero", array C (k, n), or tuple (C, e), optional
        The field is conditioned on C x = e, by default on C x = 0, with few rows in C: each costs a
        solve. C may be sparse.
    **options
        Of `frontal.factorize`, except `kind`, `singular` and `triangle`.

    Attributes
    ----------
    Q : csc_array
    factor : Factor
        Of Q, or of Q without the rows and columns of `null_columns`.
    null_columns : (r,) int array
        Columns of Q that depend on the others; empty for a proper field.

    Raises
    ------
    SingularMatrixError
        If Q is singular and there is no constraint.
    NotPositiveDefiniteError
        If Q is neither positive definite nor semidefinite.
    ValueError, TypeError, NonFiniteInputError
        If the shapes do not fit; if both b and `mean` are given; if rows of C are dependent, or do
        not fix all null vectors; as for `frontal.factorize`.

    Notes
    -----
    See Rue, Held, "Gaussian Markov Random Fields" (2005).

    Examples
    --------
    A random walk of 50 steps, observed in three points:

    >>> import frontal, numpy as np, scipy.sparse as sp
    >>> from frontal.gaussian import GMRF
    >>> D = sp.diags_array([-np.ones(49), np.ones(49)], offsets=[0, 1], shape=(49, 50))
    >>> walk = GMRF(D.T @ D, constraint="sum-to-zero")
    >>> M = sp.csr_array((np.ones(3), ([0, 1, 2], [0, 20, 49])), shape=(3, 50))
    >>> posterior = walk.condition(M, y=[1.0, -1.0, 0.5], noise=0.01)
    >>> (M @ posterior.mean).round(2)
    array([ 1. , -1. ,  0.5])
    >>> bool(abs(posterior.sample(rng=0).sum()) < 1e-10)
    True
    """

    def __init__(
        self,
        Q: MatrixLike,
        b: Untyped = None,
        *,
        mean: Untyped = None,
        constraint: Untyped = None,
        **options: Untyped,
    ) -> None:
        for name in _RESERVED:
            if name in options:
                raise TypeError(f"{name} is no option of GMRF, which takes a complete matrix Q")
        self.Q = precision_matrix(Q)
        n, dtype = self.Q.shape[0], self.Q.dtype
        self._options = options
        wanted = None if constraint is None else dense_constraint(constraint, n, dtype)
        outcome = _proper_factor(self.Q, wanted is not None, options)
        self.factor, basis, self.null_columns = outcome
        rest = np.delete(np.arange(n), self.null_columns)
        self._constraint = None
        if wanted is not None:
            self._constraint = Constraint(*wanted, basis, rest, self.factor)
        self._b, self._proper_mean = self._linear_term(b, mean, basis, rest)

    @property
    def n(self) -> int:
        """Number of variables."""
        return self.Q.shape[0]

    @property
    def constraint(self) -> tuple[np.ndarray, np.ndarray] | None:
        """C, (k, n), and e, (k,), of the constraint C x = e; None if there is none."""
        return None if self._constraint is None else (self._constraint.C, self._constraint.e)

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean of the field, (n,), with the constraint."""
        if self._constraint is None:
            return self._proper_mean
        return self._constraint.fields(self._proper_mean[None])[0].astype(self.Q.dtype)

    def var(self) -> np.ndarray:
        """Return the marginal variances, (n,), by entries of the inverse and by the constraint.

        Raises
        ------
        InverseInaccurateError, SolutionOverflowError, FactorMemoryError
            As for `Factor.diag_inv`.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from frontal.gaussian import GMRF
        >>> GMRF(sp.eye_array(4, format="csc"), constraint="sum-to-zero").var()
        array([0.75, 0.75, 0.75, 0.75])
        """
        if self._constraint is None:
            return np.real(np.asarray(self.factor.diag_inv()))
        return self._constraint.variances().astype(self.Q.dtype.char.lower())

    def sample(
        self,
        size: int | tuple[int, ...] | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> np.ndarray:
        """Return draws of the field, (n,) or (\\*size, n); see `Factor.sample`.

        Draws of a constrained field are draws without constraint, corrected by kriging.

        Parameters
        ----------
        size : int or tuple of int, optional
        rng : numpy.random.Generator or int, optional

        Examples
        --------
        >>> import frontal
        >>> from frontal.gaussian import GMRF
        >>> GMRF(frontal.problems.poisson2d(4)).sample((2, 3), rng=1).shape
        (2, 3, 16)
        """
        W = self.factor.sample(size, rng) + self._proper_mean
        if self._constraint is None:
            return W
        X = self._constraint.fields(W.reshape(math.prod(W.shape[:-1]), W.shape[-1]))
        return X.reshape(*W.shape[:-1], self.n).astype(self.Q.dtype)

    def logpdf(self, x: Untyped) -> Untyped:
        """Return the logarithm of the density, as `Factor.logpdf`.

        With a constraint it is the density within the subspace C x = e, of dimension n - k, and
        minus infinity outside: where C x differs from e in the first half of the digits.

        Parameters
        ----------
        x : array (n,) or (..., n)

        Returns
        -------
        log_density : float, or array of the leading shape of x

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from frontal.gaussian import GMRF
        >>> field = GMRF(sp.eye_array(2, format="csc"), constraint="sum-to-zero")
        >>> round(field.logpdf([1.0, -1.0]), 6), field.logpdf([1.0, 0.0])
        (-1.918939, -inf)
        """
        X = host_rows(x, self.n, self.Q.dtype, "x")
        quadratic = quadratic_form(self.Q, X - self.mean)
        logdet, rank = self.factor.logdet(), self.n
        if self._constraint is not None:
            logdet += self._constraint.logdet
            rank -= self._constraint.e.size
        values = np.asarray(log_density(logdet, rank, quadratic, self.Q.dtype))
        if self._constraint is not None:
            values = np.where(self._constraint.holds(X), values, -np.inf)
        return float(values) if values.ndim == 0 else values

    def condition(self, M: MatrixLike, y: Untyped, noise: Untyped) -> GMRF:
        """Return the field given observations y = M x + errors.

        Its precision is Q + M^H N^-1 M. The constraint stays.

        Parameters
        ----------
        M : sparse array (p, n)
            Weights of the variables in each observation.
        y : array (p,)
            Observations.
        noise : float or array (p,)
            Variances of the independent errors: the diagonal of N.

        Returns
        -------
        posterior : GMRF

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError
            If the shapes do not fit; if a variance is not positive; if an entry is not finite.
        NotPositiveDefiniteError, SingularMatrixError
            As for the constructor.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from frontal.gaussian import GMRF
        >>> I = sp.eye_array(2, format="csc")
        >>> GMRF(I).condition(I, y=[1.0, -2.0], noise=1.0).mean
        array([ 0.5, -1. ])
        """
        dtype = self.Q.dtype
        weights = observation_weights(M, self.n, dtype)
        count = weights.shape[0]
        y = host_rows(y, count, dtype, "y")
        if y.ndim != 1:
            raise ValueError(f"y has shape {y.shape}, expected ({count},)")
        weighted = weights.conj().T @ sp.diags_array(1 / noise_variances(noise, count))
        added = sp.csc_array(weighted @ weights)
        Q = sp.csc_array(self.Q + 0.5 * (added + added.conj().T)).astype(dtype)
        return GMRF(Q, self._b + weighted @ y, constraint=self.constraint, **self._options)

    def marginal(self, index: Untyped) -> Marginal:
        """Return the joint distribution of a few variables, by a solve for each.

        Parameters
        ----------
        index : int array (k,)
            Numbers of distinct variables; a boolean array (n,) selects them.

        Returns
        -------
        marginal : Marginal
            Mean (k,) and covariance (k, k), which is singular if a constraint connects only these
            variables.

        Raises
        ------
        ValueError, TypeError, IndexError
            If a number repeats, is no integer, or is not in ``range(n)``.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from frontal.gaussian import GMRF
        >>> Q = sp.csc_array([[2.0, -1.0], [-1.0, 2.0]])
        >>> GMRF(Q).marginal([1]).covariance.round(4)
        array([[0.6667]])
        """
        index = variable_numbers(index, self.n)
        B = np.zeros((self.n, index.size), self.Q.dtype, order="F")
        B[index, np.arange(index.size)] = 1
        if self._constraint is None:
            covariance = self.factor.solve(B)[index]
        else:
            covariance = self._constraint.covariance_of(B)[index].astype(self.Q.dtype)
        return Marginal(self.mean[index], 0.5 * (covariance + covariance.conj().T))

    def __repr__(self) -> str:
        count = 0 if self._constraint is None else self._constraint.e.size
        rows = f", {count} constraint{'s' * (count > 1)}" if count else ""
        rank = f", of rank {self.n - self.null_columns.size}" if self.null_columns.size else ""
        return f"<GMRF of {self.n} variables{rank}{rows}>"

    def _linear_term(
        self, b: Untyped, mean: Untyped, basis: np.ndarray, rest: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return b (n,), and the mean of the field outside of the null columns, not constrained."""
        n, dtype = self.n, self.Q.dtype
        if b is not None and mean is not None:
            raise ValueError("both b and mean are given. Try: one of them, since b = Q mean")
        for name, vector in (("b", b), ("mean", mean)):
            if vector is not None and np.ndim(vector) != 1:
                raise ValueError(f"{name} has shape {np.shape(vector)}, expected ({n},)")
        if mean is not None:
            m = host_rows(mean, n, dtype, "mean").astype(dtype)
            return self.Q @ m, (m - basis @ m[self.null_columns])[rest]
        if b is None:
            return np.zeros(n, dtype), np.zeros(rest.size, dtype)
        b = host_rows(b, n, dtype, "b").astype(dtype)
        if self._constraint is None:
            return b, self.factor.solve(b)
        return b, self.factor.solve(self._constraint.natural(b[:, None])[:, 0])


def _proper_factor(
    Q: sp.csc_array, constrained: bool, options: dict[str, Untyped]
) -> tuple[Factor, np.ndarray, np.ndarray]:
    """Return a Cholesky factor, a basis of the null space of Q, and its null columns.

    For a singular Q the factor is that of Q without the null columns.
    """
    n = Q.shape[0]
    try:
        factor = factorize(Q, kind="spd", **options)
    except (SingularMatrixError, NotPositiveDefiniteError) as error:
        null, basis = _null_space(Q, options)
        if not null.size:
            raise
        if not constrained:
            raise _unconstrained(n, null) from error
        rest = np.delete(np.arange(n), null)
    else:
        return factor, np.empty((n, 0), Q.dtype), np.empty(0, np.int64)
    try:
        return factorize(sp.csc_array(Q[rest][:, rest]), kind="spd", **options), basis, null
    except NotPositiveDefiniteError as error:
        column = None if error.column is None else int(rest[error.column])
        raise NotPositiveDefiniteError(column) from error


def _null_space(Q: sp.csc_array, options: dict[str, Untyped]) -> tuple[np.ndarray, np.ndarray]:
    """Return the null columns, (r,), and a basis N, (n, r), that is the identity in these rows.

    Variables without entries are found by their diagonal: no matching has a pivot for them.
    """
    n, connected = Q.shape[0], Q.diagonal() != 0
    rest, isolated = np.flatnonzero(connected), np.flatnonzero(~connected)
    if Q[:, isolated].count_nonzero():  # a minor is negative
        raise NotPositiveDefiniteError(int(isolated[0]))
    kind = "hermitian" if Q.dtype.kind == "c" else "symmetric"
    factor = factorize(sp.csc_array(Q[rest][:, rest]), kind=kind, singular="allow", **options)
    null = np.concatenate([rest[factor.null_columns], isolated]).astype(np.int64)
    basis = np.zeros((n, null.size), Q.dtype)
    basis[rest, : factor.null_columns.size] = factor.null_space()
    basis[null, np.arange(null.size)] = 1
    return null, basis


def _unconstrained(n: int, null: np.ndarray) -> SingularMatrixError:
    rank = n - null.size
    return SingularMatrixError(
        f"the precision matrix is singular: its rank is {rank} of {n}, so that the field is "
        f"intrinsic, with {null.size} free motion{'s' * (null.size > 1)}. Try: "
        "constraint='sum-to-zero' if a constant is free, constraint=C with a row for each free "
        "motion, or add the precision of observations to Q",
        column=int(null[0]),
        rank=rank,
        null_columns=null,
    )
