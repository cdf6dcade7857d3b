"""The augmented system of a least-squares problem: its factor, and refined solutions.

    [I     B] [u]   [f]
    [B^H  -S] [v] = [g]        B (p, q) with p >= q or not, S >= 0 diagonal

The factor is that of [a I, B; B^H, -max(S, d)/a], which is quasidefinite for d > 0: an LDL^H exists
in every order (Vanderbei 1995). Rounding errors of a factor without a search for pivots are
eps |B|^2 / d relative to the smallest eigenvalues (Gill, Saunders and Shinnerl, "On the stability
of Cholesky factorization for symmetric quasidefinite systems", 1996), so d is a multiple of eps
|B|^2. Refinement on the system without d removes its effect: v converges as proximal point steps,
in the direction of a singular value s by a factor d / (s^2 + d) (Rockafellar 1976). With a search
for pivots a = sqrt(d) may be as small as a multiple of eps (Bjorck, "Iterative refinement of linear
least squares solutions", 1967; Arioli, Duff and de Rijk 1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from ..api import factorize
from ..factor.factor import Factor
from ..numeric.linear_system import eps_of
from ..numeric.refinement import refine

DELTA = 1e-14  # least d without a search for pivots, relative to |B|^2: 45 eps
PIVOTED_DELTA = 1e-22  # d with a search for pivots: sqrt(d) is 45000 eps
_GOAL = 4  # roundings of a residual that needs no correction
_PROBES, _TURNS = 2, 3  # vectors and steps of the inverse iteration


@dataclass(frozen=True)
class FactorOptions:
    """The options of `frontal.factorize` that a user may choose."""

    backend: str = "auto"
    ordering: str = "auto"

    def factorize(self, K: sp.csc_array, kind: str) -> Factor:
        """Return the factor of a Hermitian matrix that may be nearly singular."""
        return factorize(
            K,
            kind=kind,
            singular="allow",
            check_finite=False,
            backend=self.backend,
            ordering=self.ordering,
        )


class AugmentedSystem:
    """An augmented system with the factor of its regularized matrix.

    Attributes
    ----------
    B : (p, q) sparse array
        With a 2-norm of about 1.
    S : (q,) array
    delta : float
        The regularization d.
    factor : Factor
    """

    def __init__(
        self, B: sp.csc_array, S: np.ndarray, delta: float, options: FactorOptions
    ) -> None:
        self.B, self.S, self.delta = B, S, delta
        self.adjoint = sp.csc_array(B.conj().T)
        self.modulus = abs(B)
        self._alpha = float(np.sqrt(delta))
        lower = np.maximum(S, delta) / self._alpha
        kind = "quasidefinite" if delta >= DELTA else "hermitian"
        K = coupled(B, np.full(B.shape[0], self._alpha), -lower)
        self.factor: Factor = options.factorize(K, kind)

    @property
    def is_regularized(self) -> bool:
        """Whether the factor is that of another matrix."""
        return bool((self.delta > self.S).any())

    def solve(self, f: np.ndarray, g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve with the factor, for blocks f (p, k) and g (q, k)."""
        p = self.B.shape[0]
        X = self.factor.solve(np.concatenate([f, g / self._alpha]), refine=0)
        return self._alpha * X[:p], X[p:]

    def refined(self, f: np.ndarray, g: np.ndarray) -> RefinedSolution:
        """Return solutions for blocks f (p, k) and g (q, k), refined as far as it helps."""
        solution = RefinedSolution(self, f, g)
        solution.steps = int(refine(solution, None).max(initial=0))
        return solution

    def smallest_eigenvalue(self) -> float:
        """Estimate the smallest eigenvalue of B^H B + max(S, d), from above, by inverse iteration.

        With a random vector one step is enough for a singular value below sqrt(d).
        """
        p, q = self.B.shape
        X = np.random.default_rng(0).standard_normal((q, min(_PROBES, q)))
        zero, smallest = np.zeros((p, X.shape[1])), np.inf
        for _ in range(_TURNS):
            X = X / np.linalg.norm(X, axis=0)
            X = self.solve(zero, X)[1]
            smallest = min(smallest, 1 / np.linalg.norm(X, axis=0).max())
            if not np.isfinite(smallest):
                break
        return smallest


class RefinedSolution:
    """Solutions (u, v) of an augmented system, as `numeric.refinement.refine` corrects them."""

    def __init__(self, system: AugmentedSystem, f: np.ndarray, g: np.ndarray) -> None:
        self._system, self._f, self._g = system, f, g
        self._may_be_compatible = not (g.any() or system.S.any())
        self.steps = 0
        self.u, self.v = system.solve(f, g)
        self._next = self.u, self.v

    def _residuals(self, u: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        system = self._system
        return self._f - u - system.B @ v, self._g - system.adjoint @ u + system.S[:, None] * v

    def _merit(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the (k,) backward errors over the goal: by rows of B, and normwise by columns.

        If u consists of rounding errors, since f is in the range of B, the error is that of B v = f
        if this is smaller.
        """
        (F, G), system = self._residuals(u, v), self._system
        alone = np.linalg.norm(F + u, axis=0)
        u, v = abs(u), abs(v)
        rows = abs(self._f) + u + system.modulus @ v
        columns = self._g, u, system.S[:, None] * v  # the norm of B is about 1
        with np.errstate(all="ignore"):
            by_rows = np.where(F == 0, 0, abs(F) / rows).max(axis=0, initial=0)
            size = np.linalg.norm(G, axis=0)
            total = sum(np.linalg.norm(x, axis=0) for x in columns)
            worst = np.maximum(by_rows, np.where(size == 0, 0, size / total))
            if self._may_be_compatible:
                worst = np.fmin(worst, alone / np.linalg.norm(rows, axis=0))
        return np.where(np.isfinite(worst), worst, np.inf) / (_GOAL * eps_of(u.dtype))

    def merit(self) -> np.ndarray:
        """Return the merits of the solutions."""
        return self._merit(self.u, self.v)

    def correct(self) -> np.ndarray:
        """Compute corrected solutions; return their merits."""
        du, dv = self._system.solve(*self._residuals(self.u, self.v))
        self._next = self.u + du, self.v + dv
        return self._merit(*self._next)

    def accept(self, better: np.ndarray) -> None:
        """Replace the solutions in a mask by the corrected ones."""
        pairs = zip(self._next, (self.u, self.v), strict=True)
        self.u, self.v = (np.where(better, new, old) for new, old in pairs)


def coupled(B: sp.csc_array, upper: np.ndarray, lower: np.ndarray) -> sp.csc_array:
    """Return [diag(upper), B; B^H, diag(lower)]."""
    blocks = [[sp.diags_array(upper), B], [B.conj().T, sp.diags_array(lower)]]
    return sp.csc_array(sp.block_array(blocks, format="csc"), dtype=B.dtype)
