"""Substitution in fronts of one to three pivot columns, such as the leaves of a network.

Right-hand sides are read and written in place: such fronts have few operations for each of their
update rows. Indices are unsigned for the reason given in `axpy`.
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import inner

MAX_NARROW_COLUMNS = 3  # pivot columns of a narrow front


@inner
def _narrow_products(panels, rows, at, m, k, block, ld, x, width, c):
    """Return the products of one to three columns of a block and the update rows of x."""
    first = np.uint64(block)
    second, third, at = first + np.uint64(ld), first + np.uint64(2 * ld), np.uint64(at)
    width, c = np.uint64(width), np.uint64(c)
    s = t = u = panels.dtype.type(0)
    for i in range(np.uint64(m)):
        z = x[np.uint64(rows[at + i]) * width + c]
        s += panels[first + i] * z
        if k > 1:
            t += panels[second + i] * z
        if k > 2:
            u += panels[third + i] * z
    return s, t, u


@inner
def _subtract_narrow(panels, rows, at, m, k, block, ld, x, width, c, y0, y1, y2):
    """Subtract one to three columns of a block, times y0, y1 and y2, from the update rows of x."""
    first = np.uint64(block)
    second, third, at = first + np.uint64(ld), first + np.uint64(2 * ld), np.uint64(at)
    width, c = np.uint64(width), np.uint64(c)
    for i in range(np.uint64(m)):
        row = np.uint64(rows[at + i]) * width + c
        z = x[row] - panels[first + i] * y0
        if k > 1:
            z -= panels[second + i] * y1
        if k > 2:
            z -= panels[third + i] * y2
        x[row] = z


@inner
def _solve_two(y0, y1, d0, d1, a01, unit, backward):
    """Solve a triangular system of two unknowns with diagonal d0, d1, of ones if `unit`."""
    if backward:
        y1 = y1 if unit else y1 / d1
        y0 -= a01 * y1
        return y0 if unit else y0 / d0, y1
    y0 = y0 if unit else y0 / d0
    y1 -= a01 * y0
    return y0, y1 if unit else y1 / d1


@inner
def _solve_triangle(panels, corner, step, full, k, y0, y1, y2, unit, backward):
    """Solve the triangular system of one to three pivot columns, whose diagonal begins at `corner`.

    The entry that couples neighbours is `step` behind the diagonal entry of the first.
    """
    d0 = panels[corner]
    if k == 1:
        return y0 if unit else y0 / d0, y1, y2
    middle = corner + np.uint64(full + 1)
    d1, a01 = panels[middle], panels[corner + step]
    if k == 2:
        return *_solve_two(y0, y1, d0, d1, a01, unit, backward), y2
    d2, a02 = panels[middle + np.uint64(full + 1)], panels[corner + step + step]
    a12 = panels[middle + step]
    if backward:
        y2 = y2 if unit else y2 / d2
        return *_solve_two(y0 - a02 * y2, y1 - a12 * y2, d0, d1, a01, unit, backward), y2
    y0, y1 = _solve_two(y0, y1, d0, d1, a01, unit, backward)
    y2 -= a02 * y0 + a12 * y1
    return y0, y1, y2 if unit else y2 / d2


@inner
def solve_narrow_front(panels, place, k, rows, at, m, x, width, c, lower, unit, backward):
    """Sweep over one front of at most `MAX_NARROW_COLUMNS` columns for column c of x, n by `width`.

    Parameters
    ----------
    panels : array
    place : (int, int, int, int)
        First pivot column, then `diagonal`, `block` and `ld` of a `FrontView`.
    k : int
    rows : int32 array
        Update rows of all fronts; those of this one are the m from `at` on.
    """
    first, diagonal, block, ld = place
    full, corner = k + m, np.uint64(diagonal)
    head = np.uint64(first * width + c)
    second, third = head + np.uint64(width * (k > 1)), head + np.uint64(width * 2 * (k > 2))
    step = np.uint64(1 if lower else full)
    y0, y1, y2 = x[head], x[second], x[third]
    if backward:
        s, t, u = _narrow_products(panels, rows, at, m, k, block, ld, x, width, c)
        y0, y1, y2 = y0 - s, y1 - t, y2 - u
    y0, y1, y2 = _solve_triangle(panels, corner, step, full, k, y0, y1, y2, unit, backward)
    x[head] = y0
    if k > 1:
        x[second] = y1
    if k > 2:
        x[third] = y2
    if not backward:
        _subtract_narrow(panels, rows, at, m, k, block, ld, x, width, c, y0, y1, y2)
