"""An update of the panels of a Cholesky factor, with its cost, its checks and its undoing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...backend.host_memory import require_available
from ...backend.protocol import Health, NumericFactor
from ...matrix.canonical import Canonical
from ...numeric.method import CHOLESKY
from ..factor import CpuFactor
from .paths import copy_panels, paths_of, rotate_panels
from .record import MAX_ROTATIONS, UpdateRecord, assess, rotation_seconds
from .vectors import SparseColumns, add_products, in_elimination_order

_rotate_panels: Callable[..., int] = rotate_panels
_add_products: Callable[..., tuple[int, int]] = add_products


def has_rotations(factor: NumericFactor) -> bool:
    """Return whether updates rotate the panels of a factor: Cholesky's in A's precision, on a CPU."""
    cholesky = isinstance(factor, CpuFactor) and factor.symbolic.method is CHOLESKY
    return cholesky and factor.dtype == factor.matrix_dtype


class PatternError(Exception):
    """An entry of C C^H that the pattern of A lacks; caught before it reaches users."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__(row, column)
        self.row, self.column = row, column


def matrix_with_products(matrix: Canonical, C: SparseColumns, adding: bool) -> Canonical:
    """Return A + C C^H, or A - C C^H, in the pattern of A.

    Raises
    ------
    PatternError
        If an entry of C C^H is not stored in A.
    """
    data = matrix.data.copy()
    row, column = _add_products(matrix.indptr, matrix.indices, data, tuple(C), adding)
    if row >= 0:
        raise PatternError(row, column)
    arrays = matrix.indptr, matrix.indices, data
    return Canonical(*arrays, matrix.n, matrix.method, matrix.hermitian, owned=True)


class PanelUpdate:
    """The update of a factor to that of another matrix of its pattern.

    Parameters
    ----------
    factor : NumericFactor
        With rotations, see `has_rotations`.
    matrix : Canonical
        A + C C^H, or A - C C^H.
    C : SparseColumns
        Rows in the numbering of A.
    adding : bool

    Attributes
    ----------
    restored : bool
        The panels are those of A.
    """

    def __init__(
        self, factor: NumericFactor, matrix: Canonical, C: SparseColumns, adding: bool
    ) -> None:
        assert isinstance(factor, CpuFactor)
        if factor.updates is None:
            factor.updates = UpdateRecord.for_symbolic(factor.symbolic)
        self._factor, self._record, self.adding = factor, factor.updates, adding
        self.restored = True
        self._matrix, self._vectors = matrix, in_elimination_order(C, factor.updates.position)
        fronts, self._entries, self._size = paths_of(factor.symbolic.plan, self._vectors.rows)
        self._fronts, self._saved = fronts, np.empty(0, factor.dtype)

    @property
    def pays(self) -> bool:
        """Whether the rotations are expected to take less time than a refactorization."""
        return rotation_seconds(self._entries, self._vectors.count) < self._record.seconds

    def run(self) -> NumericFactor | None:
        """Return the factor of the new matrix in the same panels; None if it is not accurate."""
        factor, panels = self._factor, self._factor.panels
        plan, panel, fronts = factor.symbolic.plan, factor.panel, self._fronts
        if self.adding and not self._assess(False)[1] <= MAX_ROTATIONS:
            return None
        if not self.adding:
            require_available(self._size * panels.itemsize)
            self._saved = np.empty(self._size, factor.dtype)
            copy_panels(plan, panel, panels, fronts, self._saved, False)
        known, self.restored = factor.health(), False
        failed = _rotate_panels(plan, panel, panels, fronts, tuple(self._vectors), self.adding)
        ratio, largest = (0.0, np.inf) if failed >= 0 else self._assess(False)
        if not largest <= MAX_ROTATIONS:
            self.undo()
            return None
        result = factor.with_matrix(self._matrix)
        ratio = min(ratio, known.pivot_ratio)
        if ratio * ratio >= np.finfo(factor.dtype).eps:  # a bound is enough if no pivot is small
            result.known = Health(ratio)
        return result

    def undo(self) -> None:
        """Restore the panels, unless C C^H was added: their copy takes as long as the update."""
        factor = self._factor
        if not (self.adding or self.restored):
            args = factor.symbolic.plan, factor.panel, factor.panels, self._fronts
            copy_panels(*args, self._saved, True)
            self.restored = True

    def complete(self) -> None:
        """Record the rotations of an accepted update."""
        self._assess(True)

    def _assess(self, write: bool) -> tuple[float, float]:
        factor, record = self._factor, self._record
        return assess(
            factor.symbolic.plan.start, factor.panel, factor.panels, self._fronts, record.diagonal,
            factor.matrix.data, self._matrix.data, record.errors, self._vectors.count, write,
        )  # fmt: skip
