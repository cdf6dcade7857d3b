"""Value maps: from the values of a matrix in the user's order to those of the canonical matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp

from .._typing import Sparse, Untyped
from ..compile.jit import brief, jit
from .csc import first_from
from .half_storage import HalfStorage

_ORDERED = ("csc", "csr", "coo", "bsr")  # formats with one array of all values, without padding
_INT32 = np.iinfo(np.int32).max


@dataclass(eq=False)
class ValueMap:
    """The map from stored values of a matrix, in their order, to values by columns.

    Attributes
    ----------
    format : str
        Format of the matrix, as SciPy names it.
    shape : tuple of int
        Shape of its array of values.
    place : (count,) int array or None
        Position of each value among those by columns with rows ascending. None: computed from the
        pattern; CSC stores by columns, and CSR by rows with columns ascending.
    repeated : bool
        Several values belong to one entry, which is their sum.
    triangle : HalfStorage or None
        For half storage: `place` then refers to the stored pattern.
    """

    format: str
    shape: tuple[int, ...]
    place: np.ndarray | None = field(default=None, repr=False)
    repeated: bool = False
    triangle: HalfStorage | None = None
    _by_rows: np.ndarray | None = field(default=None, init=False, repr=False)
    _mirrored: bool | None = field(default=None, init=False, repr=False)

    @classmethod
    def by_columns(cls, count: int) -> ValueMap:
        """Return the map of the canonical order."""
        return cls("csc", (count,))

    @property
    def is_by_columns(self) -> bool:
        """Whether values are in canonical order."""
        return self.place is None and self.format == "csc" and self.triangle is None

    def is_value_array(self, A: Untyped) -> bool:
        """Return whether A is an array of values, not a matrix."""
        if sp.issparse(A) or hasattr(A, "format"):
            return False
        return np.ndim(A) == 1 or np.shape(A) == self.shape

    def require(self, values: np.ndarray) -> None:
        """Raise ValueError if the number of values does not fit, or the format has no order."""
        if self.format not in _ORDERED:
            raise ValueError(
                f"an array of values needs an order, but the last matrix of this factor "
                f"({self.format}) has no array with one value for each entry. Try: refactorize "
                "with the matrix itself, or refactorize once with a CSC, CSR, COO or BSR matrix, "
                "whose A.data defines the order"
            )
        count = math.prod(self.shape)
        if values.size != count:
            raise ValueError(
                f"{values.size} values given, but the last {self.format} matrix of this factor "
                f"stores {count} entries"
            )

    def by_rows(self, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Return the positions of values by rows, for a pattern by columns."""
        positions = self._by_rows
        if positions is None:
            n, count = indptr.size - 1, indices.size
            number = np.arange(count, dtype=_index_type(count))
            pattern = sp.csc_array((number, indices, indptr), shape=(n, n)).tocsr()
            same = np.array_equal(pattern.indptr, indptr)
            self._mirrored = same and np.array_equal(pattern.indices, indices)
            positions = self._by_rows = pattern.data
        return positions

    def hermitian(self, values: np.ndarray, indptr: np.ndarray, indices: np.ndarray) -> bool:
        """Return whether A == A^H exactly, for values by columns, as `is_hermitian`.

        In a symmetric pattern entry p by rows is the transposed entry of entry p by columns, so one
        pass suffices once the order by rows is known.
        """
        place = self.by_rows(indptr, indices)
        return bool(self._mirrored) and _equal_mirrored(values, place)

    def arranged(
        self, values: np.ndarray, work: np.dtype, indptr: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        """Return values by columns in the scalar type `work`; may return the given array."""
        if self.triangle is not None:
            half = self.triangle
            stored = replace(self, triangle=None)
            return half.complete(stored.arranged(values, work, half.indptr, half.indices))
        self.require(values)
        values = values.reshape(-1)
        if self.is_by_columns:
            return values.astype(work, copy=False)
        place = self.by_rows(indptr, indices) if self.place is None else self.place
        if not self.repeated:
            out = np.empty(indices.size, work)
            out[place] = values
            return out
        out = np.zeros(indices.size, work)
        np.add.at(out, place, values.astype(work, copy=False))
        # True + True is True, as in `canonical`
        return (out != 0).astype(work) if values.dtype.kind == "b" else out

    def coordinates(self, indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the row and the column of each value, (count,) int32, for a pattern by columns.

        Raises
        ------
        ValueError
            If the format has no order.
        """
        if self.triangle is not None:
            half = self.triangle
            return replace(self, triangle=None).coordinates(half.indptr, half.indices)
        if self.format not in _ORDERED:
            raise ValueError(
                f"the last matrix of this factor ({self.format}) has no array with one value for "
                "each entry. Try: a CSC, CSR, COO or BSR matrix"
            )
        columns = np.repeat(np.arange(indptr.size - 1, dtype=np.int32), np.diff(indptr))
        if self.is_by_columns:
            return indices, columns
        place = self.by_rows(indptr, indices) if self.place is None else self.place
        return indices[place], columns[place]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_by_rows": None, "_mirrored": None}


def of_pattern(A: Untyped, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray | None:
    """Return the values of a CSC matrix with exactly this pattern; None for any other matrix."""
    if not sp.issparse(A) or A.format != "csc" or A.shape[0] != A.shape[1]:
        return None
    count = indices.size
    if A.indptr.size != indptr.size or min(A.indices.size, A.data.size) < count:
        return None
    same = np.array_equal(A.indptr, indptr) and np.array_equal(A.indices[:count], indices)
    return A.data[:count] if same else None


def as_stored(A: Sparse, indices: np.ndarray) -> bool:
    """Return whether compressed `indices` are those of A itself, in the same order."""
    if A.format not in ("csc", "csr") or A.indptr[-1] != indices.size:
        return False
    if np.may_share_memory(A.indices, indices):
        return True
    return np.array_equal(A.indices[: indices.size], indices)


def order_of(
    original: object, A: Sparse, indptr: np.ndarray, indices: np.ndarray, stored: bool
) -> ValueMap:
    """Return the value map of the user's matrix `original`.

    `A` is the converted matrix before its entries were sorted, `indptr` and `indices` its pattern
    by columns, and `stored` the result of `as_stored`.
    """
    form = getattr(original, "format", "dense")
    if form not in _ORDERED or form != A.format:
        return ValueMap(form, A.data.shape if form == "dia" else (0,))
    if stored:
        return ValueMap(form, (indices.size,))
    row, column = _coordinates(A)
    place = np.empty(row.size, _index_type(indices.size))
    row, column = (x.astype(np.int32, copy=False) for x in (row, column))
    _find(indptr, indices, row, column, place)
    blocks = (-1, *A.blocksize) if form == "bsr" else (-1,)
    shape = place.reshape(blocks).shape if place.size else A.data.shape
    return ValueMap(form, shape, place, place.size != indices.size)


def _index_type(count: int) -> type:
    return np.int32 if count <= _INT32 else np.int64


def _coordinates(A: Sparse) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column of each value that A stores, in its order."""
    if A.format == "bsr":
        count = int(A.indptr[-1])
        A = sp.bsr_array((A.data[:count], A.indices[:count], A.indptr), shape=A.shape)
        A = A.tocoo(copy=False)
    if A.format == "coo":
        return A.row, A.col
    inner = A.indices[: int(A.indptr[-1])]
    outer = np.repeat(np.arange(A.indptr.size - 1, dtype=np.int32), np.diff(A.indptr))
    return (inner, outer) if A.format == "csc" else (outer, inner)


@jit
def _find(indptr, indices, row, column, place):
    """Write the position of each entry (row, column) to `place`; the pattern contains all."""
    for p in range(row.size):
        place[p] = first_from(indices, indptr[column[p]], indptr[column[p] + 1], row[p])


@brief
def _equal_mirrored(values, place):
    """Return whether values equal the conjugates at the mirrored positions; NaN equals NaN."""
    good = True
    for p in range(values.size):
        a, b = values[p], np.conj(values[place[p]])
        good &= (a == b) | ((a != a) & (b != b))
    return good
