"""A factor's memory together with what has been prepared to compute with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import launch
from .factorize import Factorization, tile_constants
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
        inverses = None if self.inverses is None else self.inverses.copy()
        return Prepared(self.panels.copy(), inverses, pivots, blocks, largest)


def begin_kernels(pattern: Pattern, dtype: np.dtype) -> None:
    """Begin to compile what a factorization and a solve for one right-hand side wait for.

    What takes longest, or is needed first, comes first.
    """
    method, limits = pattern.method, pattern.device.limits
    large, small = (f(dtype, 1, limits) for f in (launch.front_solve, launch.front_solve_small))
    found = [("front_tiles.cu", tile_constants(method, launch.front_tiles(dtype, method, limits)))]
    few = pattern.schedule.small.any()
    if few:
        perturb = {"PERTURB": int(method.pivots)}
        found.insert(0, ("front_small.cu", method.constants | perturb))
    found += [("system.cu", method.constants), ("condition.cu", {})]
    if method.pivots:
        found.append(("front_pivots.cu", method.constants))
    flips: tuple[dict[str, int], ...] = ({}, {"FLIP": 1}) if method.panels == 2 else ({},)
    for flip in flips:  # a condition number takes both
        for way in ("forward", "backward"):
            found.append((f"front_{way}.cu", large.constants | method.constants | flip))
            if few:
                found.append((f"front_{way}_small.cu", small.constants | method.constants | flip))
    pattern.device.begin(found, dtype)
