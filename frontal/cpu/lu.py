"""LU factorization of one front, as tiles that threads may share.

With the front [F11 F12; F21 F22] assembled: P F11 = L11 U11 with rows interchanged inside F11 only,
L21 = F21 U11^-1, U12 = L11^-1 P F12 (kept transposed), and the contribution block is
F22 - L21 U12.

Pivots are sought in F11, but must bear the whole column: where a pivot is zero, or an entry of L21
is larger than 1/tiny, the front is assembled again and `eliminate_carefully` replaces the pivots
that are less than `tiny` of what is left of their columns. A pivot that is the best of a column all
of whose rows are in F11 stays, however small. Replaced pivots are counted; refinement of the
solution answers for them.
"""

from __future__ import annotations

from .._jit import inner
from .assembly import assemble, block_offset, shape
from .blas import (
    LEFT,
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
    getrf,
    laswp,
    trsm,
)
from .team import ASSEMBLE, PANEL, SOLVE, UPDATE, UPPER_PANEL

BLOCK = 128  # columns of the diagonal block between two updates


@inner
def _swap_rows(a, origin, ld, count, r, s):
    for j in range(count):
        p = origin + j * ld
        a[p + r], a[p + s] = a[p + s], a[p + r]


@inner
def _size(x):
    """|re| + |im|, as LAPACK chooses pivots."""
    return abs(x.real) + abs(x.imag)


@inner
def _largest(a, begin, first, last):
    """Place in [first, last) of the largest entry, a NaN if there is one; `first` for none."""
    best = first
    for i in range(first + 1, last):
        size = _size(a[begin + i])
        if size > _size(a[begin + best]) or size != size:
            best = i
    return best


@inner
def _eliminate(a, origin, ld, candidates, rows, width, pivots, tiny):
    """The first columns of a block one by one, with pivots from its first `candidates` rows.

    Returns how many pivots were replaced.
    """
    perturbed = 0
    for j in range(width):
        column = origin + j * ld
        p = _largest(a, column, j, candidates)
        pivots[j] = p + 1
        if p != j:
            _swap_rows(a, origin, ld, width, j, p)
        size = _size(a[column + j])
        below = size
        if rows > candidates:
            below = _size(a[column + _largest(a, column, candidates, rows)])
        if not (size > 0 and size >= tiny * below):  # also NaN, which then fails every later check
            least = tiny * below if below > 0 else tiny
            a[column + j] = least if size == 0 else a[column + j] / size * least
            perturbed += 1
        pivot = a[column + j]
        for i in range(j + 1, rows):
            a[column + i] /= pivot
        for c in range(j + 1, width):
            out = origin + c * ld
            factor = a[out + j]
            if factor != 0:
                for i in range(j + 1, rows):
                    a[out + i] -= a[column + i] * factor
    return perturbed


@inner
def _interchange(routines, begin, ld, step, k, width, pivots, item):
    """Rows of F11 beside its columns [step, step + width), which begin at `begin`, as in these."""
    laswp(routines, step, begin - step * ld * item, ld, width, pivots)
    laswp(routines, k - step - width, begin + width * ld * item, ld, width, pivots)
    for j in range(width):
        pivots[j] += step - 1


@inner
def run_tile(work, kind, s, step, tile, size, own):
    """One tile of a phase of front s; returns whether its pivots bear it, see `_solve_lower`."""
    if kind == ASSEMBLE:
        assemble(work, s, tile, size, own)
        return True
    routines, plan, a = work.routines, work.plan, work.panels
    k, m = shape(work, s)
    item, origin = a.itemsize, work.panel[s]
    panel = address(a) + origin * item
    if kind == SOLVE:
        _solve_right(routines, panel, k + m, step, k, tile, size, item)
    elif kind == UPDATE:
        _update_below(routines, panel, k + m, step, k, tile, size, item)
    elif kind == PANEL:
        return _solve_lower(routines, a, origin, k, m, tile, size, item, work.tiny)
    elif kind == UPPER_PANEL:
        own_pivots = work.pivots[plan.start[s] : plan.start[s + 1]]
        _solve_upper(routines, a, origin, k, m, tile, size, item, own_pivots)
    else:
        block = address(work.arena) + block_offset(work, s, own) * item
        beta = ONE if plan.child_pointer[s + 1] > plan.child_pointer[s] else ZERO
        _update_block(routines, panel, k, m, tile, size, item, beta, block)
    return True


@inner
def factor_diagonal_block(work, s, step, info):
    """Factor columns [step, step + BLOCK) of F11 of front s.

    Rows are interchanged over all k columns. ``pivots[j]`` is the row, counted from the first
    of the front, that came to row j. Returns whether no pivot is zero or NaN.
    """
    routines, plan, a = work.routines, work.plan, work.panels
    k, m = shape(work, s)
    item, ld = a.itemsize, k + m
    width = min(BLOCK, k - step)
    corner = work.panel[s] + step * (ld + 1)
    first = plan.start[s] + step
    local = work.pivots[first : first + width]
    begin = address(a) + corner * item
    getrf(routines, k - step, width, begin, ld, local, info)
    for j in range(width):
        if not abs(a[corner + j * (ld + 1)]) > 0:
            return False
    _interchange(routines, begin, ld, step, k, width, local, item)
    return True


@inner
def eliminate_carefully(work, s):
    """Factor the first k columns of front s, L21 included, each pivot against its whole column.

    Returns how many pivots were replaced. For few fronts: one thread, blocks of columns one by one.
    """
    routines, plan, a = work.routines, work.plan, work.panels
    k, m = shape(work, s)
    item, origin, ld = a.itemsize, work.panel[s], k + m
    pivots = work.pivots[plan.start[s] : plan.start[s + 1]]
    perturbed = 0
    for step in range(0, k, BLOCK):
        width = min(BLOCK, k - step)
        corner = origin + step * (ld + 1)
        local = pivots[step : step + width]
        perturbed += _eliminate(a, corner, ld, k - step, ld - step, width, local, work.tiny)
        begin = address(a) + corner * item
        _interchange(routines, begin, ld, step, k, width, local, item)
        after = k - step - width
        right = begin + width * ld * item
        trsm(routines, LEFT, LOWER, NO_TRANS, UNIT, width, after, begin, ld, right, ld)
        gemm(
            routines, NO_TRANS, NO_TRANS, ld - step - width, after, width, MINUS,
            begin + width * item, ld, right, ld, ONE, right + width * item, ld,
        )  # fmt: skip
    return perturbed


@inner
def _solve_right(routines, panel, ld, step, k, tile, size, item):
    """Tile of U11's rows at `step`, right of the diagonal block."""
    width = min(BLOCK, k - step)
    column = step + width + tile * size
    diagonal = panel + step * (ld + 1) * item
    right = panel + (step + column * ld) * item
    columns = min(size, k - column)
    trsm(routines, LEFT, LOWER, NO_TRANS, UNIT, width, columns, diagonal, ld, right, ld)


@inner
def _update_below(routines, panel, ld, step, k, tile, size, item):
    """Tile of F11 behind the block column at `step`, less the product of its L and U."""
    width = min(BLOCK, k - step)
    first = step + width
    order = k - first
    tiles = (order + size - 1) // size
    i, j = (tile % tiles) * size, (tile // tiles) * size
    left = panel + (first + i + step * ld) * item
    right = panel + (step + (first + j) * ld) * item
    out = panel + (first + i + (first + j) * ld) * item
    rows, columns = min(size, order - i), min(size, order - j)
    gemm(
        routines, NO_TRANS, NO_TRANS, rows, columns, width, MINUS, left, ld, right, ld,
        ONE, out, ld,
    )  # fmt: skip


@inner
def _solve_lower(routines, a, origin, k, m, tile, size, item, tiny):
    """Tile of L21; returns whether its entries are not larger than 1/tiny."""
    ld = k + m
    row = k + tile * size
    rows = min(size, k + m - row)
    panel = address(a) + origin * item
    trsm(routines, RIGHT, UPPER, NO_TRANS, NON_UNIT, rows, k, panel, ld, panel + row * item, ld)
    bound = 1 / tiny
    good = True
    for j in range(k):
        begin = origin + j * ld + row
        for i in range(rows):
            good &= _size(a[begin + i]) <= bound  # false for NaN
    return good


@inner
def _solve_upper(routines, a, origin, k, m, tile, size, item, pivots):
    """Tile of U12 transposed."""
    ld = k + m
    row = tile * size
    rows = min(size, m - row)
    upper = origin + k * ld + row
    for j in range(k):
        p = pivots[j]
        if p != j:
            for i in range(rows):
                x, y = upper + j * m + i, upper + p * m + i
                a[x], a[y] = a[y], a[x]
    panel = address(a) + origin * item
    right = panel + (k * ld + row) * item
    trsm(routines, RIGHT, LOWER, TRANS, UNIT, rows, k, panel, ld, right, m)


@inner
def _update_block(routines, panel, k, m, tile, size, item, beta, block):
    """Tile of the contribution block F22 - L21 U12."""
    tiles = (m + size - 1) // size
    i, j = (tile % tiles) * size, (tile // tiles) * size
    ld = k + m
    left = panel + (k + i) * item
    right = panel + (k * ld + j) * item
    out = block + (i + j * m) * item
    rows, columns = min(size, m - i), min(size, m - j)
    gemm(
        routines, NO_TRANS, TRANS, rows, columns, k, MINUS, left, ld, right, m, beta, out, m
    )  # fmt: skip
