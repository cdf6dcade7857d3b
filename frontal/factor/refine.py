"""Backward error of a solution, and the refinement that lowers it.

The normwise backward error of x is |b - A x| / (|A| |x| + |b|) in the infinity norm, the
componentwise one is the largest entry of |b - A x| / (|A| |x| + |b|) (Oettli and Prager 1964;
Arioli, Demmel and Duff 1989). Both are the size of the smallest change of A and b, relative to
their norms or to each entry, for which x is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, gmres

from ..cached import cached_property

_MOST_STEPS = 5
# Errors, in eps, that refinement by default leaves alone: they are what rounding costs anyway.
# A solution with a larger normwise error is not returned without a warning.
NORMWISE, COMPONENTWISE = 4, 1000
_GMRES_CYCLES = 20
_GMRES_SIZE = 40


@dataclass(frozen=True)
class Errors:
    """What decides how good solutions are, for k right-hand sides, on the host.

    Attributes
    ----------
    residual, solution, rhs : (k,) float arrays
        Largest modulus of each column of B - A X, X and B; NaN if it has one.
    norm : float, or (k,) float array
        Infinity norm of A, of another matrix for each column where they were scaled.
    componentwise : (k,) float array, optional
        Componentwise backward error.
    badly_scaled : bool
        Each component counts, not the norm alone: small rows matter too.
    lost : (k,) array, optional
        1 for a solution that is too large for its type, -1 for one too small, else 0.
    """

    residual: np.ndarray
    solution: np.ndarray
    rhs: np.ndarray
    norm: float | np.ndarray
    componentwise: np.ndarray | None = None
    badly_scaled: bool = False
    lost: np.ndarray | None = None

    @cached_property
    def normwise(self) -> np.ndarray:
        """Normwise backward error of each column; infinite for a solution that is not finite."""
        with np.errstate(all="ignore"):
            scale = self.norm * self.solution + self.rhs
            error = self.residual / np.where(scale > 0, scale, 1.0)
        return np.where(np.isfinite(error), error, np.inf)

    def merit(self, eps: float) -> np.ndarray:
        """Error of each column in units of what is good enough."""
        merit = self.normwise / (NORMWISE * eps)
        if self.badly_scaled and self.componentwise is not None:
            merit = np.maximum(merit, self.componentwise / (COMPONENTWISE * eps))
        return merit

    def insufficient(self, eps: float) -> bool:
        """Whether a solution should not be returned without a word."""
        return not (self.normwise <= NORMWISE * eps).all()

    @property
    def amplification(self) -> float:
        """Largest |A| |X| / |B|, by which the condition number of A cannot be less."""
        with np.errstate(all="ignore"):
            found = self.norm * self.solution / self.rhs
        return float(np.where(np.isfinite(found), found, 0.0).max(initial=0.0))

    def chosen(self, better: np.ndarray, other: Errors) -> Errors:
        """Take the columns that are `better` from here, the rest from `other`."""
        residual = np.where(better, self.residual, other.residual)
        solution = np.where(better, self.solution, other.solution)
        componentwise = None
        if self.componentwise is not None and other.componentwise is not None:
            componentwise = np.where(better, self.componentwise, other.componentwise)
        return replace(self, residual=residual, solution=solution, componentwise=componentwise)

    @staticmethod
    def joined(parts: Sequence[Errors]) -> Errors:
        """Errors of right-hand sides that were solved one block after another."""
        names = ("residual", "solution", "rhs", "componentwise")
        arrays = {f: np.concatenate([getattr(part, f) for part in parts]) for f in names}
        return replace(parts[0], **arrays)


class System(Protocol):
    """op(A) X = B with a direct solver for op(A); X, B and R are arrays of one kind, (n, k)."""

    @property
    def eps(self) -> float:
        """Precision of X."""
        ...

    def measure(self, X: Any, B: Any) -> tuple[Any, Errors]:
        """B - A X, and what it says of X."""
        ...

    def corrected(self, X: Any, R: Any) -> Any:
        """X + D for the direct solution of A D = R."""
        ...

    def chosen(self, better: np.ndarray, trial: Any, X: Any) -> Any:
        """Columns of `trial` where `better`, else those of X, which may be overwritten."""
        ...


@dataclass
class HostSystem:
    """A `System` of arrays on the host.

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

    @property
    def eps(self) -> float:
        """Precision of X."""
        return np.finfo(self.A.dtype).eps

    def residual(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """B - A X."""
        return B - self.A @ X

    def measure(self, X: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, Errors]:
        """See `System`."""
        R = self.residual(X, B)
        component = componentwise_error(self, X, B, R) if self.badly_scaled else None
        sizes = columnwise_norm(R), columnwise_norm(X), columnwise_norm(B)
        return R, Errors(*sizes, self.norm, component, self.badly_scaled)

    def corrected(self, X: np.ndarray, R: np.ndarray) -> np.ndarray:
        """See `System`."""
        with np.errstate(all="ignore"):
            return X + self.solve(R)

    def chosen(self, better: np.ndarray, trial: np.ndarray, X: np.ndarray) -> np.ndarray:
        """See `System`."""
        return np.where(better, trial, X)


def columnwise_norm(X: np.ndarray) -> np.ndarray:
    """Largest modulus of each column; NaN if it has one."""
    return np.abs(X).max(axis=0, initial=0.0)


def backward_error(system: HostSystem, X: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Normwise backward error of each column; infinite for a solution that is not finite."""
    R = system.residual(X, B)
    sizes = columnwise_norm(R), columnwise_norm(X), columnwise_norm(B)
    return Errors(*sizes, system.norm).normwise


def componentwise_error(
    system: HostSystem, X: np.ndarray, B: np.ndarray, R: np.ndarray
) -> np.ndarray:
    """Componentwise backward error of each column; infinite for one that is not finite."""
    with np.errstate(all="ignore"):
        R = np.abs(R)
        scale = system.magnitude @ np.abs(X) + np.abs(B)
        error = np.where(R > 0, R / scale, 0.0).max(axis=0, initial=0.0)
        return np.where(np.isfinite(R).all(axis=0), error, np.inf)


def refine(system: System, X: Any, B: Any, steps: int | None) -> tuple[Any, Errors, int]:
    """Improve X by corrections A D = R until that stops helping.

    Parameters
    ----------
    system : System
    X, B : (n, k) arrays
        First solution, which may be overwritten, and right-hand sides.
    steps : int, optional
        Most corrections, 0 for none; by default as many as halve the error, at most five.

    Returns
    -------
    X : (n, k) array
    errors : Errors
        Of X.
    taken : int
        Corrections kept.
    """
    R, errors = system.measure(X, B)
    merit = errors.merit(system.eps)
    taken = 0
    for _ in range(_MOST_STEPS if steps is None else steps):
        if not np.any(merit > (1 if steps is None else 0)):
            break
        trial = system.corrected(X, R)
        trial_R, trial_errors = system.measure(trial, B)
        trial_merit = trial_errors.merit(system.eps)
        better = trial_merit < merit
        if not better.any():
            break
        halved = bool((trial_merit[better] <= merit[better] / 2).any())
        X, R = system.chosen(better, trial, X), system.chosen(better, trial_R, R)
        errors = trial_errors.chosen(better, errors)
        merit = np.where(better, trial_merit, merit)
        taken += 1
        if steps is None and not halved:
            break
    return X, errors, taken


def rescue(
    system: HostSystem, X: np.ndarray, B: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """GMRES preconditioned by the factors, for columns that refinement left above `NORMWISE`.

    A factor with p replaced pivots differs from A by a matrix of rank p, so that GMRES needs
    about p + 1 steps where refinement may stall. Cycles of it go on as long as they help.
    """
    n = X.shape[0]
    X, error = X.copy(), error.copy()
    target = NORMWISE * system.eps
    inverse = LinearOperator(
        (n, n), matvec=lambda r: system.solve(r.reshape(-1, 1))[:, 0], dtype=X.dtype
    )
    taken = 0
    for j in np.flatnonzero((error > target) & np.isfinite(error)):
        column = slice(j, j + 1)
        for _ in range(_GMRES_CYCLES):
            r = system.residual(X[:, column], B[:, column])[:, 0]
            if not np.all(np.isfinite(r)) or not r.any():
                break
            # scaled, since GMRES stops at absolute underflows
            size = np.abs(r).max()
            d, _ = gmres(
                system.A, r / size, M=inverse, rtol=1e-6, restart=min(n, _GMRES_SIZE), maxiter=1
            )
            trial = X[:, column] + size * d.reshape(-1, 1)
            trial_error = backward_error(system, trial, B[:, column])[0]
            if not trial_error < error[j]:
                break
            X[:, column] = trial
            taken += 1
            stalled = trial_error > 0.9 * error[j]
            error[j] = trial_error
            if error[j] <= target or stalled:
                break
    return X, error, taken
