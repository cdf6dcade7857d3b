"""The last patterns and the factors of their last values, found again by indices and values.

Functions of arrays, as those of PyTorch and JAX are, factorize each matrix once this way, and never
use the factor of another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..analysis_cache import same_bits
from ..api import analyze
from ..factor.analysis import Analysis
from ..factor.factor import Factor
from ..messages import listed
from .api import factorize_batch
from .factors import BatchFactor
from .input import module_of, on_host

_REUSE = 100  # factorizations over which the cost of an ordering is spread

_MAX_PATTERNS = 8  # patterns whose analyses and factors are kept
_MAX_BATCH_SIZES = 2  # sizes of batches whose factors are kept
_OPTIONS = "ordering", "backend"

F = TypeVar("F", Factor, BatchFactor)
P = TypeVar("P", covariant=True)
K = TypeVar("K")
V = TypeVar("V")


class LastUsed(Generic[K, V]):
    """Keys and values in the order of their last use."""

    def __init__(self) -> None:
        self._known: list[tuple[K, V]] = []

    def find(self, fits: Callable[[K], bool]) -> tuple[K, V] | None:
        """Return the key that fits and its value, which are used now; None if there are none."""
        for k in reversed(range(len(self._known))):
            if fits(self._known[k][0]):
                self._known.append(self._known.pop(k))
                return self._known[-1]
        return None

    def add(self, key: K, value: V) -> None:
        """Add a key, which is used now."""
        self._known.append((key, value))

    def removed(self, most: int) -> list[V]:
        """Remove all but the `most` used last, and return their values."""
        excess = max(len(self._known) - most, 0)
        removed, self._known = self._known[:excess], self._known[excess:]
        return [value for _, value in removed]


class IndexArrays(Protocol[P]):
    """The indices of a sparse matrix, from which a solver for its pattern is made."""

    def has_indices_of(self, other: Untyped) -> bool:
        """Return whether the indices of both are equal."""
        ...

    def keep(self) -> None:
        """Copy the indices, which the user may change."""
        ...

    def pattern(self, options: dict[str, Untyped]) -> P:
        """Return the solver."""
        ...


class RecentPatterns(Generic[P]):
    """The solvers of the last patterns, by their indices and options."""

    def __init__(self) -> None:
        self._known: LastUsed[tuple[IndexArrays[P], dict[str, Untyped]], P] = LastUsed()
        self._lock = threading.Lock()

    def pattern_of(self, indices: IndexArrays[P], options: dict[str, Untyped]) -> tuple[Untyped, P]:
        """Return equal indices that are kept, and the solver for their pattern."""
        with self._lock:
            known = self._known.find(
                lambda key: _same(key[1], options) and key[0].has_indices_of(indices)
            )
            if known is not None:
                return known[0][0], known[1]
            indices.keep()
            pattern = indices.pattern(options)
            self._known.add((indices, options), pattern)
            self._known.removed(_MAX_PATTERNS)
            return indices, pattern


class RecentFactors(Generic[F]):
    """Up to `keep` factors, by the values that they are of."""

    def __init__(self, keep: int, create: Callable[[Untyped], F]) -> None:
        self._keep, self._create = keep, create
        self._known: LastUsed[Untyped, F] = LastUsed()

    def factor_of(self, values: Untyped) -> F:
        """Return the factor of these values; the factor used least recently may be overwritten."""
        known = self._known.find(lambda others: same_bits(others, values))
        if known is not None:
            return known[1]
        unused = self._known.removed(self._keep - 1)  # forgotten if the values have no factor
        factor = unused[0].refactorize(values) if unused else self._create(values)
        self._known.add(values.copy(), factor)
        return factor


class PatternFactors:
    """Solves with matrices of one pattern and one scalar type on one device.

    Parameters
    ----------
    matrix : callable
        Return a SciPy matrix for host values.
    keep : int
        Factors at most, and as many batches of factors.
    options : dict
        ``kind``, ``ordering`` and ``backend`` of `frontal.analyze`.
    """

    def __init__(
        self,
        matrix: Callable[[np.ndarray], sp.sparray],
        keep: int,
        options: dict[str, Untyped],
    ) -> None:
        self._matrix, self._options = matrix, options
        self._analysis: Analysis | None = None
        self._single = RecentFactors(keep, self._factorized)
        self._batches: LastUsed[int, RecentFactors[BatchFactor]] = LastUsed()  # by their sizes
        self._keep = keep
        self._lock = threading.RLock()  # autograd has a thread for each device

    def solve(self, values: Untyped, b: Untyped, trans: str) -> Untyped:
        """Solve op(A) x = b: values (count,) and b (n, k), or with a batch axis before both."""
        if _is_empty_batch(values):
            return b.copy()
        with self._lock:
            factor = self._factor_of(values)
            if values.ndim > 1 or b.shape[1] != 1:
                return factor.solve(b, trans)
            vector = module_of(b, True).ascontiguousarray(b[:, 0])  # is solved in one call
            return factor.solve(vector, trans)[:, None]

    def logdet(self, values: Untyped) -> np.ndarray:
        """Return the logarithms of determinants, on the host: a scalar, or (batch,).

        Raises
        ------
        ValueError
            If a determinant is not positive.
        """
        if _is_empty_batch(values):
            return np.zeros(0)
        with self._lock:
            logarithms = np.asarray(self._factor_of(values).logdet())
        if np.isnan(logarithms).any():
            raise ValueError("a determinant of the batch is not positive")
        return logarithms

    def logdet_gradient(self, values: Untyped) -> np.ndarray:
        """Return the gradients of `logdet` for the values, on the host."""
        if _is_empty_batch(values):
            return on_host(values)
        with self._lock:
            factor = self._factor_of(values)
            if isinstance(factor, Factor):
                return factor.logdet_vjp()
            return np.stack([factor[i].logdet_vjp() for i in range(len(factor))])

    def _factor_of(self, values: Untyped) -> Factor | BatchFactor:
        """Return the factor of one matrix, or the factors of a batch."""
        if values.ndim == 1:
            return self._single.factor_of(values)
        size = values.shape[0]
        known = self._batches.find(lambda others: others == size)
        if known is not None:
            return known[1].factor_of(values)
        recent = RecentFactors(self._keep, self._batch)
        self._batches.add(size, recent)
        self._batches.removed(_MAX_BATCH_SIZES)
        return recent.factor_of(values)

    def _factorized(self, values: Untyped) -> Factor:
        A = self._matrix(on_host(values))
        if self._analysis is None:
            self._analysis = analyze(A, reuse=_REUSE, **self._options)
        return self._analysis.factorize(A)

    def _batch(self, values: Untyped) -> BatchFactor:
        return factorize_batch(self._matrix(on_host(values[0])), values, **self._options)


def require_options(options: dict[str, Untyped]) -> None:
    """Raise TypeError for options that solves by values do not have."""
    unknown = [name for name in options if name not in _OPTIONS]
    if unknown:
        raise TypeError(
            f"unexpected option {unknown[0]!r}; there are {listed(_OPTIONS, 'and')}, and both "
            "triangles of a symmetric matrix are needed"
        )


def _same(options: dict[str, Untyped], others: dict[str, Untyped]) -> bool:
    """Return whether options are equal; some may be arrays."""
    return options.keys() == others.keys() and all(
        np.array_equal(value, others[name]) for name, value in options.items()
    )


def _is_empty_batch(values: Untyped) -> bool:
    return values.ndim > 1 and not values.shape[0]
