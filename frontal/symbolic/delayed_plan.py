"""A plan in which columns belong to the fronts that could eliminate them.

A numeric phase may find that a front has no sound pivots for some of its columns, which its parent
or an ancestor eliminates in its place. For other values of the pattern these are likely to fail
there again, and a plan in which they belong to the later front from the beginning needs no exchange
any more. It is made without a look at the pattern of A: the rows of each front are those that it
had, and the columns that went through it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..compile.jit import jit
from ..ordering.etree import inverse
from .phase import Symbolic
from .plan import make_plan
from .supernodes import TILE


class Elimination(NamedTuple):
    """Which front eliminated which columns; named by their positions in the plan before.

    Attributes
    ----------
    counts : (f,) int32 array
        Columns that each front eliminated.
    columns, rows : (n,) int32 arrays
        They, and as many rows, front by front; the same for a method of one triangle.
    late_pointer : (f + 1,) int64 array
        Extent of each front's columns in `late_columns`.
    late_columns, late_rows : int32 arrays
        Columns and rows that each front had to leave to its parent, its own and its children's.
    """

    counts: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    late_pointer: np.ndarray
    late_columns: np.ndarray
    late_rows: np.ndarray


class Renumbered(NamedTuple):
    """Fronts after an `Elimination`.

    Attributes
    ----------
    front : (f,) int32 array
        New number of each front, -1 for one that eliminates nothing.
    start, parent, pointer, rows
        As in `Plan`.
    column, row : (n,) int32 arrays
        New position of each column and of each row.
    """

    front: np.ndarray
    start: np.ndarray
    parent: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    column: np.ndarray
    row: np.ndarray


@jit
def _renumber(parent, count):
    """New numbers of the fronts that eliminate something, and their parents."""
    fronts = parent.size
    front = np.full(fronts, -1, np.int32)
    above = np.empty(fronts, np.int32)
    number = 0
    for s in range(fronts):
        if count[s] > 0:
            front[s] = number
            number += 1
    tree = np.full(number, -1, np.int32)
    for s in range(fronts - 1, -1, -1):  # parents first: the nearest one that is left
        p = parent[s]
        above[s] = -1 if p < 0 else front[p] if front[p] >= 0 else above[p]
        if front[s] >= 0:
            tree[front[s]] = above[s]
    return front, tree


@jit
def _new_front_rows(plan_pointer, plan_rows, outcome, column, row, start, front, scratch, out):
    """Ascending rows of the fronts, in `out` where there is room; returns their extents."""
    pointer = np.zeros(start.size, np.int64)
    mark = np.full(column.size, -1, np.int32)
    for s in range(front.size):
        f = front[s]
        if f < 0:
            continue
        size = 0
        for p in range(plan_pointer[s], plan_pointer[s + 1]):
            for q in (column[plan_rows[p]], row[plan_rows[p]]):
                if mark[q] != f:
                    mark[q] = f
                    scratch[size] = q
                    size += 1
        for p in range(outcome.late_pointer[s], outcome.late_pointer[s + 1]):
            for q in (column[outcome.late_columns[p]], row[outcome.late_rows[p]]):
                if mark[q] != f:
                    mark[q] = f
                    scratch[size] = q
                    size += 1
        pointer[f + 1] = pointer[f] + size
        if out.size >= pointer[f + 1]:
            out[pointer[f] : pointer[f + 1]] = np.sort(scratch[:size])
    return pointer


def renumber(symbolic: Symbolic, outcome: Elimination) -> Renumbered:
    """The fronts of an analysis after an outcome."""
    plan, n = symbolic.plan, symbolic.n
    front, tree = _renumber(plan.parent, outcome.counts)
    start = np.zeros(tree.size + 1, np.int32)
    np.cumsum(outcome.counts[outcome.counts > 0], out=start[1:])
    column, row = inverse(outcome.columns), inverse(outcome.rows)
    args = plan.pointer, plan.rows, outcome, column, row, start, front, np.empty(n, np.int32)
    pointer = _new_front_rows(*args, np.empty(0, np.int32))
    rows = np.empty(int(pointer[-1]), np.int32)
    _new_front_rows(*args, rows)
    return Renumbered(front, start, tree, pointer, rows, column, row)


def _tiles_behind(symbolic: Symbolic) -> np.ndarray:
    """Of each column, how many tiles of pivots its front has behind that of the column."""
    start = symbolic.plan.start
    k = np.diff(start)
    offset = np.arange(symbolic.n) - np.repeat(start[:-1], k)
    return np.repeat((k - 1) // TILE, k) - offset // TILE


def movable(symbolic: Symbolic, columns: np.ndarray) -> np.ndarray:
    """Those of some columns, by position, whose front has a parent, or tiles behind theirs."""
    if not columns.size:  # as most often: what follows looks at all columns
        return columns
    front = _front_of_columns(symbolic)[columns]
    return columns[(symbolic.plan.parent[front] >= 0) | (_tiles_behind(symbolic)[columns] > 0)]


def delay_to_parent(
    symbolic: Symbolic, failed: np.ndarray, rows: np.ndarray | None = None
) -> Symbolic:
    """The symbolic phase in which columns are eliminated later.

    Where pivots are sought in tiles, they come last in their fronts: all that others add to them is
    then in their own tile. Those that are in the last tile already belong to the parent of their
    front, and come last there.

    Parameters
    ----------
    symbolic : Symbolic
    failed : int array
        Positions of the columns.
    rows : int array, optional
        Of LU: a row of the same tile for each of them, that goes along; its own if not given.
    """
    plan, late = symbolic.plan, np.zeros(symbolic.n, np.bool_)
    late[movable(symbolic, failed)] = True
    front = _front_of_columns(symbolic)
    leaves = late & (plan.parent[front] >= 0) & (_tiles_behind(symbolic) == 0)
    beside = np.arange(symbolic.n, dtype=np.int32)
    if rows is not None:
        moved, rows = failed[late[failed]], rows[late[failed]]
        extra_columns, extra_rows = (
            np.setdiff1d(moved, rows),
            np.setdiff1d(rows, moved),
        )  # as many in each tile
        beside[extra_columns], beside[extra_rows] = extra_rows, extra_columns
    taker = np.where(leaves, plan.parent[front], front)
    return _arranged(symbolic, taker, late, leaves, beside)


def place_delayed_last(symbolic: Symbolic, before: Symbolic) -> Symbolic:
    """The symbolic phase in which columns come last in fronts that were not theirs before.

    It is for pivots of LU that are sought in tiles; see `delay_to_parent`. Fronts of one tile stay.
    """
    position = inverse(before.perm)[symbolic.perm]
    old, front = _front_of_columns(before)[position], _front_of_columns(symbolic)
    latest = np.maximum.reduceat(old, symbolic.plan.start[:-1])  # others come from below
    late = (old != latest[front]) & (np.diff(symbolic.plan.start)[front] > TILE)
    beside = np.arange(symbolic.n, dtype=np.int32)
    none = np.zeros_like(late)
    return _arranged(symbolic, front, late, none, beside) if late.any() else symbolic


def _front_of_columns(symbolic: Symbolic) -> np.ndarray:
    plan = symbolic.plan
    return np.repeat(np.arange(plan.parent.size), np.diff(plan.start))


def _arranged(
    symbolic: Symbolic,
    taker: np.ndarray,
    late: np.ndarray,
    leaves: np.ndarray,
    beside: np.ndarray,
) -> Symbolic:
    """The symbolic phase in which fronts have the columns that they take, `late` ones last.

    Rows go where the columns go that they are `beside`.
    """
    n, start = symbolic.n, symbolic.plan.start
    columns = np.lexsort((np.arange(n), late, taker)).astype(np.int32)
    counts = np.bincount(taker, minlength=start.size - 1).astype(np.int32)
    gone = np.flatnonzero(leaves).astype(np.int32)
    pointer = np.searchsorted(gone, start).astype(np.int64)
    outcome = Elimination(counts, columns, beside[columns], pointer, gone, beside[gone])
    return replan_delayed(symbolic, outcome, renumber(symbolic, outcome))


def replan_delayed(symbolic: Symbolic, outcome: Elimination, new: Renumbered) -> Symbolic:
    """The symbolic phase with the fronts of an outcome.

    Parameters
    ----------
    symbolic : Symbolic
    outcome : Elimination
    new : Renumbered
        Of these.
    """
    perm = symbolic.perm[outcome.columns]
    row_perm = symbolic.row_perm[outcome.rows]
    fronts = new.start, new.parent, new.pointer, new.rows
    args = symbolic.indptr, symbolic.indices, perm, inverse(row_perm), symbolic.method
    return replace(symbolic, perm=perm, row_perm=row_perm, plan=make_plan(*args, *fronts))
