"""LDL^H of the remaining columns of a front, one pivot after the other, by threshold pivoting.

A pivot is stable if it is large enough for its full columns, update rows included: with c the
largest entries of its columns, |a| >= c / MAX_MULTIPLIER for order 1, and for order 2
|D^-1| c <= MAX_MULTIPLIER. Small fronts are factorized by this code only.

Reference: J. Hogg and J. Scott, "Pivoting strategies for tough sparse indefinite systems", ACM
Trans. Math. Softw. 40 (2013), and the references there.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import shape
from ..axpy import multiply, subtract, within
from ..delays import order_of, replacement
from ..pivots import MAX_MULTIPLIER, null_bound, size_of
from .block import conj_of, eliminate_two

_SINGULAR = 1e-2  # least determinant of a pivot of order 2, relative to its largest product


@inner
def _column(a, panel, ld, last, rows, done, j):
    """Return column j's largest entry off the diagonal, that in rows before `last`, and its row.

    Entries behind the first `rows` do not count.
    """
    best = 0 * abs(a[panel].real)
    inside, row = best, np.int64(-1)
    for i in range(done, j):
        size = size_of(a[panel + i * ld + j])
        if not size <= inside:
            inside, row = size, i
            if size != size:
                break
    for i in range(j + 1, last):
        size = size_of(a[panel + j * ld + i])
        if not size <= inside:
            inside, row = size, i
            if size != size:
                break
    best = inside
    for i in range(last, rows):
        size = size_of(a[panel + j * ld + i])
        if not size <= best:
            best = size
            if size != size:
                break
    return best, inside, row


@inner
def _is_stable_pair(method, a, panel, ld, p, q, cp, cq):
    """Return whether columns p < q, with largest entries cp, cq elsewhere, are a stable pivot."""
    d0, d1, b = a[panel + p * (ld + 1)], a[panel + q * (ld + 1)], a[panel + p * ld + q]
    if b == 0:
        return False
    upper = conj_of(method, b)
    a0, a1 = d0 / upper, d1 / b
    determinant = a0 * a1 - 1
    if not size_of(determinant) >= _SINGULAR * max(1.0, size_of(a0 * a1)):
        return False
    size, scale = size_of(determinant), size_of(b)
    first = (size_of(a1) * cp + cq) / (scale * size)
    second = (cp + size_of(a0) * cq) / (scale * size)
    return first <= MAX_MULTIPLIER and second <= MAX_MULTIPLIER


@inner
def exchange(work, s, p, q):
    """Exchange columns p < q of front s, and their rows."""
    if p == q:
        return
    a, panel, method = work.panels, work.panel[s], work.method
    k, m = shape(work, s)
    ld = k + m
    for j in range(p):
        x, y = panel + j * ld + p, panel + j * ld + q
        a[x], a[y] = a[y], a[x]
    x, y = panel + p * (ld + 1), panel + q * (ld + 1)
    a[x], a[y] = a[y], a[x]
    for i in range(p + 1, q):
        x, y = panel + p * ld + i, panel + i * ld + q
        a[x], a[y] = conj_of(method, a[y]), conj_of(method, a[x])
    a[panel + p * ld + q] = conj_of(method, a[panel + p * ld + q])
    for i in range(q + 1, ld):
        x, y = panel + p * ld + i, panel + q * ld + i
        a[x], a[y] = a[y], a[x]
    order = order_of(work, s)
    order[p], order[q] = order[q], order[p]


@inner
def _mark(work, s, j, b):
    """Store b = D(j + 1, j) above the diagonal; see `ldl.front`."""
    k, m = shape(work, s)
    if j + 1 < k:
        work.panels[work.panel[s] + (j + 1) * (k + m) + j] = b


@inner
def _eliminate_one(work, s, j, last):
    a, panel, method = work.panels, work.panel[s], work.method
    k, m = shape(work, s)
    ld = k + m
    column = panel + j * ld
    if method.adjoint:
        a[column + j] = a[column + j].real
    inverse = 1 / a[column + j]
    for c in range(j + 1, last):
        factor = conj_of(method, a[column + c] * inverse)
        if factor != 0:
            subtract(a, panel + c * ld + c, a, column + c, ld - c, factor)
    multiply(a, column + j + 1, ld - j - 1, inverse)
    _mark(work, s, j, 0 * inverse)


@inner
def _eliminate_two(work, s, j, last):
    a, panel, method = work.panels, work.panel[s], work.method
    k, m = shape(work, s)
    ld = k + m
    first, second = panel + j * ld, panel + (j + 1) * ld
    if method.adjoint:
        a[first + j], a[second + j + 1] = a[first + j].real, a[second + j + 1].real
    d0, d1, b = a[first + j], a[second + j + 1], a[first + j + 1]
    eliminate_two(method, a, panel, ld, j, last, ld, True, d0, d1, b)
    a[first + j + 1] = 0
    _mark(work, s, j, b)
    _mark(work, s, j + 1, 0 * b)


@inner
def _drop(work, s, j):
    """Eliminate the null column j with a pivot of the size of eps, and mark its name."""
    a = work.panels
    k, m = shape(work, s)
    column = work.panel[s] + j * (k + m)
    replace_pivot(work, column + j, work.routines.reals[3])
    a[column + j + 1 : column + k + m] = 0
    order = order_of(work, s)
    order[j] = ~order[j]
    _mark(work, s, j, 0 * a[column])


@inner
def replace_pivot(work, place, least):
    """Increase a pivot's modulus to `least` if it is smaller; its direction does not change."""
    a = work.panels
    x = a[place].real + 0 * a[place] if work.method.adjoint else a[place]
    size = abs(x)
    if size < least:
        a[place] = x / size * least if size > 0 else least + 0 * x


@inner
def eliminate_leaf(work, s, info):
    """Eliminate a single column of a leaf if its pivot is stable; return whether it was."""
    k, m = shape(work, s)
    if k > 1 or not _is_stable(work.panels, work.panel[s], 1 + m, null_bound(work.routines)):
        return False
    work.pivots[work.plan.start[s]] = 0
    _eliminate_one(work, s, np.int64(0), np.int64(1))
    return True


@inner
def eliminate_rest(work, s, done, last, rows):
    """Eliminate columns [done, last) of front s with stable pivots; return the new `done`.

    Columns are tried in turn, until none of the remaining ones has a stable pivot. Pivots are
    compared with the first `rows` entries of their columns; null columns need all entries.
    """
    a, panel, method = work.panels, work.panel[s], work.method
    k, m = shape(work, s)
    ld, null, j, failed = k + m, null_bound(work.routines), done, np.int64(0)
    while failed < last - done:
        if j == done and _is_stable(a, panel + j * (ld + 1), rows - j, null):
            _eliminate_one(work, s, j, last)
            done, j, failed = done + 1, j + 1, np.int64(0)
            continue
        largest, inside, row = _column(a, panel, ld, last, rows, done, j)
        diagonal = size_of(a[panel + j * (ld + 1)])
        count = np.int64(0)
        if largest <= null and diagonal <= null and rows == ld:
            exchange(work, s, done, j)
            _drop(work, s, done)
            count = np.int64(1)
        elif diagonal >= largest / MAX_MULTIPLIER and diagonal > null:
            exchange(work, s, done, j)
            _eliminate_one(work, s, done, last)
            count = np.int64(1)
        elif row >= 0 and inside > null:
            p, q = min(j, row), max(j, row)
            cp, cq = (
                _largest_outside(a, panel, ld, rows, done, p, q),
                _largest_outside(a, panel, ld, rows, done, q, p),
            )
            if _is_stable_pair(method, a, panel, ld, p, q, cp, cq):
                exchange(work, s, done, p)
                exchange(work, s, done + 1, q)
                _eliminate_two(work, s, done, last)
                count = np.int64(2)
        failed = np.int64(0) if count > 0 else failed + 1
        done += count
        j = max(j + 1, done)
        if j >= last:
            j = done
    return done


@inner
def _is_stable(a, at, rows, null):
    """Return whether the first of `rows` entries is a stable pivot for the others."""
    pivot_size = size_of(a[at])
    return pivot_size > null and within(a, at + 1, rows - 1, pivot_size * MAX_MULTIPLIER)


@inner
def _largest_outside(a, panel, ld, rows, done, j, excluded):
    """Return the largest entry of column j off the diagonal and outside row `excluded`."""
    best = 0 * abs(a[panel].real)
    for i in range(done, rows):
        if i != j and i != excluded:
            size = size_of(a[panel + j * ld + i] if i > j else a[panel + i * ld + j])
            if not size <= best:
                best = size
                if size != size:
                    break
    return best


@inner
def eliminate_before_schur(work, s, done):
    """Eliminate columns of front s from `done` on with pivots stable for its pivot rows.

    Return the number of eliminated columns; `done` if one has entries above eps^-0.75 in L. Growth
    in the update rows is that of the Schur complement itself.
    """
    k, m = shape(work, s)
    finished = eliminate_rest(work, s, done, k, k)
    limit = 1 / replacement(work, s) if m > 0 else 0 * work.routines.reals[3]
    for j in range(done, finished):
        below = work.panel[s] + j * (k + m) + k
        if not within(work.panels, below, m, limit):
            return done
    return finished


@inner
def replace_rest(work, s, done, least):
    """Eliminate columns of front s from `done` on; return the number of replaced pivots.

    A pivot below eps, or below `least` times the largest entry of its column, is replaced.
    """
    a, panel = work.panels, work.panel[s]
    k, m = shape(work, s)
    replaced = 0
    for j in range(done, k):
        largest, _, _ = _column(a, panel, k + m, k, k + m, j, j)
        place = panel + j * (k + m + 1)
        bound = max(least * largest, work.routines.reals[3])
        if not size_of(a[place]) >= bound:
            replace_pivot(work, place, bound)
            replaced += 1
        _eliminate_one(work, s, j, k)
    return replaced
