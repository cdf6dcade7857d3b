"""Data of the recurrence that computes entries of an inverse, and the place of a front in it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import inner
from ...symbolic.plan import Plan
from ..blas import Routines
from .entries import WantedEntries


class InverseWorkspace(NamedTuple):
    """All data that the recurrence reads and writes.

    Attributes
    ----------
    plan : Plan
    routines : Routines
    panels, pivots, subdiagonal : arrays
        See `HostFactor`.
    panel : (f + 1,) int64 array
        Offset of each front's panels.
    arena : array of the scalar type
        The inverses of fronts, column-major of order k + m: the shared arena, then one for each
        thread.
    block, local, shared, per_thread
        See `InverseLayout`.
    scratch : array of the scalar type
        Scratch of each thread, one after the other.
    scratch_size : int
        Entries of a thread's scratch: two small pivot blocks, then Y and, for LU, V of `front`.
    states : (f,) int8 array
        See `needed_fronts`.
    wanted : WantedEntries
    values : array of the scalar type
        Receives the wanted entries.
    state : int64 array
        Shared words of the team, see `shared_state`.
    two_panels, unit, indefinite, conjugate : bool
        Properties of the method; `unit` if L has a unit diagonal, `conjugate` if the other
        triangle of the inverse is the adjoint and not the transpose.
    """

    plan: Plan
    routines: Routines
    panels: np.ndarray
    pivots: np.ndarray
    subdiagonal: np.ndarray
    panel: np.ndarray
    arena: np.ndarray
    block: np.ndarray
    local: np.ndarray
    shared: int
    per_thread: int
    scratch: np.ndarray
    scratch_size: int
    states: np.ndarray
    wanted: WantedEntries
    values: np.ndarray
    state: np.ndarray
    two_panels: bool
    unit: bool
    indefinite: bool
    conjugate: bool


MAX_LOOP_COLUMNS = 16  # largest k of a front whose pivot block is inverted in loops
PIVOT_SCRATCH = 2 * MAX_LOOP_COLUMNS**2  # entries of two such pivot blocks


class FrontPlace(NamedTuple):
    """The place of a front.

    Attributes
    ----------
    k, m, ld : int
        Pivot columns, update rows, and their sum.
    first : int
        First pivot column.
    panel, inverse, scratch, y : int
        Offsets of the panel, of the inverse, and of scratch for pivot blocks and for Y.
    """

    k: np.int64
    m: np.int64
    ld: np.int64
    first: np.int64
    panel: np.int64
    inverse: np.int64
    scratch: np.int64
    y: np.int64


@inner
def inverse_offset(work, s, rank):
    """Return the offset in the arena of the inverse of front s, on which thread `rank` works."""
    return work.block[s] + (work.shared + rank * work.per_thread if work.local[s] else 0)


@inner
def place_of(work, s, rank):
    """Return the `FrontPlace` of front s, on which thread `rank` works, or a team with its leader.

    The scratch of a team is that of its leader.
    """
    plan = work.plan
    first = np.int64(plan.start[s])
    k, m = np.int64(plan.start[s + 1] - first), np.int64(plan.pointer[s + 1] - plan.pointer[s])
    scratch = np.int64(rank * work.scratch_size if work.local[s] else 0)
    inverse = np.int64(inverse_offset(work, s, rank))
    panel = np.int64(work.panel[s])
    return FrontPlace(k, m, k + m, first, panel, inverse, scratch, scratch + PIVOT_SCRATCH)
