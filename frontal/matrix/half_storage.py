"""Half storage: matrices stored by one triangle, and their completion."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..compile.jit import jit

TRIANGLES = ("lower", "upper")


@dataclass(frozen=True, eq=False)
class HalfStorage:
    """A map from the values of one triangle to those of the matrix.

    Attributes
    ----------
    side : str
        ``"lower"`` or ``"upper"``.
    adjoint : bool
        Whether the other triangle is the adjoint, not the transpose.
    indptr, indices : (n + 1,) int64, (count,) int32 arrays
        The stored pattern, by columns; it may have zeros in the other triangle.
    place, mirror : (count,) int64 arrays
        Positions of each value and of its mirror image among the values of the matrix by columns;
        equal on the diagonal. -1 for an entry in the other triangle, which must be zero.
    entries : int
        Number of stored entries of the matrix.
    """

    side: str
    adjoint: bool
    indptr: np.ndarray = field(repr=False)
    indices: np.ndarray = field(repr=False)
    place: np.ndarray = field(repr=False)
    mirror: np.ndarray = field(repr=False)
    entries: int

    def complete(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the matrix by columns from those of the triangle by columns.

        Raises
        ------
        ValueError
            If the other triangle has a nonzero entry.
        """
        full_values = np.empty(self.entries, values.dtype)
        wrong = _complete(values, self.place, self.mirror, self.adjoint, full_values)
        if wrong >= 0:
            column = int(np.searchsorted(self.indptr, wrong, "right")) - 1
            raise ValueError(
                f"triangle={self.side!r} means that only the {self.side} triangle is stored, but "
                f"A[{self.indices[wrong]}, {column}] = {values[wrong]}. Try: "
                f"scipy.sparse.{'tril' if self.side == 'lower' else 'triu'}(A), or triangle=None "
                "for a matrix with both triangles"
            )
        return full_values


def completed(
    indptr: np.ndarray, indices: np.ndarray, side: str, adjoint: bool
) -> tuple[HalfStorage, np.ndarray, np.ndarray]:
    """Return the half storage of a triangle, and the pattern (indptr, indices) of both triangles.

    The stored pattern is by columns with rows ascending; `side` and `adjoint` as for `HalfStorage`.
    """
    full_indptr, rows, place, mirror = _pattern(indptr, indices, side == "lower")
    return HalfStorage(side, adjoint, indptr, indices, place, mirror, rows.size), full_indptr, rows


@jit
def _pattern(indptr, indices, lower):
    """Return columns of both triangles with rows ascending, and two positions for each entry.

    Entries above the diagonal precede those below it in each column: either the images of a lower
    triangle, whose columns ascend in the order of the loop, or the entries of an upper triangle.
    """
    n = indptr.size - 1
    above, below = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i == j:
                below[j] += 1  # the diagonal precedes them
            elif (i > j) == lower:
                below[min(i, j)] += 1
                above[max(i, j)] += 1
    full_indptr = np.zeros(n + 1, np.int64)
    for j in range(n):
        full_indptr[j + 1] = full_indptr[j] + above[j] + below[j]
    rows = np.empty(full_indptr[n], np.int32)
    place, mirror = np.full(indices.size, -1, np.int64), np.full(indices.size, -1, np.int64)
    head = full_indptr[:-1].copy()
    tail = full_indptr[:-1] + above[:-1]
    for j in range(n):
        for p in range(indptr[j], indptr[j + 1]):
            i = indices[p]
            if i != j and (i > j) != lower:
                continue
            small, large = min(i, j), max(i, j)
            q = tail[small]  # the entry (large, small), below the diagonal or on it
            tail[small] += 1
            rows[q] = large
            r = q
            if i != j:
                r = head[large]  # the entry (small, large)
                head[large] += 1
                rows[r] = small
            place[p], mirror[p] = (q, r) if lower else (r, q)
    return full_indptr, rows, place, mirror


@jit
def _complete(values, place, mirror, adjoint, full_values):
    """Write values to their two positions; return the first misplaced nonzero, or -1."""
    for p in range(values.size):
        if place[p] < 0:
            if values[p] != 0:
                return p
            continue
        if mirror[p] != place[p]:
            full_values[mirror[p]] = np.conj(values[p]) if adjoint else values[p]
        full_values[place[p]] = values[p]
    return -1
