"""Scalings of all systems of a pattern on a GPU, by the method of `symbolic.scaling`."""

from __future__ import annotations

import numpy as np

from ...cpu.small.one_system import EntryPattern
from ...gpu.runtime.device import Device
from ...symbolic.equilibrate import SWEEPS
from ..input import AnyArray

_MAX_EXPONENT = 500  # |log2| of a factor: products of two factors and their inverses are finite
_MAX_PADDING = 16  # size of the padded lists per entry; the host scales longer lists


class BatchEquilibration:
    """Row and column factors that bring the largest entries of rows and columns near 1.

    If `symmetric`, factors of rows and columns are equal.
    """

    def __init__(self, pattern: EntryPattern, symmetric: bool, device: Device) -> None:
        indptr, indices = pattern.indptr, pattern.indices
        self._symmetric, self._device = symmetric, device
        self._xp: AnyArray = device.xp
        n = indptr.size - 1
        by_rows, count = np.argsort(indices, kind="stable"), np.bincount(indices, minlength=n)
        longest = max(int(count.max(initial=0)), int(np.diff(indptr).max(initial=0)))
        self.fits = n * longest <= _MAX_PADDING * max(indices.size, 1)
        if not self.fits:
            return
        pointer = np.concatenate([[0], np.cumsum(count)])
        upload = device.upload
        self._row, self._column = upload(indices), upload(np.repeat(np.arange(n), np.diff(indptr)))
        self._row_lists = upload(_padded(pointer, by_rows))
        self._column_lists = upload(_padded(indptr, np.arange(indices.size)))
        begin = [np.rint(np.log2(factors)) for factors in (pattern.row, pattern.column)]
        self._begin: list[AnyArray] = [upload(exponent) for exponent in begin]

    def __call__(self, values: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return powers of two for values (batch, nnz) on the device: (batch, n) each."""
        xp = self._xp
        with np.errstate(divide="ignore"):
            size = xp.log2(xp.abs(values).astype(np.float64))
        size = xp.where(xp.isfinite(size), size, -np.inf)
        row, column = self._begin
        if self._symmetric:
            scale = xp.zeros((values.shape[0], row.size)) + 0.5 * (row + column)
            for _ in range(SWEEPS):
                most = self._largest(size + scale[:, self._row], self._column_lists)
                scale -= 0.5 * xp.where(xp.isfinite(most), most + scale, 0)
            both = self._powers(xp.rint(scale))
            return both, both
        size = xp.rint(size) + row[self._row] + column[self._column]
        by_row = self._largest(size, self._row_lists)
        by_row = xp.where(xp.isfinite(by_row), by_row, 0)
        by_column = self._largest(size - by_row[:, self._row], self._column_lists)
        by_column = xp.where(xp.isfinite(by_column), by_column, 0)
        return self._powers(row - by_row), self._powers(column - by_column)

    def _largest(self, size: AnyArray, lists: AnyArray) -> AnyArray:
        """Return the largest entry of each list, (batch, n)."""
        least = self._xp.full((size.shape[0], 1), -np.inf)
        return self._xp.concatenate([size, least], axis=1)[:, lists].max(axis=2)

    def _powers(self, exponent: AnyArray) -> AnyArray:
        xp = self._xp
        small = xp.clip(exponent, -_MAX_EXPONENT, _MAX_EXPONENT).astype(np.int32)
        return xp.ldexp(xp.ones(exponent.shape), small)


def _padded(pointer: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return lists of entries as rows of an array, padded with the index behind all entries."""
    count = np.diff(pointer)
    out = np.full((count.size, max(int(count.max(initial=0)), 1)), entries.size)
    line = np.repeat(np.arange(count.size), count)
    out[line, np.arange(entries.size) - pointer[line]] = entries
    return out
