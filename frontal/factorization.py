"""The numeric factorization: every front assembled and factorized, children before parents.

The leader walks the assembly tree: subtrees first, as tiles of one phase, then the fronts above
them in order, each large one as phases of tiles. Tiles depend on sizes alone, never on the number
of threads, so any number of threads gives the same bits.
"""

from __future__ import annotations

import numpy as np

from . import cholesky, lu
from ._jit import inner, jit
from .assembly import add_entries, assemble, block_offset
from .blas import ONE, ZERO, address, yield_thread
from .team import (
    DONE,
    FAILURE,
    FRONT,
    INTERRUPT,
    KIND,
    NO_FAILURE,
    PERTURBED,
    PROGRESS,
    QUIT,
    STEP,
    claim,
    close_phase,
    fetch_add,
    fetch_min,
    finish_tile,
    load,
    open_phase,
)

_SUBTREES, _ASSEMBLE, _SOLVE, _UPDATE, _PANEL, _BLOCK = np.arange(6)
_NO_STEP = np.int64(0)
_ALONE, _TOGETHER = np.array([False, True])
_TILE = np.int64(256)  # rows and columns of a tile of a large front
_LARGE = 640  # fronts of this order and above are tiled


@inner
def _shape(plan, s):
    """Pivot columns k and update rows m of front s."""
    return np.int64(plan.start[s + 1] - plan.start[s]), plan.pointer[s + 1] - plan.pointer[s]


@inner
def _run_tile(work, kind, s, step, tile, size, own, pivots):
    """One tile of a phase of front s."""
    plan, routines = work.plan, work.routines
    k, m = _shape(plan, s)
    item = work.factor.itemsize
    if kind == _ASSEMBLE:
        assemble(work, s, tile * size, min((tile + 1) * size, k + m), own, pivots)
        return
    panel = address(work.factor) + plan.panel[s] * item
    if kind == _BLOCK:
        has_children = plan.child_pointer[s + 1] > plan.child_pointer[s]
        beta = ONE if has_children else ZERO
        block = address(work.arena) + block_offset(work, s, own) * item
        if pivots is None:
            cholesky.update_block(routines, panel, k, m, tile, size, item, beta, block)
        else:
            lu.update_block(routines, panel, k, m, tile, size, item, beta, block)
    elif pivots is None:
        if kind == _SOLVE:
            cholesky.solve_below(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _UPDATE:
            cholesky.update_below(routines, panel, k + m, step, k, tile, size, item)
        else:
            cholesky.solve_panel(routines, panel, k, m, tile, size, item)
    elif kind == _SOLVE:
        lu.solve_right(routines, panel, k + m, step, k, tile, size, item)
    elif kind == _UPDATE:
        lu.update_below(routines, panel, k + m, step, k, tile, size, item)
    else:
        own_pivots = pivots[plan.start[s] : plan.start[s + 1]]
        lu.solve_panel(routines, work.factor, plan.panel[s], k, m, tile, size, item, own_pivots)


@inner
def _run_phase(work, kind, s, step, tiles, size, own, shared, pivots):
    """All tiles of a phase, with the team's help if `shared`."""
    if not shared or tiles <= 1:
        for tile in range(tiles):
            _run_tile(work, kind, s, step, tile, size, own, pivots)
        return
    open_phase(work.state, kind, s, step, tiles)
    while True:
        tile = claim(work.state)
        if tile < 0:
            break
        _run_tile(work, kind, s, step, tile, size, own, pivots)
        finish_tile(work.state)
    while load(work.state, DONE) < tiles:
        yield_thread(work.routines)
    close_phase(work.state)


@inner
def _factor_front(work, s, own, shared, pivots, tiny, scratch, info):
    """Assemble and factor front s; return False if a pivot of Cholesky is not positive."""
    plan, routines = work.plan, work.routines
    k, m = _shape(plan, s)
    item = work.factor.itemsize
    large = k + m >= _LARGE
    size = _TILE if large else k + m
    shared = shared and large
    _run_phase(work, _ASSEMBLE, s, _NO_STEP, (k + m + size - 1) // size, size, own, shared, pivots)
    add_entries(work, s)
    ld = k + m
    panel = address(work.factor) + plan.panel[s] * item
    width = cholesky.BLOCK if pivots is None else lu.BLOCK
    for step in range(0, k, width):
        if pivots is None:
            cholesky.factor_diagonal_block(routines, panel, ld, step, k, item, info)
            if info[0] != 0:
                info[0] += plan.start[s] + step
                return False
        else:
            own_pivots = pivots[plan.start[s] : plan.start[s + 1]]
            perturbed = lu.factor_diagonal_block(
                routines,
                work.factor,
                plan.panel[s],
                ld,
                step,
                k,
                item,
                own_pivots,
                tiny,
                scratch,
                info,
            )
            if perturbed > 0:
                fetch_add(work.state, PERTURBED, perturbed)
        if step + width < k:
            tiles = (k - step - width + size - 1) // size
            _run_phase(work, _SOLVE, s, step, tiles, size, own, shared, pivots)
            tiles = tiles * (tiles + 1) // 2 if pivots is None else tiles * tiles
            _run_phase(work, _UPDATE, s, step, tiles, size, own, shared, pivots)
    if m > 0:
        tiles = (m + size - 1) // size
        halves = 1 if pivots is None else 2
        _run_phase(work, _PANEL, s, _NO_STEP, halves * tiles, size, own, shared, pivots)
        tiles = tiles * (tiles + 1) // 2 if pivots is None else tiles * tiles
        _run_phase(work, _BLOCK, s, _NO_STEP, tiles, size, own, shared, pivots)
    fetch_add(work.state, PROGRESS, 1)
    return True


@jit
def run(work, low, root, top, leader, own, pivots, tiny, scratch, info):
    """One thread's part of a factorization; the leader's is all that nobody else takes.

    Parameters
    ----------
    work : Work
    low, root, top : int32 arrays
        The cut of `plan.split_subtrees`.
    leader : bool
        Exactly one thread leads. Helpers may join at any time, and end with the leader.
    own : int
        Where this thread's part of the arena begins.
    pivots : (n,) int32 array or None
        Row interchanges of LU, local to each front; None for Cholesky.
    tiny : float
        Pivots of LU below this modulus are replaced.
    scratch : array of the scalar type
        ``lu.BLOCK`` times the most pivot columns of a front, for LU.
    info : (1,) int32 array
        For LAPACK.
    """
    state = work.state
    if leader:
        open_phase(state, _SUBTREES, _NO_STEP, _NO_STEP, root.size)
    while leader or load(state, QUIT) == 0:
        tile = claim(state)
        if tile < 0:
            if leader:
                break  # the other threads have the rest
            yield_thread(work.routines)
            continue
        if state[KIND] == _SUBTREES:
            for s in range(np.int64(low[tile]), np.int64(root[tile]) + 1):
                if load(state, INTERRUPT) != 0:
                    break
                if not _factor_front(work, s, own, _ALONE, pivots, tiny, scratch, info):
                    fetch_min(state, FAILURE, np.int64(info[0]))
                    break
        else:
            _run_tile(work, state[KIND], state[FRONT], state[STEP], tile, _TILE, own, pivots)
        finish_tile(state)
    if not leader:
        return
    while load(state, DONE) < root.size:
        yield_thread(work.routines)
    close_phase(state)
    for i in range(top.size):
        if load(state, FAILURE) != NO_FAILURE or load(state, INTERRUPT) != 0:
            break
        if not _factor_front(work, np.int64(top[i]), own, _TOGETHER, pivots, tiny, scratch, info):
            fetch_min(state, FAILURE, np.int64(info[0]))
    fetch_add(state, QUIT, 1)
