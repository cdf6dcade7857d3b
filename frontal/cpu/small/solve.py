"""Solutions for plain right-hand sides in one compiled call that allocates its own scratch.

For small systems overhead dominates; this path has none. A solution that refinement does not make
accurate, or that needs a warning, is left to the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...compile.atomics import array_of, write_addresses
from ...compile.jit import allocating, brief, inlined, inner, jit, view
from ...numeric.acceptance import unpacked
from ...numeric.backward_error import row_sums
from ...numeric.condition import CERTIFIED, KNOWN, UNMEASURED, certificate, enough, may_certify
from ...numeric.linear_system import FastSolution
from ...numeric.one_norm import MAX_TURNS, after_adjoint, after_product
from .. import sweeps
from ..blas import Routines
from ..blas_limit import single_threaded_blas
from ..by_reference import reference
from ..columns.sweeps import ColumnTriangles, substitute_by_columns
from ..constants import by_tuple
from ..probes import FORMED, begin, row_maxima, sign_block
from ..residual import is_harmless, measure
from ..substitution import Substitution
from ..sweeps import TriangularFactors, triangular_factors
from .gil_handoff import TURN, enter_python, leave_python
from .refine import refine

MAX_SMALL_UNKNOWNS = 1 << 15  # largest n: above it the saving is below 5 %
_NO_VECTORS = {"f": np.empty(0), "c": np.empty(0, np.complex128)}  # types of an estimate's vectors
_after_product, _after_adjoint = inner(after_product), inner(after_adjoint)
# Positions in the table of arrays, which begins with those of the factors: of the panels, the sides
# of A, the matrix, and the slot of `gil_handoff`. The flags follow the addresses and sizes of
# all arrays; the bits of the norm and of `enough` come last.
PANELS, SIDES, MATRIX, TURN_OF_ALL, FLAGS, NUMBERS = 4, 11, 15, 19, 40, 51
_substitute = by_tuple(
    {TriangularFactors: sweeps.substitute, ColumnTriangles: substitute_by_columns}
)
# fields of `TriangularFactors` that differ between factors of one plan
_PER_FACTOR = "panels", "pivots", "diagonal", "subdiagonal", "row_scale", "column_scale"


def scratch_of(dtype: np.dtype) -> np.ndarray:
    """Return an empty array in the scalar type of an estimate's vectors."""
    return _NO_VECTORS[dtype.kind]


class TableFlags(NamedTuple):
    """Numbers that `describe` stores after the addresses and sizes of a table, in this order."""

    adjoint: np.uint8
    one_triangle: bool
    unit: bool
    indefinite: bool
    conjugate: bool
    widest: int
    most: int
    transposed: bool
    conjugated: bool
    flipped: bool
    by_component: bool


class SmallSolver:
    """Solver of op(A) x = b for a vector b, by the same arithmetic as `HostSystem.solved`.

    Parameters
    ----------
    table : int64 array
        See `describe`.
    arrays : tuple
        The arrays whose addresses it contains; the reference keeps them alive.
    n, dtype, calls_blas
        See `Substitution`.

    Attributes
    ----------
    hopeful : bool
        Whether solutions are tried.
    failed : bool
        Whether a solution stayed inaccurate.
    """

    def __init__(
        self,
        table: np.ndarray,
        arrays: tuple[tuple[object, ...], tuple[object, ...]],
        n: int,
        dtype: np.dtype,
        calls_blas: bool,
    ) -> None:
        self.table, self._arrays, self._wide = table, arrays, scratch_of(dtype)
        self._dtype, self._shape, self._calls_blas = dtype, (n,), calls_blas
        self.hopeful, self.failed = True, False

    @classmethod
    def from_substitution(cls, solver: Substitution, matrix: tuple[object, ...]) -> SmallSolver:
        """Return the solver by a `Substitution` and a matrix in the form of `residual.measure`."""
        table, calls_blas = np.empty(NUMBERS + 2, np.int64), solver.calls_blas
        factors = *solver.factors, solver.most(1)
        op = solver.transposed, solver.conjugated
        _describe(table, factors, op, matrix, enough(solver.dtype), TURN)
        return cls(table, (factors, matrix), solver.n, solver.dtype, calls_blas)

    def without_numbers(self) -> SmallSolver:
        """Return a solver with the arrays shared by all factors of the plan, for `with_factor`."""
        factors, matrix = self._arrays
        fields = zip(TriangularFactors._fields, factors, strict=True)
        shared = tuple(a for name, a in fields if name not in _PER_FACTOR)
        arrays = shared, matrix[:2] + matrix[3:]
        return SmallSolver(self.table, arrays, self._shape[0], self._dtype, self._calls_blas)

    def with_factor(self, table: np.ndarray, *factor_arrays: object) -> SmallSolver:
        """Return the solver of another factor of the plan: its table, and its own arrays."""
        arrays = self._arrays, factor_arrays
        return SmallSolver(table, arrays, self._shape[0], self._dtype, self._calls_blas)

    def __call__(self, b: object, how: int) -> FastSolution | None:
        """Return x and its error; None if b is not a plain vector.

        Return None, too, if x stays inaccurate or an exponent is near its limits; no other b is
        tried then, unless `hopeful` is set again.

        Parameters
        ----------
        b : object
        how : int
            How to compute the condition number: `ESTIMATED`, `CERTIFIED`, or not at all: `KNOWN`;
            with `UNMEASURED`, without refinement and errors, too.
        """
        if type(b) is not np.ndarray or b.shape != self._shape or b.dtype != self._dtype:
            return None
        measured = how != UNMEASURED
        if not (self.hopeful or not measured) or not b.flags.carray:
            return None
        x = np.empty(b.size, self._dtype)
        outcome = self._solve(b, x, how)
        if not outcome[0] >= 0:
            if measured:
                self.hopeful, self.failed = False, True
            return None
        return FastSolution(x, *outcome)

    def condition(self, how: int) -> tuple[float, bool]:
        """Return the condition number that comes with a solution, and whether it is a bound."""
        nothing = np.empty(0, self._dtype)
        return self._solve(nothing, nothing, how)[1:]

    def _solve(self, b: np.ndarray, x: np.ndarray, how: int) -> tuple[float, float, bool]:
        if self._calls_blas:
            with single_threaded_blas():
                return _solve_small(self.table, self._wide, b, x, how)
        return _solve_small(self.table, self._wide, b, x, how)


@brief
def describe(table, factors, op, matrix, enough, turn):
    """Write the table of `solve_small`: each array argument costs a call dozens of operations.

    Parameters
    ----------
    table : int64 array
        On return, addresses and sizes of arrays, flags, norm and `enough`.
    factors : tuple
        See `sweeps.triangular_factors`.
    op : (bool, bool)
        `transposed` and `conjugated`, see `substitute`.
    matrix : tuple
        See `residual.measure`.
    enough : float
        See `condition_of`.
    turn : int64 array
        See `gil_handoff`.
    """
    f, (indptr, indices, data, flipped, by_component, norm, limits) = (
        triangular_factors(factors),
        matrix,
    )
    arrays = (
        f.start, f.pointer, f.rows, f.panel, f.panels, f.pivots, f.diagonal, f.subdiagonal,
        f.routines.table, f.routines.scalars, f.routines.reals,
        f.row_place, f.row_scale, f.column_place, f.column_scale, indptr, indices, data, limits,
        turn,
    )  # fmt: skip
    write_addresses(arrays, table)
    flags = (  # in the order of `TableFlags`
        np.int64(f.routines.adjoint), np.int64(f.one_triangle), np.int64(f.unit),
        np.int64(f.indefinite), np.int64(f.conjugate), np.int64(f.widest), np.int64(f.most),
        np.int64(op[0]), np.int64(op[1]), np.int64(flipped), np.int64(by_component),
    )  # fmt: skip
    for k in range(NUMBERS - FLAGS):
        table[FLAGS + k] = flags[k]
    numbers = table.view(np.float64)
    numbers[NUMBERS], numbers[NUMBERS + 1] = norm, enough


_describe: Callable[..., None] = describe


@inlined
def describe_factor(table, panels, pivots, row_scale, column_scale, data, norm):
    """Overwrite the parts of a table that differ for another factor of the plan, except D.

    Scalings are not written if they are empty.
    """
    write_addresses((panels, pivots), table[2 * PANELS :])
    if row_scale.size > 0:
        write_addresses((row_scale,), table[2 * (SIDES + 1) :])
        write_addresses((column_scale,), table[2 * (SIDES + 3) :])
    write_addresses((data,), table[2 * (MATRIX + 2) :])
    table.view(np.float64)[NUMBERS] = norm


@view
def _flags(table):
    words = table[FLAGS:NUMBERS]
    return TableFlags(
        np.uint8(words[0]), words[1] != 0, words[2] != 0, words[3] != 0, words[4] != 0, words[5],
        words[6], words[7] != 0, words[8] != 0, words[9] != 0, words[10] != 0,
    )  # fmt: skip


@inlined
def _factors(table, flags, x):
    """Return the `TriangularFactors` of a table."""
    return TriangularFactors(
        array_of(table, 0, np.int32), array_of(table, 1, np.int64), array_of(table, 2, np.int32),
        array_of(table, 3, np.int64), array_of(table, 4, x.dtype), array_of(table, 5, np.int32),
        array_of(table, 6, x.dtype), array_of(table, 7, x.dtype),
        Routines(
            array_of(table, 8, np.int64), array_of(table, 9, x.dtype),
            array_of(table, 10, x.real.dtype), flags.adjoint,
        ),
        flags.one_triangle, flags.unit, flags.indefinite, flags.conjugate,
        array_of(table, SIDES, np.int32), array_of(table, SIDES + 1, np.float64),
        array_of(table, SIDES + 2, np.int32), array_of(table, SIDES + 3, np.float64),
        flags.widest, flags.most,
    )  # fmt: skip


@jit
def solve_small(table, wide, b, x, how):
    """Solve op(A) x = b; return `error`, `condition` and `certified` of a `FastSolution`.

    The error is -1 if x is not fine. If x and b are empty, only the condition number is computed.
    See `describe` for the table.
    """
    turn = array_of(table, TURN_OF_ALL, np.int64)
    leave_python(turn)
    flags = _flags(table)
    factors, transposed, conjugated = _factors(table, flags, x), flags.transposed, flags.conjugated
    numbers = table.view(np.float64)[NUMBERS:]
    limits, limit = array_of(table, MATRIX + 3, np.float64), numbers[1]
    matrix = (
        array_of(table, MATRIX, np.int64), array_of(table, MATRIX + 1, np.int32),
        array_of(table, MATRIX + 2, x.dtype), flags.flipped, flags.by_component, numbers[0], limits,
    )  # fmt: skip
    n, pointer = factors.row_place.size, reference(factors)
    R, sizes = np.empty((1, n), x.dtype), np.empty((5, 1), x.real.dtype)
    error, fine = 0.0, True
    if b.size > 0:
        B, X = b.reshape((1, n)), x.reshape((1, n))
        _substitute(pointer, transposed, conjugated, B, X)
        if how == UNMEASURED:
            fine = is_harmless(matrix, x, b)
        else:
            error, fine = measure(matrix, X, B, R, sizes)
        # the general path sums the rows of other matrices by columns: corrections would differ
        corrected = flags.one_triangle and x.itemsize == x.real.itemsize and how != UNMEASURED
        if not fine and corrected:
            error, fine = refine(pointer, flags, matrix, B, X, R, sizes, error)
    condition, certified = -1.0, False
    if fine and how > KNOWN:
        condition, certified = condition_of(
            pointer, transposed, conjugated, matrix, how, limit, wide, R
        )
    enter_python(turn, factors.routines.table[8])
    return max(error, unpacked(limits).eps) if fine else -1.0, condition, certified


_solve_small: Callable[..., tuple[float, float, bool]] = solve_small


@allocating
def condition_of(factors, transposed, conjugated, matrix, how, enough, wide, Z):
    """Return || |op(A)^-1| |op(A)| e ||, and whether it is a bound; see `factor_condition`.

    Parameters
    ----------
    factors, transposed, conjugated
        See `substitute`.
    matrix : tuple
        op(A), see `residual.measure`.
    how : int
        `ESTIMATED`, or `CERTIFIED` to try a bound, too: first if it is likely, else if the
        estimate is not small.
    enough : float
        Estimates up to this are not improved.
    wide : (0,) array
        Has the scalar type of an estimate's vectors.
    Z : (1, n) array
        Scratch, of the scalar type of the factors.
    """
    indptr, indices, data, flipped = matrix[0], matrix[1], matrix[2], matrix[3]
    sums = row_sums(indptr, indices, data, flipped)
    likely = how == CERTIFIED and may_certify(indptr, indices, data, sums)
    if likely:
        bound = _certified(factors, transposed, conjugated, matrix, sums, Z)
        if bound < np.inf:
            return bound, True
    norm = weighted_norm(factors, transposed, sums, enough, wide)
    if how == CERTIFIED and not (likely or norm <= enough):  # only a bound may silence solutions
        bound = _certified(factors, transposed, conjugated, matrix, sums, Z)
        if bound < np.inf:
            return bound, True
    return norm, False


@allocating
def _certified(factors, transposed, conjugated, matrix, sums, Z):
    """Return the `certificate` of op(A); infinite if there is none."""
    B = np.empty_like(Z)
    for i in range(sums.size):
        B[0, i] = sums[i]
    _substitute(factors, transposed, conjugated, B, Z)
    return certificate(matrix[0], matrix[1], matrix[2], matrix[3], sums, Z[0])


@allocating
def weighted_norm(factors, flip, w, enough, wide):
    """Return an estimate of the 1-norm of W op(A)^-H; infinite for NaN. See `numeric.one_norm`.

    Estimates up to `enough` are not improved. A probable bound is returned instead if it is at most
    `PROBABLE_FRACTION` * `enough`.
    """
    n, norm = w.size, -1.0
    complete = n <= FORMED
    X = np.zeros((n if complete else 2, n), wide.dtype)
    if complete:
        for j in range(n):
            X[j, j] = 1
    else:
        begin(X)
    Y, S = np.empty_like(X), np.empty_like(X)
    sums, products = np.empty(X.shape[0]), np.empty(X.shape[0])
    for turn in range(MAX_TURNS):
        _substitute(factors, not flip, not flip, X, Y)
        sign_block(w, Y, S, sums)
        norm, j, done = _after_product(turn, sums, norm, n, complete, enough)
        if done:
            break
        _substitute(factors, flip, flip, S, Y)
        largest, first, second = row_maxima(Y, X, products)
        norm, done = _after_adjoint(norm, largest, products[j], enough)
        if done:
            break
        X[:] = 0
        X[0, first] = X[1, second] = 1
    return norm if norm == norm else np.inf
