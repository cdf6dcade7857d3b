"""The numerical rank, by the smallest singular values or by counts of those above a threshold.

Inverse iteration of a block of random vectors gives the smallest singular values. If all of them
are zero, so may be more. Then the matrix [t I, B; B^H, t I] is factorized: it has the eigenvalues
t + s and t - s for each singular value s of B, and t otherwise. Its negative eigenvalues are the
singular values above t, counted by the signs of D (Sylvester's law), since L D L^H differs from the
matrix by less than t.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..errors import FrontalError
from ..factor.factor import Factor
from .augmented import AugmentedSystem, FactorOptions, coupled

MIN_GAP = 3  # least s / sqrt(d) for the singular values s of a deficient rank
WIDTH = 32  # vectors of the inverse iteration
_TURNS = 4  # its steps
_MIN_THRESHOLD = 1e-14  # least threshold relative to |B|: 45 roundings
_MIN_COUNTED = 1e-10  # least threshold of a count; backward errors of factors reached 1e-11
_MAX_RESIDUAL = 0.25  # largest backward error, over the threshold, of a factor for a count


class RankUncertainError(FrontalError, ArithmeticError):
    """Singular values near the precision leave the rank open, and with it the least norm.

    Attributes
    ----------
    lower, upper : int
        Bounds of the rank.
    """

    def __init__(self, lower: int, upper: int) -> None:
        super().__init__(lower, upper)
        self.lower, self.upper = lower, upper

    def __str__(self) -> str:
        return (
            f"the rank of A is uncertain: between {self.lower} and {self.upper}, since singular "
            "values are neither zero to working precision nor well above it, and the solution of "
            "least norm depends on it. Likely causes: (a) dependent columns with perturbed values, "
            "(b) a discretized ill-posed problem. Try: damp > 0, or remove nearly dependent columns"
        )


def rank_threshold(shape: tuple[int, int], dtype: np.dtype) -> float:
    """Return the singular value, relative to the largest, up to which one counts as zero.

    That of `numpy.linalg.lstsq` and `numpy.linalg.matrix_rank`: max(m, n) eps.
    """
    return max(_MIN_THRESHOLD, max(shape) * float(np.finfo(dtype).eps))


def small_singular_values(system: AugmentedSystem) -> np.ndarray:
    """Return approximations, from above, of the smallest singular values of B, ascending.

    There are min(q, `WIDTH`). Those far below sqrt(d) are accurate to a few roundings of |B|.
    """
    q = system.B.shape[1]
    X = np.random.default_rng(0).standard_normal((q, min(q, WIDTH)))
    X = np.linalg.qr(X)[0].astype(system.B.dtype)
    for _ in range(_TURNS):
        Y = system.solve(np.zeros((system.B.shape[0], X.shape[1]), X.dtype), X)[1]
        if not np.isfinite(Y).all():
            return np.zeros(0)
        X = np.linalg.qr(Y / np.linalg.norm(Y, axis=0))[0]
    return np.sort(np.linalg.svd(system.B @ X, compute_uv=False))


def settled_rank(
    system: AugmentedSystem, zero: float, deltas: tuple[float, ...], options: FactorOptions
) -> tuple[int, float]:
    """Return the rank of B, and the largest regularization that suits it: 0 for full rank.

    Parameters
    ----------
    system : AugmentedSystem
    zero : float
        Singular values up to it count as zero.
    deltas : tuple of float
        Regularizations, descending. The singular values of the rank must be above `MIN_GAP` times
        the square root of one of them.
    options : FactorOptions

    Raises
    ------
    RankUncertainError
        If singular values are neither zero nor above that.
    """
    complete, small = min(system.B.shape), small_singular_values(system)
    zeros = int((small <= zero).sum())
    if not zeros:
        return complete, 0.0
    lower, upper = 0, complete - zeros
    for delta in deltas:
        if zeros < min(small.size, WIDTH) or small.size == complete:
            lower = complete - int((small <= MIN_GAP * np.sqrt(delta)).sum())
        else:
            upper = count_above(system.B, max(zero, _MIN_COUNTED), options)
            lower = count_above(system.B, MIN_GAP * np.sqrt(delta), options)
        if lower == upper:
            return upper, delta
    raise RankUncertainError(lower, upper)


def count_above(B: sp.csc_array, threshold: float, options: FactorOptions) -> int:
    """Return the number of singular values of B above a threshold.

    Raises
    ------
    RankUncertainError
        If the signs of D are not certain.
    """
    p, q = B.shape
    K = coupled(B, np.full(p, threshold), np.full(q, threshold))
    factor = options.factorize(K, "hermitian")
    if factor.info["perturbed_pivots"] or _residual(factor, K) > _MAX_RESIDUAL * threshold:
        raise RankUncertainError(0, min(p, q))
    return _negative(factor)


def _negative(factor: Factor) -> int:
    """Return the number of negative eigenvalues of D."""
    D = sp.csc_array(factor.D)
    diagonal, coupling = D.diagonal().real, abs(D.diagonal(-1))
    first = np.flatnonzero(coupling)
    alone = np.ones(diagonal.size, bool)
    alone[first] = alone[first + 1] = False
    a, b, c = diagonal[first], diagonal[first + 1], coupling[first]
    indefinite = (a / c) * (b / c) < 1  # one eigenvalue of each sign
    both = ~indefinite & (a < 0)
    return int((diagonal[alone] < 0).sum() + indefinite.sum() + 2 * both.sum())


def _residual(factor: Factor, K: sp.csc_array) -> float:
    """Return the normwise backward error of an unrefined solution for a random vector."""
    b = np.random.default_rng(0).standard_normal(K.shape[0])
    x = factor.solve(b, refine=0)
    size = abs(K).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    error = float(np.abs(b - K @ x).max() / size)
    return error if np.isfinite(error) else np.inf
