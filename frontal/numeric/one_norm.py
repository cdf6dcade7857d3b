"""Lower estimates of the 1-norm of a matrix from products with it.

N. J. Higham and F. Tisseur, "A block algorithm for matrix 1-norm estimation, with an application to
1-norm pseudospectra" (2000), with two vectors, after W. W. Hager, "Condition estimates" (1984). The
first block holds pseudorandom combinations of columns, which also give a probable upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .condition import BOUND, PROBABLE_FRACTION
from .linear_system import Probes, Vectors

MAX_TURNS = 3  # products with M; with the adjoints between them at most 5 blocks

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
    X, norm, best = probes.first(), -1.0, None
    for turn in range(MAX_TURNS):
        sums, S = probes.signs(product(X))
        norm, j, done = after_product(turn, sums, norm, probes.n, probes.complete, enough)
        best = best if j < 0 else S[:, j : j + 1]
        if done:
            break
        gains = probes.gains(adjoint(S), X)
        norm, done = after_adjoint(norm, gains.largest, gains.products[j], enough)
        if done:
            break
        X = probes.units(*gains.rows)
    return Norm(norm, best)


def after_product(turn, sums, norm, n, complete, enough):
    """Continue an estimate by the norms of the columns of W M X.

    Return the estimate, the column that gave it, or -1, and whether it is final.
    """
    j = np.argmax(sums)  # the first NaN, if there is one
    if sums[j] < norm:
        return norm, -1, True
    norm = float(sums[j])
    if turn == 0 and not complete:
        bound = BOUND * n * norm
        if bound <= PROBABLE_FRACTION * enough:
            return bound, j, True
    return norm, j, turn == MAX_TURNS - 1 or complete or not np.isfinite(norm)


def after_adjoint(norm, largest, product, enough):
    """Continue an estimate by the largest entry of Z = M^H S, and the product of z and x.

    Return the estimate, and whether it is final.
    """
    if not np.isfinite(largest):
        return np.nan, True
    if largest <= product:
        return norm, True
    norm = max(norm, largest)
    return norm, norm <= enough
