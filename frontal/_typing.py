"""Types of what users give, matrices of several libraries, dense or sparse, and which is which."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

Sparse: TypeAlias = sp.sparray | sp.spmatrix  # of any format
Untyped: TypeAlias = Any  # an array or a matrix of SciPy's, or of a library on a device


class Convertible(Protocol):
    """A sparse array of another library that gives itself to SciPy, as PyData's."""

    def to_scipy_sparse(self) -> Sparse:
        """The same for SciPy."""
        ...


class OnDevice(Protocol):
    """A dense or sparse array of CuPy."""

    def get(self) -> np.ndarray | Sparse:
        """The same in host memory."""
        ...


MatrixLike: TypeAlias = Sparse | ArrayLike | Convertible | OnDevice


def is_sparse(A: object) -> TypeGuard[Sparse]:
    """Whether A is one of SciPy's sparse arrays or matrices."""
    return sp.issparse(A)


def is_on_cupy(A: object) -> TypeGuard[OnDevice]:
    """Whether A lives on a device of CuPy, seen without importing it."""
    return type(A).__module__.partition(".")[0] in ("cupy", "cupyx")


def for_scipy(A: MatrixLike) -> MatrixLike:
    """What another library gives to SciPy, if A is a sparse array of one; else A."""
    convert = getattr(A, "to_scipy_sparse", None)
    return convert() if convert else A
