"""Systems with vectors on the host: solutions by any backend's factor, residuals by SciPy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from ..accuracy import Errors
from ..matrix import Canonical
from ..symbolic.scaling import Scaling
from ..symbolic.symbolic import Symbolic
from .probes import HostProbes


class Sweeps(Protocol):
    """What a factor on the host or on a device does for vectors on the host."""

    symbolic: Symbolic
    scaling: Scaling | None

    @property
    def matrix(self) -> Canonical:
        """The factorized matrix."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factor."""
        ...

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        ...


def direct(factor: Sweeps, B: np.ndarray, trans: str, *, scaled: bool = True) -> np.ndarray:
    """One solution by the factors, no refinement; B is (n, k).

    Unless `scaled`, that of the matrix as it was scaled.
    """
    if trans == "H":
        return direct(factor, B.conj(), "T", scaled=scaled).conj()
    dtype = np.result_type(B.dtype, factor.dtype)
    scaling = factor.scaling if scaled else None
    rows, columns = factor.symbolic.row_perm, factor.symbolic.perm
    if trans == "T":
        rows, columns = columns, rows
    left = right = None
    if scaling is not None:
        left, right = scaling.row, scaling.column
        if trans == "T":
            left, right = right, left
        B = B * left[:, None]
    # the layout that the sweeps want, in the scalar type of the factor
    y = np.ascontiguousarray(B[rows], factor.dtype)
    factor.sweep(y, trans == "T")
    X = np.empty(B.shape, dtype)
    X[columns] = y
    if right is not None:
        X *= right[:, None]
    return X


@dataclass
class HostSystem:
    """A `System` of arrays on the host.

    Attributes
    ----------
    A : sparse array, (n, n)
        op(A): the matrix, its transpose or its adjoint.
    norm : float
        Its infinity norm.
    solver : callable
        X for a given (n, k) right-hand side, by the factors.
    magnitude : sparse array
        |op(A)|.
    badly_scaled : bool
        Refinement looks at each component, not at the norm alone: small rows matter too.
    """

    A: sp.sparray
    norm: float
    solver: Callable[[np.ndarray], np.ndarray]
    magnitude: sp.sparray
    badly_scaled: bool
    most: int = sys.maxsize

    @property
    def eps(self) -> float:
        """Precision of X."""
        return np.finfo(self.A.dtype).eps

    def solve(self, B: np.ndarray) -> np.ndarray:
        """See `System`."""
        return self.solver(B)

    def empty(self, n: int, k: int) -> np.ndarray:
        """See `System`."""
        return np.empty((n, k), self.A.dtype, order="F")

    def residual(self, X: np.ndarray, B: np.ndarray) -> np.ndarray:
        """B - A X."""
        return B - self.A @ X

    def measure(self, X: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, Errors]:
        """See `System`."""
        R = self.residual(X, B)
        component = componentwise_error(self, X, B, R) if self.badly_scaled else None
        sizes = columnwise_norm(R), columnwise_norm(X), columnwise_norm(B)
        return R, Errors(*sizes, self.norm, component, self.badly_scaled)

    def corrected(self, X: np.ndarray, R: np.ndarray) -> np.ndarray:
        """See `System`."""
        with np.errstate(all="ignore"):
            return X + self.solve(R)

    def chosen(self, better: np.ndarray, trial: np.ndarray, X: np.ndarray) -> np.ndarray:
        """See `System`."""
        return np.where(better, trial, X)

    def probes(
        self, X: np.ndarray, B: np.ndarray, solution: np.ndarray, error: float
    ) -> HostProbes | None:
        """See `System`."""
        used = (solution > 0) & np.isfinite(solution)
        if not used.any():
            return None
        if not used.all():
            X, B, solution = X[:, used], B[:, used], solution[used]
        with np.errstate(all="ignore"):
            weights = self.magnitude @ np.abs(X) + np.abs(B) + np.abs(self.residual(X, B)) / error
            return HostProbes((weights / solution).max(axis=1).astype(np.float64))


def host_system(factor: Sweeps, trans: str, dtype: np.dtype) -> HostSystem:
    """op(A) X = B for vectors of a scalar type on the host, wherever the factor is."""
    matrix = factor.matrix
    A, size = matrix.A, matrix.magnitude
    if trans != "N":
        A, size = (A.T if trans == "T" else A.conj().T), size.T
    return HostSystem(
        A if A.dtype == dtype else A.astype(dtype),
        matrix.norms[0 if trans == "N" else 1],
        lambda B: direct(factor, B, trans),
        size,
        factor.scaling is not None,
    )


def columnwise_norm(X: np.ndarray) -> np.ndarray:
    """Largest modulus of each column; NaN if it has one."""
    return np.abs(X).max(axis=0, initial=0.0)


def backward_error(system: HostSystem, X: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Normwise backward error of each column; infinite for a solution that is not finite."""
    R = system.residual(X, B)
    sizes = columnwise_norm(R), columnwise_norm(X), columnwise_norm(B)
    return Errors(*sizes, system.norm).normwise


def componentwise_error(
    system: HostSystem, X: np.ndarray, B: np.ndarray, R: np.ndarray
) -> np.ndarray:
    """Componentwise backward error of each column; infinite for one that is not finite."""
    with np.errstate(all="ignore"):
        R = np.abs(R)
        scale = system.magnitude @ np.abs(X) + np.abs(B)
        error = np.where(R > 0, R / scale, 0.0).max(axis=0, initial=0.0)
        return np.where(np.isfinite(R).all(axis=0), error, np.inf)
