"""The numeric factorization of one system without delayed or replaced pivots.

There is no storage for delayed columns, and no pivot is replaced: a system that needs either is
`UNSURE` and left to the general path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile import tile_queue
from ...compile.jit import allocating, brief, inlined, inner
from ...matrix.norms import norms
from ...matrix.symmetry import slack_of
from ...numeric.thresholds import THRESHOLDS
from ...symbolic.matching import Matching
from ...symbolic.phase import Symbolic
from ...symbolic.scaling import UNEVEN, UNEVEN_BELOW, larger_part, scale_values
from .. import shared_state
from ..assembly import Delays, HostWorkspace
from ..factorize import work_on_fronts
from ..finalize import finalize_in_place
from ..ldl import front as ldl
from ..shared_state import CRAMPED, FAILURE, NO_FAILURE, PERTURBED
from ..signs import write_signs

_SYMMETRY = THRESHOLDS.symmetry
# Outcomes. A positive one is the failed column of Cholesky in elimination order, from 1.
ACCEPTED, UNSURE, NOT_FINITE = 0, -1, -2


class EntryPattern(NamedTuple):
    """Positions of entries and initial scaling, the same for all systems of one pattern.

    Attributes
    ----------
    indptr, indices : arrays
        The pattern by columns.
    row, column : (n,) float64 arrays
        Initial scaling.
    diagonal : (n,) int64 array
        Position of the diagonal entry of each column among the values, in elimination order; -1 if
        there is none.
    mirror : (nnz,) int64 array
        Position of the transposed entry, for a method of one triangle.
    place : (n,) int64 array
        Positions of the pivots in the panels.
    signs : int8 array
        Signs of the pivots in elimination order; (0,) if the diagonal of A has them.
    """

    indptr: np.ndarray
    indices: np.ndarray
    row: np.ndarray
    column: np.ndarray
    diagonal: np.ndarray
    mirror: np.ndarray
    place: np.ndarray
    signs: np.ndarray


class SystemArrays(NamedTuple):
    """The arrays of one system.

    Attributes
    ----------
    values : (nnz,) array
    subdiagonal : array
        See `HostFactor`.
    row, column : (n,) float64 arrays
        On return, the scaling; (0,) for a method without.
    statistics : (3,) float64 array
        On return, `Health.pivot_ratio`, the infinity norm and the 1-norm.
    """

    values: np.ndarray
    subdiagonal: np.ndarray
    row: np.ndarray
    column: np.ndarray
    statistics: np.ndarray


@inlined
def one_thread_workspace(method, plan, routines, layout, dtype):
    """Return the workspace of one thread, without values, panels and pivots, and without delays.

    `layout` has the fields `panel` and `block` of a `HostLayout` for one thread, and the entries of
    all contribution blocks.
    """
    panel, block, entries = layout
    fronts, nothing, no_columns = plan.parent.size, np.empty(0, dtype), np.empty(0, np.int32)
    some, scratch = fronts * method.pivots, ldl.SCRATCH_ENTRIES * method.indefinite
    received, eliminated = np.empty(some, np.int32), np.empty(some, np.int32)
    delays = Delays(received, eliminated, np.empty(some, np.int64), no_columns, True)
    return HostWorkspace(
        method, plan, routines, nothing, nothing, no_columns, np.empty(entries, dtype), panel,
        block, np.zeros(fronts, np.bool_), 0, 0, np.empty(scratch, dtype),
        np.empty(2 * ldl.BLOCK * method.indefinite, np.int32), scratch, delays,
        np.empty((plan.start[-1]) * method.signed, np.int8), nothing,
        np.empty(tile_queue.STATE_SIZE, np.int64),
    )  # fmt: skip


@inlined
def for_system(work, values, panels, pivots):
    """Return the workspace for the values, panels and pivots of a system."""
    return HostWorkspace(
        work.method, work.plan, work.routines, values, panels, pivots, work.arena, work.panel,
        work.block, work.local, work.shared, work.per_thread, work.scratch, work.turn,
        work.scratch_size, work.delays, work.signs, work.schur, work.state,
    )  # fmt: skip


@inner
def is_finite(values):
    good = True
    for p in range(values.size):
        good &= np.isfinite(values[p])
    return good


@allocating
def _suits(pattern, values, adjoint, roundings):
    """Return whether A is symmetric, or Hermitian if `adjoint`, up to `roundings` of each row."""
    mirror, exact = pattern.mirror, True
    for p in range(values.size):
        mirrored = values[mirror[p]]
        exact &= values[p] == (np.conj(mirrored) if adjoint else mirrored)
    if exact:
        return True
    indptr, indices = pattern.indptr, pattern.indices
    slack = slack_of(indptr, indices, values, roundings)
    for j in range(slack.size):
        for p in range(indptr[j], indptr[j + 1]):
            mirrored = values[mirror[p]]
            gap = np.float64(np.abs(values[p] - (np.conj(mirrored) if adjoint else mirrored)))
            if not gap <= min(slack[j], slack[indices[p]]):
                return False
    return True


@inner
def is_even(diagonal, scaled, eps):
    """Return whether few entries are far below 1 or no diagonal entry is tiny; see `scaling_of`."""
    small, tiny = 0, False
    for p in range(scaled.size):
        small += 0 < larger_part(scaled[p]) < UNEVEN_BELOW
    for j in range(diagonal.size):
        tiny |= diagonal[j] < 0 or larger_part(scaled[diagonal[j]]) < np.sqrt(eps)
    return not tiny or small <= UNEVEN * scaled.size


@inner
def _over_diagonal(method, panels, place, diagonal, values):
    """Return the least pivot, which Cholesky squares, over its diagonal entry of A."""
    least = np.float64(1)
    for j in range(place.size):
        pivot = np.float64(np.abs(panels[place[j]]))
        size = np.float64(np.abs(values[diagonal[j]])) if diagonal[j] >= 0 else np.float64(0)
        ratio = pivot / size if method.signed else pivot * pivot / size
        least = ratio if not ratio >= least else least
    return least


@inner
def _size_of_pair(d0, d1, b, adjoint):
    """Return an approximation of the smaller singular value of a pivot of order 2."""
    size = np.float64(max(np.abs(b), max(np.abs(d0), np.abs(d1))))
    upper = np.conj(b) if adjoint else b
    return np.float64(np.abs(d0 / size * d1 - b / size * upper))


@inner
def _over_largest(panels, place, coupling, adjoint):
    """Return the least pivot over the largest one."""
    least, largest, j = np.float64(np.inf), np.float64(0), 0
    while j < place.size:
        size = np.float64(np.abs(panels[place[j]]))
        step = 1
        if coupling.size and coupling[j] != 0:
            pair = panels[place[j]], panels[place[j + 1]], coupling[j]
            size, step = _size_of_pair(*pair, adjoint), 2
        least = size if not size >= least else least
        largest = size if size > largest else largest
        j += step
    return least / largest


@inner
def _renew(plan, delays, state, pivoting):
    """Reset delays and state for another system."""
    for i in range(state.size):
        state[i] = 0
    state[shared_state.FAILURE], state[shared_state.WEAK] = (
        NO_FAILURE,
        shared_state.NO_UNSTABLE_PIVOT,
    )
    state[tile_queue.WORD] = tile_queue.CLOSED
    if pivoting:
        for s in range(plan.parent.size):
            delays.received[s], delays.listed[s] = 0, -1
            delays.eliminated[s] = plan.start[s + 1] - plan.start[s]


@inner
def _has_moved_columns(plan, delays):
    """Return whether a front has not eliminated its own columns, in their order."""
    moved = False
    for s in range(plan.parent.size):
        planned = plan.start[s + 1] - plan.start[s]
        moved |= delays.eliminated[s] != planned or delays.listed[s] >= 0
    return moved


@allocating
def _outcome(work, pattern, system, null):
    """Return the outcome of a system whose fronts are factorized; see `factorize_system`."""
    method, plan, delays, state = work.method, work.plan, work.delays, work.state
    if state[FAILURE] != NO_FAILURE:
        return np.int64(UNSURE) if state[FAILURE] == CRAMPED else state[FAILURE]
    panels, coupling = work.panels, system.subdiagonal
    if method.pivots and (state[PERTURBED] > 0 or _has_moved_columns(plan, delays)):
        return np.int64(UNSURE)
    for j in range(coupling.size):
        coupling[j] = 0
    if method.pivots and method.indefinite:
        for j in range(null.size):
            null[j] = False
        finalize_in_place(plan, delays, work.panel, panels, work.pivots, coupling, null)
        for j in range(null.size):
            if null[j]:
                return np.int64(UNSURE)
    if method.pivots:
        ratio = _over_largest(panels, pattern.place, coupling, method.adjoint)
    else:
        diagonal = pattern.diagonal
        ratio = _over_diagonal(method, panels, pattern.place, diagonal, system.values)
    system.statistics[0] = ratio
    return np.int64(ACCEPTED if ratio >= np.sqrt(np.float64(work.routines.reals[3])) else UNSURE)


@allocating
def factorize_system(work, pattern, system, top, matched, null, info):
    """Factorize a system, and return its outcome.

    Parameters
    ----------
    work : HostWorkspace
        By reference, as the next two. A method that scales overwrites its `values`, (nnz,).
    pattern : EntryPattern
    system : SystemArrays
    top : int32 array
        See `HostLayout`; for one thread.
    matched : bool
        Whether the initial scaling is that of a matching. If not, the system is `UNSURE` unless
        `scaling_of` would accept the scaling by largest entries.
    null, info : (n,) bool and (1,) int32 arrays
        Scratch.

    Returns
    -------
    int64
        `ACCEPTED`, `UNSURE`, `NOT_FINITE`, or the column of Cholesky that fails, from 1.
    """
    method, values, statistics = work.method, system.values, system.statistics
    eps = np.float64(work.routines.reals[3])
    if not is_finite(values):
        return np.int64(NOT_FINITE)
    if method.one_triangle and not _suits(pattern, values, method.adjoint, _SYMMETRY * eps):
        return np.int64(UNSURE)
    statistics[1], statistics[2] = norms(pattern.indptr, pattern.indices, values)
    if not np.isfinite(statistics[1] + statistics[2]):
        return np.int64(UNSURE)
    if method.pivots:
        row, column, scaled = system.row, system.column, work.values
        for j in range(row.size):
            row[j], column[j] = pattern.row[j], pattern.column[j]
        if not scale_values(
            pattern.indptr, pattern.indices, values, row, column, method.one_triangle, scaled
        ):
            return np.int64(UNSURE)
        if not (matched or is_even(pattern.diagonal, scaled, eps)):
            return np.int64(UNSURE)
    if method.signed:
        write_signs(pattern.diagonal, values, pattern.signs, work.signs)
    _renew(work.plan, work.delays, work.state, method.pivots)
    work.state[shared_state.PANELS_END] = work.panels.size
    work_on_fronts(work, top[:0], top[:0], top, True, np.int64(0), info)
    return _outcome(work, pattern, system, null)


def pattern_of(symbolic: Symbolic, matching: Matching | None, panel: np.ndarray) -> EntryPattern:
    """Return the `EntryPattern` of a symbolic phase, for `panel`, the offsets of the panels."""
    n, plan, method = symbolic.n, symbolic.plan, symbolic.method
    row = column = np.ones(n)
    if matching is not None:
        row, column = (np.array(a, np.float64) for a in (matching.row_scale, matching.col_scale))
    return EntryPattern(
        symbolic.indptr,
        symbolic.indices,
        row,
        column,
        symbolic.diagonal_places,
        symbolic.by_rows[2] if method.one_triangle else np.empty(0, np.int64),
        _pivot_places(plan.start, plan.pointer, panel),
        symbolic.signs,
    )


@brief
def _pivot_places(start, pointer, panel):
    """Return the positions of the diagonals of all fronts in the panels."""
    places = np.empty(start[-1], np.int64)
    for s in range(start.size - 1):
        ld = start[s + 1] - start[s] + pointer[s + 1] - pointer[s]
        for j in range(start[s], start[s + 1]):
            places[j] = panel[s] + (j - start[s]) * (ld + 1)
    return places
