"""1-norms of matrices that are known by their products, estimated from below.

N. J. Higham and F. Tisseur, "A block algorithm for matrix 1-norm estimation, with an application to
1-norm pseudospectra" (2000), with two vectors, after W. W. Hager, "Condition estimates" (1984). It
begins with sums of columns that have no order, which bound the norm, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .condition import BOUND, PROBABLE_FRACTION
from .linear_system import Probes, Vectors

_MAX_TURNS = 3  # at most 5 blocks of products are formed

Product = Callable[[Vectors], Vectors]


class Norm(NamedTuple):
    """A norm, and the signs of the largest column found, times the weights, (n, 1)."""

    value: float
    signs: Vectors


def one_norm(probes: Probes, product: Product, adjoint: Product, enough: float = 0.0) -> Norm:
    """1-norm of W M, estimated; NaN where M has entries that are no numbers.

    Parameters
    ----------
    probes : Probes
        With the weights W.
    product, adjoint : callable
        M X and M^H X for (n, k) blocks X.
    enough : float
        No better estimate is sought of a norm that seems to be less, and a bound of it will do that
        is less by `numeric.condition.PROBABLE_FRACTION`.
    """
    X, estimate = probes.first(), Norm(-1.0, None)
    for turn in range(_MAX_TURNS):
        sums, S = probes.signs(product(X))
        j = int(np.argmax(sums))  # of NaN, if there is one
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
