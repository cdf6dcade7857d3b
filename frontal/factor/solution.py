"""Solutions of a system with their errors, and the weights of their condition number."""

from __future__ import annotations

from dataclasses import dataclass

from ..backend.protocol import NumericFactor
from ..machine.lockfree_property import cached_property
from ..numeric.acceptance import limits_of
from ..numeric.linear_system import BackwardErrors, LinearSystem, Vectors, eps_of


@dataclass(eq=False)
class Solution:
    """Solutions of a system with their factor and errors.

    Attributes
    ----------
    factor : NumericFactor
    trans : str
        op(A).
    X, B : (n, k) arrays of the factor's backend
        Solutions and right-hand sides.
    errors : BackwardErrors
        Errors of X.
    """

    factor: NumericFactor
    trans: str
    X: Vectors
    B: Vectors
    errors: BackwardErrors

    @property
    def error(self) -> float:
        """The precision of X."""
        return max(self.errors.worst_normwise, eps_of(self.X.dtype))

    @property
    def system(self) -> LinearSystem:
        """op(A) X = B on the device of the factor."""
        return self.factor.system(self.trans, self.X.dtype)

    @cached_property
    def weights(self) -> Vectors | None:
        """The weights w of `solution_condition`, (n,); None if all solutions are zero."""
        return self.system.weights(self.X, self.B, self.errors.solution, self.error)

    @property
    def near_border(self) -> bool:
        """Whether extreme exponents make solves with the unscaled A unreliable."""
        return not self.errors.fine and bool(
            self.errors.near_border(limits_of(self.factor.dtype, self.X.dtype)).any()
        )
