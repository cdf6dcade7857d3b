"""The user's vectors of an update, in one form: sparse columns of the scalar type of A."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped, for_scipy, is_on_cupy, is_sparse
from ..cpu.updates.vectors import SparseColumns
from ..errors import NonFiniteInputError
from ..matrix.canonical import working_dtype
from ..matrix.exact import refuse_inexact, refuse_masked
from ..matrix.norms import first_non_finite
from ..matrix.validate import checked


def sparse_columns(C: Untyped, n: int, dtype: np.dtype, name: str = "C") -> SparseColumns:
    """Return vectors of length n as sparse columns without zeros.

    Parameters
    ----------
    C : array (n,) or (n, k), or sparse (n,) or (n, k)
        CuPy's too. Duplicates are kept as such.
    n : int
    dtype : numpy.dtype
        Scalar type of A.
    name : str
        Name of C in errors.

    Raises
    ------
    ValueError
        If the shape does not fit, or C has corrupt indices or masked entries.
    TypeError
        If C is complex and A is real, or its scalar type is not supported.
    NonFiniteInputError
        If an entry is NaN or infinite.
    """
    C = C.get() if is_on_cupy(C) else for_scipy(C)
    refuse_masked(C, name)
    C = checked(C, name) if is_sparse(C) else np.asarray(C)
    if C.ndim not in (1, 2) or C.shape[0] != n:
        raise ValueError(
            f"{name} has shape {C.shape} and the matrix {(n, n)}: {name} must be ({n},) or ({n}, k)"
        )
    if working_dtype(C.dtype, name).kind == "c" and dtype.kind != "c":
        raise TypeError(
            f"{name} is complex and the matrix is real: its factor cannot become complex. Try: "
            f"a factor of A.astype(complex), or real and imaginary parts of {name} as columns"
        )
    indptr, rows, values = _by_columns(C, n)
    refuse_inexact(values, name)
    values = np.ascontiguousarray(values, dtype)
    p = first_non_finite(values)
    if p >= 0:
        column = int(np.searchsorted(indptr, p, "right")) - 1
        raise NonFiniteInputError(name, (int(rows[p]), column)[: C.ndim], values[p].item())
    if not values.all():
        stored = values != 0
        indptr = np.append(0, np.cumsum(stored))[indptr]
        rows, values = rows[stored], values[stored]
    return SparseColumns(
        np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(rows, np.int32), values
    )


def scalar_type(C: Untyped, name: str) -> np.dtype:
    """Return the BLAS type that holds the entries of vectors; raise TypeError if there is none."""
    return working_dtype(np.dtype(getattr(C, "dtype", None) or np.asarray(C).dtype), name)


def _by_columns(C: Untyped, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return extents, rows and values of columns; a vector is one column."""
    if is_sparse(C):
        columns = (C.reshape(n, 1) if C.ndim == 1 else C).tocsc()
        count = int(columns.indptr[-1])
        return columns.indptr, columns.indices[:count], columns.data[:count]
    if C.ndim == 1:
        rows = np.flatnonzero(C)
        return np.array([0, rows.size]), rows, C[rows]
    columns, rows = np.nonzero(C.T)
    return np.searchsorted(columns, np.arange(C.shape[1] + 1)), rows, C[rows, columns]


def as_sparse(C: SparseColumns, n: int) -> sp.csc_array:
    """Return sparse columns as SciPy's array."""
    return sp.csc_array((C.values, C.rows, C.indptr), shape=(n, C.columns))
