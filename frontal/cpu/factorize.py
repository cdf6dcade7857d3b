"""The numeric factorization: every front assembled and factorized, children before parents.

The leader walks the assembly tree: subtrees first, as tiles of one phase, then the fronts above
in order, large ones as phases of tiles. Tiles, and thus all bits, depend on front sizes only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..compile.atomics import fetch_add, fetch_min, load, store
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
from ..numeric.method import CHOLESKY, LDLH, LDLT, LU, Method
from .assembly import HostWorkspace, add_entries, assemble_leaf, is_leaf, received_columns, shape
from .blas import yield_thread
from .by_reference import reference
from .cholesky import front as cholesky
from .constants import by_method
from .delays import add_delayed, make_list, must_finish, order_of, receive, replacement
from .ldl import front as ldl
from .ldl import restore as ldl_restore
from .ldl import threshold as ldl_threshold
from .ldl import windows as ldl_windows
from .lu import front as lu
from .lu import threshold as lu_threshold
from .shared_state import (
    ASSEMBLE,
    BLOCK,
    CRAMPED,
    FAILURE,
    INTERRUPT,
    NO_FAILURE,
    NO_UNSTABLE_PIVOT,
    PANEL,
    PERTURBED,
    PROGRESS,
    RESTORE,
    SOLVE,
    SUBTREES,
    UPDATE,
    UPPER_PANEL,
    WEAK,
)

_NO_STEP = np.int64(0)
_LOOSE, _FIRM = _ALONE, _TOGETHER = np.array([False, True])
_TILE = np.int64(256)  # rows and columns of a tile of a large front
_MIN_TILED_ORDER = 640  # smallest k + m of a front that is tiled

_run_tile = by_method(
    cholesky=cholesky.run_tile, lu=lu.run_tile, ldlt=ldl.run_tile, ldlh=ldl.run_tile
)


@inner
def _delays_nothing(work, s):
    return True


@inner
def _small_only_by_cholesky(work, s, rank):
    return np.int64(0)


# Each method compiles only the functions that it needs.
_receive = by_method(cholesky=_delays_nothing, lu=receive, ldlt=receive, ldlh=receive)
_add_delayed = by_method(
    cholesky=_delays_nothing, lu=add_delayed, ldlt=add_delayed, ldlh=add_delayed
)
_factor_diagonal_block = by_method(
    cholesky=cholesky.factor_diagonal_block, lu=lu.factor_diagonal_block
)
_factor_small = by_method(
    cholesky=cholesky.factor_small,
    lu=_small_only_by_cholesky,
    ldlt=_small_only_by_cholesky,
    ldlh=_small_only_by_cholesky,
)
_eliminate_leaf = by_method(
    cholesky=cholesky.eliminate_leaf,
    lu=cholesky.eliminate_leaf,  # never called
    ldlt=ldl_threshold.eliminate_leaf,
    ldlh=ldl_threshold.eliminate_leaf,
)


@inner
def _tile_size(work, s):
    """Return the rows and columns of a tile of front s; a small front is one tile."""
    k, m = shape(work, s)
    return _TILE if k + m >= _MIN_TILED_ORDER else k + m


@inner
def _tiles(work, order, size):
    """Return the number of tiles of a square block, or of its lower triangle."""
    tiles = (order + size - 1) // size
    return tiles * (tiles + 1) // 2 if work.method.one_triangle else tiles * tiles


@inner
def _run_phase(work, kind, s, step, tiles, size, rank, shared):
    """Run all tiles of a phase, with the team if `shared`; return the least of `_run_tile`."""
    good = NO_UNSTABLE_PIVOT
    if not shared or tiles <= 1:
        for tile in range(tiles):
            good = min(good, _run_tile(work, kind, s, step, tile, size, rank))
        return good
    state = work.state
    open_phase(state, kind, s, step, tiles)
    while True:
        tile = claim(state)
        if tile < 0:
            break
        good = min(good, _run_tile(work, kind, s, step, tile, size, rank))
        finish_tile(state)
    while load(state, DONE) < tiles:
        yield_thread(work.routines)
    close_phase(state)
    weak = load(state, WEAK)
    store(state, WEAK, NO_UNSTABLE_PIVOT)
    return min(good, weak)


@inner
def _assemble_front(work, s, rank, shared):
    k, m = shape(work, s)
    size = _tile_size(work, s)
    tiles = (k + m + size - 1) // size
    _run_phase(work, ASSEMBLE, s, _NO_STEP, tiles, size, rank, shared)
    if received_columns(work, s) > 0:
        _add_delayed(work, s)
    add_entries(work, s)


@inner
def _eliminate(work, s, rank, shared, info, width):
    """Factor the pivot columns of front s, L21 included, by blocks of `width` columns.

    Return False if a pivot of Cholesky is not positive (info[0] is its column, from 1), or if a
    pivot of LU is null or too small for its column.
    """
    k, m = shape(work, s)
    size = _tile_size(work, s)
    for step in range(0, k, width):
        if not _factor_diagonal_block(work, s, step, info):
            return False
        if step + width < k:
            order = k - step - width
            tiles = (order + size - 1) // size
            _run_phase(work, SOLVE, s, step, tiles, size, rank, shared)
            _run_phase(work, UPDATE, s, step, _tiles(work, order, size), size, rank, shared)
    tiles = (m + size - 1) // size
    return _run_phase(work, PANEL, s, _NO_STEP, tiles, size, rank, shared) == NO_UNSTABLE_PIVOT


@inner
def _eliminate_cholesky(work, s, rank, shared, info):
    """Eliminate all pivot columns of front s; return whether their pivots are positive."""
    return _eliminate(work, s, rank, shared, info, cholesky.BLOCK)


@inner
def _eliminate_lu(work, s, rank, shared, info):
    """Eliminate columns of front s with stable pivots; return False if `make_list` fails."""
    k, m = shape(work, s)
    done = k
    if k + m <= lu_threshold.MAX_THRESHOLD_ROWS:
        good = lu_threshold.eliminate_by_threshold(work, s, _FIRM) == k
    else:
        good = _eliminate(work, s, rank, shared, info, lu.BLOCK)
    if not good:
        if not make_list(work, s):
            return False
        _assemble_front(work, s, rank, shared)
        done = lu_threshold.eliminate_by_threshold(work, s, _LOOSE)
        if done < k and must_finish(work, s):
            least = replacement(work, s)
            fetch_add(work.state, PERTURBED, lu_threshold.replace_rest(work, s, done, least))
            done = k
    work.delays.eliminated[s] = done
    if work.delays.listed[s] >= 0:
        lu_threshold.label_rows(work, s, done)
    return True


@inner
def _eliminate_ldl(work, s, rank, shared, info):
    """Eliminate the columns of front s that have stable pivots; return True."""
    k, m = shape(work, s)
    if work.delays.listed[s] < 0:
        order = order_of(work, s)
        for j in range(k):
            order[j] = j
    done = np.int64(0)
    _move_delayed_last(work, s)
    if k + m > ldl_windows.MAX_WINDOWED_ROWS:
        done = _eliminate_blocks(work, s, rank, shared)
    elif k > ldl_windows.WIDTH:
        done = ldl_windows.eliminate_windows(work, s, rank)
    done = ldl_threshold.eliminate_rest(work, s, done, k)
    if done < k and must_finish(work, s):
        least = replacement(work, s)
        fetch_add(work.state, PERTURBED, ldl_threshold.replace_rest(work, s, done, least))
        done = k
    work.delays.eliminated[s] = done
    return True


@inner
def _move_delayed_last(work, s):
    """Move received columns to the end of front s: they may have pivots after the others."""
    k, _ = shape(work, s)
    behind = received_columns(work, s)
    count = min(behind, k - behind)
    for j in range(count):
        ldl_threshold.exchange(work, s, j, k - count + j)


@inner
def _eliminate_blocks(work, s, rank, shared):
    """Compute LDL^H of front s in blocks; return the number of eliminated columns, which lead."""
    k, m = shape(work, s)
    size = _tile_size(work, s)
    done, end = np.int64(0), k
    while done < end:
        width = min(ldl.BLOCK, end - done)
        eliminated = ldl.factor_diagonal_block(work, s, done, width, rank)
        tiles = (k + m - done - width + size - 1) // size
        step = ldl.packed(done, eliminated, width, eliminated, shared)
        good = min(eliminated, _run_phase(work, SOLVE, s, step, tiles, size, rank, shared))
        step = ldl.packed(done, eliminated, width, good, shared)
        failed = ldl.columns_of_pivot(work, s, done, good, eliminated)
        if good < eliminated:
            _run_phase(work, RESTORE, s, step, tiles, size, rank, shared)
            ldl_restore.restore_diagonal(work, s, done, eliminated, width, good, rank)
        if good > 0 and done + good < k:
            tiles = ldl.tiles_below(work, s, done + good, size)
            _run_phase(work, UPDATE, s, step, tiles, size, rank, shared)
        for i in range(width - eliminated):
            end -= 1
            ldl_threshold.exchange(work, s, done + width - 1 - i, end)
        for i in range(failed):
            end -= 1
            ldl_threshold.exchange(work, s, done + good + failed - 1 - i, end)
        done += good
    return done


_eliminate_front = by_method(
    cholesky=_eliminate_cholesky, lu=_eliminate_lu, ldlt=_eliminate_ldl, ldlh=_eliminate_ldl
)


@inner
def _factor_front(work, s, rank, shared, info):
    """Assemble and factor front s.

    Return False if a pivot of Cholesky is not positive; info[0] is then its column in the front,
    from 1. For other methods, return False if the delayed columns of children do not fit.
    """
    if is_leaf(work, s):
        assemble_leaf(work, s)
        fetch_add(work.state, PROGRESS, 1)
        done = _eliminate_leaf(work, s, info)
        return done or (work.method.pivots and _eliminate_front(work, s, rank, _ALONE, info))
    if not _receive(work, s):
        return False
    k, m = shape(work, s)
    size = _tile_size(work, s)
    shared = shared and k + m >= _MIN_TILED_ORDER
    _assemble_front(work, s, rank, shared)
    fetch_add(work.state, PROGRESS, 1)
    if not work.method.pivots and k + m <= cholesky.MAX_LOOP_ROWS:
        info[0] = _factor_small(work, s, rank)
        return info[0] == 0
    if not _eliminate_front(work, s, rank, shared, info):
        return False
    if m > 0:
        if work.method.panels == 2:
            tiles = (m + size - 1) // size
            _run_phase(work, UPPER_PANEL, s, _NO_STEP, tiles, size, rank, shared)
        _run_phase(work, BLOCK, s, _NO_STEP, _tiles(work, m, size), size, rank, shared)
    return True


@inner
def _report(work, s, info):
    """Record the failed column of A, from 1, or `CRAMPED`; keep the least of all threads."""
    column = np.int64(CRAMPED if work.method.pivots else info[0] + work.plan.start[s])
    fetch_min(work.state, FAILURE, column)


@inner
def work_on_fronts(work, low, root, top, leader, rank, info):
    """See `run`."""
    state = work.state
    if leader:
        open_phase(state, SUBTREES, _NO_STEP, _NO_STEP, root.size)
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
                if not _factor_front(work, s, rank, _ALONE, info):
                    _report(work, s, info)
                    break
        else:
            kind, s, step = state[KIND], state[FRONT], state[STEP]
            good = _run_tile(work, kind, s, step, tile, _TILE, rank)
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
        if not _factor_front(work, s, rank, _TOGETHER, info):
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


_RUN: dict[Method, Callable[..., None]]
_RUN = {CHOLESKY: _run_cholesky, LU: _run_lu, LDLT: _run_ldlt, LDLH: _run_ldlh}


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
