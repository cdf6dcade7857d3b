"""Inertia of a matrix from that of D (Sylvester's law of inertia)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backend.protocol import NumericFactor
from ..errors import InertiaUncertainError
from ..symbolic.relative_pivots import relative_pivots
from .condition import sure
from .nullspace import nearly_null
from .quasidefinite import has_grown

_DIGITS = 0.8  # share of the digits of A beyond which no solves prove the signs of pivots


class Inertia(NamedTuple):
    """Numbers of positive, negative and zero eigenvalues."""

    positive: int
    negative: int
    zero: int


def inertia(factor: NumericFactor) -> Inertia:
    """Return the inertia; see `Factor.inertia`."""
    method, n = factor.symbolic.method, factor.symbolic.n
    if method.square_root:
        return Inertia(n, 0, 0)
    if not method.inertia(factor.dtype):
        raise ValueError(
            "the inertia needs D of a real symmetric or Hermitian matrix, but the method is "
            f"{method.name}. Try: kind='symmetric' or 'hermitian' if the matrix is; complex "
            "symmetric matrices have no inertia"
        )
    value, known = eigenvalues_of_pivots(factor), np.ones(n, bool)
    known[factor.nulls] = False
    known &= _relative(factor, value) > n * np.finfo(factor.dtype).eps  # False for NaN
    positive, negative = (int((known & (side * value > 0)).sum()) for side in (1, -1))
    # A differs from the product of the factors by a matrix of this rank
    changed = factor.perturbed
    if method.signed and has_grown(factor.growth(), factor.dtype, _DIGITS):
        changed = n
    if positive + negative == n and not changed and not sure(factor):
        changed = nearly_null(factor)
    positive, negative = (max(0, count - changed) for count in (positive, negative))
    unknown = n - positive - negative
    if unknown:
        raise InertiaUncertainError(positive, negative, unknown)
    return Inertia(positive, negative, 0)


def _relative(factor: NumericFactor, pivots: np.ndarray) -> np.ndarray:
    """Return moduli of pivots relative to the scaled matrix; without scaling, to its diagonal."""
    if not factor.symbolic.method.signed:
        return np.abs(pivots)
    with np.errstate(all="ignore"):
        return relative_pivots(factor.diagonal(), factor.matrix, factor.symbolic, None)


def eigenvalues_of_pivots(factor: NumericFactor) -> np.ndarray:
    """Return the (n,) eigenvalues of the 1x1 and 2x2 blocks of D, of the scaled matrix."""
    value, coupling = np.real(factor.diagonal()).astype(np.float64), factor.subdiagonal()
    first = np.flatnonzero(coupling)
    a, b, e = value[first], value[first + 1], np.abs(coupling[first]).astype(np.float64)
    middle, radius = (a + b) / 2, np.hypot((a - b) / 2, e)
    large = middle + np.where(middle < 0, -radius, radius)
    # (a/e) b - e, since the products a b and e e may overflow
    value[first], value[first + 1] = large, ((a / e) * b - e) * (e / large)
    return value
