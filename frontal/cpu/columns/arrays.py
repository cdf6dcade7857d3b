"""The arrays of L and U by columns, and the matrix that they are computed from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating


class ColumnInput(NamedTuple):
    """A scaled matrix by columns, in elimination order.

    Attributes
    ----------
    first, start, place : arrays
        See `ColumnPlan`.
    row : (nnz,) int32 array
        Position of each row: before the interchanges, or after them for a known `ColumnPattern`.
    values : (nnz,) array
        In the order of A.
    """

    first: np.ndarray
    start: np.ndarray
    place: np.ndarray
    row: np.ndarray
    values: np.ndarray


class ColumnPattern(NamedTuple):
    """The pattern of L and U, which all refactorizations share and none changes.

    Attributes
    ----------
    lower_start, lower_row : (n + 1,) int64, int32 arrays
        L by columns, below its diagonal of ones; rows ascend.
    upper_start, upper_row : (n + 1,) int64, int32 arrays
        U by columns, above its diagonal: the rows of the diagonal block, in an order in which they
        can be eliminated, then those of earlier blocks, ascending, with the entries of A.
    between : (n,) int64 array
        Where the rows of earlier blocks begin in each column of U.
    row : (nnz,) int32 array
        Position of each row of A after the interchanges, see `ColumnInput`.
    position : (n,) int32 array
        Position after the interchanges of each row position before them.
    """

    lower_start: np.ndarray
    lower_row: np.ndarray
    upper_start: np.ndarray
    upper_row: np.ndarray
    between: np.ndarray
    row: np.ndarray
    position: np.ndarray


class ColumnValues(NamedTuple):
    """The values of L and of U in a `ColumnPattern`, and the diagonal of U."""

    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray


@allocating
def grown(array, size):
    """Return an array with the same first entries and a larger size."""
    out = np.empty(size, array.dtype)
    out[: array.size] = array
    return out
