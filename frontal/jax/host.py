"""Solutions on the host for the callbacks of JAX, with any number of batch axes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..analysis_cache import same_bits
from ..batch.recent import PatternFactors, RecentPatterns

_KEEP = 2  # factors, and batches of factors, of each pattern


class HostIndices:
    """Coordinates of the entries of a matrix of order n; those outside of it are padding."""

    def __init__(self, n: int, rows: np.ndarray, columns: np.ndarray) -> None:
        self.n, self.rows, self.columns = n, rows, columns

    def has_indices_of(self, other: HostIndices) -> bool:
        """Return whether the indices of both are equal."""
        same = same_bits(self.rows, other.rows) and same_bits(self.columns, other.columns)
        return self.n == other.n and same

    def keep(self) -> None:
        """Copy the indices, which the user may change."""
        self.rows, self.columns = self.rows.copy(), self.columns.copy()

    def pattern(self, options: dict[str, Untyped]) -> HostPattern:
        """Return the solver for the pattern."""
        return HostPattern(self, options)


class HostPattern:
    """The factors of one pattern, for each scalar type."""

    def __init__(self, indices: HostIndices, options: dict[str, Untyped]) -> None:
        n = indices.n
        self._used = (indices.rows < n) & (indices.columns < n)
        self._rows, self._columns = indices.rows[self._used], indices.columns[self._used]
        self._n, self._options = n, options
        self._factors: dict[np.dtype, PatternFactors] = {}

    def solve(self, values: np.ndarray, b: np.ndarray, trans: str) -> np.ndarray:
        """Solve op(A) x = b: values (count,) and b (n, k), or with a batch axis before both."""
        used = np.ascontiguousarray(values[..., self._used])
        return self._factors_for(values).solve(used, b, trans)

    def logdet(self, values: np.ndarray) -> np.ndarray:
        """Return log det A for values (count,), or (batch,) of them for values (batch, count)."""
        used = np.ascontiguousarray(values[..., self._used])
        return self._factors_for(values).logdet(used)

    def logdet_gradient(self, values: np.ndarray) -> np.ndarray:
        """Return the gradients of `logdet` for the values, zero for padding."""
        gradient, used = np.zeros_like(values), np.ascontiguousarray(values[..., self._used])
        gradient[..., self._used] = self._factors_for(values).logdet_gradient(used)
        return gradient

    def _factors_for(self, values: np.ndarray) -> PatternFactors:
        """Return the factors for values of this type."""
        if values.dtype not in self._factors:
            self._factors[values.dtype] = PatternFactors(self._matrix, _KEEP, self._options)
        return self._factors[values.dtype]

    def _matrix(self, values: np.ndarray) -> sp.coo_array:
        return sp.coo_array((values, (self._rows, self._columns)), shape=(self._n, self._n))


_recent: RecentPatterns[HostPattern] = RecentPatterns()


def solve_on_host(
    values: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    b: np.ndarray,
    trans: str,
    options: dict[str, Untyped],
) -> np.ndarray:
    """Solve op(A) x = b for arrays that may all have batch axes of broadcast lengths.

    Parameters
    ----------
    values : array (..., count)
    rows, columns : int arrays (..., count)
        Of one pattern: their batch axes have length 1.
    b : array (..., n, k)
    trans, options
        op(A); options of `frontal.analyze`.

    Returns
    -------
    x : array (..., n, k)
    """
    rows, columns = (_without_batch(index) for index in (rows, columns))
    values, (n, k) = np.asarray(values), b.shape[-2:]
    b = np.asarray(b)
    batch = np.broadcast_shapes(values.shape[:-1], b.shape[:-2])
    if 0 in b.shape or 0 in batch:
        return np.zeros((*batch, n, k), b.dtype)
    _, pattern = _recent.pattern_of(HostIndices(n, rows, columns), options)
    if values.size == values.shape[-1]:  # one matrix: all are its right-hand sides
        block = np.moveaxis(b, -2, 0).reshape(n, -1)
        x = pattern.solve(values.reshape(-1), block, trans).reshape(n, *b.shape[:-2], k)
        x = np.moveaxis(x, 0, -2)
        return np.broadcast_to(x, (*batch, n, k))
    values = np.broadcast_to(values, (*batch, values.shape[-1])).reshape(-1, values.shape[-1])
    blocks = np.broadcast_to(b, (*batch, n, k)).reshape(-1, n, k)
    return pattern.solve(values, blocks, trans).reshape(*batch, n, k)


def logdet_on_host(
    values: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    *,
    n: int,
    gradient: bool,
    options: dict[str, Untyped],
) -> np.ndarray:
    """Return log det A for values (..., count), or the gradient for the values.

    Parameters
    ----------
    values, rows, columns, options
        As for `solve_on_host`.
    n : int
        Order of A.
    gradient : bool

    Returns
    -------
    real array (...), or (..., count) in the type of the values
    """
    values = np.asarray(values)
    rows, columns = (_without_batch(index) for index in (rows, columns))
    _, pattern = _recent.pattern_of(HostIndices(n, rows, columns), options)
    batch, count = values.shape[:-1], values.shape[-1]
    matrices = values.reshape(-1, count) if batch else values
    if gradient:
        return pattern.logdet_gradient(matrices).reshape(values.shape)
    return np.asarray(pattern.logdet(matrices), values.real.dtype).reshape(batch)


def _without_batch(index: np.ndarray) -> np.ndarray:
    index = np.asarray(index)
    if index.size != index.shape[-1]:
        raise ValueError(
            "the matrices of a batch have different index arrays. Try: vmap over values alone "
            "(in_axes=None for the indices)"
        )
    return index.reshape(-1)
