"""Condition numbers of solutions, estimated by a few solves with the factors.

The relative error of x is at most || |A^-1| w || times the precision, for w = |A||x| + |b| and x of
norm 1 (Skeel 1979; LAPACK's xGERFS). Unlike the condition number of A, this one is independent of
row scaling and measures errors in the units of x: bad scaling alone does not make it large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..backend.protocol import NumericFactor
from ..cpu.host_system import HostSystem
from ..cpu.probes import HostProbes
from ..numeric.linear_system import BackwardErrors, LinearSystem, Probes, Vectors, eps_of
from ..numeric.one_norm import Norm, Product, one_norm
from ..numeric.thresholds import THRESHOLDS, margin_of
from ..symbolic.scaling import shifted
from . import refine
from .extreme_scales import ZERO, Scaled, column_units, exponents
from .mixed import ImpreciseError, is_mixed
from .solution import Solution

_MAX_NAMED_COLUMNS = 4  # in a warning
_MAX_CHANGE_NORM = 0.1  # of I - A' Ã^-1: from 1 on A may be singular though its factors are not

_NormEstimate = tuple[
    float, Callable[[], np.ndarray]
]  # a norm, and a function for the coefficients of a nearly dependent combination


class UnsureError(Exception):
    """Insufficient accuracy of solutions on the device of the factor."""


class ConditionEstimate(NamedTuple):
    """A condition number and the columns that cause it.

    Attributes
    ----------
    condition : float
        Infinite if no finite estimate exists.
    columns : tuple of int
        The columns of A with the largest weights in a nearly dependent combination; empty if the
        condition number is small.
    """

    condition: float
    columns: tuple[int, ...]


def solution_condition(solution: Solution, *, roughly: bool = False) -> ConditionEstimate:
    """Estimate the largest ratio of the error of solutions to their precision, infinity norms.

    One estimate serves all columns: || |op(A)^-1| w ||, where w_i is the maximum over columns.
    Residuals above the precision of a row enlarge its weight.

    Parameters
    ----------
    solution : Solution
        If all solutions are zero, the result is the condition number of the scaled matrix.
    roughly : bool
        Return the first bound or estimate that decides about a warning.
    """
    limit = THRESHOLDS.warned / solution.error
    small = limit / margin_of(solution.X.dtype)
    enough, harmless = (small, limit) if roughly else (0.0, small)  # harmless: no columns named
    hidden, estimate = hides(solution.factor), None
    with np.errstate(all="ignore"):
        if not hidden and not solution.near_border:
            estimate = _quick_estimate(solution, enough, limit if roughly else np.inf)
            estimate = estimate or _unscaled_estimate(solution, enough)
        norm, near_null = estimate or _scaled_estimate(solution, enough, hidden)
    norm = norm if math.isfinite(norm) else math.inf
    return ConditionEstimate(norm, () if norm <= harmless else dependent(near_null()))


def _quick_estimate(solution: Solution, small: float, decided: float) -> _NormEstimate | None:
    """Return the estimate for the unscaled A by few steps, or None; see `LinearSystem`."""
    if is_mixed(solution.factor) or solution.weights is None:
        return None
    estimate = solution.system.estimated(solution.weights, small, decided)
    if estimate is None:
        return None
    return estimate.value, lambda: _in_scaled_units(solution, estimate.near_null())


def _unscaled_estimate(solution: Solution, enough: float) -> _NormEstimate | None:
    """Return the estimate for the unscaled A on the device of the factor; None if it is unreliable.

    Inaccurate solves on the device make it unreliable.
    """
    factor, w = solution.factor, solution.weights
    probes = None if w is None else solution.system.probes(w, solution.X.shape[1])
    if probes is None:
        return None
    systems = [factor.system(one, solution.X.dtype) for one in sides_of(solution.trans)]
    try:
        norm, signs = estimated_norm(probes, systems, is_mixed(factor), enough)
    except UnsureError:
        return None
    if not np.isfinite(norm):
        return None
    return norm, lambda: _in_scaled_units(solution, systems[0].solve(signs))


def _in_scaled_units(solution: Solution, v: Vectors) -> np.ndarray:
    """Return an (n, 1) vector in units of x, in those of the scaled system, on the host."""
    return solution.factor.download(v)[:, 0] / column_units(solution.factor, solution.trans)


def estimated_norm(
    probes: Probes, systems: list[LinearSystem], refining: bool, enough: float
) -> Norm:
    """Estimate || |op(A)^-1| w || for the weights w of the probes, on the device of the factor."""
    solve, adjoint = (_blocked_solver(one, probes.width, refining) for one in systems)
    return one_norm(probes, adjoint, solve, enough)


def _scaled_estimate(solution: Solution, enough: float, hidden: bool) -> _NormEstimate:
    """Return the estimate on the host, for the system scaled to moderate exponents."""
    factor, trans = solution.factor, solution.trans
    X, B = factor.download(solution.X), factor.download(solution.B)
    if trans == "T":  # the conjugate of the system with A^H
        X, B = X.conj(), B.conj()
    scaled, sides = Scaled.from_factor(factor), sides_of(trans)
    w, g = _weights(scaled, sides[0], X, B, solution.error)
    solve, adjoint = solvers(factor, scaled, sides, hidden)
    g = g[:, None]
    norm, signs = one_norm(HostProbes(w), lambda Y: adjoint(g * Y), lambda Y: g * solve(Y), enough)
    return norm, lambda: solve(signs)[:, 0]


def sides_of(trans: str) -> tuple[str, str]:
    """Return `trans` of op(A), up to conjugation, and of its adjoint."""
    return ("N", "H") if trans == "N" else ("H", "N")


def _weights(
    scaled: Scaled, trans: str, X: np.ndarray, B: np.ndarray, error: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return w of the scaled system, and the sizes of its unknowns in units of x."""
    (A, magnitude), (row, column) = scaled.op(trans), scaled.sides(trans)
    used = X.any(axis=0) & np.isfinite(X).all(axis=0)
    if not used.any():
        return magnitude @ np.ones(row.size), np.ones(row.size)
    if not used.all():
        X, B = X[:, used], B[:, used]
    size = exponents(X).max(axis=0, initial=ZERO)
    with np.errstate(all="ignore"):
        Y, C = shifted(X, -size - column[:, None]), shifted(B, row[:, None] - size)
        w = magnitude @ np.abs(Y) + np.abs(C) + np.abs(C - A @ Y) / error
        w /= np.abs(shifted(X, -size)).max(axis=0)
        return w.max(axis=1), np.ldexp(1.0, column)


def sure(factor: NumericFactor) -> bool:
    """Return whether the factors, despite small pivots, are those of A' up to a small change.

    The change is the estimated 1-norm of I - A' Ã^-1, for the product Ã of the factors. Below 1, no
    matrix between A' and Ã is singular: eigenvalues have the same signs, and inverses are close.
    """
    n, scaled = factor.symbolic.n, Scaled.from_factor(factor)
    if n == 0:
        return True
    solve = scaled.solver(factor, "N")
    adjoint = scaled.solver(factor, "H")
    A = scaled.A
    with np.errstate(all="ignore"):
        changes = one_norm(
            HostProbes(np.ones(n)),
            lambda X: X - A @ solve(X),
            lambda X: X - adjoint(A.conj().T @ X),
            enough=_MAX_CHANGE_NORM,
        ).value
    return bool(changes <= _MAX_CHANGE_NORM)


def hides(factor: NumericFactor) -> bool:
    """Return whether small pivots make unrefined solves unreliable evidence about A."""
    small = not factor.health().pivot_ratio >= eps_of(factor.matrix_dtype) ** 0.5
    return bool(small or factor.perturbed or factor.nulls.size)


def solvers(
    factor: NumericFactor,
    scaled: Scaled,
    sides: tuple[str, str],
    hidden: bool,
    *,
    certain: bool = False,
) -> list[Product]:
    """Return solvers by the factors alone; refined ones if `hidden` or in mixed precision.

    If `certain`, refined solvers raise `UnsureError` for solutions that are not accepted.
    """
    if not (hidden or is_mixed(factor)):
        return [scaled.solver(factor, trans) for trans in sides]

    failure: Exception | None = UnsureError() if certain else None
    if is_mixed(factor):
        failure = ImpreciseError("no condition number can be estimated")
    systems = (scaled.system(factor, trans) for trans in sides)
    return [_refined(one, _gmres_rescue(one, failure)) for one in systems]


def _gmres_rescue(
    system: HostSystem, failure: Exception | None
) -> Callable[[np.ndarray, np.ndarray, BackwardErrors], np.ndarray]:
    def mend(X: np.ndarray, B: np.ndarray, errors: BackwardErrors) -> np.ndarray:
        X, error, _ = refine.rescue(system, X, B, errors.rowwise)
        if failure is not None:
            normwise = system.measure(X, B)[1].normwise
            good = (error <= system.limits.componentwise) | (normwise <= system.limits.normwise)
            if not good.all():
                raise failure
        return X

    return mend


def _blocked_solver(system: LinearSystem, width: int, mixed: bool) -> Product:
    """Return a solver on the device of the factor that solves at most `width` columns together."""

    def unsure(*_: object) -> Vectors:
        raise UnsureError

    solve_block = _refined(system, unsure) if mixed else system.solve

    def solve(B: Vectors) -> Vectors:
        n, k = B.shape
        if k <= width:
            return solve_block(B)
        X = system.empty(n, k)
        for j in range(k):
            X[:, j : j + 1] = solve_block(B[:, j : j + 1])
        return X

    return solve


def _refined(
    system: LinearSystem, otherwise: Callable[[Vectors, Vectors, BackwardErrors], Vectors]
) -> Product:
    """Return a refining solver, with `otherwise` as fallback for inaccurate solutions."""

    def solve(B: Vectors) -> Vectors:
        X, errors, _ = refine.solve(system, B, None, True)
        if errors is None or (errors.normwise <= system.limits.normwise).all():
            return X  # good enough for an estimate
        return otherwise(X, B, errors)

    return solve


def dependent(v: np.ndarray) -> tuple[int, ...]:
    """Return the positions of the largest entries of a vector, at most `_MAX_NAMED_COLUMNS`."""
    size = np.where(np.isfinite(v), np.abs(v), np.inf)
    columns, least = [], size.max() / 2
    while len(columns) < _MAX_NAMED_COLUMNS and size[j := int(np.argmax(size))] >= least:
        columns.append(j)
        size[j] = -np.inf
    return tuple(columns)
