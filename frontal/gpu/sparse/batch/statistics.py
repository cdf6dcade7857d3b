"""Statistics of each system of a batch of one pattern, and of its factor, on the device."""

from __future__ import annotations

import numpy as np

from ...runtime.array import NULL, Array, Value
from ...runtime.graph import Launch
from .. import launch
from ..pattern import DevicePattern
from ..solve.rows import OperatorRows


class BatchStatistics:
    """Statistics of a batch of `count` systems of one order, with the pattern of all systems.

    Attributes
    ----------
    of_values : (2, count) device array of float64
        Receives the largest part of a value, not finite if a value is not; and 0 if the values are
        symmetric up to the rounding of each row or symmetry is not checked, else 1.
    of_pivots : (5, count) device array of float64
        Receives least and largest modulus of pivots; for Cholesky the least squared pivot relative
        to its original entry, and 1 + the position of the first pivot that is not positive, or 0.
        For other methods the number of columns of L beyond `structs.LIMIT`, and the largest entry.
    """

    def __init__(self, pattern: DevicePattern, count: int) -> None:
        self._pattern, self._count, xp = pattern, count, pattern.device.xp
        threads = 32 * count  # one warp for each system
        self._blocks = launch.system_blocks(threads, pattern.device.limits)
        self._largest: Array | None = None  # of each row, during `at_values`
        self.of_values: Array = xp.zeros((2, count), np.float64)
        self.of_pivots: Array = xp.zeros((5, count), np.float64)

    def at_values(
        self, values: Array, columns: tuple[Array, Array], mirror: Array | None
    ) -> Launch:
        """Return the launch that examines values (count, nnz) by columns.

        `columns` are extents (n + 1,) and rows (nnz,) of one system; `mirror` (nnz,) has the
        position of the transposed entry of each entry. Index arrays are int32.
        """
        n, xp = columns[0].size - 1, self._pattern.device.xp
        if self._largest is None and mirror is not None:
            self._largest = xp.empty((self._count, n), np.finfo(values.dtype).dtype)
        mirror_or_null, scratch = (NULL if a is None else a for a in (mirror, self._largest))
        arguments = *columns, mirror_or_null, values, scratch, self.of_values
        return self._launch("look_at_values", values.dtype, values.shape[1], n, *arguments)

    def at_pivots(
        self, panels: Array, largest: Array | None, values: Array, diagonal_index: Array
    ) -> Launch:
        """Return the launch that examines the pivots of a factor of all systems.

        `values` (count, nnz) are by columns, and `diagonal_index` (n,) int32 has the position of
        the original diagonal entry of each pivot of a system.
        """
        pattern, count = self._pattern, self._count
        fronts, n = pattern.k.size // count, int(pattern.plan.start[-1]) // count
        factor = fronts, n, pattern.all_tasks(panels.dtype), panels
        matrix = values.shape[1], diagonal_index, values
        output = NULL if largest is None else largest, self.of_pivots
        return self._launch("look_at_pivots", panels.dtype, *factor, *matrix, *output)

    def norms(self, rows: OperatorRows, values: Array) -> tuple[Array, Launch]:
        """Return infinity norms (count,) of op(A), float64, and the launch that computes them."""
        n, position = int(rows.number) // self._count, rows.position
        result = self._pattern.device.xp.empty(self._count, np.float64)
        matrix = rows.pointer, NULL if position is None else position, values
        arguments = n, np.int64(values.shape[1]), *matrix, result
        long = rows.pointer.itemsize > 4
        return result, self._launch("look_at_rows", values.dtype, *arguments, LONG=long)

    def _launch(
        self, name: str, dtype: np.dtype, *arguments: Value | int, **others: bool
    ) -> Launch:
        pattern = self._pattern
        constants = pattern.constants(**others)
        kernel = pattern.device.kernel("batch_statistics.cu", name, dtype, **constants)
        converted = (np.int32(x) if isinstance(x, int) else x for x in (self._count, *arguments))
        return Launch(kernel, self._blocks, launch.SYSTEM_THREADS, tuple(converted))
