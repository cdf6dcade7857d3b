"""Vectors of norm estimates on the host."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from ..compile.jit import brief, inner
from ..numeric.linear_system import Gains
from .residual import as_rows

_1, _GOLDEN, _STREAM_STEP = (np.uint64(i) for i in (1, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03))
FORMED = 4  # largest order for which all columns are formed


class HostProbes:
    """`Probes` on the host.

    Parameters
    ----------
    weights : (n,) float64 array
    dtype : data type
        Scalar type of the first block of vectors.
    """

    width = 2

    def __init__(self, weights: np.ndarray, dtype: DTypeLike = np.float64) -> None:
        self.n, self._weights, self._dtype = weights.size, weights, dtype
        self.complete = self.n <= FORMED

    def first(self) -> np.ndarray:
        """See `Probes`; the unit matrix up to order `FORMED`."""
        if self.complete:
            return np.eye(self.n, dtype=self._dtype, order="F")
        X = np.empty((2, self.n), self._dtype)
        begin(X)
        return X.T

    def units(self, first: int, second: int) -> np.ndarray:
        """See `Probes`."""
        X = np.zeros((2, self.n), self._dtype)
        X[0, first] = X[1, second] = 1
        return X.T

    def signs(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Probes`."""
        rows = as_rows(Y)
        S, sums = np.empty(rows.shape, self._dtype_of(rows)), np.empty(rows.shape[0])
        sign_block(self._weights, rows, S, sums)
        return sums, S.T

    def _dtype_of(self, Y: np.ndarray) -> np.dtype:
        return Y.dtype if Y.dtype.char in "dD" else np.result_type(Y.dtype, np.float64)

    def gains(self, Z: np.ndarray, X: np.ndarray) -> Gains:
        """See `Probes`."""
        products = np.empty(X.shape[1])
        largest, first, second = row_maxima(as_rows(Z), as_rows(X), products)
        return Gains(largest, (first, second), products)


@brief
def begin(X):
    """Fill X with two vectors of pseudorandom moduli: a positive one, one with random signs.

    See `numeric.condition.BOUND`.
    """
    n = X.shape[1]
    for i in range(n):
        X[0, i] = _size(0, i, n)[0]
        size, positive = _size(1, i, n)
        X[1, i] = size if positive else -size


@inner
def _size(c, i, n):
    """Return the modulus, 1/(3n) to 1/n, of entry i of vector c, and its sign (splitmix64)."""
    h = (np.uint64(i) + _1) * _GOLDEN + np.uint64(c) * _STREAM_STEP
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    h = h ^ (h >> np.uint64(31))
    fraction = np.float64(h >> np.uint64(11)) * 2.0**-53
    return (0.5 + fraction) / (1.5 * n), (h & _1) == 0


@brief
def sign_block(weights, Y, S, sums):
    """Write W sign(Y) to S, and the 1-norms of the rows of Y W to `sums`."""
    least = np.finfo(sums.dtype).tiny  # so that 1 / size is finite
    for c in range(Y.shape[0]):
        total = 0.0
        for i in range(Y.shape[1]):
            y = Y[c, i]
            size = np.float64(np.abs(y))
            total += weights[i] * size
            S[c, i] = weights[i] * (y / size) if size >= least else weights[i]
        sums[c] = total


@brief
def row_maxima(Z, X, products):
    """Return the largest modulus in Z and its two largest columns; see `Gains`."""
    n, largest, runner_up, first, second = Z.shape[1], -1.0, -1.0, 0, 0
    for i in range(n):
        gain = 0.0
        for c in range(Z.shape[0]):
            size = np.float64(np.abs(Z[c, i]))
            gain = size if size > gain or size != size else gain
        if gain > largest or gain != gain:
            runner_up, first = largest, second
            largest, second = gain, i
        elif gain > runner_up:
            runner_up, first = gain, i
        if gain != gain:
            break
    for c in range(X.shape[0]):
        product = np.conj(Z[c, 0]) * X[c, 0]
        for i in range(1, n):
            product += np.conj(Z[c, i]) * X[c, i]
        products[c] = np.abs(product)
    return largest, first, second
