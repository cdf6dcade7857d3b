"""Vectors of estimated norms, on the host."""

from __future__ import annotations

import numpy as np

from ..accuracy import Gains

_FORMED = 4  # orders up to which all columns are formed


class HostProbes:
    """`Probes` on the host.

    Parameters
    ----------
    weights : (n,) array
    """

    width = 2

    def __init__(self, weights: np.ndarray) -> None:
        self.n, self._weights = weights.size, weights[:, None]
        self.complete = self.n <= _FORMED

    def first(self) -> np.ndarray:
        """See `Probes`; all columns if they are few."""
        n, place = self.n, np.arange(self.n)
        if self.complete:
            return np.eye(n)
        growing = (1 + place / (n - 1)) * np.where(place % 2, -1.0, 1.0)
        return np.stack([np.full(n, 1 / n), growing / (1.5 * n)], axis=1)

    def units(self, first: int, second: int) -> np.ndarray:
        """See `Probes`."""
        return (np.arange(self.n)[:, None] == (first, second)).astype(np.float64)

    def signs(self, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `Probes`."""
        size = np.abs(Y)
        sums = (self._weights * size).sum(axis=0)
        there = size >= np.finfo(size.dtype).tiny  # so that 1 / size is a number
        return sums, self._weights * np.where(there, Y / np.where(there, size, 1), 1)

    def gains(self, Z: np.ndarray, X: np.ndarray) -> Gains:
        """See `Probes`."""
        gain = np.abs(Z).max(axis=1)
        first, second = np.argpartition(gain, self.n - 2)[-2:].tolist()
        own = np.abs((Z.conj() * X).sum(axis=0))
        return Gains(float(gain.max()), (first, second), own)
