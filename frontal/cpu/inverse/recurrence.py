"""The selected inverse: entries of Z = A^-1 in the pattern of L + U, from the roots down.

Takahashi, Fagan, Chin (1973); Erisman, Tinney, "On computing certain elements of the inverse of a
sparse matrix", Communications of the ACM 18 (1975); by fronts as in Lin, Yang, Meza, Lu, Ying, E,
"SelInv", ACM TOMS 37 (2011). It takes twice the operations of the factorization.

The leader computes the fronts above all subtrees, large ones as phases of tiles, then subtrees are
tiles of one phase. Tiles, and thus all bits, depend on front sizes only.
"""

from __future__ import annotations

import numpy as np

from ...compile.atomics import fetch_add, load
from ...compile.jit import inner, jit
from ...compile.tile_queue import (
    DONE,
    FRONT,
    KIND,
    QUIT,
    claim,
    close_phase,
    finish_tile,
    open_phase,
)
from ..blas import yield_thread
from ..by_reference import keep_alive, reference
from ..shared_state import BLOCK, INTERRUPT, SOLVE, SUBTREES, UPDATE
from .entries import SKIPPED, copy_entries
from .front import interchange, run_tile
from .workspace import place_of

_TILE = np.int64(256)  # rows or columns of a tile of a large front
_MIN_TILED_ORDER = 640  # smallest k + m of a front that is tiled
_NO_STEP = np.int64(0)
_ALONE, _TOGETHER = np.array([False, True])


@inner
def _wait(work, tiles):
    """Wait until all tiles of the open phase are done, then close it."""
    while load(work.state, DONE) < tiles:
        yield_thread(work.routines)
    close_phase(work.state)


@inner
def _run_phase(work, kind, s, order, rank, shared):
    """Run all tiles of a phase of front s, with the team if `shared`."""
    place = place_of(work, s, rank)
    size = _TILE if place.ld >= _MIN_TILED_ORDER else max(place.ld, np.int64(1))
    tiles = (order + size - 1) // size
    if not shared or tiles <= 1:
        for tile in range(tiles):
            run_tile(work, kind, s, tile, size, rank)
        return
    open_phase(work.state, kind, s, _NO_STEP, tiles)
    while True:
        tile = claim(work.state)
        if tile < 0:
            break
        run_tile(work, kind, s, tile, size, rank)
        finish_tile(work.state)
    _wait(work, tiles)


@inner
def _invert_front(work, s, rank, shared):
    """Compute the inverse of front s, unless it is not needed, and copy its wanted entries."""
    if work.states[s] == SKIPPED:
        return
    place = place_of(work, s, rank)
    if place.m > 0:
        _run_phase(work, SOLVE, s, place.m, rank, shared)
        _run_phase(work, UPDATE, s, place.m, rank, shared)
    _run_phase(work, BLOCK, s, place.k, rank, shared)
    if work.unit:
        interchange(work, s, place)
    copy_entries(
        work.wanted, s, work.arena, place.inverse, place.ld, work.conjugate, work.values
    )  # fmt: skip


@inner
def _work_on_tiles(work, low, root, leader, rank):
    """Work on tiles of open phases; the leader returns when no tile of the subtrees is left."""
    state = work.state
    while leader or load(state, QUIT) == 0:
        tile = claim(state)
        if tile < 0:
            if leader:
                return
            yield_thread(work.routines)
            continue
        if state[KIND] == SUBTREES:
            for s in range(np.int64(root[tile]), np.int64(low[tile]) - 1, -1):
                if load(state, INTERRUPT) != 0:
                    break
                _invert_front(work, s, rank, _ALONE)
        else:
            run_tile(work, state[KIND], state[FRONT], tile, _TILE, np.int64(0))
        finish_tile(state)


@jit
def run(fields, low, root, top, leader, rank):
    """Run one thread's work on an `InverseWorkspace`.

    Parameters
    ----------
    fields : InverseWorkspace
    low, root, top : int32 arrays
        See `InverseLayout`.
    leader : bool
        Exactly one thread leads. Helpers may join at any time, and end with the leader.
    rank : int
        Number of this thread; the leader has 0.
    """
    work = reference(fields)
    if leader:
        for i in range(top.size - 1, -1, -1):
            if load(work.state, INTERRUPT) != 0:
                break
            _invert_front(work, np.int64(top[i]), rank, _TOGETHER)
        open_phase(work.state, SUBTREES, _NO_STEP, _NO_STEP, root.size)
    _work_on_tiles(work, low, root, leader, rank)
    if leader:
        _wait(work, root.size)
        fetch_add(work.state, QUIT, 1)
    keep_alive(fields)
