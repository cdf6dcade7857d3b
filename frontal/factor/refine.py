"""Refinement of solutions, and GMRES if it stalls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..cpu.host_system import HostSystem
from ..numeric import refinement
from ..numeric.acceptance import NORMWISE_WEIGHT, ErrorLimits
from ..numeric.linear_system import BackwardErrors, LinearSystem, Vectors

_GMRES_CYCLES = 20  # restarts
_GMRES_SIZE = 40  # vectors of a cycle


def solve(
    system: LinearSystem, B: Vectors, steps: int | None, judged: bool, probing: bool = False
) -> tuple[Vectors, BackwardErrors | None, int]:
    """Solve op(A) X = B and improve X, in blocks of right-hand sides.

    Parameters
    ----------
    system : LinearSystem
    B : (n, k) array
    steps : int, optional
        As for `refine`.
    judged : bool
        Measure errors. Without errors and with ``steps=0`` the call does not wait for the device.
    probing : bool
        See `LinearSystem.solved`.

    Returns
    -------
    X : (n, k) array
    errors : BackwardErrors or None
        None if not `judged`.
    taken : int
        Accepted corrections.
    """
    n, k = B.shape
    if n == 0 or k == 0:
        nothing = np.zeros(k)
        return B.copy(), BackwardErrors(nothing, nothing, nothing, 0.0, nothing, nothing), 0
    if k <= system.most:
        if steps == 0 and not judged:
            return system.solve(B), None, 0
        return _refined(_Solutions(system, B, *system.solved(B, probing)), steps)
    X, errors, taken = system.empty(n, k), [], 0
    for first in range(0, k, system.most):
        columns = slice(first, first + system.most)
        X[:, columns], block_errors, count = solve(system, B[:, columns], steps, judged)
        if block_errors is not None:
            errors.append(block_errors)
        taken = max(taken, count)
    return X, BackwardErrors.joined(errors) if errors else None, taken


def refine(
    system: LinearSystem, X: Vectors, B: Vectors, steps: int | None
) -> tuple[Vectors, BackwardErrors, int]:
    """Improve X by corrections D with A D = R until the error stops decreasing.

    Parameters
    ----------
    system : LinearSystem
    X, B : (n, k) arrays
        First solution, which may be overwritten, and right-hand sides.
    steps : int, optional
        Corrections at most, 0 for none; by default as many as halve the error, at most 30.

    Returns
    -------
    X : (n, k) array
    errors : BackwardErrors
        Errors of X.
    taken : int
        Accepted corrections.
    """
    return _refined(_Solutions(system, B, X, *system.measure(X, B)), steps)


@dataclass
class _Solutions:
    """`Refinable` solutions X of one system, with their residuals R and errors."""

    system: LinearSystem
    B: Vectors
    X: Vectors
    R: Vectors
    errors: BackwardErrors

    def merit(self) -> np.ndarray:
        return _merit(self.errors, self.system.limits)

    def correct(self) -> np.ndarray:
        trial = self.system.corrected(self.X, self.R)
        self._trial = trial, *self.system.measure(trial, self.B)
        return _merit(self._trial[2], self.system.limits)

    def accept(self, better: np.ndarray) -> None:
        (X, R, errors), chosen = self._trial, self.system.chosen
        self.X, self.R = chosen(better, X, self.X), chosen(better, R, self.R)
        self.errors = errors if better.all() else errors.chosen(better, self.errors)


def _refined(solutions: _Solutions, steps: int | None) -> tuple[Vectors, BackwardErrors, int]:
    taken = 0
    if steps is not None or not solutions.errors.fine:
        with np.errstate(all="ignore"):  # errors report non-finite solutions
            taken = int(refinement.refine(solutions, steps))
    return solutions.X, solutions.errors, taken


def _merit(errors: BackwardErrors, limits: ErrorLimits) -> np.ndarray:
    """Return `BackwardErrors.merit`, dominated by a normwise error that needs a correction.

    The first corrections by a factor in single precision may increase errors in rows of small
    numbers.
    """
    normwise = errors.normwise / limits.normwise
    return np.where(normwise > 1, NORMWISE_WEIGHT * normwise, errors.merit(limits))


def rescue(
    system: HostSystem, X: np.ndarray, B: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Correct columns whose error is too large after refinement, by GMRES with the factors.

    A factor with p perturbed pivots differs from A by a matrix of rank p. GMRES, preconditioned by
    it, needs about p + 1 steps where refinement may stall. Cycles repeat while they help.
    """
    from scipy.sparse.linalg import LinearOperator, gmres  # rarely needed and slow to import

    n = X.shape[0]
    X, error = X.copy(), error.copy()
    target = system.limits.accepted
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
            # scaled, since GMRES stops when residuals underflow
            size = np.abs(r).max()
            d, _ = gmres(
                system.A, r / size, M=inverse, rtol=1e-6, restart=min(n, _GMRES_SIZE), maxiter=1
            )
            trial = X[:, column] + size * d.reshape(-1, 1)
            trial_error = system.measure(trial, B[:, column])[1].rowwise[0]
            if not trial_error < error[j]:
                break
            X[:, column] = trial
            taken += 1
            stalled = trial_error > 0.9 * error[j]
            error[j] = trial_error
            if error[j] <= target or stalled:
                break
    return X, error, taken
