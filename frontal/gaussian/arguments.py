"""Checks of the arguments of Gaussian fields."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped, for_scipy, is_on_cupy
from ..factor.density import host_rows
from ..matrix.validate import checked

_SUM_TO_ZERO = "sum-to-zero"


def _on_host(A: Untyped, name: str) -> Untyped:
    """Return a matrix on the host; a sparse one with valid indices, any other as an array."""
    A = for_scipy(A)
    A = A.get() if is_on_cupy(A) else A
    return checked(A, name) if sp.issparse(A) else np.atleast_2d(np.asarray(A))


def precision_matrix(Q: Untyped) -> sp.csc_array:
    """Return a precision matrix as sparse columns in a scalar type of the factors."""
    Q = sp.csc_array(_on_host(Q, "Q"))
    return Q if Q.dtype.kind in "fc" else Q.astype(np.float64)


def dense_constraint(constraint: Untyped, n: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return C, (k, n), and e, (k,), in double precision from the argument of `GMRF`.

    Raises
    ------
    ValueError, TypeError, NonFiniteInputError
        If the shapes do not fit; if C or e is complex but Q is not; if an entry is not finite.
    """
    C, e = constraint if isinstance(constraint, tuple) else (constraint, None)
    if isinstance(C, str):
        if C != _SUM_TO_ZERO:
            raise ValueError(f"constraint is {C!r}; choose {_SUM_TO_ZERO!r} or an array C")
        C = np.ones((1, n))
    C = _on_host(C, "constraint")
    C = host_rows(C.toarray() if sp.issparse(C) else C, n, dtype, "constraint")
    if C.ndim != 2 or C.shape[0] > n:
        raise ValueError(f"constraint has shape {C.shape}, expected (k, {n}) with k <= {n}")
    k = C.shape[0]
    e = np.zeros(k) if e is None else host_rows(np.atleast_1d(e), k, dtype, "constraint value")
    if e.ndim != 1:
        raise ValueError(f"the constraint value has shape {e.shape}, expected ({k},)")
    double = np.result_type(dtype, np.float64)
    return C.astype(double), e.astype(double)


def observation_weights(M: Untyped, n: int, dtype: np.dtype) -> sp.csr_array:
    """Return weights of observations (p, n) after checks."""
    M = sp.csr_array(_on_host(M, "M"))
    if M.shape[1] != n:
        raise ValueError(f"M has shape {M.shape}, expected (p, {n})")
    host_rows(M.data, M.data.size, dtype, "M.data")
    return M


def noise_variances(noise: Untyped, count: int) -> np.ndarray:
    """Return positive variances, (count,)."""
    if sp.issparse(noise) or np.ndim(noise) > 1:
        raise ValueError(
            "noise is a matrix, but the variances of independent errors are needed. Try: M and y "
            "multiplied by the inverse of the Cholesky factor of the covariance, with noise=1"
        )
    variances = np.broadcast_to(np.asarray(noise, np.float64), (count,))
    if not ((variances > 0) & np.isfinite(variances)).all():
        raise ValueError("noise has variances that are not positive and finite")
    return variances


def variable_numbers(index: Untyped, n: int) -> np.ndarray:
    """Return distinct numbers of variables, (k,)."""
    index = np.atleast_1d(np.asarray(index))
    if index.dtype == bool and index.shape == (n,):
        return np.flatnonzero(index)
    if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
        raise TypeError(f"index has shape {index.shape} and dtype {index.dtype}: integers (k,)")
    index = index.astype(np.int64)
    if index.size and (index.min() < 0 or index.max() >= n):
        raise IndexError(f"variables are numbered from 0 to {n - 1}")
    if np.unique(index).size < index.size:
        raise ValueError("index repeats a variable, so that the covariance would be singular")
    return index
