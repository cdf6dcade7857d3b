"""The numeric factorization: every front assembled and factorized, children before parents.

The leader walks the assembly tree: subtrees first, as tiles of one phase, then the fronts above
them in order, each large one as phases of tiles. Tiles depend on sizes alone, never on the number
of threads, so any number of threads gives the same bits.
"""

from __future__ import annotations

import numpy as np

from .._jit import inner, jit
from ..method import CHOLESKY, LU
from . import cholesky, lu
from .assembly import Work, add_entries, block_offset, shape
from .blas import yield_thread
from .constants import by_method
from .team import (
    ASSEMBLE,
    BLOCK,
    DONE,
    FAILURE,
    FRONT,
    INTERRUPT,
    KIND,
    NO_FAILURE,
    PANEL,
    PERTURBED,
    PROGRESS,
    QUIT,
    SOLVE,
    STEP,
    SUBTREES,
    UPDATE,
    UPPER_PANEL,
    WEAK,
    claim,
    close_phase,
    fetch_add,
    fetch_min,
    finish_tile,
    load,
    open_phase,
)

_NO_STEP = np.int64(0)
_ALONE, _TOGETHER = np.array([False, True])
_TILE = np.int64(256)  # rows and columns of a tile of a large front
_LARGE = 640  # fronts of this order and above are tiled

_run_tile = by_method(cholesky=cholesky.run_tile, lu=lu.run_tile)
_factor_diagonal_block = by_method(
    cholesky=cholesky.factor_diagonal_block, lu=lu.factor_diagonal_block
)
_eliminate_carefully = by_method(cholesky=cholesky.eliminate_carefully, lu=lu.eliminate_carefully)


@inner
def _tile_size(work, s):
    """Rows and columns of a tile of front s: all of a small one."""
    k, m = shape(work, s)
    return _TILE if k + m >= _LARGE else k + m


@inner
def _tiles(work, order, size):
    """Tiles of a square block: the lower triangle, or all."""
    tiles = (order + size - 1) // size
    return tiles * (tiles + 1) // 2 if work.method.one_triangle else tiles * tiles


@inner
def _run_phase(work, kind, s, step, tiles, size, own, shared):
    """All tiles of a phase, with the team's help if `shared`; returns as `_run_tile`."""
    good = True
    if not shared or tiles <= 1:
        for tile in range(tiles):
            good &= _run_tile(work, kind, s, step, tile, size, own)
        return good
    state = work.state
    open_phase(state, kind, s, step, tiles)
    while True:
        tile = claim(state)
        if tile < 0:
            break
        good &= _run_tile(work, kind, s, step, tile, size, own)
        finish_tile(state)
    while load(state, DONE) < tiles:
        yield_thread(work.routines)
    close_phase(state)
    weak = load(state, WEAK)
    fetch_add(state, WEAK, -weak)
    return good and weak == 0


@inner
def _assemble_front(work, s, own, shared):
    k, m = shape(work, s)
    size = _tile_size(work, s)
    tiles = (k + m + size - 1) // size
    _run_phase(work, ASSEMBLE, s, _NO_STEP, tiles, size, own, shared)
    add_entries(work, s)


@inner
def _eliminate(work, s, own, shared, info):
    """Factor the first k columns of front s, L21 included.

    Returns False if that fails: for Cholesky info[0] then is the column, from 1, whose pivot is not
    positive; for LU a pivot is zero or too small for its column.
    """
    k, m = shape(work, s)
    size = _tile_size(work, s)
    width = lu.BLOCK if work.method.pivots else cholesky.BLOCK
    for step in range(0, k, width):
        if not _factor_diagonal_block(work, s, step, info):
            return False
        if step + width < k:
            order = k - step - width
            tiles = (order + size - 1) // size
            _run_phase(work, SOLVE, s, step, tiles, size, own, shared)
            _run_phase(work, UPDATE, s, step, _tiles(work, order, size), size, own, shared)
    tiles = (m + size - 1) // size
    return _run_phase(work, PANEL, s, _NO_STEP, tiles, size, own, shared)


@inner
def _factor_front(work, s, own, shared, info):
    """Assemble and factor front s.

    Returns False if a pivot of Cholesky is not positive; its column in the front, from 1, is then
    in info[0].
    """
    k, m = shape(work, s)
    size = _tile_size(work, s)
    shared = shared and k + m >= _LARGE
    _assemble_front(work, s, own, shared)
    fetch_add(work.state, PROGRESS, 1)
    if work.method.one_triangle and k * (k + m) <= cholesky.SMALL:
        clear = work.plan.child_pointer[s + 1] == work.plan.child_pointer[s]
        block, origin = block_offset(work, s, own), work.panel[s]
        info[0] = cholesky.factor_small(work.panels, origin, k, m, work.arena, block, clear)
        return info[0] == 0
    if not _eliminate(work, s, own, shared, info):
        if not work.method.pivots:
            return False
        _assemble_front(work, s, own, shared)
        fetch_add(work.state, PERTURBED, _eliminate_carefully(work, s))
    if m > 0:
        if work.method.panels == 2:
            tiles = (m + size - 1) // size
            _run_phase(work, UPPER_PANEL, s, _NO_STEP, tiles, size, own, shared)
        _run_phase(work, BLOCK, s, _NO_STEP, _tiles(work, m, size), size, own, shared)
    return True


@inner
def _report(work, s, info):
    """Record the column of A that failed, from 1; the first one of all threads counts."""
    fetch_min(work.state, FAILURE, np.int64(info[0] + work.plan.start[s]))


@inner
def _take_part(work, low, root, top, leader, own, info):
    """See `run`."""
    state = work.state
    if leader:
        open_phase(state, SUBTREES, _NO_STEP, _NO_STEP, root.size)
    while leader or load(state, QUIT) == 0:
        tile = claim(state)
        if tile < 0:
            if leader:
                break  # the other threads have the rest
            yield_thread(work.routines)
            continue
        if state[KIND] == SUBTREES:
            for s in range(np.int64(low[tile]), np.int64(root[tile]) + 1):
                if load(state, INTERRUPT) != 0:
                    break
                if not _factor_front(work, s, own, _ALONE, info):
                    _report(work, s, info)
                    break
        else:
            kind, s, step = state[KIND], state[FRONT], state[STEP]
            if not _run_tile(work, kind, s, step, tile, _TILE, own):
                fetch_add(state, WEAK, 1)
        finish_tile(state)
    if not leader:
        return
    while load(state, DONE) < root.size:
        yield_thread(work.routines)
    close_phase(state)
    for i in range(top.size):
        if load(state, FAILURE) != NO_FAILURE or load(state, INTERRUPT) != 0:
            break
        s = np.int64(top[i])
        if not _factor_front(work, s, own, _TOGETHER, info):
            _report(work, s, info)
    fetch_add(state, QUIT, 1)


@inner
def _work(method, rest):
    return Work(method, *rest)


@jit
def _run_cholesky(rest, low, root, top, leader, own, info):
    _take_part(_work(CHOLESKY, rest), low, root, top, leader, own, info)


@jit
def _run_lu(rest, low, root, top, leader, own, info):
    _take_part(_work(LU, rest), low, root, top, leader, own, info)


_RUN = {CHOLESKY: _run_cholesky, LU: _run_lu}


def run(
    work: Work,
    low: np.ndarray,
    root: np.ndarray,
    top: np.ndarray,
    leader: bool,
    own: int,
    info: np.ndarray,
) -> None:
    """One thread's part of a factorization; the leader's is all that nobody else takes.

    Parameters
    ----------
    work : Work
    low, root, top : int32 arrays
        The cut of `layout.split_subtrees`.
    leader : bool
        Exactly one thread leads. Helpers may join at any time, and end with the leader.
    own : int
        Where this thread's part of the arena begins.
    info : (1,) int32 array
        For LAPACK.
    """
    _RUN[work.method](work[1:], low, root, top, leader, own, info)
