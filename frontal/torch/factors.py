"""The factors of the last values of a pattern, found again by these values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..api import analyze
from ..batch.api import factorize_batch
from ..batch.factors import BatchFactor
from ..factor.analysis import Analysis
from ..factor.factor import Factor
from .arrays import equal

_REUSE = 100  # factorizations over which the cost of an ordering is spread

F = TypeVar("F", Factor, BatchFactor)


class RecentFactors(Generic[F]):
    """Up to `keep` factors with the values that they are of, the last used one at the end."""

    def __init__(self, keep: int, create: Callable[[Untyped], F]) -> None:
        self._keep, self._create = keep, create
        self._known: list[tuple[Untyped, F]] = []

    def factor_of(self, values: Untyped) -> F:
        """Return the factor of these values; the factor used least recently may be overwritten."""
        for k in reversed(range(len(self._known))):
            if equal(self._known[k][0], values):
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
        Of `frontal.analyze`.
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
        self._batches: dict[int, RecentFactors[BatchFactor]] = {}
        self._keep = keep
        self._lock = threading.RLock()  # autograd has a thread for each device

    def solve(self, values: Untyped, b: Untyped, trans: str) -> Untyped:
        """Solve op(A) x = b: values (count,) and b (n, k), or with a batch axis before both."""
        with self._lock:
            if values.ndim == 1:
                return self._single.factor_of(values).solve(b, trans)
            count = values.shape[0]
            recent = self._batches.setdefault(count, RecentFactors(self._keep, self._batch))
            return recent.factor_of(values).solve(b, trans)

    def _factorized(self, values: Untyped) -> Factor:
        A = self._matrix(_on_host(values))
        if self._analysis is None:
            self._analysis = analyze(A, reuse=_REUSE, **self._options)
        return self._analysis.factorize(A)

    def _batch(self, values: Untyped) -> BatchFactor:
        return factorize_batch(self._matrix(_on_host(values[0])), values, **self._options)


def _on_host(values: Untyped) -> np.ndarray:
    return values.get() if hasattr(values, "get") else values
