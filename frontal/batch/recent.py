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


class IndexArrays(Protocol[P]):
    """The indices of a sparse matrix, from which a solver for its pattern is made."""

    def equals(self, other: Untyped) -> bool:
        """Return whether the indices of both are equal."""
        ...

    def keep(self) -> None:
        """Copy the indices, which the user may change."""
        ...

    def pattern(self, options: dict[str, Untyped]) -> P:
        """Return the solver."""
        ...


class RecentPatterns(Generic[P]):
    """The last patterns by their indices and options, the last used one at the end."""

    def __init__(self) -> None:
        self._known: list[tuple[IndexArrays[P], dict[str, Untyped], P]] = []
        self._lock = threading.Lock()

    def pattern_of(self, indices: IndexArrays[P], options: dict[str, Untyped]) -> tuple[Untyped, P]:
        """Return equal indices that are kept, and the solver for their pattern."""
        with self._lock:
            for k in reversed(range(len(self._known))):
                known, known_options, pattern = self._known[k]
                if _same(known_options, options) and known.equals(indices):
                    self._known.append(self._known.pop(k))
                    return known, pattern
            indices.keep()
            pattern = indices.pattern(options)
            self._known.append((indices, options, pattern))
            del self._known[:-_MAX_PATTERNS]
            return indices, pattern


class RecentFactors(Generic[F]):
    """Up to `keep` factors with the values that they are of, the last used one at the end."""

    def __init__(self, keep: int, create: Callable[[Untyped], F]) -> None:
        self._keep, self._create = keep, create
        self._known: list[tuple[Untyped, F]] = []

    def factor_of(self, values: Untyped) -> F:
        """Return the factor of these values; the factor used least recently may be overwritten."""
        for k in reversed(range(len(self._known))):
            if _equal(self._known[k][0], values):
                self._known.append(self._known.pop(k))
                return self._known[-1][1]
        factor = None
        if len(self._known) >= self._keep:
            factor = self._known.pop(0)[1]  # forgotten if the values have no factor
        factor = self._create(values) if factor is None else factor.refactorize(values)
        self._known.append((values.copy(), factor))
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
        self._batches: dict[int, RecentFactors[BatchFactor]] = {}  # by their sizes
        self._keep = keep
        self._lock = threading.RLock()  # autograd has a thread for each device

    def solve(self, values: Untyped, b: Untyped, trans: str) -> Untyped:
        """Solve op(A) x = b: values (count,) and b (n, k), or with a batch axis before both."""
        if values.ndim > 1 and not values.shape[0]:
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
        if values.ndim > 1 and not values.shape[0]:
            return np.zeros(0)
        with self._lock:
            logarithms = np.asarray(self._factor_of(values).logdet())
        if np.isnan(logarithms).any():
            raise ValueError("a determinant of the batch is not positive")
        return logarithms

    def logdet_gradient(self, values: Untyped) -> np.ndarray:
        """Return the gradients of `logdet` for the values, on the host."""
        if values.ndim > 1 and not values.shape[0]:
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
        recent = self._batches.pop(size, None) or RecentFactors(self._keep, self._batch)
        self._batches[size] = recent  # the last used one at the end
        for oldest in list(self._batches)[:-_MAX_BATCH_SIZES]:
            del self._batches[oldest]
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


def _equal(a: Untyped, b: Untyped) -> bool:
    """Return whether two arrays of one library have the same shape and entries; NaN differ."""
    return a.shape == b.shape and bool(module_of(a, True).array_equal(a, b))
