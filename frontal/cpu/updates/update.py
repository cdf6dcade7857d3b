"""An update of a Cholesky factor: new values, new panels, the checks of both and their undoing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from ..._typing import Untyped
from ...backend.protocol import Health, NumericFactor
from ...machine.lockfree_property import cached_property
from ...matrix.canonical import Canonical
from ...numeric.method import CHOLESKY
from ..factor import CpuFactor
from .paths import copy_panels, paths_of, rotate_panels
from .record import (
    MAX_ROTATIONS,
    UpdateRecord,
    assess,
    refactorization_seconds,
    rotation_seconds,
)
from .vectors import SparseColumns, add_at, in_elimination_order, products_in, put_back
from .workspace import BLOCK

_rotate_panels: Callable[..., Untyped] = rotate_panels
_products_in: Callable[..., Untyped] = products_in
_paths_of: Callable[..., tuple[np.ndarray, Untyped, Untyped]] = paths_of
_assess: Callable[..., tuple[float, float]] = assess


def has_rotations(factor: NumericFactor) -> bool:
    """Return whether updates rotate panels: of Cholesky on the CPU, in the precision of A."""
    cholesky = isinstance(factor, CpuFactor) and factor.symbolic.method == CHOLESKY
    return cholesky and factor.dtype == factor.matrix_dtype


class PatternError(Exception):
    """An entry of C C^H that the pattern of A lacks; caught before it reaches users."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__(row, column)
        self.row, self.column = row, column


class PanelChange(ABC):
    """A change of A, and of the panels of its factor along paths to the roots; both are undone.

    Attributes
    ----------
    matrix : Canonical
        The new matrix.
    restored : bool
        The panels are those of A.
    """

    matrix: Canonical
    _rotations = 1  # at most, of a column
    _saves = True  # a copy of the panels takes as long as an update of rank one

    def __init__(self, factor: NumericFactor, positions: np.ndarray) -> None:
        assert isinstance(factor, CpuFactor)
        if factor.updates is None:
            factor.updates = UpdateRecord.for_symbolic(factor.symbolic)
            if factor.storage is None and factor.panels.base is not None:  # those of a batch
                factor.panels = factor.panels.copy()
        self._known = factor.health()  # before the values change
        self._factor, self._record, self.restored = factor, factor.updates, True
        self._fronts, self._entries, self._size = _paths_of(factor.symbolic.plan, positions)
        self._support = positions[:0], np.empty(0)  # rows of changed diagonal entries
        self._saved: np.ndarray | None = None

    @property
    def pays(self) -> bool:
        """Whether the change is expected to take less time than a refactorization."""
        return True

    @property
    def is_finite(self) -> bool:
        """Whether the new values are finite."""
        return True

    @cached_property
    def roundings(self) -> np.ndarray:
        """Bound of the errors of changed diagonal entries of A, in roundings of the new entries.

        The errors of earlier changes stay, while the entries become smaller.
        """
        rows, old = self._support
        new = np.real(self.matrix.data[self._record.diagonal[rows]]).astype(np.float64)
        return (old / new) * self._record.lost[rows] + np.maximum(old / new, 1)

    def lost(self, limit: float) -> float:
        """Return the largest of `roundings` above a limit of which no change has warned; else 0."""
        before = self._record.lost[self._support[0]]
        reported = (before > limit) & (self.roundings <= 2 * before)
        return float(np.where(reported, 0, self.roundings).max(initial=0.0))

    @abstractmethod
    def _apply(self) -> bool:
        """Change the panels; return whether all pivots are positive."""

    def _rotate(self, vectors: SparseColumns, adding: bool) -> bool:
        """Rotate vectors in elimination order; return whether all pivots are positive."""
        factor = self._factor
        args = factor.panel, factor.panels, self._fronts, tuple(vectors), adding
        return _rotate_panels(factor.symbolic.plan, *args) < 0

    def run(self) -> NumericFactor | None:
        """Return the factor of the new matrix in the same panels; None if it is not accurate."""
        factor = self._factor
        if not self._saves and not self._assess(False)[1] <= MAX_ROTATIONS:
            return None
        if self._saves:
            saved = self._record.memory(self._size, factor.dtype)
            self._copy(saved, False)
            self._saved = saved
        self.restored = False
        ratio, largest = self._assess(False) if self._apply() else (0.0, np.inf)
        if not largest <= MAX_ROTATIONS:
            self._restore_panels()
            return None
        result = factor.with_matrix(self.matrix)
        ratio = min(ratio, self._known.pivot_ratio)
        if ratio * ratio >= np.finfo(factor.dtype).eps:  # a bound is enough if no pivot is small
            result.known = Health(ratio)
        return result

    def undo(self) -> None:
        """Restore the values, and the panels if they were copied."""
        self._restore_panels()

    def complete(self) -> None:
        """Record the errors of an accepted change by rotations."""
        self._assess(True)
        self.record_roundings(self._record)
        self._record.private = True

    def record_roundings(self, record: UpdateRecord) -> None:
        """Record the errors of the changed diagonal entries of A."""
        record.lost[self._support[0]] = self.roundings

    def pass_on(self, factor: NumericFactor, accepted: bool) -> None:
        """Give the errors of A to a new factor, of the new matrix if `accepted`, else of the old.

        A new factorization does not bring back the digits that the values have lost.
        """
        assert isinstance(factor, CpuFactor)
        factor.updates = UpdateRecord.for_symbolic(factor.symbolic)
        factor.updates.lost[:] = self._record.lost
        if accepted:
            self.record_roundings(factor.updates)

    def _restore_panels(self) -> None:
        if self._saved is not None:
            self._copy(self._saved, True)
            self._saved, self.restored = None, True

    def _copy(self, saved: np.ndarray, back: bool) -> None:
        factor = self._factor
        copy_panels(factor.panel, factor.panels, self._fronts, saved, back)

    def _assess(self, write: bool) -> tuple[float, float]:
        factor, record = self._factor, self._record
        arrays = factor.symbolic.plan.start, factor.panel, factor.panels
        values = record.diagonal, self.matrix.data, record.errors
        return _assess(arrays, self._fronts, *values, self._support, self._rotations, write)


class PanelUpdate(PanelChange):
    """The update of a factor of A to that of A + C C^H or A - C C^H.

    Parameters
    ----------
    factor : NumericFactor
        With rotations, see `has_rotations`.
    C : SparseColumns
        Rows in the numbering of A.
    adding : bool

    Raises
    ------
    PatternError
        If an entry of C C^H is not stored in A.
    """

    def __init__(self, factor: NumericFactor, C: SparseColumns, adding: bool) -> None:
        matrix = factor.matrix
        places, products, outside = _products_in(matrix.indptr, matrix.indices, tuple(C), adding)
        if outside[0] >= 0:
            raise PatternError(*outside)
        self._vectors = in_elimination_order(C, factor.symbolic.column_positions)
        super().__init__(factor, self._vectors.rows)
        self._adding, self._saves, self._rotations = adding, not adding, C.columns
        self._places, self._before = places, np.empty_like(products)
        self._support = self._vectors.rows, np.empty(self._vectors.rows.size)
        self.matrix = self._new_matrix(products)

    def _new_matrix(self, products: np.ndarray) -> Canonical:
        """Return the new matrix; its values replace those of A in place if nobody else has them."""
        old, record = self._factor.matrix, self._record
        data = old.data if record.private and "A" not in vars(old) else old.data.copy()
        add_at(data, self._places, products, self._before, record.diagonal, *self._support)
        return with_data(old, data)

    @property
    def is_finite(self) -> bool:
        """Whether the new values are finite."""
        return bool(np.isfinite(self.matrix.data[self._places]).all())

    @property
    def pays(self) -> bool:
        """Whether the rotations are expected to take less time than a refactorization."""
        count = self._vectors.columns
        if count <= BLOCK:  # one pass: less than the factorization of the same fronts
            return True
        seconds = refactorization_seconds(self._factor.symbolic.plan)
        return rotation_seconds(self._entries, count) < seconds

    def _apply(self) -> bool:
        return self._rotate(self._vectors, self._adding)

    def undo(self) -> None:
        """See `PanelChange`."""
        data = self._factor.matrix.data
        if data is self.matrix.data:
            put_back(data, self._places, self._before)
        super().undo()


def with_data(matrix: Canonical, data: np.ndarray) -> Canonical:
    """Return the matrix with other values, by columns, of the same symmetry."""
    arrays = matrix.indptr, matrix.indices, data
    return Canonical(*arrays, matrix.n, matrix.method, matrix.hermitian, owned=True)
