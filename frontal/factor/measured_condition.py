"""The condition number of a factor with small pivots, by solves with the factors alone.

Small pivots may make the factors those of A + E for an E that is large in a row. The rowwise
backward error of a solution shows its size there. If the condition number times this error is below
1/2, A is regular, and its number at most twice that of A + E.
"""

from __future__ import annotations

import numpy as np

from ..backend.protocol import NumericFactor
from ..numeric.condition import Condition
from ..numeric.linear_system import BackwardErrors, LinearSystem
from ..numeric.thresholds import THRESHOLDS
from .factor_condition import MAX_CHANGE, are_accurate, row_sum_norm
from .mixed import is_mixed

_CLEAR_FRACTION = 0.1  # of `Thresholds.suspected`; above it, refined solves decide


def measured_condition(factor: NumericFactor) -> Condition | None:
    """Return the condition number of A, or None if only refined solves can give it.

    The solution is that of a right-hand side whose entries are row sums of |A| with pseudorandom
    signs.
    """
    dtype = factor.matrix_dtype
    if is_mixed(factor) or factor.perturbed or factor.nulls.size:
        return None
    with np.errstate(all="ignore"):
        system = factor.system("N", dtype)
        errors = _first_errors(system)
        if errors is None or errors.near_border(system.limits).any():
            return None
        error = errors.worst
        if not are_accurate(errors, system.eps):
            return None
        value, _ = row_sum_norm(factor, "N", dtype, False)
        clear = _CLEAR_FRACTION * THRESHOLDS.suspected
        if not (value * error <= MAX_CHANGE and value * system.eps <= clear):
            return None
    return Condition.from_estimate(value, False, dtype)


def _first_errors(system: LinearSystem) -> BackwardErrors | None:
    """Return the errors of an unrefined solution; None if there are no probes."""
    probes = system.row_probes()
    if probes is None:
        return None
    signed = probes.signs(probes.first())[1]
    B = system.empty(signed.shape[0], 1)
    B[...] = signed[:, -1:]
    return system.solved(B, probing=True)[2]
