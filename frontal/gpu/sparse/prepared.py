"""A factor's memory together with what has been prepared to compute with it."""

from __future__ import annotations

from dataclasses import dataclass

from .factorize import Factorization
from .pattern import Pattern
from .storage import Storage
from .substitute import Solver


@dataclass
class Prepared(Storage):
    """The memory of a factor, and what computes with it and takes more of it.

    Attributes
    ----------
    factorization : Factorization or None
        Overwrites the factor.
    solver : Solver or None
        Solves with it.
    """

    factorization: Factorization | None = None
    solver: Solver | None = None

    def solver_of(self, pattern: Pattern) -> Solver:
        """What solves with the factor; made when first asked for."""
        if self.solver is None:
            self.solver = Solver(pattern, self)
        return self.solver

    def copy(self) -> Prepared:
        """The same numbers in other memory, with nothing prepared."""
        pivots = None if self.pivots is None else self.pivots.copy()
        blocks = None if self.blocks is None else self.blocks.copy()
        largest = None if self.largest is None else self.largest.copy()
        return Prepared(self.panels.copy(), self.inverses.copy(), pivots, blocks, largest)
