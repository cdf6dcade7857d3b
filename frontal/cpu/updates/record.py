"""What a factor stores for its updates: indices of its pattern, and the errors of its columns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...backend.host_memory import require_available
from ...compile.jit import jit
from ...machine.resources import CPU, thread_count
from ...symbolic.phase import Symbolic
from ...symbolic.plan import Plan, front_flops
from .workspace import BLOCK

# Seconds, fitted to measurements on one core: of a pass over an entry of L, of its rotation with a
# vector; of a front, of an entry and of an operation in a refactorization
_PASS_SECONDS, _ROTATION_SECONDS = 4e-10, 6e-11
_FRONT_SECONDS, _TRAFFIC_SECONDS, _FLOP_SECONDS = 6e-7, 4e-10, 2e-11
MAX_ROTATIONS = 1000  # of a column until the factor is computed anew: their errors add up


@dataclass(eq=False)
class UpdateRecord:
    """Indices that all updates of a factor use, and bounds of the errors of earlier updates.

    Attributes
    ----------
    symbolic : Symbolic
    errors : (n,) float64 array
        Bound of the error of each row of L L^H by rotations since the factorization, in roundings
        of its diagonal entry, in elimination order.
    lost : (n,) float64 array
        Bound of the error of each diagonal entry of A by changes since the factorization, in
        roundings of the entry, in elimination order.
    private : bool
        The values of A are those of an update, and no other factor uses them.
    saved : array of the scalar type
        Memory for panels, used by each downdate: fresh pages take as long as the update.
    """

    symbolic: Symbolic
    errors: np.ndarray
    lost: np.ndarray
    private: bool = False
    saved: np.ndarray = field(default_factory=lambda: np.empty(0))

    @classmethod
    def for_symbolic(cls, symbolic: Symbolic) -> UpdateRecord:
        """Return the record of a factor without updates."""
        return cls(symbolic, np.zeros(symbolic.n), np.zeros(symbolic.n))

    @property
    def position(self) -> np.ndarray:
        """(n,) int32: position of each column of A in elimination order."""
        return self.symbolic.column_positions

    @property
    def diagonal(self) -> np.ndarray:
        """(n,) int64: place of each diagonal entry among the values of A, in elimination order."""
        return self.symbolic.diagonal_places

    def copy(self) -> UpdateRecord:
        """Return the record for a copy of the factor, with which it shares the values of A."""
        self.private = False
        return UpdateRecord(self.symbolic, self.errors.copy(), self.lost.copy())

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "saved": np.empty(0)}

    def memory(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Return an array for the copy of panels."""
        if self.saved.size < size or self.saved.dtype != dtype:
            require_available(size * dtype.itemsize)
            self.saved = np.empty(size, dtype)
        return self.saved


def refactorization_seconds(plan: Plan) -> float:
    """Return the expected time of a refactorization on all threads."""
    flops = front_flops(plan.start, plan.pointer).sum()
    k, m = np.diff(plan.start).astype(float), np.diff(plan.pointer).astype(float)
    traffic = ((k + m) * k + 2 * m * m).sum()  # entries of panels and contribution blocks
    seconds = k.size * _FRONT_SECONDS + traffic * _TRAFFIC_SECONDS + flops * _FLOP_SECONDS
    return float(seconds) / (1 if flops <= CPU.least_flops else thread_count())


def rotation_seconds(entries: int, count: int) -> float:
    """Return the expected time of rotating `count` vectors with columns of so many entries."""
    return entries * (-(-count // BLOCK) * _PASS_SECONDS + count * _ROTATION_SECONDS)


@jit
def assess(factor, fronts, diagonal, data, errors, support, rotations, write):
    """Return the smallest relative pivot of updated columns, and the largest bound of their errors.

    A rotation changes entries (i, j) of L L^H by a rounding of sqrt(a_ii a_jj) at most. After a
    downdate these are roundings of a larger matrix.

    Parameters
    ----------
    factor : (start, panel, panels)
        See `Plan` and `HostFactor`.
    fronts : int64 array
        Fronts on the paths of the update.
    diagonal, errors : arrays
        See `UpdateRecord`; the errors are replaced if `write`.
    data : array of the scalar type
        Values of the new matrix.
    support : (int32 array, float64 array)
        Rows of C in elimination order, and their diagonal entries before the update.
    rotations : int
        Largest number of rotations of a column.
    write : bool
    """
    start, panel, panels = factor
    rows, old = support
    ratio, largest, known = np.inf, 0.0, errors[rows]
    for s in fronts:
        first, k = start[s], start[s + 1] - start[s]
        ld = (panel[s + 1] - panel[s]) // max(k, 1)
        for j in range(k):
            pivot = np.float64(panels[panel[s] + j * (ld + 1)].real)
            share = pivot * pivot / np.float64(data[diagonal[first + j]].real)
            ratio = share if not share >= ratio else ratio
            error = errors[first + j] + rotations
            largest = max(largest, error)
            if write:
                errors[first + j] = error
    for p in range(rows.size):
        shrunk = old[p] / np.float64(data[diagonal[rows[p]]].real)
        error = known[p] * shrunk + rotations * max(shrunk, 1.0)
        largest = error if not error <= largest else largest
        if write:
            errors[rows[p]] = error
    return ratio, largest
