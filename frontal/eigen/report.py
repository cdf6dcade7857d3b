"""What the eigensolver reports beside eigenpairs, and the error for an incomplete set."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..errors import FrontalError


@dataclass(frozen=True)
class EigenInfo:
    """How eigenvalues were computed, and how accurately.

    Attributes
    ----------
    count : int or None
        Eigenvalues in the interval by two inertias; None without an interval.
    interval : tuple of float or None
        The interval whose eigenvalues were counted: the requested one, unless an end is an
        eigenvalue up to rounding and was moved outward.
    shifts : tuple of float
        Shifts s at which A - s M was factorized, in this order.
    backward_errors : (k,) array
        ``||A x - s M x|| / ((||A|| + |s| ||M||) ||x||)`` of each eigenpair, 2-norms of vectors and
        1-norms of matrices.
    seconds : float
        Wall time.
    """

    count: int | None
    interval: tuple[float, float] | None
    shifts: tuple[float, ...] = field(repr=False)
    backward_errors: np.ndarray = field(repr=False)
    seconds: float

    @property
    def factorizations(self) -> int:
        """Number of factorizations."""
        return len(self.shifts)

    @property
    def backward_error(self) -> float:
        """Largest backward error."""
        return float(self.backward_errors.max(initial=0.0))


class MissingEigenvaluesError(FrontalError, ArithmeticError):
    """Fewer or more eigenvalues were computed than two inertias count in an interval.

    Attributes
    ----------
    interval : tuple of float
    count : int
        Eigenvalues in the interval by inertia.
    eigenvalues : (k,) array
        Computed eigenvalues in the interval, ascending.
    eigenvectors : (n, k) array
    """

    def __init__(
        self,
        interval: tuple[float, float],
        count: int,
        eigenvalues: np.ndarray,
        eigenvectors: np.ndarray,
    ) -> None:
        super().__init__(interval, count, eigenvalues, eigenvectors)
        self.interval, self.count = interval, count
        self.eigenvalues, self.eigenvectors = eigenvalues, eigenvectors

    @property
    def missing(self) -> int:
        """Number of eigenvalues that were not computed."""
        return self.count - self.eigenvalues.size

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.missing} of {self.count} eigenvalues in [{low:.6g}, {high:.6g}] are missing. "
            "Likely causes: (a) eigenvalues are too dense for double precision, (b) A or M is "
            "scaled so badly that inertia is not accurate. Try: smaller intervals, or other units. "
            "The computed ones are in the attributes eigenvalues and eigenvectors"
        )
