"""LU of a front by threshold pivoting, if partial pivoting among its pivot rows is not stable.

Rows are interchanged among the pivot rows only, but a pivot must be at least 1/MAX_MULTIPLIER of
the largest entry in its full column. Columns without such a pivot move behind the others, are tried
again after the others are eliminated, and are delayed if they fail again. One thread works on a
front: small fronts, and few large ones, come here.
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
MAX_THRESHOLD_ROWS = 128  # largest k + m of a front that begins with threshold pivoting
COLUMNS_PER_UPDATE = 16  # columns of such a front between two updates


@inner
def swap_rows(a, origin, ld, count, r, s):
    for j in range(count):
        p = origin + j * ld
        a[p + r], a[p + s] = a[p + s], a[p + r]


@inner
def _largest(a, begin, first, last):
    """Return the position in [first, last) of the largest entry, or of a NaN; `first` if empty."""
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
    """Return whether the largest of the candidates, in row p, is stable for the full column."""
    size, below, count = size_of(a[column + p]), column + candidates, rows - candidates
    if not within(a, below, count, size * MAX_MULTIPLIER):
        return False
    return size > null or (size == size and not within(a, below, count, null))


@inner
def _sizes(a, column, first, candidates, rows):
    """Return the row of the largest candidate, its size, and the largest of the full column."""
    p = _largest(a, column, first, candidates)
    size = size_of(a[column + p])
    if rows == candidates:
        return p, size, size
    below = size_of(a[column + _largest(a, column, candidates, rows)])
    return p, size, below if not below <= size else size


@inner
def _eliminate_column(a, corner, ld, j, p, rows, width):
    """Eliminate column j of a block with the pivot in row p; update the columns behind it."""
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
    """Eliminate the columns of a block one by one; those without a stable pivot come last.

    Return the number of eliminated columns. If `firm`, stop at the first without a stable pivot.
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
    """Apply the row interchanges of columns [step, step + width) to the other columns of F11.

    These columns are at address `begin`. `pivots` of the first `good` of them count from 1 and from
    row `step`; on return, from 0 and the first row of the front.
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
    """Compute the rows of U behind a block, and subtract L times U from the rows below."""
    trsm(routines, LEFT, LOWER, NO_TRANS, UNIT, good, after, begin, ld, right, ld)
    gemm(
        routines, NO_TRANS, NO_TRANS, ld - done - good, after, good, MINUS,
        begin + good * item, ld, right, ld, ONE, right + good * item, ld,
    )  # fmt: skip


@inner
def eliminate_by_threshold(work, s, firm):
    """Eliminate the columns of front s with stable pivots, which come first; return their number.

    If `firm`, no columns are exchanged, so a front needs no list of names; return 0 if a column has
    no stable pivot.
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
    """Permute the names of the rows of front s by its interchanges."""
    rows, pivots = rows_of(work, s), interchanges_of(work, s)
    for j in range(done):
        p = pivots[j]
        rows[j], rows[p] = rows[p], rows[j]


@inner
def replace_rest(work, s, done, least):
    """Eliminate columns of front s from `done` on; return the number of replaced pivots.

    A pivot below eps, or below `least` times the largest entry of its column, is replaced. Pivots
    of null columns are not counted; the names of these columns are marked.
    """
    a, null, eps = work.panels, null_bound(work.routines), work.routines.reals[3]
    k, m = shape(work, s)
    ld, pivots, order, replaced = k + m, interchanges_of(work, s), order_of(work, s), 0
    corner = work.panel[s]
    for j in range(done, k):
        column = corner + j * ld
        p, size, largest = _sizes(a, column, j, k, ld)
        if not size >= max(least * largest, eps):
            replaced += not largest <= null  # counts NaN too, which no pivot repairs
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
