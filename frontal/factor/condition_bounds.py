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
    error, counted = solution.error, np.inf if condition is None else condition.counted
    by_rows = counted * error <= THRESHOLDS.warned
    w = solution.weights if by_rows or last is not None else None
    if w is None:
        return None
    if by_rows:
        bound = counted * solution.system.ratios(w, None)[1]
        if bound * error <= THRESHOLDS.warned:
            return ConditionEstimate(bound, ())
    if last is not None:
        (value, columns), ratios = last.estimate, solution.system.ratios(w, last.weights)
        least, most = (value * ratio for ratio in ratios)
        margin = (
            _ESTIMATE_MARGIN if max(abs(ratio - 1) for ratio in ratios) > _RATIO_TOLERANCE else 1
        )
        if margin * most * error <= THRESHOLDS.warned:
            return ConditionEstimate(most, ())
        if len(columns) and least * error > THRESHOLDS.warned and np.isfinite(most):
            return ConditionEstimate(most, columns)
    return None
