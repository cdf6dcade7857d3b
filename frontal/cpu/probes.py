"""Vectors of estimated norms, on the host."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from .._jit import brief
from ..accuracy import Gains
from .residual import as_rows

FORMED = 4  # orders up to which all columns are formed


class HostProbes:
    """`Probes` on the host.

    Parameters
    ----------
    weights : (n,) float64 array
    dtype : data type
        Of the vectors to begin with.
    """

    width = 2

    def __init__(self, weights: np.ndarray, dtype: DTypeLike = np.float64) -> None:
        self.n, self._weights, self._dtype = weights.size, weights, dtype
        self.complete = self.n <= FORMED

    def first(self) -> np.ndarray:
        """See `Probes`; all columns if they are few."""
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
        signs(self._weights, rows, S, sums)
        return sums, S.T

    def _dtype_of(self, Y: np.ndarray) -> np.dtype:
        return Y.dtype if Y.dtype.char in "dD" else np.result_type(Y.dtype, np.float64)

    def gains(self, Z: np.ndarray, X: np.ndarray) -> Gains:
        """See `Probes`."""
        own = np.empty(X.shape[1])
        largest, first, second = gains(as_rows(Z), as_rows(X), own)
        return Gains(largest, (first, second), own)


@brief
def begin(X):
    """The mean of all columns of the unit matrix, and a growing, alternating sum of them."""
    n = X.shape[1]
    for i in range(n):
        growing = (1 + i / (n - 1)) / (1.5 * n)
        X[0, i], X[1, i] = 1 / n, -growing if i % 2 else growing


@brief
def signs(weights, Y, S, sums):
    """S = W sign(Y), and the 1-norms of the rows of Y W."""
    least = np.finfo(sums.dtype).tiny  # so that 1 / size is a number
    for c in range(Y.shape[0]):
        total = 0.0
        for i in range(Y.shape[1]):
            y = Y[c, i]
            size = np.float64(np.abs(y))
            total += weights[i] * size
            S[c, i] = weights[i] * (y / size) if size >= least else weights[i]
        sums[c] = total


@brief
def gains(Z, X, own):
    """See `Gains`: the largest modulus of the columns of Z, and those of the largest two."""
    n, largest, other, first, second = Z.shape[1], -1.0, -1.0, 0, 0
    for i in range(n):
        gain = 0.0
        for c in range(Z.shape[0]):
            size = np.float64(np.abs(Z[c, i]))
            gain = size if size > gain or size != size else gain
        if gain > largest or gain != gain:
            other, first = largest, second
            largest, second = gain, i
        elif gain > other:
            other, first = gain, i
        if gain != gain:
            break
    for c in range(X.shape[0]):
        product = np.conj(Z[c, 0]) * X[c, 0]
        for i in range(1, n):
            product += np.conj(Z[c, i]) * X[c, i]
        own[c] = np.abs(product)
    return largest, first, second
