"""Interface of the backends: the only calls from factor/ into cpu/ and gpu/sparse/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..compile.jit import brief
from ..matrix.canonical import Canonical
from ..matrix.value_map import ValueMap
from ..numeric.linear_system import FastSolution, LinearSystem, Vectors
from ..numeric.method import Method
from ..symbolic.matching import Matching
from ..symbolic.phase import Symbolic
from ..symbolic.plan import Plan
from ..symbolic.scaling import Scaling, ScalingRequest
from ..symbolic.stage_timer import Progress
from .memory_limit import Memory


class PivotFailure(Exception):  # noqa: N818 - no error if LDL^H follows
    """A nonpositive pivot of Cholesky, at `position` in elimination order."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class DelayFailure(Exception):  # noqa: N818 - no error if another attempt follows
    """Too many delayed columns in the fronts that should eliminate them."""


class SchurPivotFailure(DelayFailure):
    """Columns of A without pivots before those of the Schur complement."""

    def __init__(self, columns: np.ndarray) -> None:
        super().__init__(columns)
        self.columns = columns


class ColumnPivotFailure(Exception):  # noqa: N818 - no error if LU by fronts follows
    """LU by columns without acceptable pivots or with too much fill, or a singular matrix."""


class Health(NamedTuple):
    """Statistics of the pivots and of the values of a factorization."""

    # smallest relative pivot: d² over diag(A) for Cholesky, |d| over the largest pivot for LU
    pivot_ratio: float
    finite: bool = True  # all values of A are finite, or were not checked
    hermitian: bool = False  # the symmetry that the method needs is known to hold exactly


_NONE, _NO_PLACES = np.empty(0), np.empty(0, np.int32)


class HostFactor(NamedTuple):
    """The factor on the host, in the form for pickling and for extraction of L, D and U."""

    panels: np.ndarray  # the panels of all fronts, consecutive, at `panel_offsets`
    # (n,) int32: row interchanges, local to each front; with one triangle also those of the
    # columns. Empty for a method without interchanges. By columns, the position of each row.
    pivots: np.ndarray
    perturbed: int  # number of perturbed pivots
    # (n,): for LDL^H, D(j + 1, j) if columns j and j + 1 are a 2x2 pivot, else 0; D(j, j) is in the
    # panels, on the diagonal of L. Empty for other methods.
    subdiagonal: np.ndarray = _NONE
    # int32: ascending positions of null columns: the pivot and the whole column are zero to working
    # precision. These pivots were replaced so that solutions exist.
    nulls: np.ndarray = _NO_PLACES
    # L with its diagonal and U, in elimination order, if they are not in panels
    triangles: tuple[sp.csc_array, sp.csc_array] | None = None


def panel_offsets(plan: Plan, method: Method) -> np.ndarray:
    """Return each front's panel offset in a `HostFactor`, in entries, and the end of the last.

    A front stores the (k + m) by k column-major [L11; L21], and with two panels the m by k
    transpose of U12 behind it.
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
    """A matrix and its factors, in the memory of the backend that computed them.

    Arrays of the backend are NumPy arrays for the CPU and CuPy arrays for a GPU.
    """

    # ``"cpu"`` or ``"gpu"``, and the name of the device
    backend: str
    device: str
    symbolic: Symbolic  # symbolic phase of the backend; an amended one if columns were delayed
    perturbed: int  # number of perturbed pivots
    asynchronous: bool  # solves can return before the device has finished
    remeasures: bool  # a `FastSolution` has `measured`

    @property
    def hermitian(self) -> bool:
        """Whether A is known to equal its adjoint exactly."""
        ...

    @property
    def scaling(self) -> Scaling | None:
        """Scaling of the factorized matrix, on the host; None for a method without scaling."""
        ...

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors."""
        ...

    @property
    def matrix_dtype(self) -> np.dtype:
        """Scalar type of the matrix, residuals and solutions; at least as precise as `dtype`."""
        ...

    @property
    def memory(self) -> int:
        """Bytes of the factors."""
        ...

    @property
    def matrix(self) -> Canonical:
        """The factorized matrix on the host; its values may be copied from the device."""
        ...

    @property
    def pivots(self) -> np.ndarray:
        """Row interchanges on the host; see `HostFactor`."""
        ...

    @property
    def nulls(self) -> np.ndarray:
        """Positions of null columns, on the host; see `HostFactor`."""
        ...

    @property
    def unstable_pivots(self) -> np.ndarray:
        """Ascending positions of pivots that are too small for their columns."""
        ...

    def growth_acceptable(self, few: int, growth: float) -> bool:
        """Return whether the growth is acceptable.

        It is if at most `few` of the `unstable_pivots` can be moved to another front, with factors
        that have grown by `growth` at most, or none can be moved.
        """
        ...

    def health(self) -> Health:
        """Return statistics of the pivots."""
        ...

    def is_symmetric(self) -> bool:
        """Return whether the matrix has the symmetry that its method needs, up to rounding."""
        ...

    def growth(self) -> float:
        """Return the largest modulus in the factors over the largest in the (scaled) matrix."""
        ...

    def diagonal(self) -> np.ndarray:
        """Return the diagonal of L, U or D, in elimination order, on the host."""
        ...

    def subdiagonal(self) -> np.ndarray:
        """Return the subdiagonal of D, on the host; see `HostFactor`."""
        ...

    def to_host(self) -> HostFactor:
        """Return the factors on the host; the arrays may be shared with this factor."""
        ...

    def copy(self) -> NumericFactor:
        """Return a factor in the same memory that shares no values with this one."""
        ...

    def free(self) -> None:
        """Release the memory; the factor becomes invalid."""
        ...

    # --- vectors -----------------------------------------------------------------------------

    def block(self, b: object) -> Vectors | None:
        """Return right-hand sides of the backend as (n, k) in the common scalar type; else None."""
        ...

    def empty(self, k: int, dtype: np.dtype) -> Vectors:
        """Return an uninitialized (n, k) array of the backend, in Fortran order."""
        ...

    def upload(self, B: np.ndarray) -> Vectors:
        """Copy an (n, k) host array in Fortran order to the backend."""
        ...

    def download(self, X: Vectors) -> np.ndarray:
        """Copy an (n, k) array of the backend to the host."""
        ...

    def system(self, trans: str, dtype: np.dtype) -> LinearSystem:
        """Return op(A) X = B for arrays of the backend of a scalar type."""
        ...

    def solve_fast(
        self, b: object, trans: str, how: int, references: Sequence[Vectors | None] = ()
    ) -> FastSolution | None:
        """Return the solution by `system` for a plain vector, on the host if b is.

        Return None if it would need a warning or a scaled system, and for any other b. `how`
        requests a condition number: `KNOWN` (none), `ESTIMATED` or `CERTIFIED` of
        `numeric.condition`; `UNMEASURED` asks for x alone, whose error is not computed. A factor
        that `remeasures` also returns `ratios` to `references`, as `LinearSystem.ratios` does.
        """
        ...

    def expect(self, trans: str) -> None:
        """Record a solution that needed no refinement: `solve_fast` tries the next ones."""
        ...

    def condition_fast(self, trans: str, how: int) -> tuple[float, bool] | None:
        """Return the condition number of `solve_fast` and whether it is a bound, or None."""
        ...

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """Overwrite x, (n, w) row-major on the host in elimination order, with the solution.

        The factorized matrix times the solution is x, up to rounding; if `transposed`, the plain
        transpose of the matrix.
        """
        ...

    # --- derivatives -------------------------------------------------------------------------

    def entry_products(
        self, order: ValueMap, R: Vectors, C: Vectors, diagonal: float, beside: float
    ) -> Vectors:
        """Return the product of row i of R and row j of C for each value (i, j), in their order.

        Parameters
        ----------
        order : ValueMap
            Order of the values.
        R, C : (n, k) arrays
            Of one scalar type.
        diagonal, beside : float
            Factors of the products on the diagonal and beside it.
        """
        ...

    def residual_with(self, values: Untyped, X: Vectors, B: Vectors, trans: str) -> Vectors:
        """Return B - op(M) X for a matrix M of this pattern, whose values are by columns.

        All arrays are real, or all are complex.
        """
        ...

    # --- new values --------------------------------------------------------------------------

    def device_values(self, A: Untyped, order: ValueMap) -> tuple[Untyped, ValueMap] | None:
        """Return `Backend.device_values` of a matrix or of an array of values.

        Parameters
        ----------
        A : matrix or array of values
        order : ValueMap
            Order of an array of values.
        """
        ...

    def refactorizer(
        self, symbolic: Symbolic, matching: Matching | None
    ) -> Callable[[Canonical], NumericFactor | None] | None:
        """Return `Backend.factorize_fast` with the memory of this factor, or None.

        None unless it made this factor, for the same symbolic phase and matching.
        """
        ...

    def begin(self, values: Untyped, scaling: ScalingRequest | None) -> None:
        """Start to factorize values on the device, if no decision is needed before.

        The values are by columns, and are scaled by the `ScalingRequest`. This factor becomes
        invalid; `Backend.factorize` continues when it is passed as `previous`.
        """
        ...

    def profile(self) -> object:
        """Return the time by level and by front size; raise ValueError on the CPU."""
        ...


class Backend(Protocol):
    """The factorizations of one pattern, with its indices."""

    @property
    def device(self) -> str:
        """Name of the device."""
        ...

    @property
    def fallback(self) -> str | None:
        """Backend to use if this one lacks memory or stable pivots; None if there is none."""
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
            By columns. Stored without a copy.
        scaling : Scaling or ScalingRequest, optional
            Scaling of the values, or the input of `scaling_of`: the same bits on every backend.
        on_device : bool
            Values are an array of the backend, not of the host.
        hermitian : bool
            A is known to be exactly Hermitian.
        progress : callable, optional
        previous : NumericFactor, optional
            Its memory is reused, and the factor becomes invalid.
        delaying : bool
            Columns without an acceptable pivot may be delayed; else their pivots are replaced.
        dtype : numpy.dtype, optional
            Scalar type of the factors; by default that of the values. Values are scaled before
            they are converted.
        memory : str or int
            See `frontal.factorize`; a `previous` factor keeps its own.

        Raises
        ------
        PivotFailure
            At the first pivot of Cholesky that is not positive.
        DelayFailure
            If too many columns are delayed.
        FactorMemoryError
            If the factor does not fit; with the memory that this backend needs.
        """
        ...

    def factorize_fast(
        self, matrix: Canonical, matching: Matching | None, previous: NumericFactor | None
    ) -> NumericFactor | None:
        """Return the factor of `factorize` if it needs no warning, fallback or pivoting; else None.

        Parameters
        ----------
        matrix : Canonical
            Matrix of the pattern; its values are stored without a copy.
        matching : Matching or None
            Matching of the analysis. The result is None if the values need another scaling.
        previous : NumericFactor, optional
            Its memory is reused, and the factor becomes invalid, even if the result is None.
        """
        ...

    def values_on_host(self, values: Untyped) -> np.ndarray:
        """Copy values of the backend to the host."""
        ...

    def device_values(self, A: Untyped) -> tuple[Untyped, ValueMap] | None:
        """Return device values of A by columns, and their order in A; None if the host converts."""
        ...

    def from_host(
        self, factor: HostFactor, matrix: Canonical, scaling: Scaling | None
    ) -> NumericFactor:
        """Return the factor of this backend for one computed by another backend."""
        ...
