"""Refinement of solutions, and GMRES if it stalls."""

from __future__ import annotations

import numpy as np

from ..cpu.host_system import HostSystem
from ..numeric.linear_system import BackwardErrors, LinearSystem, Vectors
from ..numeric.thresholds import THRESHOLDS

_MAX_STEPS = THRESHOLDS.corrections
_NORMWISE_WEIGHT = 2.0**200  # larger than any finite ratio of errors
_GMRES_CYCLES = 20
_GMRES_SIZE = 40


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
        return _refined(system, B, steps, *system.solved(B, probing))
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
    return _refined(system, B, steps, X, *system.measure(X, B))


def _refined(
    system: LinearSystem,
    B: Vectors,
    steps: int | None,
    X: Vectors,
    R: Vectors,
    errors: BackwardErrors,
) -> tuple[Vectors, BackwardErrors, int]:
    """Refine as `refine`, with R and `errors` of the first solution."""
    if steps is None and errors.fine:
        return X, errors, 0
    with np.errstate(all="ignore"):  # errors report non-finite solutions
        return _improved(system, X, B, steps, R, errors)


def _improved(
    system: LinearSystem,
    X: Vectors,
    B: Vectors,
    steps: int | None,
    R: Vectors,
    errors: BackwardErrors,
) -> tuple[Vectors, BackwardErrors, int]:
    merit = _merit(errors, system.limits)
    taken = 0
    for _ in range(_MAX_STEPS if steps is None else steps):
        if not np.any(merit > (1 if steps is None else 0)):
            break
        trial = system.corrected(X, R)
        trial_R, trial_errors = system.measure(trial, B)
        trial_merit = _merit(trial_errors, system.limits)
        better = trial_merit < merit
        if not better.any():
            break
        halved = bool((trial_merit[better] <= merit[better] / 2).any())
        X, R = system.chosen(better, trial, X), system.chosen(better, trial_R, R)
        errors = trial_errors if better.all() else trial_errors.chosen(better, errors)
        merit = np.where(better, trial_merit, merit)
        taken += 1
        if steps is None and not halved:
            break
    return X, errors, taken


def _merit(errors: BackwardErrors, limits: np.ndarray) -> np.ndarray:
    """Return `BackwardErrors.merit`, dominated by a normwise error that needs a correction.

    The first corrections by a factor in single precision may increase errors in rows of small
    numbers.
    """
    normwise = errors.normwise / limits[0]
    return np.where(normwise > 1, _NORMWISE_WEIGHT * normwise, errors.merit(limits))


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
    target = system.limits[3]
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
