"""The paths of an update from the fronts of its vectors to the roots, and the pass along them.

If all entries of C C^H are in the pattern of A, the update changes only fronts on these paths, and
no entry outside of their panels. See Davis, Hager, "Modifying a sparse Cholesky factorization",
SIAM J. Matrix Anal. Appl. 20 (1999); here by fronts, with all columns of a block in one pass.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner, jit
from ...matrix.csc import first_from
from ..by_reference import keep_alive, reference
from .rotations import prepare, rotate
from .workspace import BLOCK, UpdateWorkspace

_INTACT = np.int64(-1)


@inner
def front_of(start, position):
    """Return the front that eliminates a column."""
    return first_from(start, np.int64(1), np.int64(start.size), position + 1) - 1


@inner
def _mark(start, parent, positions, bit, reached):
    """Set a bit of all fronts on the paths from some columns to the root; return the least one."""
    least = np.int64(parent.size)
    for position in positions:
        s = front_of(start, position)
        least = min(least, s)
        while s >= 0 and not reached[s] & bit:
            reached[s] |= bit
            s = np.int64(parent[s])
    return least


@jit
def paths_of(plan, positions):
    """Return the fronts on the paths from some columns to the roots, children before parents.

    Parameters
    ----------
    plan : Plan
    positions : int32 array
        Columns in elimination order.

    Returns
    -------
    fronts : int64 array
    entries, size : int
        Number of the entries of L in their columns, and of the entries of their panels.
    """
    reached = np.zeros(plan.parent.size, np.uint8)
    least, count = _mark(plan.start, plan.parent, positions, 1, reached), 0
    for s in range(least, reached.size):
        count += reached[s]
    fronts, entries, size = np.empty(count, np.int64), np.int64(0), np.int64(0)
    count = 0
    for s in range(least, reached.size):
        if reached[s]:
            k, m = _shape(plan, s)
            fronts[count], count = s, count + 1
            entries, size = entries + k * (k + 1) // 2 + k * m, size + k * (k + m)
    return fronts, entries, size


@inner
def _shape(plan, s):
    """Return the numbers of pivot columns and of update rows of front s."""
    return np.int64(plan.start[s + 1] - plan.start[s]), plan.pointer[s + 1] - plan.pointer[s]


@jit
def copy_panels(panel, panels, fronts, out, back):
    """Copy the panels of fronts to `out`, one after the other, or `back` from there."""
    q = np.int64(0)
    for s in fronts:
        first, count = panel[s], panel[s + 1] - panel[s]
        if back:
            panels[first : first + count] = out[q : q + count]
        else:
            out[q : q + count] = panels[first : first + count]
        q += count


@jit
def rotate_panels(plan, panel, panels, fronts, vectors, adding):
    """Replace the factor of A by that of A + C C^H, or A - C C^H, in the panels.

    Parameters
    ----------
    plan : Plan
    panel, panels : arrays
        See `HostFactor`.
    fronts : int64 array
        See `paths_of`, for all rows of C.
    vectors : (int64 array, int32 array, array of the scalar type)
        C by columns: extents, positions of rows in elimination order, and values. Columns of
        similar paths should be neighbours.
    adding : bool

    Returns
    -------
    failed : int
        Position of the column whose pivot would not be positive; -1 if there is none. Otherwise the
        panels are neither those of A nor those of the result.
    """
    columns, largest = np.int64(0), np.int64(1)
    place = np.empty(plan.parent.size, np.int64)
    for s in fronts:
        k, m = _shape(plan, s)
        place[s], columns, largest = columns, columns + k, max(largest, k + m)
    width = min(BLOCK, vectors[0].size - 1)
    work = UpdateWorkspace(
        plan.start, plan.parent, plan.pointer, plan.rows, panel, panels,
        np.zeros(plan.parent.size, np.uint8), place, np.zeros(width * columns, panels.dtype), width,
        np.empty(width * largest, panels.dtype), np.empty(BLOCK, np.int64),
        np.empty(BLOCK, panels.dtype), np.empty(BLOCK, panels.dtype),
        np.empty(BLOCK, panels.dtype), np.empty(BLOCK, panels.dtype), adding,
    )  # fmt: skip
    pointer, failed = reference(work), _INTACT
    for first in range(0, vectors[0].size - 1, BLOCK):
        failed = _run_block(pointer, fronts, vectors, first)
        if failed != _INTACT:
            break
    keep_alive(work)
    return failed


@allocating
def _run_block(work, fronts, vectors, first):
    """Run one pass for the columns of C from `first` on; return `rotate_panels`' outcome."""
    indptr, rows, values = vectors
    for t in range(min(BLOCK, indptr.size - 1 - first)):
        begin, end = indptr[first + t], indptr[first + t + 1]
        _mark(work.start, work.parent, rows[begin:end], np.uint8(1 << t), work.reached)
        for p in range(begin, end):
            s = front_of(work.start, rows[p])
            r = work.place[s] + rows[p] - work.start[s]
            work.vectors[work.width * r + t] += values[p]
    failed = _INTACT
    for s in fronts:
        if work.reached[s] and failed == _INTACT:
            failed = _rotate_front(work, s)
        work.reached[s] = 0
    return failed


@inner
def _rotate_front(work, s):
    """Rotate the columns of front s; return `rotate_panels`' outcome."""
    begin, k = work.start[s], np.int64(work.start[s + 1] - work.start[s])
    ld = k + work.pointer[s + 1] - work.pointer[s]
    count = _gather(work, s, k, ld)
    for j in range(k):
        at = work.panel[s] + j * (ld + 1)
        changed = prepare(work, at, count, j, ld)
        if changed < 0:
            return np.int64(begin + j)
        if changed > 0:
            rotate(work, at + 1, j + 1, ld - j - 1, count, ld)
    _scatter(work, s, k, ld, count)
    return _INTACT


@inner
def _gather(work, s, k, ld):
    """Move the vectors that reach front s from its rows of `vectors` to `local`.

    Return their number.
    """
    count, bits, w = 0, work.reached[s], work.vectors
    for t in range(work.width):
        if bits >> t & 1:
            work.active[count] = t
            count += 1
    first = work.width * work.place[s]
    for j in range(k):
        for t in range(count):
            p = first + work.width * j + work.active[t]
            work.local[t * ld + j] = w[p]
            w[p] = 0
    above = np.int64(s)
    for q in range(work.pointer[s], work.pointer[s + 1]):
        above = _ancestor(work, above, work.rows[q])
        i = k + q - work.pointer[s]
        p = work.width * (work.place[above] + work.rows[q] - work.start[above])
        for t in range(count):
            work.local[t * ld + i] = w[p + work.active[t]]
    return count


@inner
def _scatter(work, s, k, ld, count):
    """Write the update rows of the vectors in `local` back to `vectors`."""
    above = np.int64(s)
    for q in range(work.pointer[s], work.pointer[s + 1]):
        above = _ancestor(work, above, work.rows[q])
        i = k + q - work.pointer[s]
        p = work.width * (work.place[above] + work.rows[q] - work.start[above])
        for t in range(count):
            work.vectors[p + work.active[t]] = work.local[t * ld + i]


@inner
def _ancestor(work, s, row):
    """Return the front that eliminates a row: front s, or an ancestor of it."""
    while row >= work.start[s + 1]:
        s = np.int64(work.parent[s])
    return s
