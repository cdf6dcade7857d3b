"""Scalings of rows and columns in which a seemingly singular matrix may be regular.

No scaling is optimal for all matrices, and finding the optimal one is as hard as inversion. These
are in common use: the largest entry of each row and column near 1, alternating (Ruiz,
RAL-TR-2001-034) or rows first; logarithms of all entries near zero (Curtis and Reid 1972); a
matching with entries 1, and all other entries at most 1 (Duff and Koster 2001).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..matrix.canonical import Canonical
from ..symbolic.matching import maximum_product_matching
from ..symbolic.scaling import equilibrate

_TURNS = 12  # iterations; each halves the logarithm of a row's or column's largest entry
_SWEEPS = 100  # half iterations of the least-squares scaling, rows or columns


class Exponents(NamedTuple):
    """Exponents of the powers of two that scale rows and columns, (n,) int64 arrays."""

    row: np.ndarray
    column: np.ndarray

    @classmethod
    def from_logarithms(cls, row: np.ndarray, column: np.ndarray) -> Exponents:
        """Create the exponents nearest to logarithms to base 2."""
        return cls(np.rint(row).astype(np.int64), np.rint(column).astype(np.int64))


def other_scalings(matrix: Canonical, row: np.ndarray, column: np.ndarray) -> Iterator[Exponents]:
    """Generate scalings of a matrix that are not multiples of the given one or of each other.

    Parameters
    ----------
    matrix : Canonical
    row, column : (n,) int arrays
        Exponents of the given scaling.
    """
    entries = _LogEntries.from_matrix(matrix)
    seen = [Exponents(row, column)]
    for make in (entries.by_turns, entries.rows_first, entries.balanced, entries.matched):
        scaling = make()
        if not any(_is_multiple(scaling, other) for other in seen):
            seen.append(scaling)
            yield scaling


def _is_multiple(first: Exponents, second: Exponents) -> bool:
    """Return whether two scalings differ by one factor of all rows and one of all columns."""
    return all(np.unique(a - b).size <= 1 for a, b in zip(first, second, strict=True))


class _LogEntries(NamedTuple):
    """Rows, columns and logarithms to base 2 of the nonzero entries."""

    matrix: Canonical
    row: np.ndarray
    column: np.ndarray
    size: np.ndarray

    @classmethod
    def from_matrix(cls, matrix: Canonical) -> _LogEntries:
        n = matrix.shape[0]
        nonzero = matrix.data != 0
        column = np.repeat(np.arange(n), np.diff(matrix.indptr))[nonzero]
        size = np.log2(np.abs(matrix.data[nonzero].astype(_wide(matrix.dtype)))).astype(np.float64)
        return cls(matrix, matrix.indices[nonzero], column, size)

    def by_turns(self) -> Exponents:
        """Divide rows and columns, in turn, by the square roots of their largest entries (Ruiz)."""
        n = self.matrix.shape[0]
        row_scale, column_scale = np.zeros(n), np.zeros(n)
        for _ in range(_TURNS):
            for place, side in ((self.row, row_scale), (self.column, column_scale)):
                largest = np.full(n, -np.inf)
                np.maximum.at(largest, place, self._scaled(row_scale, column_scale))
                side -= np.where(np.isfinite(largest), 0.5 * largest, 0.0)
        return Exponents.from_logarithms(row_scale, column_scale)

    def rows_first(self) -> Exponents:
        """Scale the largest entry of each row, then of each column, to nearly 1."""
        matrix = self.matrix
        return Exponents.from_logarithms(
            *map(np.log2, equilibrate(matrix.indptr, matrix.indices, matrix.data))
        )

    def balanced(self) -> Exponents:
        """Minimize the sum of the squared logarithms approximately (Curtis and Reid)."""
        n = self.matrix.shape[0]
        places, scale = (self.row, self.column), (np.zeros(n), np.zeros(n))
        counts = [np.maximum(np.bincount(place, minlength=n), 1) for place in places]
        for turn in range(_SWEEPS):
            axis = turn % 2
            sums = np.bincount(places[axis], self._scaled(*scale), n)
            scale[axis][:] -= sums / counts[axis]
        return Exponents.from_logarithms(*scale)

    def matched(self) -> Exponents:
        """Scale the entries of a maximum-product matching to 1, and all others to at most 1."""
        matching = maximum_product_matching(self.matrix.A)
        return Exponents.from_logarithms(np.log2(matching.row_scale), np.log2(matching.col_scale))

    def _scaled(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        return self.size + row[self.row] + column[self.column]


def _wide(dtype: np.dtype) -> np.dtype:
    """Return a type in which the modulus of any number of `dtype` is finite."""
    return np.result_type(dtype, np.longdouble)
