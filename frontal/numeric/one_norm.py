"""Lower estimates of the 1-norm of a matrix from products with it.

N. J. Higham and F. Tisseur, "A block algorithm for matrix 1-norm estimation, with an application to
1-norm pseudospectra" (2000), with two vectors, after W. W. Hager, "Condition estimates" (1984). The
first block holds pseudorandom combinations of columns, which also give a probable upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .condition import BOUND, PROBABLE_FRACTION
from .linear_system import Probes, Vectors

_MAX_TURNS = 3  # products with M; with the adjoints between them at most 5 blocks

Product = Callable[[Vectors], Vectors]


class Norm(NamedTuple):
    """A norm, and the signs of the largest column times the weights, (n, 1)."""

    value: float
    signs: Vectors


def one_norm(probes: Probes, product: Product, adjoint: Product, enough: float = 0.0) -> Norm:
    """Estimate the 1-norm of W M; NaN if products with M are not finite.

    Parameters
    ----------
    probes : Probes
        The first block and the weights W.
    product, adjoint : callable
        Return M X and M^H X for (n, k) blocks X.
    enough : float
        An estimate of at most `enough` is not improved after the first product with the adjoint. A
        probable bound of at most `numeric.condition.PROBABLE_FRACTION` times `enough` is returned.
    """
    X, estimate = probes.first(), Norm(-1.0, None)
    for turn in range(_MAX_TURNS):
        sums, S = probes.signs(product(X))
        j = int(np.argmax(sums))  # the first NaN, if there is one
        if sums[j] < estimate.value:
            break
        estimate = Norm(float(sums[j]), S[:, j : j + 1])
        if turn == 0 and not probes.complete:
            bound = BOUND * probes.n * estimate.value
            if bound <= PROBABLE_FRACTION * enough:
                return estimate._replace(value=bound)
        if turn == _MAX_TURNS - 1 or probes.complete or not math.isfinite(estimate.value):
            break
        gains = probes.gains(adjoint(S), X)
        if not math.isfinite(gains.largest):
            return estimate._replace(value=np.nan)
        if gains.largest <= gains.products[j]:
            break
        estimate = estimate._replace(value=max(estimate.value, gains.largest))
        if estimate.value <= enough:
            break
        X = probes.units(*gains.rows)
    return estimate
