"""Scaled problems: empty rows and columns removed, norms near 1, factors that are powers of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

_TURNS = 12  # steps of the power iteration


@dataclass(frozen=True)
class Compact:
    """A matrix without empty rows and columns, over a power of two that makes its norm about 1.

    Attributes
    ----------
    A : (p, q) sparse array in double precision
    shape : tuple of int
        Shape (m, n) of the user's matrix.
    rows, columns : arrays
        Rows and columns of the user's matrix with a nonzero entry.
    scale : float
        A is the user's matrix over `scale`.
    norm : float
        Estimate of the 2-norm of A, from below.
    """

    A: sp.csc_array
    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray
    scale: float
    norm: float

    @classmethod
    def from_matrix(cls, A: sp.csc_array) -> Compact:
        """Return a matrix compacted; A is finite, and not modified."""
        wide = np.result_type(A.dtype, np.float64)
        A = A.astype(wide, copy=True)
        shape = A.shape
        A.eliminate_zeros()
        rows = np.flatnonzero(np.bincount(A.indices, minlength=shape[0]))
        columns = np.flatnonzero(np.diff(A.indptr))
        A = sp.csc_array(A[rows][:, columns])
        scale = power_of_two(np.array([abs(A.data).max(initial=0)]))[0]
        A.data /= scale
        if not A.data.all():
            raise ValueError("nonzero entries of A differ by more than a factor of 1e308: scale A")
        norm = two_norm(A)
        if norm > 0:
            more = power_of_two(np.array([norm]))[0]
            A.data, scale, norm = A.data / more, scale * more, norm / more
        return cls(A, shape, rows, columns, float(scale), float(norm))


def power_of_two(sizes: np.ndarray) -> np.ndarray:
    """Return the powers of two nearest to positive numbers, from above; 1 for zero."""
    exponents = np.frexp(sizes)[1]
    return np.ldexp(1.0, np.clip(np.where(sizes > 0, exponents, 0), -1020, 1020))


def column_scales(A: sp.csc_array) -> np.ndarray:
    """Return the (n,) powers of two by which columns of A are to be divided: about their norms."""
    sizes, starts = abs(A.data), A.indptr[:-1]
    largest = np.maximum.reduceat(sizes, starts) if A.nnz else np.zeros(A.shape[1])
    relative = sizes / np.repeat(power_of_two(largest), np.diff(A.indptr))
    squares = np.add.reduceat(relative**2, starts) if A.nnz else largest
    return power_of_two(largest) * power_of_two(np.sqrt(squares))


def equilibrated(A: sp.csc_array) -> tuple[sp.csc_array, np.ndarray]:
    """Return A D with a 2-norm of about 1 and columns of equal norms, and the (n,) diagonal of D.

    Unit columns are nearly the best diagonal scaling of the condition number (van der Sluis 1969).
    A has no empty column.
    """
    scales = column_scales(A)
    B = A.copy()
    B.data = B.data / np.repeat(scales, np.diff(A.indptr))
    norm = power_of_two(np.array([two_norm(B)]))[0]
    B.data /= norm
    return B, 1 / scales / norm


def two_norm(A: sp.csc_array) -> float:
    """Estimate the 2-norm of A from below, by the power method."""
    if not A.nnz:
        return 0.0
    x = np.random.default_rng(0).standard_normal(A.shape[1])
    adjoint, norm = A.conj().T, 0.0
    for _ in range(_TURNS):
        x = x / _length(x)
        y = A @ x
        norm = max(norm, _length(y))
        x = adjoint @ y
        if not x.any():
            break
    return norm


def _length(x: np.ndarray) -> float:
    """Return the 2-norm, without the threads of BLAS, which take longer to start."""
    return float(np.sqrt((abs(x) ** 2).sum()))
