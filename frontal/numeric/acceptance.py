"""The acceptance of a solution: by its backward errors, and by the exponents of its system.

`judge` states the rule for one right-hand side, in Python and in compiled code; `BackwardErrors`
states it for arrays, judge_solutions of batch_checks.cu for a batch on a device.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ..compile.jit import view
from .thresholds import THRESHOLDS

# Reserved powers of two: for growth in the sweeps, and for corrections, which are smaller than the
# right-hand side by the precision of x.
_GROWTH_BITS, _CORRECTION_BITS = 32, 11
NORMWISE_WEIGHT = 2.0**200  # of a normwise error above its limit; no ratio of errors is larger


class ErrorLimits(NamedTuple):
    """Limits for scalar types of a factor, used by the sweeps, and of right-hand sides and x.

    Attributes
    ----------
    normwise, componentwise, rowwise : float
        Largest errors that need no correction.
    accepted : float
        Largest rowwise error that needs no warning.
    smallest, largest, product : float
        Smallest and largest norm of A, b and x, and largest |A||x|, that neither overflow nor
        underflow in a solve.
    eps, tiny : float
        Precision of x, and the smallest positive number.
    """

    normwise: float
    componentwise: float
    rowwise: float
    accepted: float
    smallest: float
    largest: float
    product: float
    eps: float
    tiny: float


@cache
def limits_of(factor: np.dtype, vectors: np.dtype) -> ErrorLimits:
    """Return the limits for scalar types of a factor and of vectors."""
    table, sweeps, numbers = THRESHOLDS, np.finfo(factor), np.finfo(vectors)
    eps = float(numbers.eps)
    rowwise = table.unrefined if factor == vectors else table.accepted
    errors = table.normwise, table.unrefined, rowwise, table.accepted
    return ErrorLimits(
        *(eps * x for x in errors),
        smallest=2.0 ** (int(sweeps.minexp) + numbers.nmant + _CORRECTION_BITS),
        largest=2.0 ** (int(sweeps.maxexp) - _GROWTH_BITS),
        product=2.0 ** (int(numbers.maxexp) - _GROWTH_BITS),
        eps=eps,
        tiny=float(numbers.smallest_subnormal),
    )


def with_long_rows(limits: ErrorLimits, longest: int) -> ErrorLimits:
    """Return limits for a matrix whose longest row has so many entries.

    The error of the sum of a long row may exceed the normwise limit, and no correction reduces it;
    see `Thresholds.long_row`.
    """
    normwise = limits.eps * longest**0.5 / 4
    return limits._replace(normwise=normwise) if normwise > limits.normwise else limits


@cache
def packed(limits: ErrorLimits) -> np.ndarray:
    """Return limits as an array, which a compiled call takes faster; see `unpacked`."""
    return np.array(limits)


@view
def unpacked(limits):
    """Return the `ErrorLimits` of an array."""
    return ErrorLimits(
        limits[0], limits[1], limits[2], limits[3], limits[4], limits[5], limits[6], limits[7],
        limits[8],
    )  # fmt: skip


def judge(
    sizes: Sequence[float], norm: float, by_component: bool, limits: ErrorLimits
) -> tuple[float, float, bool, bool]:
    """Return normwise error and merit of a solution, whether it is fine, and whether it is inside.

    The merit is the largest error relative to its limit for corrections. Inside, no exponent is
    near its limits. A fine solution is inside and needs no correction.

    Parameters
    ----------
    sizes : five floats
        Largest moduli of b - A x, x and b; componentwise and rowwise error.
    norm : float
        Infinity norm of A.
    by_component : bool
        Also limit the componentwise error; see `BackwardErrors`.
    limits : ErrorLimits
    """
    residual, solution, rhs, componentwise, rowwise = sizes
    product = norm * solution
    scale = product + rhs
    normwise = residual / scale if scale > 0 else residual
    if not math.isfinite(normwise):
        normwise = math.inf
    merit = max(normwise / limits.normwise, rowwise / limits.rowwise)
    fine = merit <= 1 and rowwise <= limits.rowwise
    if by_component:
        merit = max(merit, componentwise / limits.componentwise)
        fine = fine and componentwise <= limits.componentwise
    low, high = limits.smallest, limits.largest
    inside = low <= norm <= high and low <= rhs <= high and low <= solution <= high
    inside = rhs == 0 or (inside and product <= limits.product and normwise < math.inf)
    return normwise, merit, fine and inside, inside


def judge_for_correction(
    verdict: tuple[float, float, bool, bool], rowwise: float, limits: ErrorLimits
) -> tuple[float, bool]:
    """Return the merit by which corrections are compared, and whether a solution is accepted.

    A normwise error above its limit dominates the merit. An accepted solution needs neither a
    warning nor a scaled system. `verdict` is the result of `judge`.
    """
    normwise, merit, fine, inside = verdict
    normwise /= limits.normwise
    accepted = fine or (inside and rowwise <= limits.accepted)
    return NORMWISE_WEIGHT * normwise if normwise > 1 else merit, accepted
