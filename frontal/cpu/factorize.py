"""The numeric factorization: every front assembled and factorized, children before parents.

The leader walks the assembly tree: subtrees first, as tiles of one phase, then the fronts above
them in order, each large one as phases of tiles. Tiles depend on sizes alone, never on the number
of threads, so any number of threads gives the same bits.
"""

from __future__ import annotations

import numpy as np

from .._jit import inner, jit
from . import cholesky, lu
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
    WEAK,
    claim,
    close_phase,
    fetch_add,
    fetch_min,
    finish_tile,
    load,
    open_phase,
)

_SUBTREES, _ASSEMBLE, _SOLVE, _UPDATE, _PANEL, _UPPER, _BLOCK = np.arange(7)
_NO_STEP = np.int64(0)
_ALONE, _TOGETHER = np.array([False, True])
_TILE = np.int64(256)  # rows and columns of a tile of a large front
_LARGE = 640  # fronts of this order and above are tiled


@inner
def _shape(plan, s):
    """Pivot columns k and update rows m of front s."""
    return np.int64(plan.start[s + 1] - plan.start[s]), plan.pointer[s + 1] - plan.pointer[s]


@inner
def _tile_size(plan, s):
    """Rows and columns of a tile of front s: all of a small one."""
    k, m = _shape(plan, s)
    return _TILE if k + m >= _LARGE else k + m


@inner
def _run_tile(work, kind, s, step, tile, size, own, pivots, tiny):
    """One tile of a phase of front s; returns whether its pivots bear it, see `lu.solve_lower`."""
    plan, routines = work.plan, work.routines
    k, m = _shape(plan, s)
    item = work.factor.itemsize
    if kind == _ASSEMBLE:
        assemble(work, s, tile * size, min((tile + 1) * size, k + m), own, pivots)
        return True
    origin = plan.panel[s]
    panel = address(work.factor) + origin * item
    block = address(work.arena) + block_offset(work, s, own) * item
    beta = ONE if plan.child_pointer[s + 1] > plan.child_pointer[s] else ZERO
    if pivots is None:
        if kind == _SOLVE:
            cholesky.solve_below(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _UPDATE:
            cholesky.update_below(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _PANEL:
            cholesky.solve_panel(routines, panel, k, m, tile, size, item)
        else:
            cholesky.update_block(routines, panel, k, m, tile, size, item, beta, block)
    else:
        if kind == _SOLVE:
            lu.solve_right(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _UPDATE:
            lu.update_below(routines, panel, k + m, step, k, tile, size, item)
        elif kind == _PANEL:
            return lu.solve_lower(routines, work.factor, origin, k, m, tile, size, item, tiny)
        elif kind == _UPPER:
            own_pivots = pivots[plan.start[s] : plan.start[s + 1]]
            lu.solve_upper(routines, work.factor, origin, k, m, tile, size, item, own_pivots)
        else:
            lu.update_block(routines, panel, k, m, tile, size, item, beta, block)
    return True


@inner
def _run_phase(work, kind, s, step, tiles, size, own, shared, pivots, tiny):
    """All tiles of a phase, with the team's help if `shared`; returns as `_run_tile`."""
    good = True
    if not shared or tiles <= 1:
        for tile in range(tiles):
            good &= _run_tile(work, kind, s, step, tile, size, own, pivots, tiny)
        return good
    state = work.state
    open_phase(state, kind, s, step, tiles)
    while True:
        tile = claim(state)
        if tile < 0:
            break
        good &= _run_tile(work, kind, s, step, tile, size, own, pivots, tiny)
        finish_tile(state)
    while load(state, DONE) < tiles:
        yield_thread(work.routines)
    close_phase(state)
    weak = load(state, WEAK)
    fetch_add(state, WEAK, -weak)
    return good and weak == 0


@inner
def _factor_columns(work, s, step, pivots, info):
    """Factor the diagonal block of front s at column `step`; return as `_eliminate`."""
    plan, routines = work.plan, work.routines
    k, m = _shape(plan, s)
    item = work.factor.itemsize
    origin = plan.panel[s]
    if pivots is None:
        panel = address(work.factor) + origin * item
        cholesky.factor_diagonal_block(routines, panel, k + m, step, k, item, info)
        cholesky.refuse_nan(work.factor, origin, k + m, step, k, info)
        info[0] += step * (info[0] != 0)
        return info[0] == 0
    own_pivots = pivots[plan.start[s] : plan.start[s + 1]]
    return lu.factor_diagonal_block(
        routines, work.factor, origin, k + m, step, k, item, own_pivots, info
    )


@inner
def _assemble_front(work, s, own, shared, pivots, tiny):
    k, m = _shape(work.plan, s)
    size = _tile_size(work.plan, s)
    tiles = (k + m + size - 1) // size
    _run_phase(work, _ASSEMBLE, s, _NO_STEP, tiles, size, own, shared, pivots, tiny)
    add_entries(work, s)


@inner
def _eliminate(work, s, own, shared, pivots, tiny, info):
    """Factor the first k columns of front s, L21 included.

    Returns False if that fails: for Cholesky info[0] then is the column, from 1, whose pivot is not
    positive; for LU a pivot is zero or too small for its column.
    """
    k, m = _shape(work.plan, s)
    size = _tile_size(work.plan, s)
    width = cholesky.BLOCK if pivots is None else lu.BLOCK
    for step in range(0, k, width):
        if not _factor_columns(work, s, step, pivots, info):
            return False
        if step + width < k:
            tiles = (k - step - width + size - 1) // size
            _run_phase(work, _SOLVE, s, step, tiles, size, own, shared, pivots, tiny)
            tiles = tiles * (tiles + 1) // 2 if pivots is None else tiles * tiles
            _run_phase(work, _UPDATE, s, step, tiles, size, own, shared, pivots, tiny)
    tiles = (m + size - 1) // size
    return _run_phase(work, _PANEL, s, _NO_STEP, tiles, size, own, shared, pivots, tiny)


@inner
def _factor_front(work, s, own, shared, pivots, tiny, info):
    """Assemble and factor front s.

    Returns False if a pivot of Cholesky is not positive; its column in the front, from 1, is then
    in info[0].
    """
    plan = work.plan
    k, m = _shape(plan, s)
    size = _tile_size(plan, s)
    shared = shared and k + m >= _LARGE
    _assemble_front(work, s, own, shared, pivots, tiny)
    fetch_add(work.state, PROGRESS, 1)
    if pivots is None and k * (k + m) <= cholesky.SMALL:
        clear = plan.child_pointer[s + 1] == plan.child_pointer[s]
        block = block_offset(work, s, own)
        origin = plan.panel[s]
        info[0] = cholesky.factor_small(work.factor, origin, k, m, work.arena, block, clear)
        return info[0] == 0
    if not _eliminate(work, s, own, shared, pivots, tiny, info):
        if pivots is None:
            return False
        _assemble_front(work, s, own, shared, pivots, tiny)
        own_pivots = pivots[plan.start[s] : plan.start[s + 1]]
        replaced = lu.eliminate_carefully(
            work.routines, work.factor, plan.panel[s], k, m, work.factor.itemsize, own_pivots, tiny
        )
        fetch_add(work.state, PERTURBED, replaced)
    if m > 0:
        tiles = (m + size - 1) // size
        if pivots is not None:
            _run_phase(work, _UPPER, s, _NO_STEP, tiles, size, own, shared, pivots, tiny)
        tiles = tiles * (tiles + 1) // 2 if pivots is None else tiles * tiles
        _run_phase(work, _BLOCK, s, _NO_STEP, tiles, size, own, shared, pivots, tiny)
    return True


@inner
def _report(work, s, info):
    """Record the column of A that failed, from 1; the first one of all threads counts."""
    fetch_min(work.state, FAILURE, np.int64(info[0] + work.plan.start[s]))


@jit
def run(work, low, root, top, leader, own, pivots, tiny, info):
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
        Row interchanges of LU, local to each front; None for Cholesky, so that one method alone is
        compiled.
    tiny : float
        LU replaces pivots that are less than this of their columns.
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
                if not _factor_front(work, s, own, _ALONE, pivots, tiny, info):
                    _report(work, s, info)
                    break
        else:
            kind, s, step = state[KIND], state[FRONT], state[STEP]
            if not _run_tile(work, kind, s, step, tile, _TILE, own, pivots, tiny):
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
        if not _factor_front(work, s, own, _TOGETHER, pivots, tiny, info):
            _report(work, s, info)
    fetch_add(state, QUIT, 1)
