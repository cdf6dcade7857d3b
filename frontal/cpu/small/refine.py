"""Refinement of a solution of a small system, as in `factor.refine`, in compiled code."""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner
from ...numeric.acceptance import judge_for_correction, unpacked
from ...numeric.refinement import MAX_STEPS, improved
from ..residual import judge_column, measure
from ..sweeps import substitute

_improved, _for_correction = inner(improved), inner(judge_for_correction)


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
    """Return `judge_for_correction` of a solution with the rowwise `error`."""
    limits = unpacked(matrix[6])
    return _for_correction(judge_column(sizes, 0, matrix[5], matrix[4], limits), error, limits)
