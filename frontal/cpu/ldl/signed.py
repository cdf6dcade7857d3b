"""LDL^H of a front whose pivots have known signs: columns in their order, without a search.

Every symmetric permutation of a quasidefinite matrix has an LDL^H with diagonal D, and the signs of
D are those of the diagonal of A (Vanderbei, "Symmetric quasidefinite matrices", SIAM J. Optim. 5,
1995). A pivot without its sign shows rounding errors or another matrix. It is refused, or replaced
by one of a size that rounding errors cannot cancel, as interior-point methods prefer.

D and L are stored as by `ldl.front`, without pivots of order 2.
"""

from __future__ import annotations

import numpy as np

from ...compile.atomics import fetch_add
from ...compile.jit import inner
from ..assembly import shape
from ..axpy import multiply, subtract
from ..blas import ONE, address
from ..pivots import size_of
from ..shared_state import PERTURBED
from .front import subtract_product
from .windows import WIDTH


@inner
def eliminate_in_order(work, s, rank, first, last, end):
    """Eliminate columns [first, last) of front s in rows before `end`.

    Return 0, or the column that is refused, from 1.
    """
    a, panel = work.panels, work.panel[s]
    k, m = shape(work, s)
    ld = k + m
    for begin in range(first, last, WIDTH):
        behind = min(begin + WIDTH, last)
        for j in range(begin, behind):
            if not _eliminate_column(work, s, j, behind, end):
                return np.int64(j + 1)
        if behind < last:
            target = address(a) + (panel + behind * (ld + 1)) * a.itemsize
            rows, columns = end - behind, last - behind
            subtract_product(
                work, s, rank, behind, rows, behind, columns, begin, behind, target, ONE, ld
            )
    return np.int64(0)


@inner
def eliminate_leaf(work, s, info):
    """Eliminate the columns of a leaf; return False if one is refused, info[0] from 1."""
    k, m = shape(work, s)
    for j in range(k):
        if not _eliminate_column(work, s, j, k, k + m):
            info[0] = j + 1
            return False
    return True


@inner
def _eliminate_column(work, s, j, last, end):
    """Eliminate column j and update columns up to `last`; return False if it is refused."""
    a, panel = work.panels, work.panel[s]
    k, m = shape(work, s)
    ld = k + m
    column = panel + j * ld
    pivot, sign = a[column + j].real, work.signs[work.plan.start[s] + j]
    if not _has_sign(pivot, sign):
        if work.delays.allowed or sign == 0:
            return False
        pivot = sign * _replacement(work, column + j, ld - j)
        fetch_add(work.state, PERTURBED, 1)
    a[column + j] = pivot
    inverse = 1 / pivot
    for c in range(j + 1, last):
        subtract(a, panel + c * ld + c, a, column + c, end - c, np.conj(a[column + c]) * inverse)
    multiply(a, column + j + 1, end - j - 1, inverse)
    if j + 1 < k:
        a[column + ld + j] = 0  # no pivot of order 2
    return True


@inner
def _has_sign(pivot, sign):
    """Return whether a pivot has its sign and a finite inverse that is not 0."""
    inverse = 1 / pivot
    signed = sign * pivot > 0 if sign != 0 else pivot != 0
    return signed and np.isfinite(inverse) and inverse != 0


@inner
def _replacement(work, place, rows):
    """Return the modulus of a replaced pivot: sqrt(eps) times the largest entry of its column."""
    a, largest = work.panels, 0 * work.routines.reals[0]
    for i in range(rows):
        size = size_of(a[place + i])
        largest = size if size > largest else largest
    return np.sqrt(work.routines.reals[3]) * (largest if largest > 0 else work.routines.reals[0])
