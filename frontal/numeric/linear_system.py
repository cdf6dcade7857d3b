"""How good a solution is: its backward error, and what measures and corrects solutions.

The normwise backward error of x is |b - A x| / (|A| |x| + |b|) in the infinity norm, the
componentwise one is the largest entry of |b - A x| / (|A| |x| + |b|): the sizes of the smallest
changes of A and b, relative to their norms or to each entry, for which x is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..machine.lockfree_property import cached_property

Vectors: TypeAlias = Any  # an array (n, k) where a factor is: NumPy's, or one of a device

# Powers of two that stay free: for growth in the sweeps, and for corrections that are smaller than
# the right-hand side by the precision of x.
_GROWTH_BITS, _CORRECTION_BITS = 32, 11


@cache
def eps_of(dtype: np.dtype) -> float:
    """Precision of a scalar type."""
    return float(np.finfo(dtype).eps)


@cache
def borders(factor: np.dtype, vectors: np.dtype) -> tuple[float, float, float]:
    """Least and largest safe size of a matrix or vector, and largest of their product.

    Parameters
    ----------
    factor, vectors : data types
        Of the factor, in which the sweeps compute, and of right-hand sides and solutions.
    """
    info = np.finfo(factor)
    low = 2.0 ** (int(info.minexp) + np.finfo(vectors).nmant + _CORRECTION_BITS)
    high = 2.0 ** (int(info.maxexp) - _GROWTH_BITS)
    return low, high, 2.0 ** (int(np.finfo(vectors).maxexp) - _GROWTH_BITS)


class ErrorSummary(NamedTuple):
    """What errors come to, where they were measured: `BackwardErrors` has the same names."""

    worst: float
    fine: bool


@dataclass
class BackwardErrors:
    """Backward errors of solutions for k right-hand sides, on the host.

    Attributes
    ----------
    residual, solution, rhs : (k,) float arrays
        Largest modulus of each column of B - A X, X and B; NaN if it has one.
    norm : float, or (k,) float array
        Infinity norm of A, of another matrix for each column where they were scaled.
    componentwise, rowwise : (k,) float arrays
        Componentwise and rowwise backward errors, see `numeric.backward_error`; infinite for a
        solution that is not finite.
    by_component : bool
        Components with large errors are to be corrected, though rows and norms hide them.
    lost : (k,) array, optional
        1 for a solution that is too large for its type, -1 for one too small, else 0.
    summary : ErrorSummary, optional
        The largest error, and whether no correction is needed, if the measurement returned them.
    """

    residual: np.ndarray
    solution: np.ndarray
    rhs: np.ndarray
    norm: float | np.ndarray
    componentwise: np.ndarray
    rowwise: np.ndarray
    by_component: bool = False
    lost: np.ndarray | None = None
    summary: ErrorSummary | None = field(default=None, init=False)  # of these; `replace` drops it

    @cached_property
    def normwise(self) -> np.ndarray:
        """Normwise backward error of each column; infinite for a solution that is not finite."""
        with np.errstate(all="ignore"):
            scale = self.norm * self.solution + self.rhs
            error = self.residual / np.where(scale > 0, scale, 1.0)
        return np.where(np.isfinite(error), error, np.inf)

    def merit(self, limits: np.ndarray) -> np.ndarray:
        """Return the error of each column in units of what needs no correction.

        `limits` are those of `numeric.backward_error.limits_of`.
        """
        merit = np.maximum(self.normwise / limits[0], self.rowwise / limits[2])
        return np.maximum(merit, self.componentwise / limits[1]) if self.by_component else merit

    def accepted(self, limits: np.ndarray) -> np.ndarray:
        """Return which columns may be returned without a warning."""
        by_rows = self.rowwise <= limits[3]
        return by_rows if by_rows.all() else by_rows | (self.merit(limits) <= 1)

    def insufficient(self, limits: np.ndarray) -> bool:
        """Return whether a solution should not be returned without a warning."""
        return not self.accepted(limits).all()

    @property
    def worst(self) -> float:
        """Largest rowwise backward error."""
        return self.summary.worst if self.summary else float(self.rowwise.max(initial=0.0))

    @property
    def worst_normwise(self) -> float:
        """Largest normwise backward error."""
        return float(self.normwise.max(initial=0.0))

    @property
    def fine(self) -> bool:
        """No correction is needed, and no exponent is near its limits, as far as is known."""
        return self.summary is not None and self.summary.fine

    def chosen(self, better: np.ndarray, previous: BackwardErrors) -> BackwardErrors:
        """Take the columns that are `better` from here, the rest from `other`."""
        names = ("residual", "solution", "componentwise", "rowwise")
        pairs = {f: (getattr(self, f), getattr(previous, f)) for f in names}
        return replace(self, **{f: np.where(better, *pair) for f, pair in pairs.items()})

    @staticmethod
    def joined(parts: Sequence[BackwardErrors]) -> BackwardErrors:
        """Errors of right-hand sides that were solved one block after another."""
        names = ("residual", "solution", "rhs", "componentwise", "rowwise")
        arrays = {f: np.concatenate([getattr(part, f) for part in parts]) for f in names}
        return replace(parts[0], **arrays)


class LinearSystem(Protocol):
    """op(A) X = B with a direct solver for op(A); X, B and R are arrays of one kind, (n, k).

    Attributes
    ----------
    most : int
        Right-hand sides that are solved for together; more come in blocks of so many.
    """

    most: int

    @property
    def eps(self) -> float:
        """Precision of X."""
        ...

    @property
    def limits(self) -> np.ndarray:
        """See `numeric.backward_error.limits_of`."""
        ...

    def solve(self, B: Vectors) -> Vectors:
        """X by the factors alone."""
        ...

    def solved(self, B: Vectors, probing: bool = False) -> tuple[Vectors, Vectors, BackwardErrors]:
        """X by the factors alone, and what `measure` says of it.

        `probing`, it will be asked for a condition number.
        """
        ...

    def empty(self, n: int, k: int) -> Vectors:
        """An array for solutions, where they are."""
        ...

    def measure(self, X: Vectors, B: Vectors) -> tuple[Vectors, BackwardErrors]:
        """B - A X, and what it says of X."""
        ...

    def corrected(self, X: Vectors, R: Vectors) -> Vectors:
        """X + D for the direct solution of A D = R."""
        ...

    def chosen(self, better: np.ndarray, trial: Vectors, X: Vectors) -> Vectors:
        """Columns of `trial` where `better`, else those of X, which may be overwritten."""
        ...

    def estimated(
        self,
        X: Vectors,
        B: Vectors,
        solution: np.ndarray,
        error: float,
        small: float,
        limit: float,
    ) -> float | None:
        """By how much the error of X may exceed its precision, if that is found in few steps.

        Parameters
        ----------
        X, B, solution, error
            See `probes`.
        small : float
            Any bound will do that is no larger.
        limit : float
            What is larger is left to `probes`.
        """
        ...

    def certified(self) -> float:
        """Return a bound of || |op(A)^-1| |op(A)| e ||; infinite if there is none."""
        ...

    def bounded(self, enough: float) -> float | None:
        """Return an estimate of || |op(A)^-1| |op(A)| e || if that takes few steps; else None.

        Parameters
        ----------
        enough : float
            No better estimate is sought of a norm that is less.
        """
        ...

    def row_probes(self) -> Probes | None:
        """Return what estimates || |op(A)^-1| |op(A)| e ||: weights are row sums of |op(A)|.

        None where the host does it.
        """
        ...

    def probes(self, X: Vectors, B: Vectors, solution: np.ndarray, error: float) -> Probes | None:
        """What estimates by how much the error of X may exceed its precision; None for X = 0.

        See `weights` for the parameters. None also where the host does it.
        """
        ...

    def weights(self, X: Vectors, B: Vectors, solution: np.ndarray, error: float) -> Vectors | None:
        """Weights of solutions, (n,) and float64, by rows; None for X = 0.

        That of a row is the largest (|op(A)| |x| + |b| + |b - op(A) x| / error) / |x|_max of the
        columns.

        Parameters
        ----------
        X, B : (n, k) arrays
        solution : (k,) float array
            Largest modulus of each column of X.
        error : float
            Precision of X.
        """
        ...

    def ratios(self, weights: Vectors, denominators: Vectors | None) -> tuple[float, float]:
        """Return the least and the largest ratio of weights to others; NaN if one is none.

        Parameters
        ----------
        weights : (n,) array
        denominators : (n,) array, optional
            By default the row sums of |op(A)|.
        """
        ...


class Gains(NamedTuple):
    """What a step of `Probes` finds: the largest two rows of |Z|, and |z^H x| for each column."""

    largest: float
    rows: tuple[int, int]
    products: np.ndarray


class Probes(Protocol):
    """Blocks of two vectors by which the 1-norm of W M is estimated, and the weights W.

    Attributes
    ----------
    n : int
        Order.
    width : int
        Columns that products with M are better made for together.
    complete : bool
        The block to begin with is the unit matrix.
    """

    n: int
    width: int
    complete: bool

    def first(self) -> Vectors:
        """Two sums of the columns of the unit matrix; see `numeric.condition.BOUND`."""
        ...

    def units(self, first: int, second: int) -> Vectors:
        """Two columns of the unit matrix."""
        ...

    def signs(self, Y: Vectors) -> tuple[np.ndarray, Vectors]:
        """1-norms of the columns of W Y, and W times their signs, which may be in Y's place."""
        ...

    def gains(self, Z: Vectors, X: Vectors) -> Gains:
        """What `one_norm` needs of Z and X."""
        ...
