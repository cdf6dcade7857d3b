"""Checks of index arrays, before compiled code uses them as addresses.

SciPy checks lengths when it creates a matrix, and does not check indices later: conversions, sums
of duplicates and products of a damaged matrix end the process or read foreign memory.
"""

from __future__ import annotations

import numpy as np

from .._typing import Sparse

_MAX_OFFSET = np.iinfo(np.int32).max


def checked(A: Sparse, name: str, *, scan: bool = True) -> Sparse:
    """Return a sparse matrix or array that SciPy can convert safely.

    Parameters
    ----------
    A : sparse matrix or array
        Of any format; never modified.
    name : str
        Name of A in an error.
    scan : bool
        False checks lengths only, for CSC and CSR whose indices are checked later.

    Returns
    -------
    A itself; lists of lists as CSR and dictionaries as COO, whose arrays can be checked.

    Raises
    ------
    ValueError
        If an index is outside of the shape, or lengths contradict each other.
    """
    try:
        A = _with_arrays(A)
        rows, columns = A.shape if A.ndim == 2 else (1, A.shape[-1])
        if A.format in ("csr", "csc"):
            major, minor = (rows, columns) if A.format == "csr" else (columns, rows)
            _check_values(A.data, 1)
            _check_pointers(A, major, A.data.size)
            if scan:
                _check_order(A.indptr)
                _check_range("indices", A.indices[: A.indptr[-1]], minor)
        elif A.format == "bsr":
            _check_blocks(A, rows, columns)
        elif A.format == "coo":
            _check_coordinates(A)
        elif A.format == "dia":
            _check_diagonals(A)
    except (ValueError, TypeError, OverflowError, IndexError, AttributeError) as error:
        raise ValueError(f"the index arrays of {name} are corrupt: {error}") from error
    return A


def _with_arrays(A: Sparse) -> Sparse:
    """Convert formats without index arrays to the nearest format that has them."""
    if A.format == "lil":
        rows, data = (list(map(len, lists)) for lists in (A.rows, A.data))
        if A.rows.shape != A.shape[:1] or rows != data:
            raise ValueError("rows and data have lists of different lengths")
        return A.tocsr()
    return A.tocoo() if A.format == "dok" else A


def _check_values(data: np.ndarray, ndim: int) -> None:
    if data.ndim != ndim:
        raise ValueError(f"data has {data.ndim} dimensions, not {ndim}")


def _check_integers(what: str, values: np.ndarray) -> None:
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"{what} is {values.dtype} {values.shape}, not a vector of integers")


def _check_range(what: str, values: np.ndarray, count: int) -> None:
    low, high = (int(values.min()), int(values.max())) if values.size else (0, -1)
    if low < 0 or high >= count:
        raise ValueError(f"{what} has {low if low < 0 else high}, outside of 0 to {count - 1}")


def _check_order(indptr: np.ndarray) -> None:
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        raise ValueError(f"indptr decreases after entry {falls[0]}")


def _check_pointers(A: Sparse, count: int, stored: int) -> None:
    """Check the lengths of indptr, of indices, and of the `stored` values or blocks."""
    indptr, indices = A.indptr, A.indices
    _check_integers("indptr", indptr)
    _check_integers("indices", indices)
    if indptr.size != count + 1:
        raise ValueError(f"indptr has {indptr.size} entries, not {count + 1}")
    if indptr[0] != 0:
        raise ValueError(f"indptr begins with {indptr[0]}, not 0")
    if not 0 <= indptr[-1] <= min(indices.size, stored):
        held = f"{indices.size} indices and {stored} values"
        raise ValueError(f"indptr ends with {indptr[-1]}, but there are {held}")


def _check_blocks(A: Sparse, rows: int, columns: int) -> None:
    _check_values(A.data, 3)
    stored, height, width = A.data.shape
    if height < 1 or width < 1 or rows % height or columns % width:
        raise ValueError(f"blocks of {(height, width)} do not tile a shape of {A.shape}")
    _check_pointers(A, rows // height, stored)
    _check_order(A.indptr)
    _check_range("indices", A.indices[: A.indptr[-1]], columns // width)


def _check_coordinates(A: Sparse) -> None:
    _check_values(A.data, 1)
    coordinates = A.coords if hasattr(A, "coords") else (A.row, A.col)
    if len(coordinates) != A.ndim:
        raise ValueError(f"{len(coordinates)} vectors of coordinates for {A.ndim} dimensions")
    for axis, values in enumerate(coordinates):
        _check_integers(f"coords[{axis}]", values)
        if values.size != A.data.size:
            raise ValueError(f"coords[{axis}] has {values.size} entries, data {A.data.size}")
        _check_range(f"coords[{axis}]", values, A.shape[axis])


def _check_diagonals(A: Sparse) -> None:
    """Check offsets; diagonals outside of the shape are valid, and empty."""
    _check_values(A.data, 2)
    _check_integers("offsets", A.offsets)
    if A.offsets.size != A.data.shape[0]:
        raise ValueError(f"{A.offsets.size} offsets for {A.data.shape[0]} diagonals")
    if np.unique(A.offsets).size < A.offsets.size:
        raise ValueError("offsets contains a value twice")
    if A.offsets.size and max(int(A.offsets.max()), -int(A.offsets.min())) > _MAX_OFFSET:
        raise ValueError(f"offsets contains a value beyond {_MAX_OFFSET}")
