"""Types of user input, matrices of several libraries, dense or sparse, and tests for them."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

Sparse: TypeAlias = sp.sparray | sp.spmatrix  # any format
Untyped: TypeAlias = Any  # an array or matrix of NumPy, SciPy or a library on a device


class Convertible(Protocol):
    """A sparse array of another library that converts itself to SciPy, such as PyData's."""

    def to_scipy_sparse(self) -> Sparse:
        """Return the array as SciPy's."""
        ...


class OnDevice(Protocol):
    """A dense or sparse array of CuPy."""

    def get(self) -> np.ndarray | Sparse:
        """Return the array in host memory."""
        ...


MatrixLike: TypeAlias = Sparse | ArrayLike | Convertible | OnDevice


def is_sparse(A: object) -> TypeGuard[Sparse]:
    """Return whether A is a sparse array or matrix of SciPy."""
    return sp.issparse(A)


def is_on_cupy(A: object) -> TypeGuard[OnDevice]:
    """Return whether A is an array of CuPy, without importing CuPy."""
    return type(A).__module__.partition(".")[0] in ("cupy", "cupyx")


def for_scipy(A: MatrixLike) -> MatrixLike:
    """Return a sparse array of another library converted to SciPy; other objects unchanged."""
    convert = getattr(A, "to_scipy_sparse", None)
    return convert() if convert else A
