"""The condition number of a factor, for all right-hand sides, by a few solves.

See `numeric.condition`.
"""

from __future__ import annotations

import numpy as np

from ..backend.protocol import NumericFactor
from ..cpu.probes import HostProbes
from ..numeric.condition import CERTIFIED, ESTIMATED, Condition, enough
from ..numeric.linear_system import BackwardErrors, LinearSystem, Vectors, eps_of
from ..numeric.one_norm import Product, one_norm
from ..numeric.thresholds import THRESHOLDS
from . import refine
from .condition import UnsureError, estimated_norm, hides, sides_of, solvers
from .extreme_scales import Scaled
from .mixed import is_mixed

# Largest product of an estimated condition number and the rowwise errors of its solutions: the
# number of A is at most twice as large.
MAX_CHANGE = 0.5


def factor_condition(
    factor: NumericFactor, trans: str, dtype: np.dtype, certify: bool
) -> Condition:
    """Return || |op(A)^-1| |op(A)| e ||, which bounds the errors of all solutions.

    Parameters
    ----------
    factor : NumericFactor
    trans : str
        op(A).
    dtype : numpy.dtype
        Scalar type of solutions. Factors of lower precision give an estimate only if it is small
        for their precision; otherwise the result is infinite.
    certify : bool
        Try an upper bound first.
    """
    solved = False
    with np.errstate(all="ignore"):
        if hides(factor):
            refined = _refined_norm(factor, trans, dtype)
            value, solved = refined or (_scaled_norm(factor, trans), False)
        else:
            value, certified = row_sum_norm(factor, trans, dtype, certify)
            if certified:
                return Condition.from_estimate(value, True, dtype)
    roundoff = eps_of(factor.dtype)
    if not value >= 0 or (roundoff > eps_of(dtype) and value * roundoff > THRESHOLDS.single):
        value = np.inf
    return Condition.from_estimate(float(value), False, dtype)._replace(solved=solved)


def row_sum_norm(
    factor: NumericFactor, trans: str, dtype: np.dtype, certify: bool
) -> tuple[float, bool]:
    """Return || |op(A)^-1| |op(A)| e || by unrefined solves, and whether it is an upper bound."""
    if dtype == factor.dtype:
        estimate = factor.condition_fast(trans, CERTIFIED if certify else ESTIMATED)
        if estimate is not None:
            return estimate
    system, limit = factor.system(trans, dtype), enough(dtype)
    bound = system.certified() if certify else np.inf
    if bound < np.inf:
        return bound, True
    quick = system.bounded(limit)
    if quick is not None:
        return quick, False
    probes = system.row_probes()
    if probes is None:
        return np.inf, False
    systems = [factor.system(one, dtype) for one in sides_of(trans)]
    return estimated_norm(probes, systems, False, limit).value, False


def _refined_norm(factor: NumericFactor, trans: str, dtype: np.dtype) -> tuple[float, bool] | None:
    """Estimate || |op(A)^-1| |op(A)| e || by refined solves where the factor is stored.

    Also return whether they solved with op(A), and not only with its adjoint. Return None if
    rowwise errors of solutions, which scaling of rows cannot hide, may change it, or if pivots were
    replaced: then a row may be zero.
    """
    if is_mixed(factor) or factor.perturbed or factor.nulls.size:
        return None
    systems = [factor.system(one, dtype) for one in sides_of(trans)]
    probes = systems[0].row_probes()
    if probes is None:
        return None
    errors: tuple[list[float], list[float]] = ([], [])
    solve, adjoint = (_measured_solver(*of) for of in zip(systems, errors, strict=True))
    try:
        value = one_norm(probes, adjoint, solve, enough(dtype)).value
    except UnsureError:
        return None
    if not value * max(errors[0] + errors[1]) <= MAX_CHANGE:
        return None
    return value, bool(errors[0]) or factor.symbolic.method.one_triangle


def _measured_solver(system: LinearSystem, rowwise: list[float]) -> Product:
    """Return a refining solver that appends errors to `rowwise`.

    It raises `UnsureError` for solutions with few digits.
    """

    def solve(B: Vectors) -> Vectors:
        X, errors, _ = refine.solve(system, B, None, True)
        if errors is None or not are_accurate(errors, system.eps):
            raise UnsureError
        if errors.near_border(system.limits).any():
            raise UnsureError
        rowwise.append(max(errors.worst, system.eps))
        return X

    return solve


def are_accurate(errors: BackwardErrors, eps: float) -> bool:
    """Return whether solutions by a factor with small pivots are accurate, in norm and by rows.

    Beside a huge solution the norm hides a row that is not solved.
    """
    return bool(errors.worst_normwise <= eps**0.75 and errors.worst <= eps**0.5)


def _scaled_norm(factor: NumericFactor, trans: str) -> float:
    """Estimate || |op(A)^-1| |op(A)| e || by refined solves of the scaled system, on the host.

    Return infinity if a solve is not accurate: factors with small pivots may be of another matrix.
    """
    scaled, sides = Scaled.from_factor(factor), sides_of(trans)
    magnitude, column = scaled.op(sides[0])[1], scaled.sides(sides[0])[1]
    w, g = magnitude @ np.ldexp(1.0, -column), np.ldexp(1.0, column)[:, None]
    if not (w > 0).all():  # a zero row, which the weights would hide
        return np.inf
    solve, adjoint = solvers(factor, scaled, sides, True, certain=True)
    try:
        return one_norm(HostProbes(w), lambda Y: adjoint(g * Y), lambda Y: g * solve(Y)).value
    except UnsureError:
        return np.inf


def reciprocal_condition(factor: NumericFactor) -> float:
    """Return 1 / (|A| |A^-1|) in the 1-norm, estimated; 0 if it is not finite."""
    n = factor.symbolic.n
    if n == 0:
        return 1.0
    scaled = Scaled.from_factor(factor)
    row, column = scaled.row, scaled.column
    solve, adjoint = solvers(factor, scaled, ("N", "H"), hides(factor))
    # A^-1 = D_c A'^-1 D_r, with the largest entries of both factored out
    most = int(row.max()), int(column.max())
    column_scale, row_scale = np.ldexp(1.0, column - most[1]), np.ldexp(1.0, row - most[0])[:, None]
    with np.errstate(all="ignore"):
        inverse = one_norm(
            HostProbes(column_scale),
            lambda X: solve(row_scale * X),
            lambda X: row_scale * adjoint(X),
        ).value
        norm = np.ldexp(factor.matrix.norms[1], most[0] + most[1])
        rcond = 1 / (norm * inverse)
    return float(min(rcond, 1.0)) if np.isfinite(rcond) else 0.0
