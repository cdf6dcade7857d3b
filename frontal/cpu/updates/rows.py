"""Replacement of a row and column of a factorized matrix.

With L = [L11; l21^H d; L31 l31 L33] for row i, the row of the identity leaves L11 and L31, and
L33 L33^H + l31 l31^H is an update of rank one. A new row is the solution of L11 l21 = a21, and its
column takes a downdate of L33. See Davis, Hager, "Row modifications of a sparse Cholesky
factorization", SIAM J. Matrix Anal. Appl. 26 (2005).
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner, jit
from ...matrix.csc import first_from
from .paths import front_of


@jit
def fronts_of_row(plan, positions, i):
    """Return the fronts below that of row i whose columns have an entry in the row, ascending.

    `positions` are the columns of A with such an entry, in elimination order.
    """
    last = front_of(plan.start, np.int64(i))
    reached, count = np.zeros(last + 1, np.uint8), 0
    for position in positions:
        s = front_of(plan.start, np.int64(position))
        while s < last and not reached[s]:
            reached[s], count = 1, count + 1
            s = np.int64(plan.parent[s])
    fronts, count = np.empty(count, np.int64), 0
    for s in range(last):
        if reached[s]:
            fronts[count], count = s, count + 1
    return fronts


@inner
def _row_in(plan, s, i):
    """Return the number of row i in front s."""
    if i < plan.start[s + 1]:
        return np.int64(i - plan.start[s])
    q = first_from(plan.rows, plan.pointer[s], plan.pointer[s + 1], i)
    return q - plan.pointer[s] + plan.start[s + 1] - plan.start[s]


@jit
def exchange_row(plan, panel, panels, fronts, i, row):
    """Exchange the entries of row i of L in the columns of fronts below its own with `row`."""
    p = 0
    for s in fronts:
        k = np.int64(plan.start[s + 1] - plan.start[s])
        ld = k + plan.pointer[s + 1] - plan.pointer[s]
        at = panel[s] + _row_in(plan, s, i)
        for j in range(k):
            row[p], panels[at + j * ld] = panels[at + j * ld], row[p]
            p += 1


@jit
def take_column(plan, panel, panels, s, i, rows, column):
    """Replace row and column i of L in front s by those of the identity.

    Return its number of entries below the diagonal, which are moved to `rows` and `column`.
    """
    k = np.int64(plan.start[s + 1] - plan.start[s])
    ld, local = k + plan.pointer[s + 1] - plan.pointer[s], i - plan.start[s]
    for j in range(local):
        panels[panel[s] + j * ld + local] = 0
    at = panel[s] + local * ld
    panels[at + local] = 1
    for r in range(local + 1, ld):
        p = r - local - 1
        rows[p] = plan.start[s] + r if r < k else plan.rows[plan.pointer[s] + r - k]
        column[p], panels[at + r] = panels[at + r], 0
    return ld - local - 1


@jit
def put_row(plan, panel, panels, fronts, s, i, x):
    """Compute row and column i of L, in front s, from column i of A; both are the identity's.

    On entry x is column i of A, on return its entries in rows after i are column i of L. Return
    whether its pivot is positive.
    """
    d = np.float64(x[i].real)
    for t in fronts:
        d = _eliminate(plan, panel, panels, t, i, plan.start[t + 1], x, d)
    d = _eliminate(plan, panel, panels, s, i, i, x, d)
    if not d > 0:
        return False
    root, k = np.sqrt(d), np.int64(plan.start[s + 1] - plan.start[s])
    ld, local = k + plan.pointer[s + 1] - plan.pointer[s], i - plan.start[s]
    at = panel[s] + local * ld
    panels[at + local] = root
    for r in range(local + 1, ld):
        row = plan.start[s] + r if r < k else plan.rows[plan.pointer[s] + r - k]
        x[row] /= root
        panels[at + r] = x[row]
    return True


@inner
def _eliminate(plan, panel, panels, s, i, end, x, d):
    """Eliminate the columns of front s before `end` from x, and write their entries in row i.

    Return d without the squares of these entries.
    """
    first, k = np.int64(plan.start[s]), np.int64(plan.start[s + 1] - plan.start[s])
    ld, local = k + plan.pointer[s + 1] - plan.pointer[s], _row_in(plan, s, i)
    for j in range(end - first):
        at = panel[s] + j * ld
        y = x[first + j] / panels[at + j].real
        x[first + j] = y
        panels[at + local] = np.conj(y)
        d -= np.abs(y) ** 2
        for r in range(j + 1, k):
            if r != local:
                x[first + r] -= panels[at + r] * y
        for r in range(k, ld):
            if r != local:
                x[plan.rows[plan.pointer[s] + r - k]] -= panels[at + r] * y
    return d
