"""What a backend must do: all that the façades in factor/ may ask of cpu/ and gpu/sparse/."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from .accuracy import System
from .cached import cached_property
from .matrix import Canonical
from .method import Method
from .values import StoredOrder

Progress = Callable[[str, float, float], None]
_LARGEST = 1022  # exponent of a power of two whose inverse is a normal number, too


class PivotFailure(Exception):  # noqa: N818 - not an error where LU can go on
    """A pivot of Cholesky is not positive; `position` is its place in elimination order."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(frozen=True)
class Scaling:
    """Factors of the rows and of the columns, (n,) float64 powers of two, in the numbering of A."""

    row: np.ndarray
    column: np.ndarray

    @cached_property
    def extreme(self) -> bool:
        """Whether the product of a row's and a column's factor may be no number."""
        with np.errstate(over="ignore", under="ignore"):
            largest = self.row.max(initial=1.0) * self.column.max(initial=1.0)
            least = self.row.min(initial=1.0) * self.column.min(initial=1.0)
        return bool(least < 2.0**-_LARGEST or largest > 2.0**_LARGEST)


class Health(NamedTuple):
    """What the pivots and the values of a factorization tell.

    Attributes
    ----------
    pivot_ratio : float
        Smallest pivot over the size of what it came from: of d² over diag(A) for Cholesky, of |d|
        over the largest pivot for LU.
    finite : bool
        Whether all values of A are finite, if that was looked at.
    hermitian : bool
        Whether A = A^H up to rounding is known.
    """

    pivot_ratio: float
    finite: bool = True
    hermitian: bool = False


class HostFactor(NamedTuple):
    """The factor on the host, in the one form that is pickled and extracted from.

    Attributes
    ----------
    panels : array of the scalar type
        The panels of all fronts, one after the other at `panel_offsets`.
    pivots : (n,) int32 array
        Row interchanges, local to each front; empty for a method without.
    perturbed : int
        Pivots that were replaced.
    """

    panels: np.ndarray
    pivots: np.ndarray
    perturbed: int


def panel_offsets(start: np.ndarray, pointer: np.ndarray, method: Method) -> np.ndarray:
    """Where the panels of each front begin in a `HostFactor`, and where the last one ends.

    They lie in a row, in entries: the (k + m) by k column-major [L11; L21] of a front, and with two
    panels the m by k transpose of U12 behind it.

    Parameters
    ----------
    start, pointer : (f + 1,) int arrays
        Of the plan: first pivot column of each front, extent of its update rows.
    method : Method
    """
    k, m = np.diff(start).astype(np.int64), np.diff(pointer)
    offset = np.zeros(start.size, np.int64)
    np.cumsum(k * (k + method.panels * m), out=offset[1:])
    return offset


class NumericFactor(Protocol):
    """A matrix and the numbers of its factorization, where they were computed.

    Arrays "there" are of that place: NumPy's for the CPU, CuPy's for a GPU.

    Attributes
    ----------
    backend, device : str
        ``"cpu"`` or ``"gpu"``, and what it runs on.
    perturbed : int
        Pivots that were replaced.
    scaling : Scaling or None
        Of the matrix that was factorized; None for a method without.
    asynchronous : bool
        Solves need not wait for a device.
    """

    backend: str
    device: str
    perturbed: int
    scaling: Scaling | None
    asynchronous: bool

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors."""
        ...

    @property
    def memory(self) -> int:
        """Bytes of the factors."""
        ...

    @property
    def matrix(self) -> Canonical:
        """The factorized matrix on the host; its values may have to come from the device."""
        ...

    def health(self) -> Health:
        """What the pivots tell."""
        ...

    def growth(self) -> float:
        """Largest entry of the factors over the largest of the (scaled) matrix."""
        ...

    def diagonal(self) -> np.ndarray:
        """Diagonal of L, or of U, in elimination order, on the host."""
        ...

    def to_host(self) -> HostFactor:
        """The factors on the host; the arrays may be shared."""
        ...

    def copy(self) -> NumericFactor:
        """A factor in the same place that shares no number with this one."""
        ...

    def free(self) -> None:
        """Give the memory back; this is no factor any more."""
        ...

    def refuse_non_finite(self) -> None:
        """Raise for the first value of A, by columns, that is NaN or infinite."""
        ...

    # --- vectors -----------------------------------------------------------------------------

    def block(self, b: Any) -> Any | None:
        """Right-hand sides that are there as (n, k) in the common scalar type; None elsewhere."""
        ...

    def refuse_non_finite_rhs(self, B: Any, ndim: int) -> None:
        """Raise for the first entry of a block, by columns, that is NaN or infinite."""
        ...

    def upload(self, B: np.ndarray) -> Any:
        """A host array (n, k) in Fortran order, there."""
        ...

    def download(self, X: Any) -> np.ndarray:
        """An array (n, k) that is there, on the host."""
        ...

    def system(self, trans: str, dtype: np.dtype) -> System:
        """op(A) X = B for vectors of a scalar type that are there."""
        ...

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """Overwrite x, (n, w) row-major on the host in elimination order, with the solution.

        For every x, applying the factorized matrix to the result gives x back, up to rounding;
        `transposed` takes its plain transpose (LU) or conjugate (Cholesky).
        """
        ...

    # --- new values --------------------------------------------------------------------------

    def values_there(self, A: Any, order: StoredOrder) -> tuple[Any, StoredOrder] | None:
        """A copy of the values of A by columns, and their order in A, if A is there; else None.

        Parameters
        ----------
        A : matrix or array of values
        order : StoredOrder
            The order that an array of values is in.
        """
        ...

    def profile(self, tiny: float) -> Any:
        """Time by level and by size of the fronts; a ValueError where there are no clocks."""
        ...


class Backend(Protocol):
    """Factorizes matrices of one pattern, whose indices it holds.

    Attributes
    ----------
    name, device : str
        ``"cpu"`` or ``"gpu"``, and what it runs on.
    """

    name: str
    device: str

    def factorize(
        self,
        values: Any,
        scaling: Scaling | None,
        tiny: float,
        *,
        hermitian: bool = False,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
    ) -> NumericFactor:
        """Factorize a matrix.

        Parameters
        ----------
        values : array (nnz,) on the host, or there
            By columns. Kept, not copied.
        scaling : Scaling or None
        tiny : float
            What tiny pivots are replaced by, relative to their columns.
        hermitian : bool
            A is known to be exactly Hermitian.
        progress : callable, optional
        previous : NumericFactor, optional
            Its memory, which is then no factor any more, is used again.

        Raises
        ------
        PivotFailure
            At the first pivot of Cholesky that is not positive. `PivotFailure.factor` is None.
        FactorMemoryError
            With what this backend needs.
        """
        ...

    def restored(self, factor: HostFactor, values: np.ndarray, scaling: Scaling | None) -> NumericFactor:
        """A factor that was computed elsewhere."""
        ...
