"""LDL^H of a small front, with pivots from a few columns at a time and their whole columns.

Nothing is undone there, and no triangular system is solved: for few rows that is cheaper than
blocks that are looked at afterwards, see `ldl`.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import shape
from ..blas import ONE, address
from .front import subtract_product
from .threshold import eliminate_rest, exchange

WIDTH = 16  # columns of a window
MAX_WINDOWED_ROWS = 128  # rows of a front up to which this is faster


@inner
def eliminate_windows(work, s, rank):
    """Eliminate what can be of front s; returns how many columns, the others follow."""
    a, panel = work.panels, work.panel[s]
    k, m = shape(work, s)
    ld, done, end = k + m, np.int64(0), k
    while done < end:
        first, last = done, min(done + WIDTH, end)
        done = eliminate_rest(work, s, done, last)
        if done > first and last < k:
            target = address(a) + (panel + last * (ld + 1)) * a.itemsize
            rows, columns = ld - last, k - last
            subtract_product(work, s, rank, last, rows, last, columns, first, done, target, ONE, ld)
        for i in range(last - done):
            end -= 1
            exchange(work, s, last - 1 - i, end)
    return done
