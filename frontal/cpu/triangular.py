"""Forward and backward substitution over the fronts.

Right-hand sides are the rows of `x`, n by w and row-major in elimination order: to BLAS that is the
w by n matrix X^T, column-major, in which the pivot rows of a front are consecutive columns. All
triangular systems are written for X^T: L X = B is X^T = B^T L^-T.
"""

from __future__ import annotations

import numpy as np

from .._jit import inner, jit
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
    address,
    gemm,
    gemv,
    trsm,
    trsv,
)


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
    """X1^T = X1^T op(T)^-1 with the triangle of a front's diagonal block."""
    if width == 1:
        flipped = NO_TRANS if trans == TRANS else TRANS
        trsv(routines, uplo, flipped, diag, k, panel, ld, x)
    else:
        trsm(routines, RIGHT, uplo, trans, diag, width, k, panel, ld, x, width)


@inner
def _forward(routines, rows, k, block, ld, x1, width, x, buffer):
    """Take the product of the block below the diagonal and x1 off the rows of ancestors."""
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
    """Take the product of the transposed block and the rows of ancestors off x1."""
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


@jit
def sweep(plan, panel, routines, panels, pivots, x, width, buffer, lower, unit, backward):
    """One substitution over all fronts, in place.

    Parameters
    ----------
    plan : Plan
    panel : (f + 1,) int64 array
        As in `Layout`.
    routines : Routines
    panels : array of the scalar type
    pivots : (n,) int32 array
        Row interchanges, made where the diagonal is `unit`.
    x : (n * width,) array of the scalar type
        `width` right-hand sides, row-major.
    buffer : array of the scalar type
        Scratch, `width` times the largest number of update rows.
    lower : bool
        With L, which is the first panel; else with U.
    unit : bool
        Its diagonal is 1.
    backward : bool
        Roots to leaves; else leaves to roots.
    """
    fronts = plan.parent.size
    item = panels.itemsize
    uplo = LOWER if lower else UPPER
    diag = UNIT if unit else NON_UNIT
    trans = TRANS if lower != backward else NO_TRANS
    for step in range(fronts):
        s = fronts - 1 - step if backward else step
        first = plan.start[s]
        k = np.int64(plan.start[s + 1] - first)
        m = plan.pointer[s + 1] - plan.pointer[s]
        rows = plan.rows[plan.pointer[s] : plan.pointer[s + 1]]
        diagonal = address(panels) + panel[s] * item
        block = diagonal + (k if lower else k * (k + m)) * item
        ld = k + m if lower else m
        own = x[first * width : (first + k) * width]
        x1 = address(own)
        if unit and not backward:
            _interchange(own, width, pivots[first : first + k], backward)
        if backward and m > 0:
            _backward(routines, rows, k, block, ld, x1, width, x, buffer)
        _solve_diagonal(routines, uplo, trans, diag, k, diagonal, k + m, x1, width)
        if not backward and m > 0:
            _forward(routines, rows, k, block, ld, x1, width, x, buffer)
        if unit and backward:
            _interchange(own, width, pivots[first : first + k], backward)


@jit
def diagonal_of_panels(plan, panel, panels):
    """Diagonal of the first panel of each front, in the order of elimination."""
    out = np.empty(plan.start[-1], panels.dtype)
    for s in range(plan.parent.size):
        first, last = plan.start[s], plan.start[s + 1]
        ld = np.int64(last - first) + plan.pointer[s + 1] - plan.pointer[s]
        for j in range(last - first):
            out[first + j] = panels[panel[s] + j * (ld + 1)]
    return out


@jit
def divide(x, width, diagonal, coupling, adjoint):
    """Solve D X = B in place, with pivots of order 1 and 2.

    Parameters
    ----------
    x : (n * width,) array of the scalar type
        As for `sweep`.
    diagonal, coupling : (n,) arrays
        D(j, j) and D(j + 1, j).
    adjoint : bool
        D(j, j + 1) is the conjugate of D(j + 1, j), and not the same.
    """
    j, n = 0, diagonal.size
    while j < n:
        d, b = diagonal[j], coupling[j]
        if b == 0:
            for c in range(j * width, (j + 1) * width):
                x[c] /= d
            j += 1
            continue
        other = np.conj(b) if adjoint else b
        a0, a1 = d / other, diagonal[j + 1] / b
        determinant = a0 * a1 - 1
        for c in range(j * width, (j + 1) * width):
            y, z = x[c], x[c + width]
            y, z = y / other, z / b
            x[c], x[c + width] = (a1 * y - z) / determinant, (a0 * z - y) / determinant
        j += 2
