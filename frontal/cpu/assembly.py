"""Assembly of a front: entries of A and the contribution blocks of its children."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..compile.jit import inner
from ..matrix.csc import first_from
from ..numeric.method import Method
from ..symbolic.plan import Plan
from .axpy import add, add_row, add_scattered, clear
from .blas import Routines
from .shared_state import PERTURBED, REPLACED_BEFORE_SCHUR

MAX_LEAF_COLUMNS, MAX_LEAF_ROWS = 2, 32  # of a leaf without a contribution block


class Delays(NamedTuple):
    """Delayed columns, which have no stable pivot in their front and move to its parent.

    Columns (and for LU rows) are named by their positions in the elimination order of the plan.

    Attributes
    ----------
    received : (f,) int32 array
        Number of columns that each front receives from its children; they precede its own.
    eliminated : (f,) int32 array
        Number of columns that each front eliminates, first in its final order; it delays the rest.
    listed : (f,) int64 array
        Offset in `names` of the names of a front's columns, followed for LU by those of its rows;
        -1 for a front that eliminates exactly its own columns, in their order except for the
        interchanges in `HostWorkspace.pivots`.
    names : int32 array
        Names of columns and rows; ~name if the pivot is null.
    allowed : bool
        Whether columns are delayed; else their pivots are replaced.
    """

    received: np.ndarray
    eliminated: np.ndarray
    listed: np.ndarray
    names: np.ndarray
    allowed: bool


class HostWorkspace(NamedTuple):
    """All data that a factorization reads and writes.

    Attributes
    ----------
    method : Method
        Compiled code is specialized on it.
    plan : Plan
    routines : Routines
    values : array of the scalar type
        Entries of A, in the order of the canonical matrix.
    panels : array of the scalar type
        The panels of all fronts, then storage for those of fronts that receive columns.
    pivots : (n,) int32 array
        Row interchanges, local to each front; for LDL^H the order of its columns. Empty for a
        method without pivots.
    arena : array of the scalar type
        Contribution blocks: a part shared by all threads, then one part for each thread.
    panel : (f + 1,) int64 array
        See `HostLayout`; other offsets for fronts that receive columns.
    block, local, shared, per_thread
        See `HostLayout`.
    scratch, turn : array of the scalar type, int32 array
        Scratch of each thread, one part after the other.
    scratch_size : int
        Entries of a thread's part of `scratch`.
    delays : Delays
    signs : (n,) int8 array
        Signs of D in elimination order, for a method with known signs; 0 for unknown ones.
    schur : (k * k,) array of the scalar type
        On return the last front before its elimination, by columns, if it is the Schur complement
        of the others; else empty.
    state : int64 array
        Shared words of the team, see `shared_state`.
    """

    method: Method
    plan: Plan
    routines: Routines
    values: np.ndarray
    panels: np.ndarray
    pivots: np.ndarray
    arena: np.ndarray
    panel: np.ndarray
    block: np.ndarray
    local: np.ndarray
    shared: int
    per_thread: int
    scratch: np.ndarray
    turn: np.ndarray
    scratch_size: int
    delays: Delays
    signs: np.ndarray
    schur: np.ndarray
    state: np.ndarray


@inner
def shape(work, s):
    """Return pivot columns k, received ones included, and update rows m of front s."""
    plan = work.plan
    k = np.int64(plan.start[s + 1] - plan.start[s])
    if work.method.pivots:
        k += work.delays.received[s]
    return k, plan.pointer[s + 1] - plan.pointer[s]


@inner
def is_schur_root(work, s):
    """Return whether front s is the Schur complement of all others."""
    return work.schur.size > 0 and s == work.plan.parent.size - 1


@inner
def is_below_schur(work, s):
    """Return whether front s must eliminate all its columns before the Schur complement."""
    last = work.plan.parent.size - 1
    if work.schur.size == 0 or s == last:
        return False
    return work.plan.parent[s] < 0 or work.plan.parent[s] == last


@inner
def copy_schur(work, s):
    """Copy the assembled front s to the Schur complement."""
    k = np.int64(work.plan.start[s + 1] - work.plan.start[s])
    panel = work.panel[s]
    for j in range(k):
        for i in range(j if work.method.one_triangle else 0, k):
            work.schur[j * k + i] = work.panels[panel + j * k + i]
    work.state[REPLACED_BEFORE_SCHUR] = work.state[PERTURBED]


@inner
def received_columns(work, s):
    """Return the number of columns that front s receives from its children."""
    return np.int64(work.delays.received[s]) if work.method.pivots else np.int64(0)


@inner
def block_offset(work, s, rank):
    """Return the offset in the arena of the block of front s, on which thread `rank` works."""
    return work.block[s] + (work.shared + rank * work.per_thread if work.local[s] else 0)


@inner
def add_column(out, base, relative, first, source, origin):
    """Compute out[base + relative[i]] += source[origin + i] for i >= first; relative ascends."""
    size = relative.size
    if size == first:
        return
    shift = relative[first] - first
    if relative[size - 1] - (size - 1) == shift:  # consecutive rows
        add(out, base + shift + first, source, origin + first, size - first)
    else:
        add_scattered(out, base, relative, first, source, origin)


@inner
def _extend_add(work, s, c, low, high, rank):
    """Add child c's contribution block to columns [low, high) of front s."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    behind = received_columns(work, s)  # received columns precede those of the plan
    panel = work.panel[s] + behind
    upper = work.panel[s] + k * (k + m) + behind * m
    block = block_offset(work, s, rank) - k * m - k + behind
    relative = plan.relative[plan.pointer[c] : plan.pointer[c + 1]]
    size = relative.size
    origin = block_offset(work, c, rank)
    inner = first_from(relative, 0, size, k - behind)  # rows before it are pivot rows of s
    for j in range(first_from(relative, 0, size, low - behind), size):
        column = np.int64(relative[j]) + behind
        if column >= high:
            break
        above = j if work.method.one_triangle else 0
        if column < k:
            add_column(panels, panel + column * (k + m), relative, above, arena, origin + j * size)
            continue
        if not work.method.one_triangle:
            add_row(panels, upper + column - k, m, relative, inner, arena, origin + j * size)
            above = inner
        add_column(arena, block + column * m, relative, above, arena, origin + j * size)


@inner
def is_leaf(work, s):
    """Return whether front s has one or two pivot columns, few update rows and no children.

    Such leaves have no contribution block: the assembly of their parent computes it from their
    columns. A hub of a network has thousands of them.
    """
    plan = work.plan
    k = plan.start[s + 1] - plan.start[s]
    if not work.method.one_triangle or k == 0 or k > MAX_LEAF_COLUMNS:
        return False
    childless = plan.child_pointer[s] == plan.child_pointer[s + 1]
    return childless and plan.pointer[s + 1] - plan.pointer[s] <= MAX_LEAF_ROWS


@inner
def assemble_leaf(work, s):
    """Set the columns of a leaf to their entries of A."""
    plan, panels, values = work.plan, work.panels, work.values
    panel, k = work.panel[s], np.int64(plan.start[s + 1] - plan.start[s])
    ld = k + plan.pointer[s + 1] - plan.pointer[s]
    clear(panels, panel, k * ld)
    for e in range(plan.entry_pointer[s], plan.entry_pointer[s + 1]):
        panels[panel + plan.column[e] * ld + plan.row[e]] += values[plan.source[e]]


@inner
def _add_product(work, s, c, low, high, rank):
    """Add the contribution of leaf c, -L D L^H, to columns [low, high) of front s."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    kc, done = np.int64(plan.start[c + 1] - plan.start[c]), np.int64(0)
    done = np.int64(work.delays.eliminated[c]) if work.method.pivots else kc
    behind = received_columns(work, s)
    panel, block = work.panel[s] + behind, block_offset(work, s, rank) - k * m - k + behind
    at, last = np.uint64(plan.pointer[c]), np.uint64(plan.pointer[c + 1])
    corner, ld = work.panel[c], kc + plan.pointer[c + 1] - plan.pointer[c]
    source = np.uint64(corner + kc) - at
    second = source + np.uint64(ld if done > 1 else 0)
    for q in range(at, last if done > 0 else at):
        column = np.int64(plan.relative[q]) + behind
        if column < low or column >= high:
            continue
        x, y = panels[source + q], panels[second + q]
        if work.method.indefinite:
            x, y = _times_pivots(work.method, panels, corner, ld, done, x, y)
        if work.method.adjoint:
            x, y = np.conj(x), np.conj(y)
        columns = panels, q, last, source, second, done, x, y
        if column < k:
            _subtract_scattered(panels, panel + column * (k + m), plan.relative, *columns)
        else:
            _subtract_scattered(arena, block + column * m, plan.relative, *columns)


@inner
def _times_pivots(method, a, corner, ld, done, x, y):
    """Return (x, y) D for the one or two pivots of a leaf, whose panel begins at a[corner]."""
    if done < 2:
        return x * a[corner], y
    d, last, b = a[corner], a[corner + ld + 1], a[corner + ld]
    if b == 0:
        return x * d, y * last
    upper = np.conj(b) if method.adjoint else b
    return x * d + y * b, x * upper + y * last


@inner
def _subtract_scattered(out, base, places, b, first, last, source, second, done, x, y):
    """Subtract columns of b times x and y from out[base + places[q]], first <= q < last."""
    base = np.uint64(base)
    if done < 2:
        for q in range(first, last):
            out[base + np.uint64(places[q])] -= b[source + q] * x
    else:
        for q in range(first, last):
            out[base + np.uint64(places[q])] -= b[source + q] * x + b[second + q] * y


@inner
def assemble(work, s, tile, size, rank):
    """Set columns of front s, `size` from tile * size on, to the sum of its children's blocks."""
    plan, panels, arena = work.plan, work.panels, work.arena
    k, m = shape(work, s)
    low, high = tile * size, min((tile + 1) * size, k + m)
    first, last = plan.child_pointer[s], plan.child_pointer[s + 1]
    panel = work.panel[s]
    clear(panels, panel + min(low, k) * (k + m), (min(high, k) - min(low, k)) * (k + m))
    if not work.method.one_triangle and high > k:
        upper = panel + k * (k + m) - k
        for i in range(k):
            clear(panels, upper + i * m + max(low, k), high - max(low, k))
    if last > first:
        block = block_offset(work, s, rank) - k * m - k
        for j in range(max(low, k), high):
            top = j if work.method.one_triangle else k
            clear(arena, block + j * m + top, k + m - top)
    for p in range(first, last):
        c = np.int64(plan.children[p])
        if is_leaf(work, c):
            _add_product(work, s, c, low, high, rank)
        else:
            _extend_add(work, s, c, low, high, rank)


@inner
def add_entries(work, s):
    """Add the entries of A that front s owns to its panels."""
    plan, panels, values = work.plan, work.panels, work.values
    k, m = shape(work, s)
    behind = received_columns(work, s)
    panel = work.panel[s]
    first, last = plan.entry_pointer[s], plan.entry_pointer[s + 1]
    source, row, column = plan.source[first:last], plan.row[first:last], plan.column[first:last]
    for e in range(last - first):
        i, j = np.int64(row[e]) + behind, np.int64(column[e]) + behind
        where = panel + j * (k + m) + i
        if not work.method.one_triangle and j >= k:  # U12 is stored transposed
            where = panel + k * (k + m) - k + i * m + j
        panels[where] += values[source[e]]
