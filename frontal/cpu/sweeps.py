"""Forward and backward substitution over the fronts, and complete solutions by them.

Right-hand sides are the columns of `x`, n by w and row-major in elimination order: for BLAS, `x` is
the w by n matrix X^T, column-major, in which the pivot rows of a front are consecutive columns. All
triangular systems are written for X^T: L X = B is X^T = B^T L^-T. Small fronts do not call BLAS.
Two right-hand sides never do: BLAS would copy all panels, which takes twice as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import allocating, brief, inlined, inner
from .blas import (
    LOWER,
    MINUS,
    NO_TRANS,
    NON_UNIT,
    ONE,
    RIGHT,
    TRANS,
    UNIT,
    UPPER,
    ZERO,
    Routines,
    address,
    gemm,
    gemv,
    trsm,
    trsv,
)
from .narrow_sweeps import MAX_NARROW_COLUMNS, solve_narrow_front
from .small_sweeps import FrontView, solve_front, solve_front_two_rhs


class TriangularFactors(NamedTuple):
    """L, D and U of a matrix as substitutions read them.

    Attributes
    ----------
    start, pointer, rows : arrays
        See `Plan`.
    panel : (f + 1,) int64 array
        See `HostLayout`.
    panels, pivots : arrays
        See `HostFactor`.
    diagonal, subdiagonal : (n,) arrays of the scalar type
        Of D, for a method with D.
    routines : Routines
    one_triangle, unit, indefinite, conjugate : bool
        Properties of the method; `unit` if it has pivots, `conjugate` if it is complex and adjoint.
    row_place, row_scale, column_place, column_scale : arrays
        For rows and columns of A: positions in elimination order, and scaling, empty for none.
    widest, most : int
        Largest number of update rows, and of vectors that are swept together.
    """

    start: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    panel: np.ndarray
    panels: np.ndarray
    pivots: np.ndarray
    diagonal: np.ndarray
    subdiagonal: np.ndarray
    routines: Routines
    one_triangle: bool
    unit: bool
    indefinite: bool
    conjugate: bool
    row_place: np.ndarray
    row_scale: np.ndarray
    column_place: np.ndarray
    column_scale: np.ndarray
    widest: int
    most: int


@inlined
def triangular_factors(fields):
    """Return `TriangularFactors` of plain tuples, which Python passes faster."""
    named = fields[:8] + (Routines(*fields[8]),) + fields[9:]  # noqa: RUF005 - compiled
    return TriangularFactors(*named)


_ROWS = 64  # rows of right-hand sides transposed together, in the cache
MAX_LOOP_PANEL_ENTRIES = 1024  # entries of the largest panel solved in loops; BLAS takes as long


@inner
def _interchange(x, width, pivots, backward):
    """Apply a front's row interchanges to its pivot rows, in reverse order if `backward`."""
    k = pivots.size
    for step in range(k):
        j = k - 1 - step if backward else step
        p = pivots[j]
        if p != j:
            for c in range(width):
                x[j * width + c], x[p * width + c] = x[p * width + c], x[j * width + c]


@inner
def _solve_diagonal(routines, uplo, trans, diag, k, panel, ld, x, width):
    """Compute X1^T = X1^T op(T)^-1 with the triangle T of a front's diagonal block."""
    if width == 1:
        flipped = NO_TRANS if trans == TRANS else TRANS
        trsv(routines, uplo, flipped, diag, k, panel, ld, x)
    else:
        trsm(routines, RIGHT, uplo, trans, diag, width, k, panel, ld, x, width)


@inner
def _forward(routines, rows, k, block, ld, x1, width, x, buffer):
    """Subtract the product of the block below the diagonal and x1 from the rows of ancestors."""
    m = rows.size
    update = address(buffer)
    if width == 1:
        gemv(routines, NO_TRANS, m, k, ONE, block, ld, x1, ZERO, update)
        for i in range(m):
            x[rows[i]] -= buffer[i]
        return
    gemm(
        routines, NO_TRANS, TRANS, width, m, k, ONE, x1, width, block, ld, ZERO, update, width
    )  # fmt: skip
    for i in range(m):
        row = np.int64(rows[i]) * width
        for c in range(width):
            x[row + c] -= buffer[i * width + c]


@inner
def _backward(routines, rows, k, block, ld, x1, width, x, buffer):
    """Subtract the product of the transposed block and the rows of ancestors from x1."""
    m = rows.size
    gathered = address(buffer)
    if width == 1:
        for i in range(m):
            buffer[i] = x[rows[i]]
        gemv(routines, TRANS, m, k, MINUS, block, ld, gathered, ONE, x1)
        return
    for i in range(m):
        row = np.int64(rows[i]) * width
        for c in range(width):
            buffer[i * width + c] = x[row + c]
    gemm(
        routines, NO_TRANS, NO_TRANS, width, k, m, MINUS, gathered, width, block, ld, ONE, x1, width
    )  # fmt: skip


@inner
def sweep(factors, x, width, buffer, lower, unit, backward):
    """Run one substitution over all fronts, in place.

    Parameters
    ----------
    factors : TriangularFactors
        By reference.
    x : (n * width,) array of the scalar type
        `width` right-hand sides, row-major.
    buffer : array of the scalar type
        Scratch, `width` times the largest number of update rows.
    lower : bool
        Whether L is used, in the first panel; else U.
    unit : bool
        Whether the triangle has a diagonal of ones; row interchanges are then applied.
    backward : bool
        Whether to sweep from roots to leaves; else from leaves to roots.
    """
    start, pointer, all_rows = factors.start, factors.pointer, factors.rows
    routines, panel, panels, pivots = (
        factors.routines,
        factors.panel,
        factors.panels,
        factors.pivots,
    )
    fronts = panel.size - 1
    item = panels.itemsize
    uplo = LOWER if lower else UPPER
    diag = UNIT if unit else NON_UNIT
    trans = TRANS if lower != backward else NO_TRANS
    for step in range(fronts):
        s = fronts - 1 - step if backward else step
        first = np.int64(start[s])
        k = start[s + 1] - first
        m = pointer[s + 1] - pointer[s]
        above = panel[s] + (k if lower else k * (k + m))
        ld = k + m if lower else m
        if width <= 2 and 0 < k <= MAX_NARROW_COLUMNS:
            if unit and not backward and k > 1:
                _interchange(x[first * width :], width, pivots[first : first + k], backward)
            place = first, panel[s], above, ld
            for c in range(width):
                solve_narrow_front(
                    panels, place, k, all_rows, pointer[s], m, x, width, c, lower, unit, backward
                )
            if unit and backward and k > 1:
                _interchange(x[first * width :], width, pivots[first : first + k], backward)
            continue
        rows = all_rows[pointer[s] : pointer[s + 1]]
        pivot_rows = x[first * width : (first + k) * width]
        if unit and not backward:
            _interchange(pivot_rows, width, pivots[first : first + k], backward)
        if width == 2 or (width == 1 and k * (k + m) <= MAX_LOOP_PANEL_ENTRIES):
            front = FrontView(panels, rows, k, first, panel[s], above, ld)
            if width == 1:
                solve_front(front, x, buffer, lower, unit, backward)
            else:
                solve_front_two_rhs(front, x, buffer, lower, unit, backward)
        else:
            x1, diagonal = address(pivot_rows), address(panels) + panel[s] * item
            block = address(panels) + above * item
            if backward and m > 0:
                _backward(routines, rows, k, block, ld, x1, width, x, buffer)
            _solve_diagonal(routines, uplo, trans, diag, k, diagonal, k + m, x1, width)
            if not backward and m > 0:
                _forward(routines, rows, k, block, ld, x1, width, x, buffer)
        if unit and backward:
            _interchange(pivot_rows, width, pivots[first : first + k], backward)


@brief
def diagonal_of_panels(plan, panel, panels):
    """Return the diagonal of the first panel of each front, in elimination order."""
    out = np.empty(plan.start[-1], panels.dtype)
    for s in range(plan.parent.size):
        first, last = plan.start[s], plan.start[s + 1]
        ld = np.int64(last - first) + plan.pointer[s + 1] - plan.pointer[s]
        for j in range(last - first):
            out[first + j] = panels[panel[s] + j * (ld + 1)]
    return out


@inner
def divide(x, width, diagonal, coupling, adjoint):
    """Solve D X = B in place, with pivots of order 1 and 2.

    Parameters
    ----------
    x : (n * width,) array of the scalar type
        See `sweep`.
    diagonal, coupling : (n,) arrays
        D(j, j) and D(j + 1, j).
    adjoint : bool
        Whether D(j, j + 1) is the conjugate of D(j + 1, j); else they are equal.
    """
    j, n = 0, diagonal.size
    while j < n:
        d, b = diagonal[j], coupling[j]
        if b == 0:
            for c in range(j * width, (j + 1) * width):
                x[c] /= d
            j += 1
            continue
        upper = np.conj(b) if adjoint else b
        a0, a1 = d / upper, diagonal[j + 1] / b
        determinant = a0 * a1 - 1
        for c in range(j * width, (j + 1) * width):
            y, z = x[c], x[c + width]
            y, z = y / upper, z / b
            x[c], x[c + width] = (a1 * y - z) / determinant, (a0 * z - y) / determinant
        j += 2


@inner
def conjugate_all(x):
    for i in range(x.size):
        x[i] = np.conj(x[i])


@inlined
def enter(place, scale, B, x):
    """Copy the rows of B to the columns of x, row-major, in elimination order and scaled."""
    width, n = B.shape
    for low in range(0, n, _ROWS):
        for c in range(width):
            for i in range(low, min(low + _ROWS, n)):
                p = np.uint32(place[i])
                x[i * width + c] = B[c, p] * scale[p] if scale.size else B[c, p]


@inlined
def leave(place, scale, x, X):
    """Copy the columns of x, row-major, to the rows of X, in the order of A and scaled."""
    width, n = X.shape
    for low in range(0, n, _ROWS):
        for c in range(width):
            for i in range(low, min(low + _ROWS, n)):
                p, y = np.uint32(place[i]), x[i * width + c]
                X[c, p] = y * scale[p] if scale.size else y


@inner
def solve_forward(factors, transposed, conjugated, B, x, buffer):
    """Permute and scale right-hand sides, the rows of B, to x, and run the forward sweep."""
    into, by = factors.row_place, factors.row_scale
    if transposed:
        into, by = factors.column_place, factors.column_scale
    width = B.shape[0]
    enter(into, by, B, x)
    if conjugated != (factors.conjugate and transposed):
        conjugate_all(x)
    # with two panels, L is used in the forward sweep of A and the backward sweep of A^T
    lower = factors.one_triangle or not transposed
    sweep(factors, x, width, buffer, lower, lower and factors.unit, False)


@inner
def solve_backward(factors, transposed, conjugated, x, X, buffer):
    """Divide x by D, run the backward sweep, and permute and scale x to the rows of X."""
    out, back = factors.column_place, factors.column_scale
    if transposed:
        out, back = factors.row_place, factors.row_scale
    width, conjugate = X.shape[0], factors.conjugate
    if factors.indefinite:
        divide(x, width, factors.diagonal, factors.subdiagonal, conjugate)
    if conjugate:  # L^H y = z is L^T conj(y) = conj(z)
        conjugate_all(x)
    lower = factors.one_triangle or transposed
    sweep(factors, x, width, buffer, lower, lower and factors.unit, True)
    if conjugated != (conjugate and not transposed):
        conjugate_all(x)
    leave(out, back, x, X)


@allocating
def substitute(factors, transposed, conjugated, B, X):
    """Solve op(A) X = B by the factors: permute, scale, sweep forward and backward.

    Parameters
    ----------
    factors : TriangularFactors
        By reference.
    transposed, conjugated : bool
        Whether op(A) is transposed, and whether it is conjugated.
    B, X : (k, n) arrays
        A right-hand side, or a solution, in each row.
    """
    most, n, panels = factors.most, B.shape[1], factors.panels
    width = min(most, B.shape[0])
    x, buffer = np.empty(n * width, panels.dtype), np.empty(factors.widest * width, panels.dtype)
    for first in range(0, B.shape[0], most):
        last = min(first + most, B.shape[0])
        vectors = x[: n * (last - first)]
        solve_forward(factors, transposed, conjugated, B[first:last], vectors, buffer)
        solve_backward(factors, transposed, conjugated, vectors, X[first:last], buffer)
