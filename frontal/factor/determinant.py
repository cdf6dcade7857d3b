"""The determinant of a factorized matrix."""

from __future__ import annotations

import numpy as np

from .._jit import jit
from ..protocol import NumericFactor
from .extract import column_positions, row_positions


def slogdet(factor: NumericFactor) -> tuple[np.number, float]:
    """Sign (or phase) and logarithm of the modulus of det(A)."""
    diagonal, scaling = factor.diagonal(), factor.scaling
    size = np.abs(diagonal).astype(np.float64)
    with np.errstate(divide="ignore"):
        logdet = float(np.log(size).sum())
    if scaling is None:
        return diagonal.dtype.type(1), 2 * logdet
    logdet -= float(np.log(scaling.row).sum() + np.log(scaling.column).sum())
    phase = np.prod(diagonal / np.where(size > 0, size, 1.0))
    for perm in (row_positions(factor), column_positions(factor)):
        phase = phase * permutation_sign(perm)
    return diagonal.dtype.type(phase), logdet


def logdet(factor: NumericFactor) -> float:
    """Natural logarithm of det(A); a ValueError if that is not positive."""
    sign, value = slogdet(factor)
    if not (np.imag(sign) == 0 and np.real(sign) > 0):
        raise ValueError(f"det(A) is not positive (its sign is {sign}); use slogdet()")
    return value


@jit
def permutation_sign(perm):
    """+1 for an even permutation, -1 for an odd one."""
    seen = np.zeros(perm.size, np.bool_)
    sign = 1
    for i in range(perm.size):
        j = i
        while not seen[j]:
            seen[j] = True
            j = perm[j]
            if j != i:
                sign = -sign
    return sign
