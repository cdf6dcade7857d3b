"""A plan with delayed columns in the fronts that eliminated them.

In a numeric phase, a front may lack acceptable pivots for columns, which its parent or another
ancestor then eliminates. With other values of the same pattern these columns are likely to be
delayed again. A plan that assigns them to the later front from the start needs no delays.
The fronts are computed without the pattern of A: the rows of each front are its previous rows and
the columns and rows that passed through it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..compile.jit import inner, jit
from ..ordering.etree import inverse
from .phase import Symbolic
from .plan import FrontArrays, Permuted, make_plan
from .supernodes import TILE


class Elimination(NamedTuple):
    """The columns that each front eliminated, by their positions in the previous plan.

    Attributes
    ----------
    counts : (f,) int32 array
        Number of columns that each front eliminated.
    columns, rows : (n,) int32 arrays
        The eliminated columns and rows, front by front; equal for a method of one triangle.
    late_pointer : (f + 1,) int64 array
        Extent of each front's columns in `late_columns`.
    late_columns, late_rows : int32 arrays
        Columns and rows that each front delayed to its parent, of its own and of its children.
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
    """Return new numbers of the fronts that eliminate columns, and the parents of these fronts."""
    fronts = parent.size
    front = np.full(fronts, -1, np.int32)
    above = np.empty(fronts, np.int32)
    number = 0
    for s in range(fronts):
        if count[s] > 0:
            front[s] = number
            number += 1
    tree = np.full(number, -1, np.int32)
    for s in range(fronts - 1, -1, -1):  # parents first; `above`: nearest remaining ancestor
        p = parent[s]
        above[s] = -1 if p < 0 else front[p] if front[p] >= 0 else above[p]
        if front[s] >= 0:
            tree[front[s]] = above[s]
    return front, tree


@inner
def _append(column, row, f, mark, scratch, size):
    """Append the positions of a column and a row to a front's rows, unless marked; count them."""
    for q in (column, row):
        if mark[q] != f:
            mark[q] = f
            scratch[size] = q
            size += 1
    return size


@jit
def _new_front_rows(fronts, outcome, front, column, row, out):
    """Write ascending rows of the fronts to `out`; return their extents."""
    n, late = column.size, outcome.late_pointer
    pointer = np.zeros(np.sum(front >= 0) + 1, np.int64)
    mark, scratch = np.full(n, -1, np.int32), np.empty(n, np.int32)
    for s in range(front.size):
        f = front[s]
        if f < 0:
            continue
        size = 0
        for p in range(fronts.pointer[s], fronts.pointer[s + 1]):
            i = fronts.rows[p]
            size = _append(column[i], row[i], f, mark, scratch, size)
        for p in range(late[s], late[s + 1]):
            i, j = outcome.late_rows[p], outcome.late_columns[p]
            size = _append(column[j], row[i], f, mark, scratch, size)
        pointer[f + 1] = pointer[f] + size
        out[pointer[f] : pointer[f + 1]] = np.sort(scratch[:size])
    return pointer


def renumber(symbolic: Symbolic, outcome: Elimination) -> Renumbered:
    """Return the fronts of a symbolic phase after an elimination."""
    plan = symbolic.plan
    front, tree = _renumber(plan.parent, outcome.counts)
    start = np.zeros(tree.size + 1, np.int32)
    np.cumsum(outcome.counts[outcome.counts > 0], out=start[1:])
    column, row = inverse(outcome.columns), inverse(outcome.rows)
    old = FrontArrays(plan.start, plan.parent, plan.pointer, plan.rows)
    most = plan.rows.size * (1 if symbolic.method.one_triangle else 2) + outcome.late_rows.size * 2
    rows = np.empty(most, np.int32)
    pointer = _new_front_rows(old, outcome, front, column, row, rows)
    return Renumbered(front, start, tree, pointer, rows[: pointer[-1]].copy(), column, row)


def _tiles_behind(symbolic: Symbolic) -> np.ndarray:
    """Return, for each column, the number of later tiles of pivots in its front."""
    start = symbolic.plan.start
    k = np.diff(start)
    offset = np.arange(symbolic.n) - np.repeat(start[:-1], k)
    return np.repeat((k - 1) // TILE, k) - offset // TILE


def movable(symbolic: Symbolic, columns: np.ndarray) -> np.ndarray:
    """Return the columns, by position, whose front has a parent or later tiles of pivots."""
    if not columns.size:  # the usual case; the code below processes all columns
        return columns
    front = _front_of_columns(symbolic)[columns]
    return columns[(symbolic.plan.parent[front] >= 0) | (_tiles_behind(symbolic)[columns] > 0)]


def delay_to_parent(
    symbolic: Symbolic, failed: np.ndarray, rows: np.ndarray | None = None
) -> Symbolic:
    """Return the symbolic phase with failed columns eliminated later.

    If pivots are sought within tiles, failed columns move to the end of their fronts, so that
    updates from other columns complete them before their own tile is factorized. Columns of the
    last tile move to the end of the parent front.

    Parameters
    ----------
    symbolic : Symbolic
    failed : int array
        Positions of the columns.
    rows : int array, optional
        For LU: for each column a row of the same tile that moves along; default: the column's row.
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
        )  # equally many in each tile
        beside[extra_columns], beside[extra_rows] = extra_rows, extra_columns
    taker = np.where(leaves, plan.parent[front], front)
    return _arranged(symbolic, taker, late, leaves, beside)


def place_delayed_last(symbolic: Symbolic, before: Symbolic) -> Symbolic:
    """Return the symbolic phase with columns last in their front if it is not their front before.

    This is for LU with pivots sought within tiles; see `delay_to_parent`. Fronts of one tile stay
    unchanged.
    """
    position = inverse(before.perm)[symbolic.perm]
    old, front = _front_of_columns(before)[position], _front_of_columns(symbolic)
    latest = np.maximum.reduceat(old, symbolic.plan.start[:-1])  # smaller: delayed columns
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
    """Return the symbolic phase in which front ``taker[j]`` has column j; `late` columns last.

    Row ``beside[j]`` moves with column j.
    """
    n, start = symbolic.n, symbolic.plan.start
    columns = np.lexsort((np.arange(n), late, taker)).astype(np.int32)
    counts = np.bincount(taker, minlength=start.size - 1).astype(np.int32)
    gone = np.flatnonzero(leaves).astype(np.int32)
    pointer = np.searchsorted(gone, start).astype(np.int64)
    outcome = Elimination(counts, columns, beside[columns], pointer, gone, beside[gone])
    return replan_delayed(symbolic, outcome, renumber(symbolic, outcome))


def replan_delayed(symbolic: Symbolic, outcome: Elimination, new: Renumbered) -> Symbolic:
    """Return the symbolic phase with the fronts `new`, the result of `renumber`."""
    perm = symbolic.perm[outcome.columns]
    row_perm = symbolic.row_perm[outcome.rows]
    matrix = Permuted(symbolic.indptr, symbolic.indices, perm, inverse(row_perm))
    fronts = FrontArrays(new.start, new.parent, new.pointer, new.rows)
    plan = make_plan(matrix, symbolic.method, fronts)
    return replace(symbolic, perm=perm, row_perm=row_perm, plan=plan)
