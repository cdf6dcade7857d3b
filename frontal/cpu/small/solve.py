"""Solutions for plain right-hand sides in one compiled call that allocates all it needs.

What a solve of a small system costs is what is done around its arithmetic. Here is nothing around
it: whatever is unusual is left to those who look closer.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from ...compile.atomics import array_of, write_addresses
from ...compile.jit import allocating, brief, inlined, jit, view
from ...numeric.backward_error import row_sums
from ...numeric.condition import BOUND, CERTIFIED, KNOWN, PROBABLE_FRACTION, certificate, enough
from ..blas_limit import single_threaded_blas
from ..by_reference import reference
from ..probes import FORMED, begin, row_maxima, sign_block
from ..residual import measure
from ..substitution import WIDTH, Substitution
from ..sweeps import substitute
from .gil_handoff import TURN, enter_python, leave_python

MAX_SMALL_UNKNOWNS = 4096  # unknowns; of more the little that is saved is no matter
_NO_VECTORS = {"f": np.empty(0), "c": np.empty(0, np.complex128)}  # of the vectors of an estimate
TURNS = 3  # of an estimate: at most 5 blocks of products are formed
# Places in the table of arrays, where those of the factors come first: of the panels, of the sides
# of op(A), of the matrix, and of the turn of threads. Behind addresses and sizes of all come flags,
# and the bits of the norm and of the precision.
PANELS, SIDES, MATRIX, TURN_OF_ALL, FLAGS, NUMBERS = 4, 11, 15, 19, 40, 51
# of what `describe` is told, what each factor of a plan has alone
_OWN = {"panels", "pivots", "diagonal", "coupling", "left", "right", "data"}


class SmallSolution(NamedTuple):
    """A solution that is as good as rounding allows, and what is known of it.

    Attributes
    ----------
    x : (n,) array
    error : float
        Rowwise backward error, no less than the precision.
    condition : float
        Condition number of the factor for all right-hand sides, if it was asked for; else -1.
    certified : bool
        It is a bound.
    """

    x: np.ndarray
    error: float
    condition: float
    certified: bool


class Factors(NamedTuple):
    """What `substitute` is told, but for what op(A) is; `into` and `left` are of the rows of A."""

    start: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    panel: np.ndarray
    panels: np.ndarray
    pivots: np.ndarray
    diagonal: np.ndarray
    subdiagonal: np.ndarray
    table: np.ndarray
    scalars: np.ndarray
    reals: np.ndarray
    adjoint: np.uint8
    one_triangle: bool
    unit: bool
    indefinite: bool
    conjugate: bool
    into: np.ndarray
    left: np.ndarray
    out: np.ndarray
    right: np.ndarray
    widest: int
    most: int


class TableFlags(NamedTuple):
    """What a table has behind addresses and sizes, in this order, of what `describe` is told."""

    adjoint: np.uint8
    one_triangle: bool
    unit: bool
    indefinite: bool
    conjugate: bool
    transposed: bool
    conjugated: bool
    widest: int
    most: int
    flipped: bool
    by_component: bool


class SmallSolver:
    """x for op(A) x = b with a vector b, by the same arithmetic as `HostSystem.solved`.

    Parameters
    ----------
    table : int64 array
        See `describe`.
    kept : tuple
        What it names, which lives as long.
    n, dtype, calls_blas
        As of a `Substitution`.

    Attributes
    ----------
    hopeful : bool
        Solutions are tried.
    failed : bool
        One was worse than rounding makes it.
    """

    def __init__(
        self,
        table: np.ndarray,
        kept: tuple[object, ...],
        n: int,
        dtype: np.dtype,
        calls_blas: bool,
    ) -> None:
        self.table, self._kept, self._wide = table, kept, _NO_VECTORS[dtype.kind]
        self._dtype, self._shape, self._calls_blas = dtype, (n,), calls_blas
        self.hopeful, self.failed = True, False

    @classmethod
    def of(cls, solver: Substitution, matrix: tuple[Any, ...]) -> SmallSolver:
        """By what solves, and a matrix as `residual.measure` takes it."""
        table, calls_blas = np.empty(NUMBERS + 2, np.int64), solver.calls_blas
        limit = enough(solver.dtype)
        kept = *solver.bound, WIDTH if calls_blas else 1, *matrix, limit, TURN
        _describe(table, *kept)
        return cls(table, kept, solver.n, solver.dtype, calls_blas)

    def without_numbers(self) -> SmallSolver:
        """It with what all factors of the plan share, for `other`; it solves nothing itself."""
        kept = tuple(a for name, a in zip(_TOLD, self._kept, strict=True) if name not in _OWN)
        return SmallSolver(self.table, kept, self._shape[0], self._dtype, self._calls_blas)

    def other(self, table: np.ndarray, *own: object) -> SmallSolver:
        """That of another factor of the same plan: its table, and what that alone names."""
        kept = self._kept, own
        return SmallSolver(table, kept, self._shape[0], self._dtype, self._calls_blas)

    def __call__(self, b: object, how: int) -> SmallSolution | None:
        """Return x and its error; None for what is no plain vector.

        None, too, if x is worse than rounding makes it or a size is out of the ordinary; no other b
        is tried then.

        Parameters
        ----------
        b : object
        how : int
            Whether the condition number is wanted: `KNOWN`, `ESTIMATED` or `CERTIFIED`.
        """
        if type(b) is not np.ndarray or b.shape != self._shape or b.dtype != self._dtype:
            return None
        if not (self.hopeful and b.flags.carray):
            return None
        x = np.empty(b.size, self._dtype)
        found = self._solve(b, x, how)
        if not found[0] >= 0:
            self.hopeful, self.failed = False, True
            return None
        return SmallSolution(x, *found)

    def condition(self, how: int) -> tuple[float, bool]:
        """Return the condition number that comes with a solution, and whether it is a bound."""
        nothing = np.empty(0, self._dtype)
        return self._solve(nothing, nothing, how)[1:]

    def _solve(self, b: np.ndarray, x: np.ndarray, how: int) -> tuple[float, float, bool]:
        if self._calls_blas:
            with single_threaded_blas():
                return _solve_at_once(self.table, self._wide, b, x, how)
        return _solve_at_once(self.table, self._wide, b, x, how)


@brief
def describe(
    table,
    start, pointer, rows, panel, panels, pivots, diagonal, coupling, blas, scalars, reals, adjoint,
    one_triangle, unit, indefinite, conjugate, transposed, conjugated,
    into, left, out, right, widest, most,
    indptr, indices, data, flipped, by_component, norm, limits, enough, turn,
):  # fmt: skip
    """Write what `solve_small` reads, as an array costs a call from Python dozens of operations.

    Parameters
    ----------
    table : int64 array
        Where arrays are, flags, norm and precision.
    """
    arrays = (
        start, pointer, rows, panel, panels, pivots, diagonal, coupling, blas, scalars, reals,
        into, left, out, right, indptr, indices, data, limits, turn,
    )  # fmt: skip
    write_addresses(arrays, table)
    flags = (  # as `TableFlags`
        np.int64(adjoint), np.int64(one_triangle), np.int64(unit), np.int64(indefinite),
        np.int64(conjugate), np.int64(transposed), np.int64(conjugated), np.int64(widest),
        np.int64(most), np.int64(flipped), np.int64(by_component),
    )  # fmt: skip
    for k in range(NUMBERS - FLAGS):
        table[FLAGS + k] = flags[k]
    numbers = table.view(np.float64)
    numbers[NUMBERS], numbers[NUMBERS + 1] = norm, enough


_describe: Any = describe
_TOLD = [*signature(_describe.py_func).parameters][1:]


@inlined
def describe_other(table, panels, pivots, left, right, data, norm):
    """Write what another factor of the plan has of its own, but for D, over what a table names.

    The sides have no factors if these are empty.
    """
    write_addresses((panels, pivots), table[2 * PANELS :])
    if left.size > 0:
        write_addresses((left,), table[2 * (SIDES + 1) :])
        write_addresses((right,), table[2 * (SIDES + 3) :])
    write_addresses((data,), table[2 * (MATRIX + 2) :])
    table.view(np.float64)[NUMBERS] = norm


@view
def _flags(table):
    of = table[FLAGS:NUMBERS]
    return TableFlags(
        np.uint8(of[0]), of[1] != 0, of[2] != 0, of[3] != 0, of[4] != 0, of[5] != 0, of[6] != 0,
        of[7], of[8], of[9] != 0, of[10] != 0,
    )  # fmt: skip


@inlined
def _factors(table, flags, x):
    """What stands first in the table, but for the sides, which are those of op(A)."""
    turned = 2 * flags.transposed  # the side of the rows of A comes first
    first, second = SIDES + turned, SIDES + 2 - turned
    return Factors(
        array_of(table, 0, np.int32), array_of(table, 1, np.int64), array_of(table, 2, np.int32),
        array_of(table, 3, np.int64), array_of(table, 4, x.dtype), array_of(table, 5, np.int32),
        array_of(table, 6, x.dtype), array_of(table, 7, x.dtype), array_of(table, 8, np.int64),
        array_of(table, 9, x.dtype), array_of(table, 10, x.real.dtype),
        flags.adjoint, flags.one_triangle, flags.unit, flags.indefinite, flags.conjugate,
        array_of(table, first, np.int32), array_of(table, first + 1, np.float64),
        array_of(table, second, np.int32), array_of(table, second + 1, np.float64),
        flags.widest, flags.most,
    )  # fmt: skip


@jit
def solve_small(table, wide, b, x, how):
    """Solve op(A) x = b; return the error of x and the factor's condition number, as
    `SmallSolution` does.

    The error is -1 if x is not fine. If x and b are empty, the condition number alone is found. See
    `describe` for the table.
    """
    turn = array_of(table, TURN_OF_ALL, np.int64)
    leave_python(turn)
    flags = _flags(table)
    of, transposed, conjugated = _factors(table, flags, x), flags.transposed, flags.conjugated
    indptr, indices = array_of(table, MATRIX, np.int64), array_of(table, MATRIX + 1, np.int32)
    data, limits = array_of(table, MATRIX + 2, x.dtype), array_of(table, MATRIX + 3, np.float64)
    numbers = table.view(np.float64)[NUMBERS:]
    flipped, norm, limit = flags.flipped, numbers[0], numbers[1]
    n, by = of.into.size, reference(of)
    R, sizes = np.empty((1, n), x.dtype), np.empty((5, 1), x.real.dtype)
    error, fine = 0.0, True
    if b.size > 0:
        B, X = b.reshape((1, n)), x.reshape((1, n))
        substitute_by(by, transposed, conjugated, B, X)
        error, fine = measure(
            indptr, indices, data, flipped, flags.by_component, norm, limits, X, B, R, sizes
        )
    condition, certified = -1.0, False
    if fine and how != KNOWN:
        matrix = indptr, indices, data, flipped
        condition, certified = condition_of(by, transposed, conjugated, matrix, how, limit, wide, R)
    enter_python(turn, of.table[8])
    return max(error, limits[7]) if fine else -1.0, condition, certified


_solve_at_once: Callable[..., tuple[float, float, bool]] = solve_small


@allocating
def condition_of(of, transposed, conjugated, matrix, how, enough, wide, Z):
    """Return || |op(A)^-1| |op(A)| e ||, and whether it is a bound; see `factor_condition`.

    Parameters
    ----------
    of : Factors
        Borrowed.
    transposed, conjugated : bool
        As for `substitute`.
    matrix : tuple
        op(A) as `row_sums` takes it.
    how : int
        `ESTIMATED`, or `CERTIFIED` if a bound is to be tried first.
    enough : float
        No better estimate is sought of a norm that is less.
    wide : (0,) array
        Of the type of an estimate's vectors.
    Z : (1, n) array
        Scratch, of the type of the factors.
    """
    indptr, indices, data, flipped = matrix
    sums = row_sums(indptr, indices, data, flipped)
    if how == CERTIFIED:
        B = np.empty_like(Z)
        for i in range(sums.size):
            B[0, i] = sums[i]
        substitute_by(of, transposed, conjugated, B, Z)
        bound = certificate(indptr, indices, data, flipped, sums, Z[0])
        if bound < np.inf:
            return bound, True
    return weighted_norm(of, transposed, sums, enough, wide), False


@allocating
def substitute_by(of, transposed, conjugated, B, X):
    """See `substitute`, for borrowed `Factors`."""
    into, left, out, right = of.into, of.left, of.out, of.right
    if transposed:
        into, left, out, right = out, right, into, left
    substitute(
        of.start, of.pointer, of.rows, of.panel, of.panels, of.pivots, of.diagonal, of.subdiagonal,
        of.table, of.scalars, of.reals, of.adjoint, of.one_triangle, of.unit, of.indefinite,
        of.conjugate, transposed, conjugated, into, left, out, right, of.widest, of.most, B, X,
    )  # fmt: skip


@allocating
def weighted_norm(of, flip, w, enough, wide):
    """Return the 1-norm of W op(A)^-H, as `numeric.one_norm` has it; infinite if it is no number.

    No better one is sought of a norm that is less than `enough`, and a bound of it will do that is
    less by `PROBABLE_FRACTION`.
    """
    n, found = w.size, -1.0
    complete = n <= FORMED
    X = np.zeros((n if complete else 2, n), wide.dtype)
    if complete:
        for j in range(n):
            X[j, j] = 1
    else:
        begin(X)
    Y, S = np.empty_like(X), np.empty_like(X)
    sums, own = np.empty(X.shape[0]), np.empty(X.shape[0])
    for turn in range(TURNS):
        substitute_by(of, not flip, not flip, X, Y)
        sign_block(w, Y, S, sums)
        j = np.argmax(sums)  # of NaN, if there is one
        if sums[j] < found:
            break
        found = sums[j]
        if turn == 0 and not complete:
            bound = BOUND * n * found
            if bound <= PROBABLE_FRACTION * enough:
                return bound
        if turn == TURNS - 1 or complete or not np.isfinite(found):
            break
        substitute_by(of, flip, flip, S, Y)
        largest, first, second = row_maxima(Y, X, own)
        if not np.isfinite(largest):
            return np.inf
        if largest <= own[j]:
            break
        found = max(found, largest)
        if found <= enough:
            break
        X[:] = 0
        X[0, first] = X[1, second] = 1
    return found if found == found else np.inf
