"""What a factor stores for its updates: indices of its pattern, and the errors of its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...compile.jit import jit
from ...machine.resources import CPU, thread_count
from ...symbolic.phase import Symbolic
from ...symbolic.plan import Plan, front_flops
from .vectors import diagonal_places
from .workspace import BLOCK

# Seconds for an entry of L, fitted to one core: of a pass over the columns, and of a rotation
_PASS_SECONDS, _ROTATION_SECONDS = 4e-10, 6e-11
MAX_ROTATIONS = 1000  # of a column until the factor is computed anew: their errors add up


@dataclass(eq=False)
class UpdateRecord:
    """Indices that all updates of a factor use, and bounds of the errors of earlier updates.

    Attributes
    ----------
    position : (n,) int32 array
        Position of each column of A in elimination order.
    diagonal : (n,) int64 array
        Position of each diagonal entry among the values of A, in elimination order.
    errors : (n,) float64 array
        Bound of the error of each row of L L^H by rotations since the factorization, in roundings
        of its diagonal entry, in elimination order.
    seconds : float
        Expected time of a refactorization.
    """

    position: np.ndarray
    diagonal: np.ndarray
    errors: np.ndarray
    seconds: float

    @classmethod
    def for_symbolic(cls, symbolic: Symbolic) -> UpdateRecord:
        """Return the record of a factor without updates."""
        n = symbolic.n
        position = np.empty(n, np.int32)
        position[symbolic.perm] = np.arange(n, dtype=np.int32)
        diagonal = diagonal_places(symbolic.indptr, symbolic.indices, symbolic.perm)
        return cls(position, diagonal, np.zeros(n), refactorization_seconds(symbolic.plan))

    def copy(self) -> UpdateRecord:
        """Return the record for a copy of the factor."""
        return replace(self, errors=self.errors.copy())


def refactorization_seconds(plan: Plan) -> float:
    """Return the expected time of a refactorization on all threads; see `FrontCost`."""
    cost, flops = CPU.fronts, front_flops(plan.start, plan.pointer)
    k, m = np.diff(plan.start).astype(float), np.diff(plan.pointer).astype(float)
    traffic = cost.entry * ((k + m) * k + 2 * m * m)
    seconds = cost.front + traffic + flops * (1 + cost.half / np.maximum(k, 1)) / cost.rate
    threads = 1 if flops.sum() <= CPU.least_flops else thread_count()
    return float(seconds.sum()) / threads


def rotation_seconds(entries: int, count: int) -> float:
    """Return the expected time of rotating `count` vectors with columns of so many entries."""
    return entries * (-(-count // BLOCK) * _PASS_SECONDS + count * _ROTATION_SECONDS)


@jit
def assess(start, panel, panels, fronts, diagonal, before, after, errors, rotations, write):
    """Return the smallest relative pivot of updated columns, and the largest bound of their errors.

    A rotation changes entries (i, j) of L L^H by a rounding of sqrt(a_ii a_jj) at most. After a
    downdate these are roundings of a larger matrix.

    Parameters
    ----------
    start, panel, panels : arrays
        See `Plan` and `HostFactor`.
    fronts : int64 array
        Fronts on the paths of the update.
    diagonal, errors : arrays
        See `UpdateRecord`; the errors are replaced if `write`.
    before, after : arrays of the scalar type
        Values of A before and after the update.
    rotations : int
        Largest number of rotations of a column.
    write : bool
    """
    ratio, largest = np.inf, 0.0
    for s in fronts:
        first, k = start[s], start[s + 1] - start[s]
        ld = (panel[s + 1] - panel[s]) // max(k, 1)
        for j in range(k):
            old, new = before[diagonal[first + j]].real, after[diagonal[first + j]].real
            pivot = np.float64(panels[panel[s] + j * (ld + 1)].real)
            share = pivot * pivot / np.float64(new)
            ratio = share if not share >= ratio else ratio
            shrunk = np.float64(old) / np.float64(new)
            error = errors[first + j] * shrunk + rotations * max(shrunk, 1.0)
            largest = error if not error <= largest else largest
            if write:
                errors[first + j] = error
    return ratio, largest
