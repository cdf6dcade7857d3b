"""Solution methods of a least-squares problem by shape, damping and rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .augmented import DELTA, PIVOTED_DELTA, AugmentedSystem, FactorOptions
from .rank import RankUncertainError, rank_threshold, settled_rank
from .scaling import Compact, equilibrated

_DISTINCT = 8  # least s^2 / d of singular values whose steps of refinement converge fast
# d for a deficient rank, from the largest down. Rounding errors e of singular values that are zero
# leave errors e^3 / d^2 in x; the smallest singular value of the rank must be at least 3 sqrt(d).
_DEFICIENT = {np.dtype(np.float64): (DELTA,), np.dtype(np.float32): (1e-7, 1e-9)}


@dataclass(frozen=True)
class SolvedProblem:
    """Solutions of a compact problem.

    Attributes
    ----------
    x : (n, k) array
    closer : (m, k) array
        Vectors nearly orthogonal to the range of A, close to the residuals.
    norm_error : float or None
        See `LeastSquaresInfo`.
    scaled : (k,) array
        Norms of x in the scaled unknowns.
    steps : int
    """

    x: np.ndarray
    closer: np.ndarray
    norm_error: float | None
    scaled: np.ndarray
    steps: int


class Problem:
    """A least-squares problem min |A x - b|^2 + damp^2 |x|^2 with its factors.

    A tall A is solved for the residual u and v = x / D, with B = A D; a wide one, for x = u of
    least norm and the multipliers v, with B = A^H D. For a deficient rank the first system gives
    the residual, and the second one x for b without it, which is in the range of A.

    Attributes
    ----------
    rank : int or None
    condition : float or None
        See `LeastSquaresInfo`.
    lowest : float
        Estimate of the smallest singular value of B, or of [B; S^(1/2)], for full rank.
    """

    def __init__(
        self, compact: Compact, damp: float, dtype: np.dtype, options: FactorOptions
    ) -> None:
        self.compact, self.damp, self._options = compact, damp, options
        self._real = np.finfo(dtype).dtype
        self.rank: int | None = None
        self.condition: float | None = None
        self.lowest = 0.0
        m, n = compact.A.shape
        self.tall = m >= n
        self._by_residual: AugmentedSystem | None = None
        self._by_norm: AugmentedSystem | None = None
        self._diagonals: dict[bool, np.ndarray] = {}
        first = self._system(self.tall, DELTA)
        self._examine(first)

    @property
    def systems(self) -> list[AugmentedSystem]:
        """The factorized systems that solutions use."""
        return [x for x in (self._by_residual, self._by_norm) if x is not None]

    @property
    def is_deficient(self) -> bool:
        """Whether the compact matrix has a deficient rank."""
        return len(self.systems) == 2

    def solve(self, b: np.ndarray) -> SolvedProblem:
        """Return solutions for a block b (m, k)."""
        m, k = b.shape
        n = self.compact.A.shape[1]
        steps, closer, norm_error = 0, np.zeros((m, k), b.dtype), None
        if self._by_residual is not None:
            solution = self._by_residual.refined(b, np.zeros((n, k), b.dtype))
            x, scaled = (
                self._diagonals[True][:, None] * solution.v,
                np.linalg.norm(solution.v, axis=0),
            )
            steps, closer = solution.steps, solution.u
            if self._by_norm is None:
                return SolvedProblem(x, closer, None, scaled, steps)
            b = b - closer
        assert self._by_norm is not None
        scales = self._diagonals[False][:, None]
        solution = self._by_norm.refined(np.zeros((n, k), b.dtype), scales * b)
        x, v = solution.u, solution.v
        distance = np.linalg.norm(x + self._by_norm.B @ v, axis=0)
        size = np.linalg.norm(x, axis=0)
        norm_error = float((distance / np.where(size > 0, size, 1)).max(initial=0))
        if self._by_residual is None:
            closer = -(self.damp**2) * scales * v
        return SolvedProblem(x, closer, norm_error, size, max(steps, solution.steps))

    def search_pivots(self) -> bool:
        """Factorize with a search for pivots; return False if that is no change."""
        (system,) = self.systems if not self.is_deficient else (None,)
        if system is None or system.delta < DELTA:
            return False
        self._use(self._system(self.tall, PIVOTED_DELTA))
        return True

    def _examine(self, system: AugmentedSystem) -> None:
        """Choose the systems by the smallest singular value."""
        smallest, extreme = system.smallest_eigenvalue(), float(system.S.max(initial=0))
        threshold = rank_threshold(self.compact.shape, self._real)
        undamped = not self.damp
        distinct = smallest >= _DISTINCT * DELTA or not system.is_regularized
        if not distinct or (undamped and smallest < (2 * threshold) ** 2):
            if undamped and self._is_rank_deficient(system, threshold):
                return
            if not distinct:
                system = self._system(self.tall, PIVOTED_DELTA)
                smallest = system.smallest_eigenvalue()
                if undamped and smallest < max(threshold**2, _DISTINCT * PIVOTED_DELTA):
                    raise RankUncertainError(0, min(system.B.shape))
        self._use(system)
        self.rank = min(system.B.shape) if undamped else None
        value = max(smallest - (system.delta if system.is_regularized else 0), 0)
        self.lowest = float(np.sqrt(value))
        self.condition = float(np.sqrt(1 + extreme)) / self.lowest if value else np.inf

    def _is_rank_deficient(self, system: AugmentedSystem, threshold: float) -> bool:
        """Return whether the rank is deficient; then store it and both systems."""
        deltas = _DEFICIENT[self._real]
        self.rank, delta = settled_rank(system, threshold, deltas, self._options)
        if delta:
            self._by_residual = self._system(True, delta)
            self._by_norm = self._system(False, delta)
        return bool(delta)

    def _use(self, system: AugmentedSystem) -> None:
        self._by_residual, self._by_norm = (system, None) if self.tall else (None, system)

    def _system(self, tall: bool, delta: float) -> AugmentedSystem:
        """Return the system for the residual, or for the least norm, factorized."""
        A = self.compact.A
        B, scales = equilibrated(A if tall else sp.csc_array(A.conj().T))
        self._diagonals[tall] = scales
        S = (self.damp * scales) ** 2
        return AugmentedSystem(B, S, delta, self._options)
