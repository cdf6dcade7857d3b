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
        The inverses of fronts: column-major, of order k + m.
    block : (f,) int64 array
        Offset of each inverse in the arena.
    scratch : array of the scalar type
        Two pivot blocks, then two blocks below pivot blocks.
    below : int
        Offset of the first block below a pivot block in `scratch`.
    wanted : WantedEntries
    values : array of the scalar type
        Receives the wanted entries.
    info : (1,) int32 array
        As LAPACK's.
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
    scratch: np.ndarray
    below: int
    wanted: WantedEntries
    values: np.ndarray
    info: np.ndarray
    two_panels: bool
    unit: bool
    indefinite: bool
    conjugate: bool


class FrontPlace(NamedTuple):
    """A front: pivot columns k, update rows m, first column, offsets of panel and inverse."""

    k: np.int64
    m: np.int64
    first: np.int64
    panel: np.int64
    inverse: np.int64


@inner
def place_of(work, s):
    """Return the `FrontPlace` of front s."""
    plan = work.plan
    first = np.int64(plan.start[s])
    k, m = plan.start[s + 1] - first, np.int64(plan.pointer[s + 1] - plan.pointer[s])
    return FrontPlace(k, m, first, np.int64(work.panel[s]), np.int64(work.block[s]))
