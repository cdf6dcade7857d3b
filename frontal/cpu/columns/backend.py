"""The CPU backend for matrices that are factorized by columns: one thread, without fronts."""

from __future__ import annotations

import numpy as np

from ..._typing import Untyped
from ...backend.host_memory import require_available
from ...backend.memory_limit import Memory
from ...backend.protocol import ColumnPivotFailure, HostFactor, NumericFactor, Progress
from ...matrix.canonical import Canonical
from ...matrix.csc import diagonal_places
from ...numeric.method import NULL
from ...symbolic.columns import ColumnPlan
from ...symbolic.matching import Matching
from ...symbolic.phase import Symbolic
from ...symbolic.scaling import Scaling, ScalingRequest, scaled, scaling_of
from ..layout import footprint, refuse_beyond
from .arrays import ColumnInput
from .factor import ColumnFactor
from .factorize import FACTORIZED, FILLED, MAX_FILL_RATIO, factorize
from .refactorize import StartScaling, refactorize

_REASONS = {FILLED: "too much fill"}


class ColumnBackend:
    """See `protocol.Backend`."""

    fallback: str | None = None
    device = "1 thread"

    def __init__(self, symbolic: Symbolic, columns: ColumnPlan) -> None:
        self.symbolic, self._columns = symbolic, columns
        self._begin: tuple[Matching | None, StartScaling] | None = None

    def factorize(
        self,
        values: np.ndarray,
        scaling: Scaling | ScalingRequest | None,
        *,
        on_device: bool = False,
        hermitian: bool = False,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        delaying: bool = True,
        dtype: np.dtype | None = None,
        memory: Memory = "auto",
    ) -> ColumnFactor:
        """See `protocol.Backend`; pivots are chosen anew, also with a `previous` factor.

        Raises
        ------
        ColumnPivotFailure
            If a column has no pivot, or interchanges cause too much fill.
        FactorMemoryError
        """
        symbolic, columns, n = self.symbolic, self._columns, self.symbolic.n
        dtype = np.dtype(dtype or values.dtype)
        sizes = footprint(symbolic, dtype, values.dtype, 1)
        refuse_beyond(sizes["total"], memory)
        require_available(sizes["factor"] + sizes["contribution"])
        if progress is not None:
            progress("factorization", 0, n)
        matrix = symbolic.with_values(values, hermitian)
        if isinstance(scaling, ScalingRequest):
            scaling = scaling_of(matrix, scaling, False)
        if scaling is not None:
            values = scaled(symbolic.indptr, symbolic.indices, values, scaling.row, scaling.column)
        first, start, row, place = columns[:4]
        values = np.require(values, dtype, requirements=["C", "W"])
        eps = float(np.finfo(dtype).eps)
        room = min(columns.entries, 8 * place.size) // 2 + n  # of an untrusted file
        limit = min(MAX_FILL_RATIO * columns.entries + 16 * n, 1 << 60)
        outcome, column, pattern, factors = factorize(
            ColumnInput(first, start, place, row, values), NULL * eps, room, limit
        )
        if outcome != FACTORIZED:
            where = f"no pivot in column {int(symbolic.perm[min(column, n - 1)])}"
            raise ColumnPivotFailure(_REASONS.get(outcome, where))
        if progress is not None:
            progress("factorization", n, n)
        return ColumnFactor(matrix, symbolic, columns, pattern, factors, scaling)

    def factorize_fast(
        self, matrix: Canonical, matching: Matching | None, previous: NumericFactor | None
    ) -> ColumnFactor | None:
        """See `protocol.Backend`: with the pivots of `previous`, if they are acceptable."""
        symbolic, data, columns = self.symbolic, matrix.data, self._columns
        if not isinstance(previous, ColumnFactor) or previous.symbolic is not symbolic:
            return None
        if not previous.dtype == previous.matrix_dtype == data.dtype or not data.flags.carray:
            return None
        begin, pattern = self._start_scaling(matching), previous.pattern
        scaling = np.empty((2, symbolic.n))
        entries = ColumnInput(
            columns.first, columns.start, columns.place, pattern.row, np.empty_like(data)
        )
        eps = float(np.finfo(data.dtype).eps)
        good, ratio, *norms = refactorize(
            symbolic.indptr, symbolic.indices, data, begin, entries, pattern, previous.values,
            scaling, eps,
        )  # fmt: skip
        if not good:
            return None
        matrix = matrix.known(symbolic.method, (norms[0], norms[1]))
        return previous.renewed(matrix, Scaling(scaling[0], scaling[1]), ratio)

    def _start_scaling(self, matching: Matching | None) -> StartScaling:
        if self._begin is None or self._begin[0] is not matching:
            symbolic, row, column = self.symbolic, np.ones(self.symbolic.n), None
            if matching is not None:
                row, column = (
                    np.array(a, np.float64) for a in (matching.row_scale, matching.col_scale)
                )
            places = diagonal_places(symbolic.indptr, symbolic.indices, np.arange(symbolic.n))
            begin = StartScaling(row, row if column is None else column, column is not None, places)
            self._begin = matching, begin
        return self._begin[1]

    def values_on_host(self, values: np.ndarray) -> np.ndarray:
        """See `protocol.Backend`."""
        return values

    def device_values(self, A: Untyped) -> None:
        """See `protocol.Backend`: no values are on a device."""

    def from_host(
        self, factor: HostFactor, matrix: Canonical, scaling: Scaling | None
    ) -> NumericFactor:
        """Raise: no other backend factorizes by columns."""
        raise TypeError("the factor has fronts, and this analysis has none")
