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
