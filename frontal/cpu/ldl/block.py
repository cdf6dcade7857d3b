"""LDL^H of a small block with complete symmetric storage, pivots of order 1 and 2 by rook pivoting.

No entry in the row of a pivot is much larger than the pivot, which bounds L: |L| <= 2.79 inside the
block (Ashcraft, Grimes and Lewis, "Accurate symmetric indefinite linear equation solvers", SIAM J.
Matrix Anal. Appl. 20, 1998).
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..axpy import combine, copy_times, multiply, subtract, subtract_two, within
from ..blas import MINUS, NO_TRANS, ONE, TRANS, address, gemm
from ..pivots import size_of

_STEP = 16  # columns between two updates of the columns behind them
_MAX_UNPIVOTED_ENTRY = 8.0  # largest entry of L without a search for pivots
ALPHA = (1 + np.sqrt(17.0)) / 8  # balances the bounds of pivots of order 1 and 2


@inner
def conj_of(method, x):
    """Return the entry at the transposed position of x."""
    return np.conj(x) if method.adjoint else x


@inner
def transpose_letter(work):
    """Return the letter of BLAS for L^T or L^H."""
    return work.routines.adjoint if work.method.adjoint else TRANS


@inner
def coupled_below(a, corner, ld, j, count):
    """Return D(j + 1, j) of a block at a[corner] with `count` columns."""
    return a[corner + j * (ld + 1) + ld] if j + 1 < count else 0 * a[corner]


@inner
def inverted(method, d0, d1, b):
    """Return entries (0, 0), (1, 1), (1, 0) and (0, 1) of the inverse of D = [d0 conj(b); b d1].

    b is not small, so nothing overflows.
    """
    upper = conj_of(method, b)
    a0, a1 = d0 / upper, d1 / b
    determinant = a0 * a1 - 1
    first, second = 1 / (upper * determinant), 1 / (b * determinant)
    return a1 * first, a0 * second, -first, -second


@inner
def divide_two(method, a, first, second, count, d0, d1, b):
    """Multiply the columns at a[first] and a[second] by the inverse of [d0 conj(b); b d1]."""
    i0, i1, below, above = inverted(method, d0, d1, b)
    combine(a, first, second, a, first, second, count, i0, i1, below, above)


@inner
def times_pivots(method, source, first, ld, rows, count, a, corner, diagonal_ld, out):
    """Compute out = L D, rows by count; L is at source[first], D in the block at a[corner]."""
    j = np.int64(0)
    while j < count:
        pivot, column = corner + j * (diagonal_ld + 1), first + j * ld
        d, b = a[pivot], coupled_below(a, corner, diagonal_ld, j, count)
        if b == 0:
            copy_times(out, j * rows, source, column, rows, d)
            j += 1
        else:
            last, upper = a[pivot + diagonal_ld + 1], conj_of(method, b)
            target, second = j * rows, column + ld
            combine(out, target, target + rows, source, column, second, rows, d, last, b, upper)
            j += 2


@inner
def _largest(block, ld, width, p, first):
    """Return column p's largest entry off the diagonal, in rows from `first` on, and its row."""
    best, row = 0.0 * abs(block[0].real), p
    for i in range(first, width):
        size = size_of(block[p * ld + i])
        if i != p and not size <= best:
            best, row = size, i
            if size != size:  # NaN must not be hidden by other entries
                break
    return best, row


@inner
def _exchange(block, ld, width, turn, p, q):
    """Exchange rows and columns p and q."""
    if p == q:
        return
    for i in range(width):
        block[p * ld + i], block[q * ld + i] = block[q * ld + i], block[p * ld + i]
    for j in range(width):
        block[j * ld + p], block[j * ld + q] = block[j * ld + q], block[j * ld + p]
    turn[p], turn[q] = turn[q], turn[p]


@inner
def _find(block, ld, width, j, last, null):
    """Return the two columns of a pivot for column j among [j, last), the same for order 1.

    Return -1 twice if there is none: column j is null, or the search leaves [j, last).
    """
    p = j
    size, r = _largest(block, ld, width, p, j)
    diagonal = size_of(block[p * ld + p])
    if not (size > null or diagonal > null) or size != size or diagonal != diagonal:
        return -1, -1
    for _ in range(width):
        if diagonal >= ALPHA * size:
            return p, p
        if r >= last:  # a column without a pivot
            return -1, -1
        next_size, next_row = _largest(block, ld, width, r, j)
        next_diagonal = size_of(block[r * ld + r])
        if next_diagonal >= ALPHA * next_size:
            return r, r
        if not next_size > size:  # both diagonal entries are small relative to entry (r, p)
            return p, r
        p, r, size, diagonal = r, next_row, next_size, next_diagonal
    return -1, -1  # NaN


@inner
def _eliminate_one(method, block, ld, width, j):
    column = j * ld
    pivot = block[column + j]
    if method.adjoint:
        pivot = 0 * pivot + pivot.real
        block[column + j] = pivot
    for c in range(j + 1, width):
        factor = conj_of(method, block[column + c] / pivot)
        subtract(block, c * ld + j + 1, block, column + j + 1, width - j - 1, factor)
    multiply(block, column + j + 1, width - j - 1, 1 / pivot)


@inner
def eliminate_two(method, a, origin, ld, j, last, rows, lower, d0, d1, b):
    """Update columns up to `last` by a pivot of order 2, columns j and j + 1, and divide by it.

    The columns begin at a[origin] and have `rows` rows; if `lower`, only the lower triangle of the
    updated columns is computed.
    """
    first, second, begin = origin + j * ld, origin + (j + 1) * ld, j + 2
    i0, i1, below, above = inverted(method, d0, d1, b)
    for c in range(begin, last):
        x, y = a[first + c], a[second + c]
        l0, l1 = conj_of(method, x * i0 + y * below), conj_of(method, x * above + y * i1)
        top = c if lower else begin
        out = origin + c * ld + top
        subtract_two(a, out, first + top, second + top, rows - top, l0, l1)
    divide_two(method, a, first + begin, second + begin, rows - begin, d0, d1, b)


@inner
def _eliminate_two(method, block, ld, width, j):
    first, second = j * ld, (j + 1) * ld
    d0, d1, b = block[first + j], block[second + j + 1], block[first + j + 1]
    if method.adjoint:
        d0, d1 = 0 * d0 + d0.real, 0 * d1 + d1.real
    eliminate_two(method, block, 0 * ld, ld, j, width, width, False, d0, d1, b)
    block[first + j], block[second + j + 1] = d0, d1


@inner
def factor_in_order(work, block, width, null, scaled):
    """Factor the lower triangle of a block with pivots of order 1 in their given order.

    Return False if a pivot is null or L exceeds `_MAX_UNPIVOTED_ENTRY`; the block is then
    overwritten and invalid.
    """
    first, item, begin = np.int64(0), block.itemsize, address(block)
    while first < width:
        last = min(first + _STEP, width)
        if not _columns_in_order(work.method, block, width, first, last, null):
            return False
        for j in range(max(first, 1), last):
            block[j * width + j - 1] = 0
        rows, corner, below = width - last, first * (width + 1), first * width + last
        if rows > 0:  # both triangles; the upper one is not read
            times_pivots(
                work.method, block, below, width, rows, last - first, block, corner, width, scaled
            )
            gemm(
                work.routines, NO_TRANS, transpose_letter(work), rows, rows, last - first, MINUS,
                begin + below * item, width, address(scaled), rows, ONE,
                begin + last * (width + 1) * item, width,
            )  # fmt: skip
        first = last
    return True


@inner
def _columns_in_order(method, block, width, first, last, null):
    """Eliminate columns [first, last) of a block, which earlier columns have updated."""
    for j in range(first, last):
        column = j * width
        if method.adjoint:
            block[column + j] = block[column + j].real
        pivot = block[column + j]
        size = size_of(pivot)
        if not size > null:
            return False
        if not within(block, column + j + 1, width - j - 1, _MAX_UNPIVOTED_ENTRY * size):
            return False
        inverse = 1 / pivot
        for c in range(j + 1, last):
            factor = conj_of(method, block[column + c] * inverse)
            subtract(block, c * width + c, block, column + c, width - c, factor)
        multiply(block, column + j + 1, width - j - 1, inverse)
    return True


@inner
def factor_block(method, block, ld, width, turn, null):
    """Factor a block in place, as far as it has pivots; return the number of eliminated columns.

    Parameters
    ----------
    block : array, of which the first `width` columns with leading dimension `ld` are the block
        Both triangles. On return, L and D are in the lower triangle, and D(j + 1, j) is above the
        diagonal, at (j, j + 1): b of a pivot of order 2, else 0.
    turn : int32 array
        On return, the original column at each position; columns without a pivot come last.
    null : float
        Columns with no larger entry have no pivot.
    """
    for i in range(width):
        turn[i] = i
    j, last = 0, width
    while j < last:
        p, r = _find(block, ld, width, j, last, null)
        if p < 0:
            last -= 1
            _exchange(block, ld, width, turn, j, last)
        elif p == r:
            _exchange(block, ld, width, turn, j, p)
            _eliminate_one(method, block, ld, width, j)
            j += 1
        else:
            _exchange(block, ld, width, turn, j, min(p, r))
            _exchange(block, ld, width, turn, j + 1, max(p, r))
            _eliminate_two(method, block, ld, width, j)
            turn[j] = ~turn[j]  # marks the pivot until exchanges no longer use the upper triangle
            j += 2
    for i in range(j):
        above = (i + 1) * ld + i
        if turn[i] < 0:
            turn[i] = ~turn[i]
            block[above], block[i * ld + i + 1] = block[i * ld + i + 1], 0
        elif i + 1 < width:
            block[above] = 0
    return j
