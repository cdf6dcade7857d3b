"""The replacement of a row and column of a factorized matrix, with its undoing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._typing import Untyped
from ...backend.protocol import NumericFactor
from .record import UpdateRecord
from .rows import exchange_row, fronts_of_row, put_row, take_column
from .update import PanelChange, PatternError, with_data
from .vectors import SparseColumns, set_row

_set_row: Callable[..., Untyped] = set_row


class RowChange(PanelChange):
    """The change of a factor of A to that of A with another row and column i.

    Parameters
    ----------
    factor : NumericFactor
        With rotations, see `has_rotations`.
    i : int
        In the numbering of A.
    column : SparseColumns
        The new column; its conjugate is the new row.

    Raises
    ------
    PatternError
        If an entry of the column is not stored in A.
    """

    _rotations = 2

    def __init__(self, factor: NumericFactor, i: int, column: SparseColumns) -> None:
        old, position = factor.matrix, factor.symbolic.column_positions
        data = old.data.copy()
        outside = _set_row(old.indptr, old.indices, data, i, column.rows, column.values)
        if outside[0] >= 0:
            raise PatternError(*outside)
        self.matrix, self._i = with_data(old, data), int(position[i])
        super().__init__(factor, position[i : i + 1])
        stored = position[old.indices[old.indptr[i] : old.indptr[i + 1]]]
        plan = factor.symbolic.plan
        self._below = fronts_of_row(plan, stored[stored < self._i], self._i)
        size = int((plan.start[self._below + 1] - plan.start[self._below]).sum())
        self._row, self._x = np.zeros(size, factor.dtype), np.zeros(old.n, factor.dtype)
        np.add.at(self._x, position[column.rows], column.values)

    def _apply(self) -> bool:
        """Replace the row by that of the identity, then this by the new one."""
        factor, i, s = self._factor, self._i, self._fronts[0]
        place = factor.symbolic.plan, factor.panel, factor.panels
        exchange_row(*place, self._below, i, self._row)
        largest = int(factor.panel[s + 1] - factor.panel[s])
        rows, column = np.empty(largest, np.int32), np.empty(largest, factor.dtype)
        count = take_column(*place, s, i, rows, column)
        extent, rows = np.array([0, count]), rows[:count]
        if not self._rotate(SparseColumns(extent, rows, column[:count]), True):
            return False
        if not put_row(*place, self._below, s, i, self._x):
            return False
        return self._rotate(SparseColumns(extent, rows, self._x[rows]), False)

    def record_roundings(self, record: UpdateRecord) -> None:
        """See `PanelChange`; the new values are the user's."""
        record.lost[self._i] = 0

    def _restore_panels(self) -> None:
        if self._saved is not None:
            factor = self._factor
            place = factor.symbolic.plan, factor.panel, factor.panels
            exchange_row(*place, self._below, self._i, self._row)
        super()._restore_panels()
