"""Warnings: singular matrices, large errors, ill-conditioned solutions; the column to name."""

from __future__ import annotations

import numpy as np

from ..backend.protocol import NumericFactor
from ..errors import IllConditionedWarning, warn
from ..messages import double_precision, listed, named_columns
from ..numeric.linear_system import BackwardErrors
from ..symbolic.relative_pivots import relative_pivots
from .condition import ConditionEstimate


def warn_of_rank(n: int, nulls: int) -> None:
    """Warn of a matrix of order n with `nulls` null columns."""
    warn(
        f"the matrix is singular to working precision: its rank is {n - nulls} of {n}. Solutions "
        "are zero in Factor.null_columns if b is in the range of the matrix, and huge otherwise",
        IllConditionedWarning,
    )


def warn_of_error(factor: NumericFactor, errors: BackwardErrors, limited: bool) -> None:
    """Warn of a large backward error after refinement, which the user may have `limited`."""
    remedies = ["scale the matrix", *double_precision(factor.matrix_dtype)]
    remedies = ["allow more refinement"] if limited else remedies
    warn(
        f"the backward error of the solution stays at {errors.worst:.1e}. Try: {listed(remedies)}",
        IllConditionedWarning,
    )


def warn_of_condition(
    estimate: ConditionEstimate, precision: float, matrix_dtype: np.dtype
) -> None:
    """Warn of solutions whose condition number times precision is large."""
    columns, most = estimate.columns, ""
    if len(columns):
        most = " A nearly dependent combination of columns has its largest weights in "
        most += f"{named_columns(columns)}."
    remedies = ["other equations for these unknowns", "singular='allow' if that is intended"]
    warn(
        f"the matrix is nearly singular for this right-hand side: the condition number of the "
        f"solution is about {estimate.condition:.0e}, so that its relative error may be "
        f"{min(estimate.condition * precision, 1.0):.0e} though its residual is small."
        f"{most} Try: {listed([*double_precision(matrix_dtype), *remedies])}",
        IllConditionedWarning,
    )


def smallest_pivot_column(factor: NumericFactor) -> int:
    """Return the first null column of A; without one, that with the smallest relative pivot."""
    symbolic = factor.symbolic
    if factor.nulls.size:
        return int(symbolic.perm[factor.nulls[0]])
    coupling = factor.subdiagonal()
    size = relative_pivots(factor.diagonal(), factor.matrix, symbolic, factor.scaling, coupling)
    return int(symbolic.perm[int(np.argmin(size))])
