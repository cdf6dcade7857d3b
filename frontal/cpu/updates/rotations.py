"""Rotations of a column of a panel with vectors: one front of an update.

For A + C C^H each vector w is rotated into column l of L by a unitary matrix that makes its entry
in the row of the pivot zero. For A - C C^H the rotation is hyperbolic; l is computed first and w
from the new l, which is stable (Bojanczyk, Brent, Van Dooren, de Hoog, "A note on downdating the
Cholesky factorization", SIAM J. Sci. Stat. Comput. 8, 1987).
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import forced, inner
from ..simd4 import load, simd_broadcast, simd_multiply, simd_multiply_add, store

_GROUP = np.uint64(4)  # entries of a vector instruction
_2, _3 = np.uint64(2), np.uint64(3)


@inner
def prepare(work, pivot, count, first, ld):
    """Compute the rotations of the column whose pivot is panels[pivot], row `first` of the front.

    Return 1 if it changes, 0 if all vectors are zero there, and -1 if its new pivot is not > 0.
    The new pivot is written, unless it is not > 0.
    """
    d, changed = work.panels[pivot].real, 0
    for t in range(count):
        w = work.local[t * ld + first]
        size = np.abs(w)
        if size == 0:
            work.keep[t] = work.cosine[t] = 1
            work.mix[t] = work.sine[t] = 0
            continue
        changed = 1
        if work.adding:
            root = np.sqrt(d * d + size * size)
            work.keep[t] = work.cosine[t] = d / root
            work.sine[t] = w / root
            work.mix[t] = np.conj(work.sine[t])
        else:
            gap = (d - size) * (d + size)
            if not gap > 0:
                return -1
            root = np.sqrt(gap)
            work.cosine[t], work.keep[t] = root / d, d / root
            work.sine[t] = w / d
            work.mix[t] = -np.conj(w) / root
        d = root
    if not (d > 0 and d < np.inf):
        return -1
    work.panels[pivot] = d
    return changed


@inner
def rotate(work, at, first, rows, count, ld):
    """Apply the prepared rotations to panels[at + i] and to row first + i of the front, i < rows.

    The vectors have the leading dimension `ld`.
    """
    t, to = np.int64(0), first
    while t < count:
        if work.adding:
            t += _rotate_planes(work, at, to, ld, rows, t, count - t)
        else:
            t += _rotate_hyperbolas(work, at, to, ld, rows, t, count - t)
        to = first + t * ld


@inner
def _rotate_planes(work, at, to, ld, rows, t, count):
    """Rotate four vectors, from local[to] on, with a column of an update; one if `count` < 4.

    Return their number.
    """
    a, w = work.panels, work.local
    at, to, rows, groups = np.uint64(at), np.uint64(to), np.uint64(rows), np.uint64(rows) // _GROUP
    p, q, c, s = _coefficients(work, t)
    if count < 4:
        for _ in range(groups):
            x, y = _plane(load(a, at), load(w, to), p, q, c, s)
            store(a, at, x)
            store(w, to, y)
            at, to = at + _GROUP, to + _GROUP
        _rotate_rest(work, at, to, ld, rows % _GROUP, t, 1)
        return 1
    p1, q1, c1, s1 = _coefficients(work, t + 1)
    p2, q2, c2, s2 = _coefficients(work, t + 2)
    p3, q3, c3, s3 = _coefficients(work, t + 3)
    ld = np.uint64(ld)
    for _ in range(groups):
        to1, to2, to3 = to + ld, to + _2 * ld, to + _3 * ld
        x, y = _plane(load(a, at), load(w, to), p, q, c, s)
        x, y1 = _plane(x, load(w, to1), p1, q1, c1, s1)
        x, y2 = _plane(x, load(w, to2), p2, q2, c2, s2)
        x, y3 = _plane(x, load(w, to3), p3, q3, c3, s3)
        store(a, at, x)
        store(w, to, y)
        store(w, to1, y1)
        store(w, to2, y2)
        store(w, to3, y3)
        at, to = at + _GROUP, to + _GROUP
    _rotate_rest(work, at, to, ld, rows % _GROUP, t, 4)
    return 4


@inner
def _rotate_hyperbolas(work, at, to, ld, rows, t, count):
    """Compute `_rotate_planes` for a downdate."""
    a, w = work.panels, work.local
    at, to, rows, groups = np.uint64(at), np.uint64(to), np.uint64(rows), np.uint64(rows) // _GROUP
    p, q, c, s = _coefficients(work, t)
    if count < 4:
        for _ in range(groups):
            x, y = _hyperbola(load(a, at), load(w, to), p, q, c, s)
            store(a, at, x)
            store(w, to, y)
            at, to = at + _GROUP, to + _GROUP
        _rotate_rest(work, at, to, ld, rows % _GROUP, t, 1)
        return 1
    p1, q1, c1, s1 = _coefficients(work, t + 1)
    p2, q2, c2, s2 = _coefficients(work, t + 2)
    p3, q3, c3, s3 = _coefficients(work, t + 3)
    ld = np.uint64(ld)
    for _ in range(groups):
        to1, to2, to3 = to + ld, to + _2 * ld, to + _3 * ld
        x, y = _hyperbola(load(a, at), load(w, to), p, q, c, s)
        x, y1 = _hyperbola(x, load(w, to1), p1, q1, c1, s1)
        x, y2 = _hyperbola(x, load(w, to2), p2, q2, c2, s2)
        x, y3 = _hyperbola(x, load(w, to3), p3, q3, c3, s3)
        store(a, at, x)
        store(w, to, y)
        store(w, to1, y1)
        store(w, to2, y2)
        store(w, to3, y3)
        at, to = at + _GROUP, to + _GROUP
    _rotate_rest(work, at, to, ld, rows % _GROUP, t, 4)
    return 4


@forced
def _coefficients(work, t):
    """Return keep, mix, cosine and the negative sine of rotation t, each four times."""
    return (
        simd_broadcast(work.keep[t]),
        simd_broadcast(work.mix[t]),
        simd_broadcast(work.cosine[t]),
        simd_broadcast(-work.sine[t]),
    )


@forced
def _plane(x, y, p, q, c, s):
    """Return p x + q y and c y + s x, for four entries."""
    return (
        simd_multiply_add(p, x, simd_multiply(q, y)),
        simd_multiply_add(c, y, simd_multiply(s, x)),
    )


@forced
def _hyperbola(x, y, p, q, c, s):
    """Return z = p x + q y and c y + s z, for four entries."""
    z = simd_multiply_add(p, x, simd_multiply(q, y))
    return z, simd_multiply_add(c, y, simd_multiply(s, z))


@inner
def _rotate_rest(work, at, to, ld, rows, t, count):
    """Rotate the last rows of `count` vectors with a column, entry by entry."""
    a, w, ld = work.panels, work.local, np.uint64(ld)
    for i in range(np.uint64(rows)):
        x = a[at + i]
        for u in range(count):
            j = to + np.uint64(u) * ld + i
            y, z = w[j], work.keep[t + u] * x + work.mix[t + u] * w[j]
            w[j] = work.cosine[t + u] * y - work.sine[t + u] * (x if work.adding else z)
            x = z
        a[at + i] = x
