"""What a backend must do: all that the façades in factor/ may ask of cpu/ and gpu/sparse/."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._typing import Untyped
from ..compile.jit import brief
from ..matrix.canonical import Canonical
from ..matrix.value_map import ValueMap
from ..numeric.linear_system import LinearSystem, Vectors
from ..numeric.method import Method
from ..symbolic.matching import Matching
from ..symbolic.phase import Progress, Symbolic
from ..symbolic.plan import Plan
from ..symbolic.scaling import Scaling, ScalingRequest
from .memory_limit import Memory


class PivotFailure(Exception):  # noqa: N818 - not an error where LU can go on
    """A pivot of Cholesky is not positive; `position` is its place in elimination order."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class DelayFailure(Exception):  # noqa: N818 - not an error where pivots can be had otherwise
    """Columns without sound pivots pile up in the fronts that shall eliminate them."""


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
        Whether the symmetry that the method needs is known to hold exactly.
    """

    pivot_ratio: float
    finite: bool = True
    hermitian: bool = False


_NONE, _NO_PLACES = np.empty(0), np.empty(0, np.int32)


class HostFactor(NamedTuple):
    """The factor on the host, in the one form that is pickled and extracted from.

    Attributes
    ----------
    panels : array of the scalar type
        The panels of all fronts, one after the other at `panel_offsets`.
    pivots : (n,) int32 array
        Row interchanges, local to each front, of columns too with one triangle; empty for a method
        without.
    perturbed : int
        Pivots that were replaced.
    coupling : (n,) array of the scalar type
        Of LDL^H, D(j + 1, j) where columns j and j + 1 are a 2x2 pivot, else 0; D(j, j) is in the
        panels, on the diagonal of L. Empty for other methods.
    nulls : int32 array
        Positions, ascending, of pivots that are zero to working precision, all of their columns
        too. They were replaced so that solutions exist.
    """

    panels: np.ndarray
    pivots: np.ndarray
    perturbed: int
    subdiagonal: np.ndarray = _NONE
    nulls: np.ndarray = _NO_PLACES


def panel_offsets(plan: Plan, method: Method) -> np.ndarray:
    """Where the panels of each front begin in a `HostFactor`, and where the last one ends.

    They lie in a row, in entries: the (k + m) by k column-major [L11; L21] of a front, and with two
    panels the m by k transpose of U12 behind it.
    """
    return _offsets(plan.start, plan.pointer, method.panels)


@brief
def _offsets(start, pointer, panels):
    offset = np.zeros(start.size, np.int64)
    for s in range(start.size - 1):
        k, m = np.int64(start[s + 1] - start[s]), pointer[s + 1] - pointer[s]
        offset[s + 1] = offset[s] + k * (k + panels * m)
    return offset


class NumericFactor(Protocol):
    """A matrix and the numbers of its factorization, where they were computed.

    Arrays "there" are of that place: NumPy's for the CPU, CuPy's for a GPU.

    Attributes
    ----------
    backend, device : str
        ``"cpu"`` or ``"gpu"``, and what it runs on.
    symbolic : Symbolic
        That of the backend, or an amended one where columns went to other fronts.
    perturbed : int
        Pivots that were replaced.
    asynchronous : bool
        Solves need not wait for a device.
    """

    backend: str
    device: str
    symbolic: Symbolic
    perturbed: int
    asynchronous: bool

    @property
    def scaling(self) -> Scaling | None:
        """Of the matrix that was factorized, on the host; None for a method without."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors."""
        ...

    @property
    def matrix_dtype(self) -> np.dtype:
        """Scalar type of the matrix, of residuals and solutions; that of the factors or higher."""
        ...

    @property
    def memory(self) -> int:
        """Bytes of the factors."""
        ...

    @property
    def matrix(self) -> Canonical:
        """The factorized matrix on the host; its values may have to come from the device."""
        ...

    @property
    def pivots(self) -> np.ndarray:
        """(n,) int32 row interchanges, local to each front, on the host; empty without."""
        ...

    @property
    def nulls(self) -> np.ndarray:
        """See `HostFactor`; on the host."""
        ...

    @property
    def unstable_pivots(self) -> np.ndarray:
        """Positions of pivots that bear their columns badly, ascending."""
        ...

    def growth_acceptable(self, few: int, growth: float) -> bool:
        """Whether pivots bear their columns.

        But for a `few` that are `unstable_pivots`, if the factors have not grown beyond that; and
        for those that can go nowhere.
        """
        ...

    def health(self) -> Health:
        """What the pivots tell."""
        ...

    def is_symmetric(self) -> bool:
        """Return whether the matrix has the symmetry that its method needs, up to rounding."""
        ...

    def growth(self) -> float:
        """Largest entry of the factors over the largest of the (scaled) matrix."""
        ...

    def diagonal(self) -> np.ndarray:
        """Diagonal of L, U or D, in elimination order, on the host."""
        ...

    def subdiagonal(self) -> np.ndarray:
        """See `HostFactor`."""
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

    # --- vectors -----------------------------------------------------------------------------

    def block(self, b: object) -> Vectors | None:
        """Right-hand sides that are there as (n, k) in the common scalar type; None elsewhere."""
        ...

    def empty(self, k: int, dtype: np.dtype) -> Vectors:
        """An array (n, k) there, in Fortran order."""
        ...

    def upload(self, B: np.ndarray) -> Vectors:
        """A host array (n, k) in Fortran order, there."""
        ...

    def download(self, X: Vectors) -> np.ndarray:
        """An array (n, k) that is there, on the host."""
        ...

    def system(self, trans: str, dtype: np.dtype) -> LinearSystem:
        """op(A) X = B for vectors of a scalar type that are there."""
        ...

    def solve_fast(self, b: object, trans: str, how: int) -> tuple[Any, float, float, bool] | None:
        """Return the solution of a plain vector, its error and the factor's condition number.

        It is the first one that `system` gives, and `BackwardErrors.fine`; else, and for any other
        b, None. It is on the host if b is. The error is componentwise, and no less than the
        precision. The condition number is that for all right-hand sides, and comes with whether it
        is a bound; it is -1 where `how` is `numeric.condition.KNOWN`.
        """
        ...

    def expect(self, trans: str) -> None:
        """Take note of a solution that needed no refinement: `solve_fast` tries the next ones."""
        ...

    def condition_fast(self, trans: str, how: int) -> tuple[float, bool] | None:
        """Return the condition number of `solve_fast` and whether it is a bound, or None."""
        ...

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """Overwrite x, (n, w) row-major on the host in elimination order, with the solution.

        For every x, applying the factorized matrix to the result gives x back, up to rounding;
        `transposed` takes its plain transpose.
        """
        ...

    # --- new values --------------------------------------------------------------------------

    def device_values(self, A: Untyped, order: ValueMap) -> tuple[Untyped, ValueMap] | None:
        """The same as `Backend.device_values`, of a matrix or an array of values.

        Parameters
        ----------
        A : matrix or array of values
        order : ValueMap
            The order that an array of values is in.
        """
        ...

    def refactorizer(
        self, symbolic: Symbolic, matching: Matching | None
    ) -> Callable[[Canonical], NumericFactor | None] | None:
        """`Backend.solve_fast` for matrices in its place, if that made it of this analysis."""
        ...

    def begin(self, values: Untyped, scaling: ScalingRequest | None) -> None:
        """Begin to factorize values that are there, if that needs no decision.

        They are by columns, and to be scaled as it is `ScalingRequest`. This is then no factor any
        more; `Backend.factorize`, which gets it as the `previous` one, goes on.
        """
        ...

    def profile(self) -> object:
        """Time by level and by size of the fronts; a ValueError where there are no clocks."""
        ...


class Backend(Protocol):
    """Factorizes matrices of one pattern, whose indices it holds."""

    @property
    def device(self) -> str:
        """What it runs on."""
        ...

    @property
    def fallback(self) -> str | None:
        """The backend that takes over where this one has too little memory or no sound pivots."""
        ...

    def factorize(
        self,
        values: Untyped,
        scaling: Scaling | ScalingRequest | None,
        *,
        on_device: bool = False,
        hermitian: bool = False,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        delaying: bool = True,
        dtype: np.dtype | None = None,
        memory: Memory = "auto",
    ) -> NumericFactor:
        """Factorize a matrix.

        Parameters
        ----------
        values : array (nnz,)
            By columns. Kept, not copied.
        scaling : Scaling or ScalingRequest, optional
            Of the values, or what `scaling_of` is to make it of: the same bits on every backend.
        on_device : bool
            Values are where the backend computes, and not on the host.
        hermitian : bool
            A is known to be exactly Hermitian.
        progress : callable, optional
        previous : NumericFactor, optional
            Its memory is used again; it is then no factor any more.
        delaying : bool
            Columns without a sound pivot may go to other fronts; else their pivots are replaced.
        dtype : numpy.dtype, optional
            Scalar type of the factors, if not that of the values, which are scaled before.
        memory : str or int
            See `frontal.factorize`; that of a factor before stays as it is.

        Raises
        ------
        PivotFailure
            At the first pivot of Cholesky that is not positive.
        DelayFailure
            If too many columns go to other fronts.
        FactorMemoryError
            With what this backend needs.
        """
        ...

    def factorize_fast(
        self, matrix: Canonical, matching: Matching | None, previous: NumericFactor | None
    ) -> NumericFactor | None:
        """The factor that `factorize` would give; None where there is anything to be said of it.

        Parameters
        ----------
        matrix : Canonical
            Of the pattern; its values are kept, not copied.
        matching : Matching or None
            Of the analysis; what is not scaled by it, and might be by another one, has no factor.
        previous : NumericFactor, optional
            Its memory is used again; it is then no factor any more, even where this gives none.
        """
        ...

    def values_on_host(self, values: Untyped) -> np.ndarray:
        """Values that are there."""
        ...

    def device_values(self, A: Untyped) -> tuple[Untyped, ValueMap] | None:
        """Values of A, there and by columns, and their order in A; None if the host must look."""
        ...

    def from_host(
        self, factor: HostFactor, matrix: Canonical, scaling: Scaling | None
    ) -> NumericFactor:
        """A factor that was computed elsewhere."""
        ...
