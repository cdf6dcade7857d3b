"""Entries of an inverse by fronts: which front computes an entry, and where in its inverse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner, jit
from ...matrix.csc import first_from
from ...symbolic.plan import Plan

SKIPPED, LAST, GATHERED = np.arange(3)  # a front that is not computed; without, with such children


class WantedEntries(NamedTuple):
    """Entries of an inverse, sorted by the fronts that compute them.

    Attributes
    ----------
    pointer : (f + 1,) int64 array
        Extent of each front's entries in the other arrays.
    row, column : int32 arrays
        Row and column in the front; with one triangle in its lower triangle.
    place : int64 array
        Position among the wanted entries.
    mirrored : bool array
        Whether the entry is above the diagonal, for a method of one triangle.
    """

    pointer: np.ndarray
    row: np.ndarray
    column: np.ndarray
    place: np.ndarray
    mirrored: np.ndarray


def locate(
    plan: Plan, rows: np.ndarray, columns: np.ndarray, one_triangle: bool
) -> tuple[WantedEntries, np.ndarray]:
    """Find the fronts of entries.

    Parameters
    ----------
    plan : Plan
    rows, columns : (e,) int32 arrays
        Of the inverse, as positions in elimination order before interchanges.
    one_triangle : bool

    Returns
    -------
    wanted : WantedEntries
    absent : int64 array
        Ascending numbers of the entries outside of all fronts.
    """
    fronts = np.arange(plan.parent.size, dtype=np.int32)
    front_of = np.repeat(fronts, np.diff(plan.start))
    *wanted, absent = _locate(plan, front_of, rows, columns, one_triangle)
    return WantedEntries(*wanted), absent


@inner
def _local(plan, s, position):
    """Return the row of a position in front s; -1 if the front does not contain it."""
    first, last = plan.start[s], plan.start[s + 1]
    if position < last:
        return position - first
    begin, end = plan.pointer[s], plan.pointer[s + 1]
    q = first_from(plan.rows, begin, end, position)
    return last - first + q - begin if q < end and plan.rows[q] == position else np.int64(-1)


@jit
def _locate(plan, front_of, rows, columns, one_triangle):
    fronts, size = plan.parent.size, rows.size
    pointer, local = np.zeros(fronts + 1, np.int64), np.empty(size, np.int32)
    missing = 0
    for e in range(size):
        s = front_of[min(rows[e], columns[e])]
        local[e] = _local(plan, s, max(rows[e], columns[e]))
        if local[e] < 0:
            missing += 1
        else:
            pointer[s + 1] += 1
    for s in range(fronts):
        pointer[s + 1] += pointer[s]
    cursor, absent = pointer[:-1].copy(), np.empty(missing, np.int64)
    row, column = np.empty(size - missing, np.int32), np.empty(size - missing, np.int32)
    place, mirrored = np.empty(size - missing, np.int64), np.empty(size - missing, np.bool_)
    missing = 0
    for e in range(size):
        i, j = rows[e], columns[e]
        if local[e] < 0:
            absent[missing] = e
            missing += 1
            continue
        s = front_of[min(i, j)]
        q, least = cursor[s], min(i, j) - plan.start[s]
        cursor[s] += 1
        below = i >= j
        place[q], mirrored[q] = e, one_triangle and not below
        keeps = below or one_triangle
        row[q], column[q] = (local[e], least) if keeps else (least, local[e])
    return pointer, row, column, place, mirrored, absent


def entries_of_factor(
    plan: Plan, perm: np.ndarray, row_perm: np.ndarray, one_triangle: bool
) -> tuple[np.ndarray, np.ndarray, WantedEntries]:
    """Return the pattern of the inverse in all fronts, by columns, and its entries by fronts.

    Parameters
    ----------
    plan : Plan
    perm, row_perm : (n,) int32 arrays
        Row and column of the inverse at each position in elimination order.
    one_triangle : bool

    Returns
    -------
    indptr, indices : arrays
        In the numbering of A; indices are not sorted inside of columns.
    wanted : WantedEntries
    """
    indptr, indices, *wanted = _entries_of_factor(plan, perm, row_perm, one_triangle)
    return indptr, indices, WantedEntries(*wanted)


@jit
def _entries_of_factor(plan, perm, row_perm, one_triangle):
    indptr, pointer = np.zeros(perm.size + 1, np.int64), np.zeros(plan.start.size, np.int64)
    for s in range(plan.parent.size):
        k, m = np.int64(plan.start[s + 1] - plan.start[s]), plan.pointer[s + 1] - plan.pointer[s]
        pointer[s + 1] = pointer[s] + k * (k + 2 * m)
        for j in range(plan.start[s], plan.start[s + 1]):
            indptr[row_perm[j] + 1] += k + m
        for p in range(plan.pointer[s], plan.pointer[s + 1]):
            indptr[row_perm[plan.rows[p]] + 1] += k
    for j in range(perm.size):
        indptr[j + 1] += indptr[j]
    cursor, total = indptr[:-1].copy(), pointer[-1]
    indices, row, column = np.empty((3, total), np.int32)
    place, mirrored = np.empty(total, np.int64), np.empty(total, np.bool_)
    for s in range(plan.parent.size):
        first, q = plan.start[s], pointer[s]
        k, m = plan.start[s + 1] - first, plan.pointer[s + 1] - plan.pointer[s]
        for j in range(k + m):
            at_j = row_perm[first + j if j < k else plan.rows[plan.pointer[s] + j - k]]
            for i in range(k + m if j < k else k):
                above = one_triangle and i < j
                row[q], column[q] = (j, i) if above else (i, j)
                place[q], mirrored[q] = cursor[at_j], above
                indices[cursor[at_j]] = perm[
                    first + i if i < k else plan.rows[plan.pointer[s] + i - k]
                ]
                cursor[at_j] += 1
                q += 1
    return indptr, indices, pointer, row, column, place, mirrored


@jit
def needed_fronts(plan, wanted):
    """Return a state for each front: `SKIPPED`, `LAST` or `GATHERED`.

    A front is computed if it or a front below it has wanted entries.
    """
    states = np.zeros(plan.parent.size, np.int8)
    for s in range(plan.parent.size):
        if states[s] == SKIPPED and wanted.pointer[s] < wanted.pointer[s + 1]:
            states[s] = LAST
        if states[s] != SKIPPED and plan.parent[s] >= 0:
            states[plan.parent[s]] = GATHERED
    return states


@inner
def copy_entries(wanted, s, a, begin, ld, conjugate, out):
    """Copy the wanted entries of front s, whose inverse begins at a[begin], to `out`."""
    for q in range(wanted.pointer[s], wanted.pointer[s + 1]):
        x = a[begin + wanted.row[q] + np.int64(wanted.column[q]) * ld]
        out[wanted.place[q]] = np.conj(x) if conjugate and wanted.mirrored[q] else x
