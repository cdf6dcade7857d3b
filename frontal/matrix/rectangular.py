"""Rectangular matrices as sorted compressed columns, with the checks of square ones."""

from __future__ import annotations

import scipy.sparse as sp

from .._typing import MatrixLike
from .canonical import check_finite_entries, two_dimensional, working_dtype
from .exact import refuse_inexact
from .validate import checked


def rectangular(A: MatrixLike, *, check_finite: bool = True) -> sp.csc_array:
    """Return a matrix of any shape by columns, sorted and without duplicates.

    Parameters
    ----------
    A : (m, n) sparse matrix or array of any format, CuPy's too, or dense array
        It may share memory with the result: read only.
    check_finite : bool
        Refuse NaN and infinity.

    Raises
    ------
    ValueError, TypeError, NonFiniteInputError
        As `canonical`, for matrices of any shape.

    Examples
    --------
    >>> rectangular(sp.coo_array(([2, 1, 3], ([0, 0, 1], [1, 1, 2])), shape=(2, 3))).toarray()
    array([[0., 3., 0.],
           [0., 0., 3.]])
    """
    matrix = checked(two_dimensional(A), "A")  # before SciPy converts it
    work = working_dtype(matrix.dtype, "A")
    refuse_inexact(matrix.data, "A")
    if matrix.dtype.kind != "b":  # True + True is True, as in A.toarray()
        matrix = matrix.astype(work, copy=False)  # before sums: small integers overflow
    columns = sp.csc_array(matrix)
    if not columns.has_canonical_format:
        columns = columns.copy() if columns.data is matrix.data else columns
        columns.sum_duplicates()
    columns = columns.astype(work, copy=False)
    if check_finite:
        check_finite_entries(columns.indptr, columns.indices, columns.data)
    return columns
