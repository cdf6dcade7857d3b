"""Backward error of a solution, and the refinement that lowers it.

The normwise backward error of x is |b - A x| / (|A| |x| + |b|) in the infinity norm, the
componentwise one is the largest entry of |b - A x| / (|A| |x| + |b|) (Oettli and Prager 1964;
Arioli, Demmel and Duff 1989). Both are the size of the smallest change of A and b, relative to
their norms or to each entry, for which x is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, gmres

_MOST_STEPS = 5
# Errors, in eps, that refinement by default leaves alone: they are what rounding costs anyway.
_NORMWISE, _COMPONENTWISE = 4, 1000
_GMRES_STEPS = 5
_GMRES_SIZE = 40


@dataclass
class System:
    """op(A) X = B with a direct solver for op(A).

    Attributes
    ----------
    A : sparse array, (n, n)
        op(A): the matrix, its transpose or its adjoint.
    norm : float
        Its infinity norm.
    solve : callable
        X for a given (n, k) right-hand side, by the factors.
    magnitude : sparse array
        |op(A)|.
    badly_scaled : bool
        Refinement looks at each component, not at the norm alone: small rows matter too.
    """

    A: sp.sparray
    norm: float
    solve: Callable[[np.ndarray], np.ndarray]
    magnitude: sp.sparray
    badly_scaled: bool

    def residual(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """B - A X."""
        return B - self.A @ X


def columnwise_norm(X: np.ndarray) -> np.ndarray:
    """Largest modulus of each column; NaN if it has one."""
    return np.abs(X).max(axis=0, initial=0.0)


def backward_error(system: System, X: np.ndarray, B: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Normwise backward error of each column; infinite for a solution that is not finite."""
    with np.errstate(all="ignore"):
        scale = system.norm * columnwise_norm(X) + columnwise_norm(B)
        error = columnwise_norm(R) / np.where(scale > 0, scale, 1.0)
    return np.where(np.isfinite(error), error, np.inf)


def componentwise_error(system: System, X: np.ndarray, B: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Componentwise backward error of each column; infinite for one that is not finite."""
    with np.errstate(all="ignore"):
        R = np.abs(R)
        scale = system.magnitude @ np.abs(X) + np.abs(B)
        error = np.where(R > 0, R / scale, 0.0).max(axis=0, initial=0.0)
        return np.where(np.isfinite(R).all(axis=0), error, np.inf)


def _merit(system: System, X: np.ndarray, B: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Error of each column in units of what is good enough."""
    eps = np.finfo(X.dtype).eps
    merit = backward_error(system, X, B, R) / (_NORMWISE * eps)
    if system.badly_scaled:
        merit = np.maximum(merit, componentwise_error(system, X, B, R) / (_COMPONENTWISE * eps))
    return merit


def refine(
    system: System, X: np.ndarray, B: np.ndarray, steps: int | None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Improve X by corrections A D = R until that stops helping.

    Parameters
    ----------
    system : System
    X, B : (n, k) arrays
        First solution and right-hand sides.
    steps : int, optional
        Most corrections, 0 for none; by default as many as halve the error, at most five.

    Returns
    -------
    X : (n, k) array
    error : (k,) array
        Normwise backward error of each column.
    taken : int
        Corrections kept.
    """
    R = system.residual(X, B)
    merit = _merit(system, X, B, R)
    taken = 0
    for _ in range(_MOST_STEPS if steps is None else steps):
        if not np.any(merit > (1 if steps is None else 0)):
            break
        with np.errstate(all="ignore"):
            trial = X + system.solve(R)
            trial_R = system.residual(trial, B)
        trial_merit = _merit(system, trial, B, trial_R)
        better = trial_merit < merit
        if not better.any():
            break
        halved = bool((trial_merit[better] <= merit[better] / 2).any())
        X, R = np.where(better, trial, X), np.where(better, trial_R, R)
        merit = np.where(better, trial_merit, merit)
        taken += 1
        if steps is None and not halved:
            break
    return X, backward_error(system, X, B, R), taken


def rescue(
    system: System, X: np.ndarray, B: np.ndarray, error: np.ndarray, target: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """GMRES preconditioned by the factors, for columns that refinement left above `target`.

    A factor with p replaced pivots differs from A by a matrix of rank p, so that GMRES needs
    about p + 1 steps where refinement may stall.
    """
    n = X.shape[0]
    X, error = X.copy(), error.copy()
    inverse = LinearOperator(
        (n, n), matvec=lambda r: system.solve(r.reshape(-1, 1))[:, 0], dtype=X.dtype
    )
    taken = 0
    for j in np.flatnonzero(error > target):
        column = slice(j, j + 1)
        for _ in range(_GMRES_STEPS):
            r = system.residual(X[:, column], B[:, column])[:, 0]
            if not np.all(np.isfinite(r)) or not r.any():
                break
            # scaled, since GMRES stops at absolute underflows
            size = np.abs(r).max()
            d, _ = gmres(
                system.A, r / size, M=inverse, rtol=1e-6, restart=min(n, _GMRES_SIZE), maxiter=1
            )
            trial = X[:, column] + size * d.reshape(-1, 1)
            trial_error = backward_error(
                system, trial, B[:, column], system.residual(trial, B[:, column])
            )[0]
            if not trial_error < error[j]:
                break
            X[:, column] = trial
            taken += 1
            stalled = trial_error > error[j] / 2
            error[j] = trial_error
            if error[j] <= target or stalled:
                break
    return X, error, taken
