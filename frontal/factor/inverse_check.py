"""Check of entries of an inverse Z: the diagonal of A Z, which only takes entries in A's pattern.

The recurrence amplifies rounding errors if pivots are much smaller than their columns, as threshold
pivoting permits, and amplifications of fronts above each other multiply. Cholesky's terms are all
positive, so its entries need no check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..backend.protocol import NumericFactor


class ResidualEntries(NamedTuple):
    """The entries of Z in some diagonal entries of A Z.

    Attributes
    ----------
    rows, columns : (e,) int arrays
        Entries of Z, in the numbering of A; they are in the pattern of L + U.
    data : (e,) array
        The entries of A that multiply them.
    begin : (c,) int64 array
        Start of each diagonal entry's terms.
    """

    rows: np.ndarray
    columns: np.ndarray
    data: np.ndarray
    begin: np.ndarray

    def accurate(self, values: np.ndarray) -> bool:
        """Return whether the diagonal of A Z is 1 up to a third of the digits of |A| |Z|."""
        if self.begin.size == 0:
            return True
        with np.errstate(over="ignore", invalid="ignore"):
            terms = self.data * values
            sums = np.add.reduceat(terms, self.begin)
            sizes = np.add.reduceat(np.abs(terms), self.begin)
            limit = np.finfo(values.dtype).eps ** (2 / 3)
            return bool((np.abs(sums - 1) <= limit * np.maximum(1, sizes)).all())  # not for NaN


def residual_entries(factor: NumericFactor, columns: np.ndarray | None = None) -> ResidualEntries:
    """Return the terms of the diagonal of A Z in some distinct columns, by default in all."""
    indptr, indices, place = factor.symbolic.by_rows
    columns = np.arange(factor.symbolic.n) if columns is None else columns
    counts = np.diff(indptr)[columns]
    end = np.cumsum(counts, dtype=np.int64)
    begin = end - counts
    entries = np.arange(int(counts.sum())) + np.repeat(indptr[columns] - begin, counts)
    return ResidualEntries(
        rows=indices[entries],
        columns=np.repeat(columns, counts),
        data=factor.matrix.data[place[entries]],
        begin=begin,
    )
