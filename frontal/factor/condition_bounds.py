"""Bounds of a solution's condition number from condition numbers for other weights.

|| |A^-1| w || grows with w: it is between min(w/v) and max(w/v) times || |A^-1| v ||. So the number
for the row sums of |A|, or for the weights of the last solution, often bounds the next well enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..numeric.condition import Condition
from ..numeric.linear_system import Vectors
from ..numeric.thresholds import THRESHOLDS
from .condition import ConditionEstimate
from .mixed import is_mixed
from .solution import Solution

_ESTIMATE_MARGIN = THRESHOLDS.margin_single  # estimates were too small by this factor at most
_RATIO_TOLERANCE = 0.01  # weights whose ratios differ from 1 by less share an estimate


class WeightedCondition(NamedTuple):
    """Weights of a solution and its condition number, which is a bound if it names no columns."""

    weights: Vectors
    estimate: ConditionEstimate

    @classmethod
    def from_solution(
        cls, solution: Solution, estimate: ConditionEstimate
    ) -> WeightedCondition | None:
        """Create it for a solution; None if its estimate cannot be reused."""
        if is_mixed(solution.factor) or not np.isfinite(estimate.condition):
            return None
        w = solution.weights
        return None if w is None else cls(w, estimate)


def compare(
    solution: Solution, condition: Condition | None, last: WeightedCondition | None
) -> ConditionEstimate | None:
    """Return a bound of the condition number that decides about a warning, or None.

    Parameters
    ----------
    solution : Solution
    condition : Condition, optional
        Condition number of the factor, for op(A).
    last : WeightedCondition, optional
        Condition number of another solution.
    """
    by_rows = _counted(condition) * solution.error <= THRESHOLDS.warned
    w = solution.weights if by_rows or last is not None else None
    if w is None:
        return None
    ratios = solution.system.ratios(w, [None] * by_rows + references_of(last)[1:])
    of_rows = ratios[0] if by_rows else None
    return bounded(solution.error, condition, last, of_rows, ratios[-1])


def references_of(last: WeightedCondition | None) -> list[Vectors | None]:
    """Return the weights to which `bounded` compares those of a solution: row sums first."""
    return [None] if last is None else [None, last.weights]


def bounded(
    error: float,
    condition: Condition | None,
    last: WeightedCondition | None,
    of_rows: tuple[float, float] | None,
    of_last: tuple[float, float],
) -> ConditionEstimate | None:
    """Return the result of `compare` by ratios of weights to `references_of` another solution."""
    if of_rows is not None:
        bound = _counted(condition) * of_rows[1]
        if bound * error <= THRESHOLDS.warned:
            return ConditionEstimate(bound, ())
    return None if last is None else _by_last(last.estimate, of_last, error)


def _counted(condition: Condition | None) -> float:
    return np.inf if condition is None else condition.counted


def _by_last(
    last: ConditionEstimate, ratios: tuple[float, float], error: float
) -> ConditionEstimate | None:
    """Return the bound by the number of a solution whose weights have these ratios, or None."""
    least, most = (last.condition * ratio for ratio in ratios)
    alike = max(abs(ratio - 1) for ratio in ratios) <= _RATIO_TOLERANCE
    margin = 1 if alike else _ESTIMATE_MARGIN
    if margin * most * error <= THRESHOLDS.warned:
        return ConditionEstimate(most, ())
    if len(last.columns) and least * error > THRESHOLDS.warned and np.isfinite(most):
        return ConditionEstimate(most, last.columns)
    return None
