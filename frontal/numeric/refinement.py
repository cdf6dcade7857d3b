"""Refinement of solutions: corrections by the factors, while they halve an error."""

from __future__ import annotations

from typing import Protocol

from .linear_system import Vectors
from .thresholds import THRESHOLDS

MAX_STEPS = THRESHOLDS.corrections


class Refinable(Protocol):
    """Solutions for k right-hand sides, of one system or of several.

    A merit is an error relative to the largest that needs no correction. Merits are (k,) arrays for
    one system, (k, count) arrays for several, on the host or on a device.
    """

    def merit(self) -> Vectors:
        """Return the merits of the solutions."""
        ...

    def correct(self) -> Vectors:
        """Compute corrected solutions; return their merits."""
        ...

    def accept(self, better: Vectors) -> None:
        """Replace the solutions in a mask by the corrected ones."""
        ...


def improved(before, after):
    """Return masks of the merits that decreased, and that at least halved."""
    better = after < before
    return better, better & (after <= before / 2)


def refine(solutions: Refinable, steps: int | None) -> Vectors:
    """Correct solutions; return the accepted corrections of each system.

    Parameters
    ----------
    solutions : Refinable
    steps : int, optional
        Corrections at most; by default as many as halve a merit above 1, at most `MAX_STEPS`.
    """
    goal, most = (1, MAX_STEPS) if steps is None else (0, steps)
    merit = solutions.merit()
    active = (merit > goal).any(axis=0)
    taken = active * 0
    for _ in range(most):
        if not active.any():
            break
        better, halved = improved(merit, solutions.correct())
        better &= active
        if not better.any():
            break
        solutions.accept(better)
        merit, taken = solutions.merit(), taken + better.any(axis=0)
        active = active & (merit > goal).any(axis=0)
        if steps is None:
            active = active & (better & halved).any(axis=0)
    return taken
