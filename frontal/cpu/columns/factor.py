"""A factor by columns: L and U, its matrix, and solutions with both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...backend.protocol import Health, HostFactor
from ...matrix.canonical import Canonical
from ...matrix.norms import least
from ...numeric.linear_system import FastSolution, LinearSystem, Vectors
from ...symbolic.columns import ColumnPlan
from ...symbolic.matching import Matching
from ...symbolic.phase import Symbolic
from ...symbolic.relative_pivots import relative_pivots
from ...symbolic.scaling import Scaling
from ..host_factor import HostNumericFactor, largest_part
from ..host_system import HostSystem, host_system
from ..small.warmup import CallCounter
from .arrays import ColumnPattern, ColumnValues
from .extraction import triangles
from .substitution import ColumnSubstitution, Sides

_often = CallCounter()
_NO_FACTORS = np.empty(0)


class ColumnFactor(HostNumericFactor):
    """See `protocol.NumericFactor`.

    Attributes
    ----------
    pattern : ColumnPattern
        Shared with copies and refactorizations.
    values : ColumnValues
    """

    perturbed = 0  # fronts factorize matrices with null pivots
    nulls = np.empty(0, np.int32)
    device = "1 thread"

    def __init__(
        self,
        matrix: Canonical,
        symbolic: Symbolic,
        columns: ColumnPlan,
        pattern: ColumnPattern,
        values: ColumnValues,
        scaling: Scaling | None,
    ) -> None:
        self.matrix, self.symbolic, self.scaling = matrix, symbolic, scaling
        self.pattern, self.values, self._first = pattern, values, columns.first
        self._columns = columns
        self.dtype, self.matrix_dtype = values.diagonal.dtype, matrix.dtype
        self._known: Health | None = None
        self._systems: dict[tuple[str, np.dtype], HostSystem] = {}
        self._solvers: dict[str, ColumnSubstitution] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_systems": {}, "_solvers": {}}

    @property
    def memory(self) -> int:
        """Bytes of the factors."""
        return sum(array.nbytes for array in (*self.values, *self.pattern))

    @property
    def pivots(self) -> np.ndarray:
        """See `NumericFactor`."""
        return self.pattern.position

    def health(self) -> Health:
        """See `NumericFactor`; the values were checked on the host before."""
        if self._known is None:
            ratios = relative_pivots(self.diagonal(), self.matrix, self.symbolic, self.scaling)
            self._known = Health(least(ratios))
        return self._known

    def growth(self) -> float:
        """See `NumericFactor`."""
        size = self.matrix.norms[0] if self.scaling is None else 1.0
        largest = max(1.0, *(largest_part(array) for array in self.values))
        return largest / size if size else 0.0

    def diagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        return self.values.diagonal

    def subdiagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        return np.empty(0, self.dtype)

    def to_host(self) -> HostFactor:
        """See `NumericFactor`; there are no panels."""
        factors = triangles(self._first, self.pattern, self.values)
        return HostFactor(np.empty(0, self.dtype), self.pivots, 0, triangles=factors)

    def copy(self) -> ColumnFactor:
        """See `NumericFactor`."""
        values = ColumnValues(*(array.copy() for array in self.values))
        return ColumnFactor(
            self.matrix, self.symbolic, self._columns, self.pattern, values, self.scaling
        )

    def renewed(self, matrix: Canonical, scaling: Scaling, pivot_ratio: float) -> ColumnFactor:
        """Return the factor of new values, which were written to the memory of this one."""
        factor = ColumnFactor(
            matrix, self.symbolic, self._columns, self.pattern, self.values, scaling
        )
        factor._known = Health(pivot_ratio)
        return factor

    def refactorizer(self, symbolic: Symbolic, matching: Matching | None) -> None:
        """See `NumericFactor`: the backend refactorizes."""

    # --- vectors -----------------------------------------------------------------------------

    def system(self, trans: str, dtype: np.dtype) -> LinearSystem:
        """See `NumericFactor`; the system is cached."""
        return self._system(trans, dtype)

    def _system(self, trans: str, dtype: np.dtype) -> HostSystem:
        system = self._systems.get((trans, dtype))
        if system is None:
            system = host_system(self, trans, dtype, self._solver(trans))
            self._systems[trans, dtype] = system
        return system

    def _solver(self, trans: str) -> ColumnSubstitution:
        solver = self._solvers.get(trans)
        if solver is None:
            symbolic, scaling = self.symbolic, self.scaling
            scales = (scaling.row, scaling.column) if scaling else (_NO_FACTORS, _NO_FACTORS)
            sides = self._rows(symbolic.row_perm), scales[0], symbolic.perm, scales[1]
            solver = self._solvers[trans] = self._substitution(trans, sides)
        return solver

    def _rows(self, rows: np.ndarray) -> np.ndarray:
        """Return rows in elimination order after the interchanges, from those before."""
        after = np.empty_like(rows)
        after[self.pattern.position] = rows
        return after

    def _substitution(self, trans: str, sides: Sides) -> ColumnSubstitution:
        return ColumnSubstitution(self._first, self.pattern, self.values, trans, sides)

    def solve_fast(
        self, b: object, trans: str, how: int, references: Sequence[Vectors | None] = ()
    ) -> FastSolution | None:
        """See `NumericFactor`."""
        if self.dtype != self.matrix_dtype or not _often():
            return None
        return self._solver(trans).fast(b, self._system(trans, self.dtype).bound, how)

    def expect(self, trans: str) -> None:
        """See `NumericFactor`."""
        self._solver(trans).hopeful = True

    def condition_fast(self, trans: str, how: int) -> tuple[float, bool] | None:
        """See `NumericFactor`."""
        if self.dtype != self.matrix_dtype or not _often():
            return None
        return self._solver(trans).condition(self._system(trans, self.dtype).bound, how)

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        identity = np.arange(self.symbolic.n, dtype=np.int32)
        sides = self._rows(identity), _NO_FACTORS, identity, _NO_FACTORS
        x[...] = self._substitution("T" if transposed else "N", sides)(x)
