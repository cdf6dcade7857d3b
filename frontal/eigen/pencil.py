"""The pencil A - s M: both matrices on one pattern, so that one analysis serves all shifts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .._typing import MatrixLike, for_scipy, is_on_cupy, is_sparse
from ..matrix.canonical import canonical
from ..matrix.exact import refuse_masked
from ..numeric.linear_system import eps_of
from ..numeric.method import symmetric_method

_MAX_EXPONENT = 100  # of entries in the user's units: squares of residuals do not overflow
_LARGEST = 2.0**1000  # shift times ||M||: ends of intervals beyond it are infinite


@dataclass(frozen=True, eq=False)
class Pencil:
    """A x = s M x with Hermitian A and M, in double precision.

    Attributes
    ----------
    A, M : (n, n) sparse arrays
        M is None for the identity.
    norms : tuple of float
        1-norms of A and M.
    dtype : numpy.dtype
        Scalar type of the results: that of the user's matrices.
    pattern : (n, n) csc_array of bool
        Union of both patterns and of the diagonal of the identity.
    a_values, m_values : (nnz,) arrays
        Values of A and M on the pattern.
    exponents : tuple of int
        The user's A and M are divided by these powers of two, zero for usual norms; so are the
        eigenvalues by their quotient.
    """

    A: sp.csc_array
    M: sp.csc_array | None
    norms: tuple[float, float]
    dtype: np.dtype
    pattern: sp.csc_array
    a_values: np.ndarray
    m_values: np.ndarray
    exponents: tuple[int, int]

    @classmethod
    def from_matrices(cls, A: MatrixLike, M: MatrixLike | None, *, scaled: bool = True) -> Pencil:
        """Check A and M, and convert them; divide very large or small ones by powers of two.

        Raises
        ------
        TypeError
            If a matrix is an operator or on a GPU, or has an unsupported scalar type.
        ValueError
            If a matrix is not square, not Hermitian, or M does not fit A.
        NonFiniteInputError
        """
        a, a_dtype = _hermitian(A, "A")
        m, m_dtype = (None, a_dtype) if M is None else _hermitian(M, "M")
        if m is not None and m.shape != a.shape:
            raise ValueError(f"A is {a.shape} and M {m.shape}: both must have one shape")
        if m is not None and m.dtype != a.dtype:
            work = np.result_type(a, m)
            a, m = a.astype(work), m.astype(work)
        exponents = (_exponent(a), 0 if m is None else _exponent(m)) if scaled else (0, 0)
        a, m = _divided(a, exponents[0]), None if m is None else _divided(m, exponents[1])
        unit = sp.csc_array(sp.eye_array(a.shape[0], dtype=a.dtype)) if m is None else m
        pattern = sp.csc_array(_ones(a) + _ones(unit))
        pattern.sort_indices()
        return cls(
            a,
            m,
            norms=(_one_norm(a), _one_norm(unit)),
            dtype=np.result_type(a_dtype, m_dtype),
            pattern=pattern,
            a_values=_spread(a, pattern),
            m_values=_spread(unit, pattern),
            exponents=exponents,
        )

    def shift_of(self, value: float) -> float:
        """Return the shift for a number in the user's units, clipped to the range of doubles."""
        exponent = self.exponents[1] - self.exponents[0]
        with np.errstate(over="ignore"):
            shift = np.ldexp(float(value), exponent)
        return float(shift if np.isinf(value) else np.clip(shift, -_LARGEST, _LARGEST))

    def end_of(self, value: float) -> float:
        """Return the end of an interval in the user's units; infinite if A - s M overflows."""
        shift = self.shift_of(value)
        too_large = abs(shift) * max(self.norms[1], 1.0) >= _LARGEST
        return math.copysign(np.inf, shift) if too_large else shift

    def in_user_units(self, values: np.ndarray) -> np.ndarray:
        """Return eigenvalues or shifts in the user's units."""
        with np.errstate(over="ignore"):
            return np.ldexp(values, self.exponents[0] - self.exponents[1])

    def normalized(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors of norm 1 by the user's M."""
        return vectors if not self.exponents[1] else vectors * 2.0 ** (-self.exponents[1] // 2)

    @property
    def n(self) -> int:
        """Order of A."""
        return self.A.shape[0]

    @property
    def kind(self) -> str:
        """The kind of the indefinite matrices A - s M."""
        return "hermitian" if self.A.dtype.kind == "c" else "symmetric"

    def values_at(self, shift: float) -> np.ndarray:
        """Return the values of A - shift M on the pattern."""
        return self.a_values - shift * self.m_values

    def matrix_at(self, shift: float) -> sp.csc_array:
        """Return A - shift M, with the pattern of all shifts."""
        data, pattern = self.values_at(shift), self.pattern
        return sp.csc_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)

    def mass_times(self, X: np.ndarray) -> np.ndarray:
        """Return M X."""
        return X if self.M is None else self.M @ X

    def scale_at(self, shift: float) -> float:
        """Return the size of eigenvalues, to which rounding errors near a shift are relative."""
        return self.norms[0] / (self.norms[1] or 1.0) + abs(shift) or 1.0

    def backward_errors(self, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return ||A x - s M x|| / ((||A|| + |s| ||M||) ||x||) of each eigenpair, (k,)."""
        residual = np.linalg.norm(self.A @ X - self.mass_times(X) * values, axis=0)
        size = (self.norms[0] + np.abs(values) * self.norms[1]) * np.linalg.norm(X, axis=0)
        return np.divide(residual, size, out=np.zeros(values.size), where=residual > 0)

    def value_errors(self, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return bounds of the errors of eigenvalues, (k,): residuals, or rounding if larger.

        X has M-norm 1; for the identity a residual bounds the distance to an eigenvalue.
        """
        residual = np.linalg.norm(self.A @ X - self.mass_times(X) * values, axis=0)
        length = np.linalg.norm(X, axis=0)
        rounding = 4 * eps_of(X.dtype) * (self.norms[0] + np.abs(values) * self.norms[1])
        return (residual + rounding * length) * length


def _hermitian(matrix: MatrixLike, name: str) -> tuple[sp.csc_array, np.dtype]:
    """Return a matrix in double precision, exactly Hermitian, and its scalar type."""
    if is_on_cupy(matrix):
        raise TypeError(
            f"{name} is on a GPU, but the eigensolver iterates on the host. "
            f"Try: {name}.get(); its factors may still be computed on the GPU"
        )
    if isinstance(matrix, LinearOperator):
        raise TypeError(
            f"{name} is an operator, which has no factor. Try: the matrix itself, or "
            "scipy.sparse.linalg.eigsh with OPinv"
        )
    refuse_masked(matrix, name)
    matrix = for_scipy(matrix)
    stored = canonical(matrix if is_sparse(matrix) else sp.csc_array(np.asarray(matrix)))
    if not stored.suits(symmetric_method(stored.dtype, True)):
        raise ValueError(
            f"{name} is neither real symmetric nor Hermitian. Likely causes: (a) {name} stores "
            "only one triangle, (b) boundary conditions changed rows but not columns. Try: "
            f"scipy.sparse.linalg.eigs, or ({name} + {name}.conj().T) / 2 if it has rounding errors"
        )
    double = stored.A.astype(np.result_type(stored.dtype, np.float64))
    if not stored.hermitian:
        double = sp.csc_array((double + double.conj().T) / 2)
        double.sort_indices()
    return double, stored.dtype


def _exponent(matrix: sp.csc_array) -> int:
    """Return the even exponent of two by which a matrix is divided."""
    exponent = int(np.frexp(np.abs(matrix.data).max(initial=0.0))[1])
    return exponent - exponent % 2 if abs(exponent) > _MAX_EXPONENT else 0


def _divided(matrix: sp.csc_array, exponent: int) -> sp.csc_array:
    if not exponent:
        return matrix
    half = 2.0 ** (-exponent // 2)  # the power itself may overflow
    return sp.csc_array(matrix * half * half)


def _ones(matrix: sp.csc_array) -> sp.csc_array:
    data = np.ones(matrix.indices.size, bool)
    return sp.csc_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def _spread(matrix: sp.csc_array, pattern: sp.csc_array) -> np.ndarray:
    """Return the values of a matrix on a larger pattern, with zeros for the others."""
    data = np.zeros(pattern.indices.size, matrix.dtype)
    if matrix.indices.size == data.size:
        data[:] = matrix.data
    else:
        data[np.searchsorted(_keys(pattern), _keys(matrix))] = matrix.data
    return data


def _keys(matrix: sp.csc_array) -> np.ndarray:
    """Return column n + row of each entry, ascending."""
    columns = np.repeat(np.arange(matrix.shape[1], dtype=np.int64), np.diff(matrix.indptr))
    return columns * matrix.shape[0] + matrix.indices


def _one_norm(matrix: sp.csc_array) -> float:
    return float(abs(matrix).sum(axis=0).max(initial=0.0))
