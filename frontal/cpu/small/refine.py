"""Refinement of a solution of a small system, as in `factor.refine`, in compiled code."""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner
from ...numeric.acceptance import NORMWISE_WEIGHT, unpacked
from ...numeric.refinement import MAX_STEPS, improved
from ..residual import judge_column, measure
from ..sweeps import substitute

_improved = inner(improved)


@allocating
def refine(factors, flags, matrix, B, X, R, sizes, error):
    """Correct a solution while its error halves, as `factor.refine`.

    Return the error of the last X and whether it needs no warning; R is overwritten.
    """
    T, trial_sizes = np.empty_like(X), np.empty_like(sizes)
    before, accepted = _judged(sizes, matrix, error)
    for _ in range(MAX_STEPS):
        if not before > 1:
            break
        substitute(factors, flags.transposed, flags.conjugated, R, T)
        for j in range(X.size):
            T[0, j] += X[0, j]
        trial_error = measure(matrix, T, B, R, trial_sizes)[0]
        after, trial_accepted = _judged(trial_sizes, matrix, trial_error)
        better, halved = _improved(before, after)
        if not better:
            break
        X[0] = T[0]
        error, accepted, before = trial_error, trial_accepted, after
        if not halved:
            break
    return error, accepted


@inner
def _judged(sizes, matrix, error):
    """Return the merit of a solution, in which the normwise error comes first, and whether it is
    accepted by its rowwise `error`: without a warning and without scaling.
    """
    limits = unpacked(matrix[6])
    normwise, merit, fine, inside = judge_column(sizes, 0, matrix[5], matrix[4], limits)
    normwise /= limits.normwise
    accepted = fine or (inside and error <= limits.accepted)
    return NORMWISE_WEIGHT * normwise if normwise > 1 else merit, accepted
