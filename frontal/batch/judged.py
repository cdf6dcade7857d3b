"""What the sizes of residuals, solutions and right-hand sides say of each of many systems."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._jit import jit
from ..cpu.residual import is_fine, normwise


class Sizes(NamedTuple):
    """Largest moduli, and componentwise errors if wanted, (k, batch) each, on the host."""

    residual: np.ndarray
    solution: np.ndarray
    rhs: np.ndarray
    component: np.ndarray


class Judged(NamedTuple):
    """What is known of solutions.

    Attributes
    ----------
    merit : (k, batch) float64 array
        Errors in units of what is good enough.
    error : (batch,) float64 array
        Largest normwise backward error; infinite for what is no number.
    decade : (batch,) int64 array
        Of the largest |A||x|/|b|.
    fine : (batch,) bool array
        Errors are what rounding costs, and sizes away from the borders of the exponent.
    """

    merit: np.ndarray
    error: np.ndarray
    decade: np.ndarray
    fine: np.ndarray


def judge(sizes: Sizes, norm: np.ndarray, limits: np.ndarray) -> Judged:
    """Judge solutions by their sizes.

    Parameters
    ----------
    sizes : Sizes
    norm : (batch,) float64 array
        Infinity norms of the matrices.
    limits : (5,) float64 array
        As `cpu.residual.measure` takes them.
    """
    k, count = sizes.residual.shape
    integers = np.empty(count, np.int64), np.empty(count, np.bool_)
    found = Judged(np.empty((k, count)), np.empty(count), *integers)
    given = norm, limits, *map(np.ascontiguousarray, sizes), *found
    _judge(*given)
    return found


@jit
def _judge(norm, limits, residual, solution, rhs, component, merit, error, decade, fine):
    for i in range(norm.size):
        worst, gain, good = 0.0, 0.0, True
        for c in range(residual.shape[0]):
            x, b, part = solution[c, i], rhs[c, i], component[c, i]
            own = normwise(norm[i], residual[c, i], x, b)
            worst = max(worst, own)
            merit[c, i] = max(own / limits[0], part / limits[1])
            product = norm[i] * x / b
            if np.isfinite(product):
                gain = max(gain, product)
            good &= is_fine(own, part, norm[i], x, b, limits)
        error[i], fine[i] = worst, good
        decade[i] = np.int64(round(np.log10(gain))) if gain > 0 else -400
