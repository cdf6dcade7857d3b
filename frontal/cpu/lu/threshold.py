"""LU of the columns of a front where partial pivoting among its own rows is not enough.

Rows are interchanged among the pivot rows alone, but a pivot must bear its whole column: it is at
least 1/MAX_MULTIPLIER of the largest entry. Columns without such a pivot go behind the others, are
tried again when these are eliminated, and are delayed if they fail again. For few fronts: one
thread.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import shape
from ..axpy import multiply, subtract, within
from ..blas import LEFT, LOWER, MINUS, NO_TRANS, ONE, UNIT, address, gemm, laswp, trsm
from ..delays import interchanges_of, order_of, rows_of
from ..pivots import MAX_MULTIPLIER, null_bound, size_of

BLOCK = 128  # columns between two updates
MAX_THRESHOLD_ROWS = 128  # rows of a front whose columns are all looked at one by one,
COLUMNS_PER_UPDATE = 16  # with so many between two updates


@inner
def swap_rows(a, origin, ld, count, r, s):
    for j in range(count):
        p = origin + j * ld
        a[p + r], a[p + s] = a[p + s], a[p + r]


@inner
def _largest(a, begin, first, last):
    """Place in [first, last) of the largest entry, a NaN if there is one; `first` for none."""
    best, largest = first, size_of(a[begin + first])
    for i in range(first + 1, last):
        size = size_of(a[begin + i])
        if size > largest or size != size:
            best, largest = i, size
    return best


@inner
def _exchange_columns(work, s, i, j):
    if i == j:
        return
    a = work.panels
    k, m = shape(work, s)
    x, y = work.panel[s] + i * (k + m), work.panel[s] + j * (k + m)
    for r in range(k + m):
        a[x + r], a[y + r] = a[y + r], a[x + r]
    order = order_of(work, s)
    order[i], order[j] = order[j], order[i]


@inner
def _is_stable(a, column, p, candidates, rows, null):
    """Whether the largest of the candidates, in row p, is a pivot for the whole column."""
    size, below, count = size_of(a[column + p]), column + candidates, rows - candidates
    if not within(a, below, count, size * MAX_MULTIPLIER):
        return False
    return size > null or (size == size and not within(a, below, count, null))


@inner
def _sizes(a, column, first, candidates, rows):
    """Row of the largest entry among the candidates, its size, and that of the whole column."""
    p = _largest(a, column, first, candidates)
    size = size_of(a[column + p])
    if rows == candidates:
        return p, size, size
    below = size_of(a[column + _largest(a, column, candidates, rows)])
    return p, size, below if not below <= size else size


@inner
def _eliminate_column(a, corner, ld, j, p, rows, width):
    """Column j of a block with the pivot in row p, and its product off the columns behind it."""
    if p != j:
        swap_rows(a, corner, ld, width, j, p)
    column = corner + j * ld
    pivot = a[column + j]
    multiply(a, column + j + 1, rows - j - 1, 1 / pivot)
    for c in range(j + 1, width):
        out = corner + c * ld
        factor = a[out + j]
        if factor != 0:
            subtract(a, out + j + 1, a, column + j + 1, rows - j - 1, factor)


@inner
def _eliminate_block(work, s, done, width, interchanges, firm):
    """Columns of a block one by one; those without a sound pivot come last.

    Returns how many have one; the first without it ends all if `firm`.
    """
    a, null = work.panels, null_bound(work.routines)
    k, m = shape(work, s)
    ld = k + m
    corner = work.panel[s] + done * (ld + 1)
    j, last = np.int64(0), width
    while j < last:
        column = corner + j * ld
        p = _largest(a, column, j, k - done)
        if _is_stable(a, column, p, k - done, ld - done, null):
            interchanges[done + j] = p + 1
            _eliminate_column(a, corner, ld, j, p, ld - done, width)
            j += 1
        elif firm:
            return j
        else:
            last -= 1
            _exchange_columns(work, s, done + j, done + last)
    return j


@inner
def interchange(routines, begin, ld, step, k, width, good, pivots, item):
    """Rows of F11 beside its columns [step, step + width), which begin at `begin`, as in these.

    `pivots` are those of the first `good` of these columns, and count from 1 and their first row;
    then from 0 and the first row of the front.
    """
    after = k - step - width
    if step > 0:
        laswp(routines, step, begin - step * ld * item, ld, good, pivots)
    if after > 0:
        laswp(routines, after, begin + width * ld * item, ld, good, pivots)
    for j in range(good):
        pivots[j] += step - 1


@inner
def _update_after(routines, begin, ld, done, good, after, right, item):
    """Columns behind a block: their rows of U, and the product of both off what is below."""
    trsm(routines, LEFT, LOWER, NO_TRANS, UNIT, good, after, begin, ld, right, ld)
    gemm(
        routines, NO_TRANS, NO_TRANS, ld - done - good, after, good, MINUS,
        begin + good * item, ld, right, ld, ONE, right + good * item, ld,
    )  # fmt: skip


@inner
def eliminate_by_threshold(work, s, firm):
    """Factor what can be of the first columns of front s; returns how many could be.

    If it is `firm` no columns are exchanged, so that a front needs no names for them: 0 then tells
    that one has no sound pivot.
    """
    routines, a = work.routines, work.panels
    k, m = shape(work, s)
    item, ld, pivots = a.itemsize, k + m, interchanges_of(work, s)
    done, end, before = np.int64(0), k, np.int64(0)
    while True:
        while done < end:
            width = min(COLUMNS_PER_UPDATE if ld <= MAX_THRESHOLD_ROWS else BLOCK, end - done)
            good = _eliminate_block(work, s, done, width, pivots, firm)
            if firm and good < width:
                return np.int64(0)
            begin = address(a) + (work.panel[s] + done * (ld + 1)) * item
            interchange(routines, begin, ld, done, k, width, good, pivots[done : done + good], item)
            after, right = k - done - width, begin + width * ld * item
            if after > 0:
                _update_after(routines, begin, ld, done, good, after, right, item)
            for i in range(width - good):
                end -= 1
                _exchange_columns(work, s, done + width - 1 - i, end)
            done += good
        if done in (k, before):
            return done
        before, end = done, k


@inner
def label_rows(work, s, done):
    """Put the names of the rows of front s into the order that its interchanges make."""
    rows, pivots = rows_of(work, s), interchanges_of(work, s)
    for j in range(done):
        p = pivots[j]
        rows[j], rows[p] = rows[p], rows[j]


@inner
def replace_rest(work, s, done, least):
    """Eliminate columns of front s from `done` on, and replace pivots below `least` of theirs.

    Returns how many were replaced, but for those of null columns, whose names are marked.
    """
    a, null, eps = work.panels, null_bound(work.routines), work.routines.reals[3]
    k, m = shape(work, s)
    ld, pivots, order, replaced = k + m, interchanges_of(work, s), order_of(work, s), 0
    corner = work.panel[s]
    for j in range(done, k):
        column = corner + j * ld
        p, size, largest = _sizes(a, column, j, k, ld)
        if not size >= max(least * largest, eps):
            replaced += not largest <= null  # NaN too, which no pivot repairs
            bound = max(least * largest, eps)
            a[column + p] = a[column + p] / size * bound if size > 0 else bound
        if largest <= null:
            order[j], a[column + j] = ~order[j], a[column + p]
            for i in range(j + 1, ld):
                a[column + i] = 0
            p = j
        pivots[j] = p
        _eliminate_column(a, corner, ld, j, p, ld, k)
    return replaced
