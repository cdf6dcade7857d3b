"""Substitution in fronts so small that a call of BLAS would take as long as their arithmetic.

Two right-hand sides use this code for fronts of any size. For one right-hand side, and in blocks
for two, four columns are processed together: dependencies are then between registers rather than
through memory. Indices are unsigned for the reason given in `axpy`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import inner, view
from .axpy import clear, subtract
from .simd4 import load, simd_add, simd_broadcast, simd_multiply, simd_subtract, simd_sum, store


class FrontView(NamedTuple):
    """A front of a triangular factor.

    Attributes
    ----------
    panels : array
        The panels of all fronts.
    rows : (m,) int32 array
        Update rows.
    k, first : int
        Number of pivot columns, and the first of them.
    diagonal, block : int
        Offsets of the diagonal block, whose leading dimension is k + m, and of the block below it.
    ld : int
        Leading dimension of the block below the diagonal.
    """

    panels: np.ndarray
    rows: np.ndarray
    k: int
    first: np.int64
    diagonal: int
    block: int
    ld: int


_GROUP = 4  # columns processed together
_1, _2, _3, _4 = np.arange(1, 5, dtype=np.uint64)


@inner
def _dots(a, at, e1, e2, e3, b, to, count):
    """Return the sums of a[at + e + i] * b[to + i], i < count, for e = 0, e1, e2 and e3."""
    c0, c1, c2, c3 = np.uint64(at), np.uint64(at + e1), np.uint64(at + e2), np.uint64(at + e3)
    to, count = np.uint64(to), np.uint64(count)
    s = t = u = v = simd_broadcast(a.dtype.type(0))
    for _ in range(count // _4):
        y = load(b, to)
        s, t = (
            simd_add(s, simd_multiply(load(a, c0), y)),
            simd_add(t, simd_multiply(load(a, c1), y)),
        )
        u, v = (
            simd_add(u, simd_multiply(load(a, c2), y)),
            simd_add(v, simd_multiply(load(a, c3), y)),
        )
        c0, c1, c2, c3, to = c0 + _4, c1 + _4, c2 + _4, c3 + _4, to + _4
    s0, t0, u0, v0 = simd_sum(s), simd_sum(t), simd_sum(u), simd_sum(v)
    for _ in range(count % _4):
        y = b[to]
        s0, t0, u0, v0 = s0 + a[c0] * y, t0 + a[c1] * y, u0 + a[c2] * y, v0 + a[c3] * y
        c0, c1, c2, c3, to = c0 + _1, c1 + _1, c2 + _1, c3 + _1, to + _1
    return s0, t0, u0, v0


@inner
def _subtract_columns(x, to, a, at, e1, e2, e3, count, y0, y1, y2, y3):
    """Subtract y0 a[at + i], y1 a[at + e1 + i] and so on from x[to + i], i < count."""
    c0, c1, c2, c3 = np.uint64(at), np.uint64(at + e1), np.uint64(at + e2), np.uint64(at + e3)
    to, count = np.uint64(to), np.uint64(count)
    z0, z1, z2, z3 = simd_broadcast(y0), simd_broadcast(y1), simd_broadcast(y2), simd_broadcast(y3)
    for _ in range(count // _4):
        z = simd_subtract(load(x, to), simd_multiply(load(a, c0), z0))
        z = simd_subtract(z, simd_multiply(load(a, c1), z1))
        z = simd_subtract(z, simd_multiply(load(a, c2), z2))
        store(x, to, simd_subtract(z, simd_multiply(load(a, c3), z3)))
        c0, c1, c2, c3, to = c0 + _4, c1 + _4, c2 + _4, c3 + _4, to + _4
    for _ in range(count % _4):
        x[to] = x[to] - a[c0] * y0 - a[c1] * y1 - a[c2] * y2 - a[c3] * y3
        c0, c1, c2, c3, to = c0 + _1, c1 + _1, c2 + _1, c3 + _1, to + _1


@inner
def _triangle(a, at, down, across, width, unit, y0, y1, y2, y3):
    """Solve a triangular system of `width` unknowns, at most four.

    Its entry in row i and column j is a[at + i * down + j * across], i >= j. Results beyond `width`
    have no meaning; they are computed from existing entries.
    """
    e1, e2, e3 = min(1, width - 1), min(2, width - 1), min(3, width - 1)
    step, unity = down + across, a.dtype.type(1)
    r0 = r1 = r2 = r3 = unity
    if not unit:  # four independent divisions
        r0, r1 = unity / a[np.uint64(at)], unity / a[np.uint64(at + e1 * step)]
        r2, r3 = unity / a[np.uint64(at + e2 * step)], unity / a[np.uint64(at + e3 * step)]
    second, third = at + e1 * across, at + e2 * across
    # products without unknowns come first: each unknown then waits for two operations only
    a1, a2, a3 = (
        a[np.uint64(at + e1 * down)],
        a[np.uint64(at + e2 * down)],
        a[np.uint64(at + e3 * down)],
    )
    b2, b3, c3 = (
        a[np.uint64(second + e2 * down)],
        a[np.uint64(second + e3 * down)],
        a[np.uint64(third + e3 * down)],
    )
    y0, y1, y2, y3 = y0 * r0, y1 * r1, y2 * r2, y3 * r3
    y1 = y1 - (a1 * r1) * y0
    y2 = y2 - (a2 * r2) * y0 - (b2 * r2) * y1
    y3 = y3 - (a3 * r3) * y0 - (b3 * r3) * y1 - (c3 * r3) * y2
    return y0, y1, y2, y3


@inner
def _subtract_row(panels, at, ld, k, x, first, y):
    """Subtract y times a row of the block below the diagonal from the front's rows of x."""
    at, to = np.uint64(at), np.uint64(first)
    for _ in range(k):
        x[to] -= panels[at] * y
        at, to = at + np.uint64(ld), to + _1


@inner
def _product_of_row(panels, at, ld, k, x, first):
    """Return the product of a row of the block below the diagonal and the front's rows of x."""
    at, to, ld = np.uint64(at), np.uint64(first), np.uint64(ld)
    s = t = u = v = panels.dtype.type(0)
    for _ in range(k // 4):
        s, t = s + panels[at] * x[to], t + panels[at + ld] * x[to + _1]
        u, v = u + panels[at + _2 * ld] * x[to + _2], v + panels[at + _3 * ld] * x[to + _3]
        at, to = at + _4 * ld, to + _4
    for _ in range(k % 4):
        s += panels[at] * x[to]
        at, to = at + ld, to + _1
    return (s + t) + (u + v)


@view
def _solve_group(panels, diagonal, k, x, first, head, width, done, kind):
    """Solve for `width` columns from `head` on, numbered as in `solve_front`, after `done` others.

    In a group of fewer than four columns, the missing ones have the positions of its last one.
    """
    unit, backward, gathers, full, down, across = kind
    turn, position = -1 if backward else 1, first + head
    e1, e2, e3 = turn * min(1, width - 1), turn * min(2, width - 1), turn * min(3, width - 1)
    y0, y1 = x[np.uint64(position)], x[np.uint64(position + e1)]
    y2, y3 = x[np.uint64(position + e2)], x[np.uint64(position + e3)]
    column = diagonal + head * full
    if gathers and done > 0:
        low = head + 1 if backward else 0
        columns = panels, column + low, e1 * full, e2 * full, e3 * full
        z0, z1, z2, z3 = _dots(*columns, x, first + low, done)
        y0, y1, y2, y3 = y0 - z0, y1 - z1, y2 - z2, y3 - z3
    columns = panels, column + head, down, across, width, unit
    y0, y1, y2, y3 = _triangle(*columns, y0, y1, y2, y3)
    x[np.uint64(position)] = y0
    if width > 1:
        x[np.uint64(position + turn)] = y1
    if width > 2:
        x[np.uint64(position + 2 * turn)] = y2
    if width > 3:
        x[np.uint64(position + 3 * turn)] = y3
    zero = panels.dtype.type(0)
    y1, y2, y3 = y1 if width > 1 else zero, y2 if width > 2 else zero, y3 if width > 3 else zero
    remaining = k - done - width
    if not gathers and remaining > 0:
        low = 0 if backward else head + width
        columns = panels, column + low, e1 * full, e2 * full, e3 * full
        _subtract_columns(x, first + low, *columns, remaining, y0, y1, y2, y3)


@inner
def _dot(a, at, b, to, count):
    """Return the sum of a[at + i] * b[to + i] for i < count, from four partial sums."""
    at, to, count = np.uint64(at), np.uint64(to), np.uint64(count)
    step = np.uint64(1)
    groups = count // np.uint64(4)
    s0 = s1 = s2 = s3 = a.dtype.type(0)
    for _ in range(groups):
        s0 += a[at] * b[to]
        s1 += a[at + step] * b[to + step]
        s2 += a[at + np.uint64(2)] * b[to + np.uint64(2)]
        s3 += a[at + np.uint64(3)] * b[to + np.uint64(3)]
        at, to = at + np.uint64(4), to + np.uint64(4)
    for _ in range(count - np.uint64(4) * groups):
        s0 += a[at] * b[to]
        at, to = at + step, to + step
    return (s0 + s1) + (s2 + s3)


@inner
def _subtract_from_pivot_rows(panels, block, ld, m, k, x, width, first, rest):
    """Subtract the products of a block's columns and the vectors of `rest` from pivot rows of x."""
    grouped, w = k - k % _GROUP, np.int64(width)
    for j in range(0, grouped, _GROUP):
        for c in range(w):
            position = w * (first + j) + c
            columns = panels, block + j * ld, ld, 2 * ld, 3 * ld
            y0, y1, y2, y3 = _dots(*columns, rest, c * m, m)
            x[position], x[position + w] = x[position] - y0, x[position + w] - y1
            x[position + 2 * w] -= y2
            x[position + 3 * w] -= y3
    for j in range(grouped, k):
        for c in range(w):
            x[w * (first + j) + c] -= _dot(panels, block + j * ld, rest, c * m, m)


@inner
def _subtract_from_rest(panels, block, ld, m, k, x, width, first, rest):
    """Subtract the products of a block and the pivot rows of x from the vectors of `rest`."""
    grouped, w = k - k % _GROUP, np.int64(width)
    for j in range(0, grouped, _GROUP):
        for c in range(w):
            position = w * (first + j) + c
            columns = panels, block + j * ld, ld, 2 * ld, 3 * ld
            y0, y1, y2, y3 = (
                x[position],
                x[position + w],
                x[position + 2 * w],
                x[position + 3 * w],
            )
            _subtract_columns(rest, c * m, *columns, m, y0, y1, y2, y3)
    for j in range(grouped, k):
        for c in range(w):
            subtract(rest, c * m, panels, block + j * ld, m, x[w * (first + j) + c])


@inner
def solve_front(front, x, rest, lower, unit, backward):
    """Sweep over one front of four or more columns for one right-hand side.

    `rest` is scratch for its update rows. Columns are processed by fours from the first one, or
    from the last one if `backward`. A smaller group comes first, or last if products are gathered:
    the others then have multiples of four rows before or after them.
    """
    panels, rows, k, first, diagonal, block, ld = front
    m = np.int64(rows.size)
    if backward and m < _GROUP:
        for i in range(m):
            _subtract_row(panels, block + i, ld, k, x, first, x[rows[i]])
    elif backward:
        for i in range(m):
            rest[i] = x[rows[i]]
        _subtract_from_pivot_rows(panels, block, ld, m, k, x, 1, first, rest)
    full, turn = k + m, -1 if backward else 1
    gathers = lower == backward  # sums over earlier rows, else updates of later ones
    down, across = (turn * full, turn) if gathers else (turn, turn * full)
    kind = unit, backward, gathers, full, down, across
    odd, done = np.int64(k % _GROUP), np.int64(0)
    while done < k:
        width = odd if odd > 0 and not gathers and done == 0 else min(_GROUP, k - done)
        head = k - 1 - done if backward else done
        _solve_group(panels, diagonal, k, x, first, head, width, done, kind)
        done += width
    if not backward and m < _GROUP:
        for i in range(m):
            x[rows[i]] -= _product_of_row(panels, block + i, ld, k, x, first)
    elif not backward:
        clear(rest, 0, m)
        _subtract_from_rest(panels, block, ld, m, k, x, 1, first, rest)
        for i in range(m):
            x[rows[i]] += rest[i]


@inner
def _two_dots(a, at, b, to, count):
    """Return the sums of a[at + i] * b[to + i, c] for both columns c of b, which is row-major."""
    at, to = np.uint64(at), np.uint64(2 * to)
    step, double_step = np.uint64(1), np.uint64(2)
    s0 = s1 = t0 = t1 = a.dtype.type(0)
    for _ in range(count // 2):
        s0 += a[at] * b[to]
        s1 += a[at] * b[to + step]
        t0 += a[at + step] * b[to + double_step]
        t1 += a[at + step] * b[to + np.uint64(3)]
        at, to = at + double_step, to + np.uint64(4)
    if count % 2:
        s0 += a[at] * b[to]
        s1 += a[at] * b[to + step]
    return s0 + t0, s1 + t1


@inner
def _subtract_from_two(x, at, a, column, count, y0, y1):
    """Subtract y0 and y1 times a column from the two columns of x, which is row-major."""
    at, column = np.uint64(2 * at), np.uint64(column)
    for _ in range(count):
        x[at] -= a[column] * y0
        x[at + np.uint64(1)] -= a[column] * y1
        at, column = at + np.uint64(2), column + np.uint64(1)


@inner
def solve_front_two_rhs(front, x, rest, lower, unit, backward):
    """Run `solve_front` for two right-hand sides; `rest` stores one after the other.

    Four columns of the block are read for the first one, and again from the cache for the second.
    """
    panels, rows, k, first, diagonal, block, ld = front
    m = np.int64(rows.size)
    for i in range(m):
        for c in range(2):
            rest[c * m + i] = x[2 * np.int64(rows[i]) + c] if backward else 0
    if backward and m > 0:
        _subtract_from_pivot_rows(panels, block, ld, m, k, x, 2, first, rest)
    for step in range(k):
        j = k - 1 - step if backward else step
        inner_first, count = (j + 1, k - 1 - j) if lower else (np.int64(0), j)
        column, position = diagonal + j * (k + m) + inner_first, 2 * (first + j)
        y0, y1 = x[position], x[position + 1]
        if lower == backward and count > 0:
            z0, z1 = _two_dots(panels, column, x, first + inner_first, count)
            y0, y1 = y0 - z0, y1 - z1
        if not unit:
            pivot = panels[diagonal + j * (k + m + 1)]
            y0, y1 = y0 / pivot, y1 / pivot
        x[position], x[position + 1] = y0, y1
        if lower != backward:
            _subtract_from_two(x, first + inner_first, panels, column, count, y0, y1)
    if not backward and m > 0:
        _subtract_from_rest(panels, block, ld, m, k, x, 2, first, rest)
        for i in range(m):
            for c in range(2):
                x[2 * np.int64(rows[i]) + c] += rest[c * m + i]
