"""Scalings of rows and columns in which a matrix that looks singular may be regular.

No scaling is the best for all matrices, and to find the best is as hard as to invert them. These
are the ones that solvers use: the largest entry of each row and column near 1, by turns (Ruiz,
RAL-TR-2001-034) or rows first; logarithms of all entries near zero (Curtis and Reid 1972); a
matching whose entries are 1 and no other above it (Duff and Koster 2001).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..matrix.canonical import Canonical
from ..symbolic.matching import maximum_product_matching
from ..symbolic.scaling import equilibrate

_TURNS = 12  # each halves the decades between a row's largest entry and 1
_SWEEPS = 100


class Exponents(NamedTuple):
    """Exponents of the powers of two that scale rows and columns, (n,) int64 arrays."""

    row: np.ndarray
    column: np.ndarray

    @classmethod
    def from_logarithms(cls, row: np.ndarray, column: np.ndarray) -> Exponents:
        """Those nearest to logarithms to base 2."""
        return cls(np.rint(row).astype(np.int64), np.rint(column).astype(np.int64))


def other_scalings(matrix: Canonical, row: np.ndarray, column: np.ndarray) -> Iterator[Exponents]:
    """Scalings of a matrix that are no multiples of the given one, one after the other.

    Parameters
    ----------
    matrix : Canonical
    row, column : (n,) int arrays
        Exponents of the scaling that is known already.
    """
    entries = _LogEntries.from_matrix(matrix)
    seen = [Exponents(row, column)]
    for make in (entries.by_turns, entries.rows_first, entries.balanced, entries.matched):
        scaling = make()
        if not any(_is_multiple(scaling, other) for other in seen):
            seen.append(scaling)
            yield scaling


def _is_multiple(first: Exponents, second: Exponents) -> bool:
    """Whether two scalings differ by a factor of all rows and one of all columns."""
    return all(np.unique(a - b).size <= 1 for a, b in zip(first, second, strict=True))


class _LogEntries(NamedTuple):
    """Rows, columns and logarithms to base 2 of the entries that are not zero."""

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
        """Half of what makes the largest entry of each row 1, then of each column, and again."""
        n = self.matrix.shape[0]
        scale = np.zeros(n), np.zeros(n)
        for _ in range(_TURNS):
            for place, side in zip((self.row, self.column), scale, strict=True):
                largest = np.full(n, -np.inf)
                np.maximum.at(largest, place, self._scaled(*scale))
                side -= np.where(np.isfinite(largest), 0.5 * largest, 0.0)
        return Exponents.from_logarithms(*scale)

    def rows_first(self) -> Exponents:
        """The largest entry of each row, then of each column, is near 1."""
        matrix = self.matrix
        return Exponents.from_logarithms(
            *map(np.log2, equilibrate(matrix.indptr, matrix.indices, matrix.data))
        )

    def balanced(self) -> Exponents:
        """The squares of all logarithms have the least sum, but for what sweeps leave of it."""
        n = self.matrix.shape[0]
        places, scale = (self.row, self.column), (np.zeros(n), np.zeros(n))
        counts = [np.maximum(np.bincount(place, minlength=n), 1) for place in places]
        for turn in range(_SWEEPS):
            axis = turn % 2
            sums = np.bincount(places[axis], self._scaled(*scale), n)
            scale[axis][:] -= sums / counts[axis]
        return Exponents.from_logarithms(*scale)

    def matched(self) -> Exponents:
        """Entries of a matching of the largest product are 1, and no entry is above 1."""
        matching = maximum_product_matching(self.matrix.A)
        return Exponents.from_logarithms(np.log2(matching.row_scale), np.log2(matching.col_scale))

    def _scaled(self, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        return self.size + row[self.row] + column[self.column]


def _wide(dtype: np.dtype) -> np.dtype:
    """A type in which no modulus of numbers of a type is too large."""
    return np.result_type(dtype, np.longdouble)
