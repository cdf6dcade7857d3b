"""LDL^H of a small front by windows of columns, with pivots that are stable for full columns.

No elimination is undone, and no triangular system is solved: for few rows this is cheaper than the
blocks of `ldl.front`, whose pivots are checked a posteriori.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..assembly import shape
from ..blas import ONE, address
from .front import subtract_product
from .threshold import eliminate_rest, exchange

WIDTH = 16  # columns of a window
MAX_WINDOWED_ROWS = 128  # largest k + m of a front for which windows are faster


@inner
def eliminate_windows(work, s, rank):
    """Eliminate columns of front s with stable pivots, which come first; return their number."""
    a, panel = work.panels, work.panel[s]
    k, m = shape(work, s)
    ld, done, end = k + m, np.int64(0), k
    while done < end:
        first, last = done, min(done + WIDTH, end)
        done = eliminate_rest(work, s, done, last, ld)
        if done > first and last < k:
            target = address(a) + (panel + last * (ld + 1)) * a.itemsize
            rows, columns = ld - last, k - last
            subtract_product(work, s, rank, last, rows, last, columns, first, done, target, ONE, ld)
        for i in range(last - done):
            end -= 1
            exchange(work, s, last - 1 - i, end)
    return done
