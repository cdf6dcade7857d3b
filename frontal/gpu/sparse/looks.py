"""What is told of each of many systems of one pattern, and of its factor: one small download."""

from __future__ import annotations

import numpy as np

from ..runtime.array import NULL, Array, Value
from . import health, launch
from .factor import GpuFactor
from .pattern import Pattern


class Looks:
    """Looks at the values and the pivots of some systems of one order beside each other.

    Parameters
    ----------
    pattern : Pattern
        Of all of them.
    count : int
        Number of systems.
    """

    def __init__(self, pattern: Pattern, count: int) -> None:
        self._pattern, self._count = pattern, count
        device = pattern.device
        threads = 32 * count  # a warp each
        self._grid = (max(launch.system_blocks(threads, device.limits), 1),)

    def of_values(self, values: Array, mirror: Array | None) -> np.ndarray:
        """Look at values (count, nnz) by columns; waits.

        Parameters
        ----------
        mirror : device array (nnz,) of int32, optional
            Where the transposed entry is, for each.

        Returns
        -------
        (2, count) float64 array
            Largest part of a value, no finite number where one is not; and difference from the
            transposed entry, 0 without `mirror`.
        """
        other = NULL if mirror is None else mirror
        return self._found("look_at_values", 2, values.dtype, values.shape[1], other, values)

    def of_pivots(self, factor: GpuFactor, values: Array, own: Array) -> np.ndarray:
        """Look at the pivots of a factor of all systems; waits.

        Parameters
        ----------
        values : device array (count, nnz)
            By columns.
        own : device array (n,) of int32
            For each pivot of a system the diagonal entry that it came from.

        Returns
        -------
        (5, count) float64 array
            Least and largest modulus; by Cholesky the least of its square beside that entry, and
            1 + the first one that is not positive, or 0. Else how many columns of L are beyond
            `structs.LIMIT`, and the largest.
        """
        pattern, count = self._pattern, self._count
        fronts, n = pattern.k.size // count, int(pattern.plan.start[-1]) // count
        kept = factor.storage.largest
        largest = NULL if kept is None else kept
        tasks, panels = pattern.all_tasks(factor.dtype), factor.storage.panels
        of = fronts, n, tasks, panels, values.shape[1], own, values, largest
        return self._found("look_at_pivots", 5, factor.dtype, *of)

    def _found(self, name: str, kinds: int, dtype: np.dtype, *arguments: Value | int) -> np.ndarray:
        pattern, device = self._pattern, self._pattern.device
        found = device.xp.zeros((kinds, self._count), np.float64)
        kernel = device.kernel("front_looks.cu", name, dtype, **health.constants(pattern))
        given = [np.int32(x) if isinstance(x, int) else x for x in (self._count, *arguments)]
        kernel(self._grid, (launch.SYSTEM_THREADS,), (*given, found))
        return device.download(found)
