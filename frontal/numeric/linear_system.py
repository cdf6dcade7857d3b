"""Backward errors of solutions, and the interfaces for solving, measuring and correcting.

The normwise backward error of x is |b - A x| / (|A| |x| + |b|) in the infinity norm, the
componentwise one is the largest entry of |b - A x| / (|A| |x| + |b|): the sizes of the smallest
changes of A and b, relative to their norms or to each entry, for which x is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..machine.lockfree_property import cached_property
from .acceptance import ErrorLimits

Vectors: TypeAlias = Any  # an (n, k) array of the factor's backend: NumPy or CuPy


def require_trans(trans: object) -> None:
    """Raise ValueError unless op(A) is the matrix, its transpose or its adjoint."""
    if trans not in ("N", "T", "H"):
        raise ValueError(f"trans is {trans!r}; choose 'N', 'T' or 'H'")


@cache
def eps_of(dtype: np.dtype) -> float:
    """Return the precision eps of a scalar type."""
    return float(np.finfo(dtype).eps)


@dataclass
class BackwardErrors:
    """Backward errors of solutions for k right-hand sides, on the host.

    Attributes
    ----------
    residual, solution, rhs : (k,) float arrays
        Largest modulus of each column of B - A X, X and B; NaN if the column has one.
    norm : float, or (k,) float array
        Infinity norm of A; one for each column if their systems were scaled differently.
    componentwise, rowwise : (k,) float arrays
        Componentwise and rowwise backward errors, see `numeric.backward_error`; infinite for a
        solution that is not finite.
    by_component : bool
        Also correct components whose errors are large only componentwise.
    lost : (k,) array, optional
        1 for a solution that overflows its type, -1 for one that underflows, else 0.
    summary : (float, bool), optional
        `worst` and `fine`, if the measurement returned them.
    """

    residual: np.ndarray
    solution: np.ndarray
    rhs: np.ndarray
    norm: float | np.ndarray
    componentwise: np.ndarray
    rowwise: np.ndarray
    by_component: bool = False
    lost: np.ndarray | None = None
    summary: tuple[float, bool] | None = field(default=None, init=False)  # `replace` drops it

    @cached_property
    def normwise(self) -> np.ndarray:
        """Normwise backward error of each column; infinite for a solution that is not finite."""
        with np.errstate(all="ignore"):
            scale = self.norm * self.solution + self.rhs
            error = self.residual / np.where(scale > 0, scale, 1.0)
        return np.where(np.isfinite(error), error, np.inf)

    def merit(self, limits: ErrorLimits) -> np.ndarray:
        """Return the error of each column relative to the largest that needs no correction."""
        merit = np.maximum(self.normwise / limits.normwise, self.rowwise / limits.rowwise)
        if self.by_component:
            merit = np.maximum(merit, self.componentwise / limits.componentwise)
        return merit

    def accepted(self, limits: ErrorLimits) -> np.ndarray:
        """Return which columns need no warning."""
        by_rows = self.rowwise <= limits.accepted
        return by_rows if by_rows.all() else by_rows | (self.merit(limits) <= 1)

    def near_border(self, limits: ErrorLimits) -> np.ndarray:
        """Return which columns may be wrong due to extreme exponents of A, b or x."""
        rhs, solution = (np.asarray(a, np.float64) for a in (self.rhs, self.solution))
        low, high = limits.smallest, limits.largest
        with np.errstate(all="ignore"):
            inside = (low <= self.norm) & (self.norm <= high) & np.isfinite(self.normwise)
            inside &= (low <= rhs) & (rhs <= high) & (low <= solution) & (solution <= high)
            inside &= self.norm * solution <= limits.product
        return ~inside & (rhs != 0)

    def insufficient(self, limits: ErrorLimits) -> bool:
        """Return whether a column needs a warning."""
        return not self.accepted(limits).all()

    @property
    def worst(self) -> float:
        """Largest rowwise backward error."""
        return self.summary[0] if self.summary else float(self.rowwise.max(initial=0.0))

    @property
    def worst_normwise(self) -> float:
        """Largest normwise backward error."""
        return float(self.normwise.max(initial=0.0))

    @property
    def fine(self) -> bool:
        """Return whether no correction is needed and no overflow is near, by `summary` if set."""
        return self.summary is not None and self.summary[1]

    def chosen(self, better: np.ndarray, previous: BackwardErrors) -> BackwardErrors:
        """Return these errors in the `better` columns, those of `previous` in the rest."""
        names = ("residual", "solution", "componentwise", "rowwise")
        pairs = {f: (getattr(self, f), getattr(previous, f)) for f in names}
        return replace(self, **{f: np.where(better, *pair) for f, pair in pairs.items()})

    @staticmethod
    def joined(parts: Sequence[BackwardErrors]) -> BackwardErrors:
        """Return the errors of consecutive blocks of right-hand sides as one."""
        names = ("residual", "solution", "rhs", "componentwise", "rowwise")
        arrays = {f: np.concatenate([getattr(part, f) for part in parts]) for f in names}
        return replace(parts[0], **arrays)


class WeightedInverseNorm(NamedTuple):
    """An estimate of || |op(A)^-1| w ||.

    Attributes
    ----------
    value : float
    near_null : callable
        Return op(A)^-1 S w for the signs S of the estimate, (n, 1): the coefficients of a nearly
        dependent combination of columns, if the value is large. Call it before other solves.
    """

    value: float
    near_null: Callable[[], Vectors]


class LinearSystem(Protocol):
    """op(A) X = B with a direct solver for op(A); X, B and R are (n, k) arrays of one backend.

    Attributes
    ----------
    most : int
        Right-hand sides of one solve; more are solved in blocks of this size.
    """

    most: int

    @property
    def eps(self) -> float:
        """Precision of X."""
        ...

    @property
    def limits(self) -> ErrorLimits:
        """Limits of errors."""
        ...

    def solve(self, B: Vectors) -> Vectors:
        """Return X by the factors alone."""
        ...

    def solved(self, B: Vectors, probing: bool = False) -> tuple[Vectors, Vectors, BackwardErrors]:
        """Return X by the factors alone, and the results of `measure`.

        If `probing`, a condition number will be estimated next.
        """
        ...

    def empty(self, n: int, k: int) -> Vectors:
        """Return an uninitialized (n, k) array for solutions."""
        ...

    def measure(self, X: Vectors, B: Vectors) -> tuple[Vectors, BackwardErrors]:
        """Return B - A X and the backward errors of X."""
        ...

    def corrected(self, X: Vectors, R: Vectors) -> Vectors:
        """Return X + D for the direct solution D of A D = R."""
        ...

    def chosen(self, better: np.ndarray, trial: Vectors, X: Vectors) -> Vectors:
        """Return X, which may be overwritten, with its `better` columns replaced by `trial`'s."""
        ...

    def estimated(
        self, weights: Vectors, small: float, decided: float
    ) -> WeightedInverseNorm | None:
        """Return an estimate of || |op(A)^-1| w || if few steps give a finite one; else None.

        Parameters
        ----------
        weights : (n,) array
            See `weights`.
        small : float
            Any upper bound of at most `small` may be returned.
        decided : float
            Estimates above `decided`, which are never too large, are not improved.
        """
        ...

    def certified(self) -> float:
        """Return a bound of || |op(A)^-1| |op(A)| e ||; infinite if there is none."""
        ...

    def bounded(self, enough: float) -> float | None:
        """Return an estimate of || |op(A)^-1| |op(A)| e || if few steps give it; else None.

        Parameters
        ----------
        enough : float
            Estimates of at most `enough` are not improved.
        """
        ...

    def row_probes(self) -> Probes | None:
        """Return the probes for || |op(A)^-1| |op(A)| e ||, whose weights are row sums of |op(A)|.

        None if the host estimates it.
        """
        ...

    def probes(self, weights: Vectors, width: int) -> Probes | None:
        """Return the probes for || |op(A)^-1| w ||; None if the host estimates it.

        Parameters
        ----------
        weights : (n,) array
            See `weights`.
        width : int
            Right-hand sides for which the device is prepared.
        """
        ...

    def weights(self, X: Vectors, B: Vectors, solution: np.ndarray, error: float) -> Vectors | None:
        """Return the weights of solutions by rows, (n,) and float64; None for X = 0.

        The weight of a row is the largest (|op(A)| |x| + |b| + |b - op(A) x| / error) / |x|_max of
        all columns.

        Parameters
        ----------
        X, B : (n, k) arrays
        solution : (k,) float array
            Largest modulus of each column of X.
        error : float
            Precision of X.
        """
        ...

    def ratios(
        self, weights: Vectors, references: Sequence[Vectors | None]
    ) -> list[tuple[float, float]]:
        """Return the least and the largest of weights / reference; NaN if a ratio is NaN.

        Parameters
        ----------
        weights : (n,) array
        references : sequence of (n,) arrays
            None stands for the row sums of |op(A)|.
        """
        ...


class MeasuredSolution(NamedTuple):
    """A solution and its right-hand side, (n, 1) arrays of the factor's backend, with its errors.

    The arrays are valid until the next solve.
    """

    X: Vectors
    B: Vectors
    errors: BackwardErrors


class FastSolution(NamedTuple):
    """A solution, with its error and the factor's condition number.

    Attributes
    ----------
    x : (n,) array
    error : float
        Rowwise backward error, no less than the precision; negative if it is too large.
    condition : float
        Condition number of the factor for all right-hand sides, if requested; else -1.
    certified : bool
        Whether `condition` is a bound.
    normwise : float
        Normwise backward error, if `ratios` are given.
    ratios : list of (float, float), optional
        Least and largest ratio of the weights of the solution to each reference; see
        `LinearSystem.ratios`.
    measured : callable, optional
        Return the `MeasuredSolution`, if the factor `remeasures`.
    """

    x: Vectors
    error: float
    condition: float = -1.0
    certified: bool = False
    normwise: float = np.inf
    ratios: list[tuple[float, float]] | None = None
    measured: Callable[[], MeasuredSolution] | None = None


class Gains(NamedTuple):
    """Largest modulus of Z, the rows with the two largest moduli, and |z^H x| of each column."""

    largest: float
    rows: tuple[int, int]
    products: np.ndarray


class Probes(Protocol):
    """The blocks of two vectors that estimate the 1-norm of W M, and the weights W.

    Attributes
    ----------
    n : int
        Order.
    width : int
        Columns of a product with M that are best computed together.
    complete : bool
        The first block is the unit matrix.
    """

    n: int
    width: int
    complete: bool

    def first(self) -> Vectors:
        """Return two combinations of unit vectors; see `numeric.condition.BOUND`."""
        ...

    def units(self, first: int, second: int) -> Vectors:
        """Return two unit vectors."""
        ...

    def signs(self, Y: Vectors) -> tuple[np.ndarray, Vectors]:
        """Return the 1-norms of the columns of W Y, and W sign(Y), which may overwrite Y."""
        ...

    def gains(self, Z: Vectors, X: Vectors) -> Gains:
        """Return the row maxima of Z and its products with X, for `one_norm`."""
        ...
