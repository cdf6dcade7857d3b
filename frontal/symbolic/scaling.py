"""Row and column scaling of a matrix by powers of two, which causes no rounding.

A method of one triangle uses one scaling for rows and columns: the geometric means of a matching's
row and column factors (Duff and Pralet 2005), or equilibration of the largest entry of each row to
about 1 (`equilibrate_symmetric`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..compile.jit import brief, jit
from ..matrix.symmetry import diagonal_of
from .equilibrate import (
    MAX_EXPONENT,
    ONE_BITS,
    equal,
    equal_rows,
    equilibrate,
    equilibrate_symmetric,
    exponents,
    larger_part,
    logarithms,
    modulus,
    powers,
)
from .matching import Matching, matching_of

if TYPE_CHECKING:
    from ..matrix.canonical import Canonical

UNEVEN_BELOW = 2.0**-10  # modulus below which a scaled nonzero entry counts as small
UNEVEN = 0.01  # share of small entries above which a scaling is uneven


@dataclass(eq=False)  # creating a frozen one takes as long as a small solve
class Scaling:
    """Factors of the rows and of the columns, (n,) float64, in the numbering of A."""

    row: np.ndarray
    column: np.ndarray

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scaling) and all(
            np.array_equal(a, b) for a, b in ((self.row, other.row), (self.column, other.column))
        )

    __hash__ = None  # type: ignore[assignment]


class ScalingRequest(NamedTuple):
    """The source of a scaling.

    Attributes
    ----------
    matching : Matching or None
        Matching of a matrix of this pattern, whose scaling is the initial one.
    plain : bool
        Whether to equilibrate only, without a matching, even if the scaling is uneven.
    """

    matching: Matching | None = None
    plain: bool = False


class Equilibrated(NamedTuple):
    """A scaling, and whether it is even: a matching would hardly change it."""

    scaling: Scaling
    even: bool


def scaling_of(matrix: Canonical, wanted: ScalingRequest, symmetric: bool) -> Scaling:
    """Return the scaling of a matrix for a method that seeks pivots.

    If rows and columns both vary much in size, scaling the largest entry of each row and then of
    each column to 1 may leave diagonal entries too small for pivots. A matching is then computed
    for its scaling alone.

    Parameters
    ----------
    matrix : Canonical
    wanted : ScalingRequest
    symmetric : bool
        Whether one array scales rows and columns.
    """
    if wanted.plain or wanted.matching is not None:
        return _equilibrated(matrix, symmetric, None if wanted.plain else wanted.matching)[0]
    scaling, even = equilibrated(matrix, symmetric)
    if not even:
        with np.errstate(over="ignore", under="ignore"):
            diagonal = modulus(diagonal_of(matrix.indptr, matrix.indices, matrix.data))
            diagonal = diagonal * scaling.row * scaling.column
        if wants_matching(diagonal.min(initial=1.0), matrix.dtype):
            matching = matching_of(matrix.indptr, matrix.indices, matrix.data)
            return _equilibrated(matrix, symmetric, matching)[0]
    return scaling


def wants_matching(smallest: float, dtype: np.dtype) -> bool:
    """Return whether an uneven scaling with this least diagonal entry needs a matching."""
    return bool(smallest < np.sqrt(np.finfo(dtype).eps))


def equilibrated(matrix: Canonical, symmetric: bool) -> Equilibrated:
    """Scale the largest entry of each row and column to 1.

    The scaling is even if at most a share `UNEVEN` of the entries is nonzero and below
    `UNEVEN_BELOW`.
    """
    scaling, size = _equilibrated(matrix, symmetric, None)
    far = _far_below(matrix.indptr, matrix.indices, size, scaling.row, scaling.column)
    return Equilibrated(scaling, far <= UNEVEN * size.size)


def _equilibrated(
    matrix: Canonical, symmetric: bool, matching: Matching | None
) -> tuple[Scaling, np.ndarray]:
    """Return the scaling, initially that of the matching if there is one, and the moduli."""
    size = modulus(matrix.data)
    begin = (matching.row_scale, matching.col_scale) if matching else (None, None)
    if not symmetric:
        return Scaling(*equilibrate(matrix.indptr, matrix.indices, size, *begin)), size
    both = equilibrate_symmetric(matrix.indptr, matrix.indices, size, *begin)
    return Scaling(both, both), size


@brief
def _far_below(indptr, indices, size, row, column):
    """Return the number of nonzero entries below `UNEVEN_BELOW`."""
    far = 0
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            product = np.float64(size[p]) * row[np.uint32(indices[p])] * column[j]
            far += (size[p] > 0) & (product < UNEVEN_BELOW)
    return far


def scaled(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, row: np.ndarray, column: np.ndarray
) -> np.ndarray:
    """Return the values of diag(row) A diag(column) in the scalar type of A."""
    if extreme(row, column):
        by_row, by_column = (np.log2(a).astype(np.int64) for a in (row, column))
        exponent = by_row[indices] + np.repeat(by_column, np.diff(indptr))
        return shifted(data, exponent).astype(data.dtype, copy=False)
    out = np.empty_like(data)
    _multiply(indptr, indices, data, row, column, out)
    return out


@brief
def _multiply(indptr, indices, data, row, column, out):
    for j in range(indptr.size - 1):
        for p in range(np.uint64(indptr[j]), np.uint64(indptr[j + 1])):
            out[p] = data[p] * (row[np.uint32(indices[p])] * column[j])


@brief
def extreme(row, column):
    """Return whether the product of a row and a column factor may overflow or underflow."""
    largest = smallest = highest = lowest = ONE_BITS
    for x in row.view(np.int64):  # bits of positive numbers have the same order
        largest, smallest = max(largest, x), min(smallest, x)
    for x in column.view(np.int64):
        highest, lowest = max(highest, x), min(lowest, x)
    ends = np.array([smallest, lowest, largest, highest]).view(np.float64)
    return ends[0] * ends[1] < 2.0**-MAX_EXPONENT or ends[2] * ends[3] > 2.0**MAX_EXPONENT


def shifted(M: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Return M times 2^exponent, which is broadcast, in double precision."""
    if M.dtype.kind != "c":
        return np.ldexp(M.astype(np.float64, copy=False), exponent)
    out = np.empty(np.broadcast_shapes(M.shape, exponent.shape), np.complex128)
    np.real(out)[...], np.imag(out)[...] = (shifted(a, exponent) for a in (np.real(M), np.imag(M)))
    return out


@jit
def scale_values(indptr, indices, data, row, column, symmetric, out):
    """Compute `equilibrated` and `scaled` in compiled loops over matrices of one pattern.

    Parameters
    ----------
    indptr, indices, data : arrays
        A by columns.
    row, column : (n,) float64 arrays
        Initial scalings, or ones; overwritten by the scaling of A.
    symmetric : bool
        Whether one scaling is used for rows and columns.
    out : (nnz,) array
        Receives the scaled values.

    Returns
    -------
    bool
        Whether the products of factors are normal numbers; otherwise `out` is not written.
    """
    size = np.empty(data.size)
    for p in range(data.size):
        size[p] = larger_part(data[p])
    if symmetric:
        scale = 0.5 * (np.log2(row) + np.log2(column))
        equal_rows(indptr, indices, logarithms(size.view(np.int64)), scale)
        row[:] = powers(np.rint(scale))
        column[:] = row
    else:
        initial = exponents(row), exponents(column)
        by_row, by_column = equal(indptr, indices, size.view(np.int64), *initial)
        row[:], column[:] = by_row, by_column
    if extreme(row, column):
        return False
    _multiply(indptr, indices, data, row, column, out)
    return True
