"""The inverse of one front from that of its parent: one step of Takahashi's recurrence.

With L21, U12 and the pivot block L11 U11 of a front, and with the inverse Z22 of the rows and
columns of its ancestors:

    Y = L21 L11^-1,  V = U11^-1 U12,
    Z21 = -Z22 Y,  Z12 = -V Z22,  Z11 = U11^-1 L11^-1 - V Z21.

With one triangle U is L^H, D L^H or D L^T, so V is the adjoint or the transpose of Y, and Z12 that
of Z21. V^T is computed as U12^T U11^-T, since U12 is stored transposed.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import inner
from ..axpy import clear, is_small_product, subtract
from ..blas import (
    LEFT,
    MINUS,
    NO_TRANS,
    NON_UNIT,
    ONE,
    TRANS,
    UPPER,
    ZERO,
    address,
    gemm,
    potri,
    trsm,
)
from .triangles import (
    MAX_LOOP_COLUMNS,
    copy_block,
    invert_lower,
    lower_triangle,
    solve_right,
    upper_triangle,
)

_STRIP = 48  # columns of one gemm in a product whose upper triangle is not needed


@inner
def gather(work, s, place):
    """Copy Z22 of front s from the inverse of its parent."""
    plan, z, m = work.plan, work.arena, np.uint64(place.m)
    above = plan.parent[s]
    k = plan.start[above + 1] - plan.start[above]
    parent_ld = np.uint64(k + plan.pointer[above + 1] - plan.pointer[above])
    origin, ld = np.uint64(work.block[above]), np.uint64(place.k + place.m)
    corner = np.uint64(place.inverse + place.k * (place.k + place.m + 1))
    relative = plan.relative[plan.pointer[s] : plan.pointer[s + 1]]
    first = np.uint64(relative[0])
    consecutive = relative[m - 1] - relative[0] == m - 1
    for j in range(m):
        source, column = origin + np.uint64(relative[j]) * parent_ld, corner + j * ld
        if consecutive:
            for i in range(m):
                z[column + i] = z[source + first + i]
        else:
            for i in range(m):
                z[column + i] = z[source + np.uint64(relative[i])]


@inner
def invert_symmetric(work, place, mirrored):
    """Compute Z11 and Z21 for a method of one triangle; also Z12 and all of Z11 if `mirrored`."""
    k, m = place.k, place.m
    _pivot_block(work, place)
    if m > 0:
        y, corner = work.below, place.inverse + k
        copy_block(work.scratch, y, work.panels, place.panel + k, m, k, k + m)
        solve_right(work, lower_triangle(place, work.unit), m, y)
        _subtract_gathered(work, place, y)
        _subtract_lower(work, place, y)
        if mirrored:
            _mirror_block(work, corner, m, k, place.inverse + k * (k + m), k + m)
    changed = work.unit and _is_interchanged(work, place)
    if mirrored or changed:
        _mirror_triangle(work, place)
    if changed:
        _interchange(work, place, mirrored)


@inner
def invert_general(work, place):
    """Compute Z11, Z21 and Z12 of a front of LU."""
    k, m, ld = place.k, place.m, place.k + place.m
    routines, z, item = work.routines, address(work.arena), work.arena.itemsize
    invert_lower(work, lower_triangle(place, True), work.arena, place.inverse, ld)
    _solve_upper(work, place)
    if m > 0:
        y, v = work.below, work.below + (work.scratch.size - work.below) // 2
        copy_block(work.scratch, y, work.panels, place.panel + k, m, k, ld)
        solve_right(work, lower_triangle(place, True), m, y)
        copy_block(work.scratch, v, work.panels, place.panel + k * ld, m, k, m)
        solve_right(work, upper_triangle(place), m, v)
        _subtract_gathered(work, place, y)
        x, corner = address(work.scratch) + v * item, z + place.inverse * item
        gemm(
            routines, TRANS, NO_TRANS, k, m, m, MINUS, x, m, corner + k * (ld + 1) * item, ld,
            ZERO, corner + k * ld * item, ld,
        )  # fmt: skip
        gemm(
            routines, TRANS, NO_TRANS, k, k, m, MINUS, x, m, corner + k * item, ld, ONE, corner, ld
        )
    if _is_interchanged(work, place):
        _interchange(work, place, False)


@inner
def _pivot_block(work, place):
    """Write the lower triangle of L11^-H D^-1 L11^-1 to Z11; D is the unit matrix for Cholesky."""
    k, ld = place.k, place.k + place.m
    z, w, origin = work.arena, work.scratch, place.inverse
    if k > MAX_LOOP_COLUMNS and not work.unit:
        for j in range(k):
            for i in range(j, k):
                z[origin + j * ld + i] = work.panels[place.panel + j * ld + i]
        potri(work.routines, k, address(z) + origin * z.itemsize, ld, work.info)
        return
    invert_lower(work, lower_triangle(place, work.unit), w, np.int64(0), k)
    right = np.int64(0)
    if work.indefinite:
        right = k * k
        _divide(work, place, right)
    if k > MAX_LOOP_COLUMNS:
        _multiply_lower(work, place, right)
        return
    for j in range(k):
        for i in range(j, k):
            t = w.dtype.type(0)
            for p in range(i, k):
                x = w[i * k + p]
                t += (np.conj(x) if work.conjugate else x) * w[right + j * k + p]
            z[origin + j * ld + i] = t


@inner
def _multiply_lower(work, place, right):
    """Compute the lower triangle of W^H X for lower triangular W and X in the scratch, by BLAS."""
    k, ld, item = place.k, place.k + place.m, work.scratch.itemsize
    w, z = address(work.scratch), address(work.arena) + place.inverse * item
    adjoint = work.routines.adjoint if work.conjugate else TRANS
    for j in range(0, k, _STRIP):
        corner, rows = j * (k + 1) * item, k - j
        gemm(
            work.routines, adjoint, NO_TRANS, rows, min(_STRIP, rows), rows, ONE, w + corner, k,
            w + right * item + corner, k, ZERO, z + j * (ld + 1) * item, ld,
        )  # fmt: skip


@inner
def _divide(work, place, out):
    """Write D^-1 W to the scratch at `out`, with pivots of order 1 and 2; W is at its start."""
    w, a, k, ld = work.scratch, work.panels, place.k, place.k + place.m
    j = 0
    while j < k:
        d = a[place.panel + j * (ld + 1)]
        b = work.subdiagonal[place.first + j] if j + 1 < k else w.dtype.type(0)
        if b == 0:
            for c in range(k):
                w[out + c * k + j] = w[c * k + j] / d
            j += 1
            continue
        upper = np.conj(b) if work.conjugate else b
        a0, a1 = d / upper, a[place.panel + (j + 1) * (ld + 1)] / b
        determinant = a0 * a1 - 1
        for c in range(k):
            y, x = w[c * k + j] / upper, w[c * k + j + 1] / b
            w[out + c * k + j] = (a1 * y - x) / determinant
            w[out + c * k + j + 1] = (a0 * x - y) / determinant
        j += 2


@inner
def _solve_upper(work, place):
    """Compute Z11 = U11^-1 Z11 in place."""
    k, ld, a, z = place.k, place.k + place.m, work.panels, work.arena
    if k > MAX_LOOP_COLUMNS:
        u, x = address(a) + place.panel * a.itemsize, address(z) + place.inverse * z.itemsize
        trsm(work.routines, LEFT, UPPER, NO_TRANS, NON_UNIT, k, k, u, ld, x, ld)
        return
    for c in range(k):
        column = place.inverse + c * ld
        for j in range(k - 1, -1, -1):
            upper = place.panel + j * ld
            z[column + j] /= a[upper + j]
            subtract(z, column, a, upper, j, z[column + j])


@inner
def _subtract_gathered(work, place, y):
    """Compute Z21 = -Z22 Y."""
    k, m, ld, z = place.k, place.m, place.k + place.m, work.arena
    z21, z22 = place.inverse + k, place.inverse + k * (ld + 1)
    if is_small_product(m, m, k):
        for j in range(k):
            clear(z, z21 + j * ld, m)
            for p in range(m):
                subtract(z, z21 + j * ld, z, z22 + p * ld, m, work.scratch[y + j * m + p])
        return
    begin, item = address(z), z.itemsize
    gemm(
        work.routines, NO_TRANS, NO_TRANS, m, k, m, MINUS, begin + z22 * item, ld,
        address(work.scratch) + y * item, m, ZERO, begin + z21 * item, ld,
    )  # fmt: skip


@inner
def _subtract_lower(work, place, y):
    """Compute the lower triangle of Z11 -= Y^H Z21, or Y^T Z21."""
    k, m, ld, z, x = place.k, place.m, place.k + place.m, work.arena, work.scratch
    if is_small_product(k, k, m):
        for j in range(k):
            for i in range(j, k):
                t, left, right = z.dtype.type(0), y + i * m, place.inverse + k + j * ld
                for p in range(m):
                    factor = x[left + p]
                    t += (np.conj(factor) if work.conjugate else factor) * z[right + p]
                z[place.inverse + i + j * ld] -= t
        return
    adjoint = work.routines.adjoint if work.conjugate else TRANS
    begin, item = address(z) + place.inverse * z.itemsize, z.itemsize
    for j in range(0, k, _STRIP):
        gemm(
            work.routines, adjoint, NO_TRANS, k - j, min(_STRIP, k - j), m, MINUS,
            address(x) + (y + j * m) * item, m, begin + (k + j * ld) * item, ld, ONE,
            begin + j * (ld + 1) * item, ld,
        )  # fmt: skip


@inner
def _mirror_block(work, source, rows, columns, out, ld):
    """Write the adjoint or transpose of a block of the arena, rows by columns, to `out`."""
    z = work.arena
    source, out, ld = np.uint64(source), np.uint64(out), np.uint64(ld)
    for i in range(np.uint64(rows)):
        for j in range(np.uint64(columns)):
            x = z[source + i + j * ld]
            z[out + j + i * ld] = np.conj(x) if work.conjugate else x


@inner
def _mirror_triangle(work, place):
    """Complete Z11 from its lower triangle."""
    z, ld = work.arena, place.k + place.m
    for j in range(place.k):
        for i in range(j + 1, place.k):
            x = z[place.inverse + i + j * ld]
            z[place.inverse + j + i * ld] = np.conj(x) if work.conjugate else x


@inner
def _is_interchanged(work, place):
    """Return whether rows were interchanged in a front."""
    changed = False
    for j in range(place.k):
        changed |= work.pivots[place.first + j] != j
    return changed


@inner
def _interchange(work, place, mirrored):
    """Apply a front's interchanges to columns of its inverse, with one triangle to rows too."""
    z, k, ld, origin = work.arena, place.k, place.k + place.m, place.inverse
    width = ld if mirrored else k
    for step in range(k):
        j = k - 1 - step
        p = np.int64(work.pivots[place.first + j])
        if p == j:
            continue
        for i in range(ld):
            x, y = origin + j * ld + i, origin + p * ld + i
            z[x], z[y] = z[y], z[x]
        if not work.two_panels:
            for i in range(width):
                x, y = origin + j + i * ld, origin + p + i * ld
                z[x], z[y] = z[y], z[x]
