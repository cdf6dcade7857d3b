"""The numeric factorization: every front assembled and factorized, children before parents.

The leader walks the assembly tree: subtrees first, as tiles of one phase, then the fronts above
in order, large ones as phases of tiles. Tiles, and thus all bits, depend on front sizes only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..compile.atomics import fetch_add, fetch_min, load
from ..compile.jit import inner, jit
from ..compile.tile_queue import (
    DONE,
    FRONT,
    KIND,
    QUIT,
    STEP,
    claim,
    close_phase,
    finish_tile,
    open_phase,
)
from ..numeric.method import CHOLESKY, LDLH, LDLT, LU, SIGNED_LDLH, Method
from .assembly import HostWorkspace, assemble_leaf, copy_schur, is_leaf, is_schur_root, shape
from .blas import yield_thread
from .by_reference import reference
from .cholesky import front as cholesky
from .eliminate import (
    ALONE,
    MIN_TILED_ORDER,
    NO_STEP,
    TILE,
    TOGETHER,
    assemble_front,
    eliminate_front,
    eliminate_leaf,
    factor_small,
    receive_delayed,
    run_phase,
    run_tile,
    tile_count,
    tile_size,
)
from .shared_state import (
    BLOCK,
    CRAMPED,
    FAILURE,
    INTERRUPT,
    NO_FAILURE,
    NO_UNSTABLE_PIVOT,
    PROGRESS,
    SUBTREES,
    UPPER_PANEL,
    WEAK,
)


@inner
def _factor_front(work, s, rank, shared, info):
    """Assemble and factor front s.

    Return False if a pivot of Cholesky is not positive; info[0] is then its column in the front,
    from 1. For other methods, return False if the delayed columns of children do not fit; if
    info[0] is negative, if the front lacks pivots that no Schur complement can have.
    """
    if is_leaf(work, s):
        assemble_leaf(work, s)
        fetch_add(work.state, PROGRESS, 1)
        if is_schur_root(work, s):
            copy_schur(work, s)
        done = eliminate_leaf(work, s, info)
        return done or (work.method.pivots and eliminate_front(work, s, rank, ALONE, info))
    if not receive_delayed(work, s):
        return False
    k, m = shape(work, s)
    size = tile_size(work, s)
    shared = shared and k + m >= MIN_TILED_ORDER
    assemble_front(work, s, rank, shared)
    if is_schur_root(work, s):
        copy_schur(work, s)
    fetch_add(work.state, PROGRESS, 1)
    if work.method.square_root and k + m <= cholesky.MAX_LOOP_ROWS:
        info[0] = factor_small(work, s, rank)
        return info[0] == 0
    if not eliminate_front(work, s, rank, shared, info):
        return False
    if m > 0:
        if work.method.panels == 2:
            tiles = (m + size - 1) // size
            run_phase(work, UPPER_PANEL, s, NO_STEP, tiles, size, rank, shared)
        run_phase(work, BLOCK, s, NO_STEP, tile_count(work, m, size), size, rank, shared)
    return True


@inner
def _report(work, s, info):
    """Record the failed column of A, from 1, `CRAMPED`, or ~s; keep the least of all threads."""
    column = np.int64(CRAMPED if work.method.pivots else info[0] + work.plan.start[s])
    if work.method.pivots and info[0] < 0:
        column, info[0] = ~np.int64(s), 0
    fetch_min(work.state, FAILURE, column)


@inner
def work_on_fronts(work, low, root, top, leader, rank, info):
    """See `run`."""
    state = work.state
    if leader:
        open_phase(state, SUBTREES, NO_STEP, NO_STEP, root.size)
    while leader or load(state, QUIT) == 0:
        tile = claim(state)
        if tile < 0:
            if leader:
                break  # other threads work on the remaining tiles
            yield_thread(work.routines)
            continue
        if state[KIND] == SUBTREES:
            for s in range(np.int64(low[tile]), np.int64(root[tile]) + 1):
                if load(state, INTERRUPT) != 0:
                    break
                if not _factor_front(work, s, rank, ALONE, info):
                    _report(work, s, info)
                    break
        else:
            kind, s, step = state[KIND], state[FRONT], state[STEP]
            good = run_tile(work, kind, s, step, tile, TILE, rank)
            if good < NO_UNSTABLE_PIVOT:
                fetch_min(state, WEAK, good)
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
        if not _factor_front(work, s, rank, TOGETHER, info):
            _report(work, s, info)
    fetch_add(state, QUIT, 1)


@jit
def _run_cholesky(rest, low, root, top, leader, rank, info):
    work = HostWorkspace(CHOLESKY, *rest)
    work_on_fronts(reference(work), low, root, top, leader, rank, info)


@jit
def _run_lu(rest, low, root, top, leader, rank, info):
    work = HostWorkspace(LU, *rest)
    work_on_fronts(reference(work), low, root, top, leader, rank, info)


@jit
def _run_ldlt(rest, low, root, top, leader, rank, info):
    work = HostWorkspace(LDLT, *rest)
    work_on_fronts(reference(work), low, root, top, leader, rank, info)


@jit
def _run_ldlh(rest, low, root, top, leader, rank, info):
    work = HostWorkspace(LDLH, *rest)
    work_on_fronts(reference(work), low, root, top, leader, rank, info)


@jit
def _run_signed(rest, low, root, top, leader, rank, info):
    work = HostWorkspace(SIGNED_LDLH, *rest)
    work_on_fronts(reference(work), low, root, top, leader, rank, info)


_RUN: dict[Method, Callable[..., None]] = {
    CHOLESKY: _run_cholesky,
    LU: _run_lu,
    LDLT: _run_ldlt,
    LDLH: _run_ldlh,
    SIGNED_LDLH: _run_signed,
}


def run(
    work: HostWorkspace,
    low: np.ndarray,
    root: np.ndarray,
    top: np.ndarray,
    leader: bool,
    rank: int,
    info: np.ndarray,
) -> None:
    """Run one thread's part of a factorization; the leader runs all tiles that no helper claims.

    Parameters
    ----------
    work : HostWorkspace
    low, root, top : int32 arrays
        The cut of `split_subtrees`.
    leader : bool
        Exactly one thread leads. Helpers may join at any time, and end with the leader.
    rank : int
        Number of this thread; the leader has 0.
    info : (1,) int32 array
    """
    _RUN[work.method](work[1:], low, root, top, leader, rank, info)
