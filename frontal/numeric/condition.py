"""Condition number of a factor: if it is small, no right-hand side needs a warning.

The relative error of x is at most cond(x) times its componentwise backward error, for cond(x) =
|| |A^-1| w || and weights w = (|A||x| + |b| + |b - A x| / error) / |x|_max (Skeel 1979).

The weights are at most c = `Thresholds.weights` times the row sums of |A|, because |x| <= |x|_max,
|b - A x| <= error (|A||x| + |b|) and |b| <= |A||x| + |b - A x| for the rowwise error of x; its
normwise error may be three times larger, which c covers. Hence cond(x) <= c K for every b, with
K = || |A^-1| |A| e ||. A factor has one K for A and one for its transpose; neither is reused for
other values of the pattern.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import jit
from .backward_error import modulus
from .thresholds import THRESHOLDS, margin_of

MAX_SILENT_PRODUCT = THRESHOLDS.warned / THRESHOLDS.weights  # `counted` times error
_MIN_CERTIFIED_FRACTION = THRESHOLDS.certificate
# Share of diagonally dominant rows from which a certificate is likely: those of matrices with one
# are dominant up to rounding in suitable units, and of 40 real matrices without one at most 0.77
_MIN_DOMINANT_SHARE = 0.9
_DOMINANT = 0.5 - 1e-6  # least diagonal entry of a dominant row over the sum of the row's moduli
# Factor of a probable bound: BOUND n max_x || W A^-H x ||_1 >= || W A^-H ||_1 for random vectors x
# whose entries have random signs and independent moduli, uniform from 1/(3n) to 1/n. For each
# vector the left side is below delta times the norm with probability delta at most, for any A
# (after J. D. Dixon, "Estimating extremal eigenvalues and condition numbers of matrices", 1983).
# It exceeds the norm by a factor of 3n at most.
BOUND = 3
PROBABLE_FRACTION = (
    1 / 16
)  # of `enough`, for a probable bound: errors of 16 eps then need no warning either
KNOWN, ESTIMATED, CERTIFIED = 0, 1, 2  # condition number: none; estimate; bound first
UNMEASURED = -1  # neither a condition number nor the errors of the solution


class Condition(NamedTuple):
    """The condition number of a factor, for all right-hand sides.

    Attributes
    ----------
    value : float
        An estimate of K, or an upper bound.
    counted : float
        The bound, or the estimate times its margin: estimates of a solution's own condition number
        hardly exceed it.
    solved : bool
        Refined solutions with A, computed for the estimate, were accurate.
    """

    value: float
    counted: float
    solved: bool = False

    @classmethod
    def from_estimate(cls, value: float, certified: bool, dtype: np.dtype) -> Condition:
        """Create it from an estimate, or from a bound if `certified`, for vectors of a type."""
        return cls(value, value if certified else margin_of(dtype) * value)

    @property
    def certified(self) -> bool:
        """Return whether the value is a finite bound."""
        return self.counted == self.value < np.inf

    def is_silent(self, error: float) -> bool:
        """Return whether solutions with this componentwise error need no further check."""
        return self.counted * error <= MAX_SILENT_PRODUCT


def enough(dtype: np.dtype) -> float:
    """Return the largest estimate of K at which solutions with an error of eps need no check."""
    return MAX_SILENT_PRODUCT / (margin_of(dtype) * float(np.finfo(dtype).eps))


@jit
def may_certify(indptr, indices, data, sums):
    """Return whether most rows are diagonally dominant, so that `certificate` may find a bound.

    The certificate costs a solve, and fails for most other matrices. A is stored by columns or by
    rows; `sums` are the row sums of |A|.
    """
    n, weak = sums.size, 0
    limit = (1 - _MIN_DOMINANT_SHARE) * n
    for j in range(n):
        size = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            if indices[p] == j:
                size = np.float64(modulus(data[p]))
                break
        weak += not size >= _DOMINANT * sums[j]
        if weak > limit:
            return False
    return True


@jit
def certificate(indptr, indices, data, flipped, sums, z):
    """Return a bound of || |A^-1| |A| e || by the comparison matrix M of A; infinite if none.

    M has the moduli of A's diagonal, and minus the moduli of the other entries. If M v >=
    theta |A| e for a positive v and a positive theta, M is a nonsingular M-matrix, |A^-1| <= M^-1
    (Ostrowski 1937), and |A^-1| |A| e <= v / theta. Here v = |z|; the solution z of A z = |A| e is
    optimal if A is an M-matrix itself.

    Parameters
    ----------
    indptr, indices, data, flipped
        A by columns, or by rows if `flipped`.
    sums : (n,) float64 array
        Row sums of |A|.
    z : (n,) array
        Computed solution of A z = |A| e.
    """
    n = sums.size
    image, v = np.zeros(n), np.empty(n)
    for j in range(n):
        v[j] = np.float64(np.abs(z[j]))
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            size = np.float64(modulus(data[p]))
            if i == j:
                image[j] += size * v[j]
            elif flipped:
                image[j] -= size * v[i]
            else:
                image[i] -= size * v[j]
    largest, fraction = 0.0, np.inf
    for i in range(n):
        if not np.isfinite(v[i]) or not image[i] > _MIN_CERTIFIED_FRACTION * sums[i]:
            return np.inf
        largest, fraction = max(largest, v[i]), min(fraction, image[i] / sums[i])
    return largest / fraction
