"""Demands on a factor with small pivots: accurate solutions, or a small condition number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..backend.protocol import NumericFactor
from ..errors import SingularMatrixError
from ..numeric.linear_system import BackwardErrors
from ..numeric.thresholds import THRESHOLDS
from . import refine
from .condition import ConditionEstimate, solution_condition
from .factor_condition import are_accurate
from .mixed import ImpreciseError
from .null_proof import NOISE
from .quasidefinite import refuse_replaced_signs
from .report import smallest_pivot_column
from .solution import Solution


def demand_solutions(
    factor: NumericFactor, refined: Callable[[np.ndarray], BackwardErrors | None]
) -> None:
    """Raise if a factor with small pivots gives no accurate solutions: see `are_accurate`."""
    b = np.random.default_rng(0).standard_normal((factor.symbolic.n, 1)).astype(factor.dtype)
    rows = 1.0 if factor.scaling is None else factor.scaling.row[:, None]
    with np.errstate(all="ignore"):
        b = np.asfortranarray((b / rows).astype(factor.dtype))
    b[~np.isfinite(b)] = 0
    errors = refined(b)
    if errors is None or not are_accurate(errors, float(np.finfo(factor.dtype).eps)):
        refuse_replaced_signs(factor)
        raise SingularMatrixError.numerical(
            smallest_pivot_column(factor), dtype=factor.matrix_dtype
        )


def demand_condition(factor: NumericFactor, pivot_ratio: float) -> None:
    """Raise if pivots in single precision are rounding errors, unless A is well-conditioned."""
    if factor.perturbed or factor.nulls.size:
        raise ImpreciseError("pivots are zero or were replaced")
    if pivot_ratio >= NOISE * np.finfo(factor.dtype).eps:
        return  # solves will show it
    system = factor.system("N", factor.matrix_dtype)
    B = factor.upload(np.ones((factor.symbolic.n, 1), factor.matrix_dtype, order="F"))
    X, errors, _ = refine.solve(system, B, None, True)
    if errors is None or errors.insufficient(system.limits):
        raise ImpreciseError("refinement does not converge")
    solution = Solution(factor, "N", X, B, errors)
    require_condition(solution_condition(solution, roughly=True), system.eps)


def require_condition(estimate: ConditionEstimate, eps: float) -> None:
    """Raise, for a factor in double precision, if the estimate needs a warning."""
    if not estimate.condition * eps <= THRESHOLDS.warned:
        raise ImpreciseError(f"the condition number is about {estimate.condition:.0e}")
