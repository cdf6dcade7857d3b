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
def _run_tile(work, kind, s, step, tile, size, own, pivots, failed):
    """One tile of a phase of front s."""
    plan, routines = work.plan, work.routines
    k, m = _shape(plan, s)
    item = work.factor.itemsize
    if kind == _ASSEMBLE:
        assemble(work, s, tile * size, min((tile + 1) * size, k + m), own, pivots)
        return
    panel = address(work.factor) + plan.panel[s] * item
    block = address(work.arena) + block_offset(work, s, own) * item
    beta = ONE if plan.child_pointer[s + 1] > plan.child_pointer[s] else ZERO
    if failed is not None:
        if kind == _SOLVE:
            cholesky.solve_below(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _UPDATE:
            cholesky.update_below(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _PANEL:
            cholesky.solve_panel(routines, panel, k, m, tile, size, item)
        else:
            cholesky.update_block(routines, panel, k, m, tile, size, item, beta, block)
    if pivots is not None:
        if kind == _SOLVE:
            lu.solve_right(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _UPDATE:
            lu.update_below(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _PANEL:
            own_pivots = pivots[plan.start[s] : plan.start[s + 1]]
            lu.solve_panel(routines, work.factor, plan.panel[s], k, m, tile, size, item, own_pivots)
        else:
            lu.update_block(routines, panel, k, m, tile, size, item, beta, block)


@inner
def _run_phase(work, kind, s, step, tiles, size, own, shared, pivots, failed):
    """All tiles of a phase, with the team's help if `shared`."""
    if not shared or tiles <= 1:
        for tile in range(tiles):
            _run_tile(work, kind, s, step, tile, size, own, pivots, failed)
        return
    open_phase(work.state, kind, s, step, tiles)
    while True:
        tile = claim(work.state)
        if tile < 0:
            break
        _run_tile(work, kind, s, step, tile, size, own, pivots, failed)
        finish_tile(work.state)
    while load(work.state, DONE) < tiles:
        yield_thread(work.routines)
    close_phase(work.state)


@inner
def _factor_columns(work, s, step, pivots, tiny, scratch, failed):
    """Factor the diagonal block of front s at column `step`; return as `_factor_front`."""
    plan, routines = work.plan, work.routines
    k, m = _shape(plan, s)
    item = work.factor.itemsize
    if failed is not None:
        panel = address(work.factor) + plan.panel[s] * item
        cholesky.factor_diagonal_block(routines, panel, k + m, step, k, item, failed)
        cholesky.refuse_nan(work.factor, plan.panel[s], k + m, step, k, failed)
        return failed[0] == 0
    if pivots is not None:
        own_pivots = pivots[plan.start[s] : plan.start[s + 1]]
        origin, ld = plan.panel[s], k + m
        perturbed = lu.factor_diagonal_block(
            routines, work.factor, origin, ld, step, k, item, own_pivots, tiny, scratch
        )
        fetch_add(work.state, PERTURBED, perturbed)
    return True


@inner
def _factor_front(work, s, own, shared, pivots, tiny, scratch, failed):
    """Assemble and factor front s.

    Returns False if a pivot of Cholesky is not positive; its column in the front, from 1, is then
    in failed[0].
    """
    plan = work.plan
    k, m = _shape(plan, s)
    large = k + m >= _LARGE
    size = _TILE if large else k + m
    shared = shared and large
    tiles = (k + m + size - 1) // size
    _run_phase(work, _ASSEMBLE, s, _NO_STEP, tiles, size, own, shared, pivots, failed)
    add_entries(work, s)
    fetch_add(work.state, PROGRESS, 1)
    if failed is not None and k * (k + m) <= cholesky.SMALL:
        clear = plan.child_pointer[s + 1] == plan.child_pointer[s]
        block = block_offset(work, s, own)
        origin = plan.panel[s]
        failed[0] = cholesky.factor_small(work.factor, origin, k, m, work.arena, block, clear)
        return failed[0] == 0
    width = cholesky.BLOCK if pivots is None else lu.BLOCK
    for step in range(0, k, width):
        if not _factor_columns(work, s, step, pivots, tiny, scratch, failed):
            if failed is not None:
                failed[0] += step
            return False
        if step + width < k:
            tiles = (k - step - width + size - 1) // size
            _run_phase(work, _SOLVE, s, step, tiles, size, own, shared, pivots, failed)
            tiles = tiles * (tiles + 1) // 2 if pivots is None else tiles * tiles
            _run_phase(work, _UPDATE, s, step, tiles, size, own, shared, pivots, failed)
    if m > 0:
        tiles = (m + size - 1) // size
        halves = 1 if pivots is None else 2
        _run_phase(work, _PANEL, s, _NO_STEP, halves * tiles, size, own, shared, pivots, failed)
        tiles = tiles * (tiles + 1) // 2 if pivots is None else tiles * tiles
        _run_phase(work, _BLOCK, s, _NO_STEP, tiles, size, own, shared, pivots, failed)
    return True


@inner
def _report(work, s, failed):
    """Record the column of A that failed, from 1; the first one of all threads counts."""
    if failed is not None:
        fetch_min(work.state, FAILURE, np.int64(failed[0] + work.plan.start[s]))


@jit
def run(work, low, root, top, leader, own, pivots, tiny, scratch, failed):
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
    scratch : tuple or None
        For LU: an array of the scalar type, ``lu.BLOCK`` times the most pivot columns of a front,
        and a (1,) int32 array for LAPACK.
    failed : (1,) int32 array or None
        For Cholesky. Since one of `pivots` and `failed` is None, only one method is compiled.
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
                if not _factor_front(work, s, own, _ALONE, pivots, tiny, scratch, failed):
                    _report(work, s, failed)
                    break
        else:
            _run_tile(
                work, state[KIND], state[FRONT], state[STEP], tile, _TILE, own, pivots, failed
            )
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
        if not _factor_front(work, s, own, _TOGETHER, pivots, tiny, scratch, failed):
            _report(work, s, failed)
    fetch_add(state, QUIT, 1)
