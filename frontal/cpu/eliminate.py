"""The elimination of a front: its assembly and its phases of tiles, for each method."""

from __future__ import annotations

import numpy as np

from ..compile.atomics import fetch_add, load, store
from ..compile.jit import inner
from ..compile.tile_queue import DONE, claim, close_phase, finish_tile, open_phase
from .assembly import add_entries, is_below_schur, received_columns, shape
from .blas import yield_thread
from .cholesky import front as cholesky
from .constants import by_method
from .delays import add_delayed, make_list, must_finish, order_of, receive, replacement
from .ldl import front as ldl
from .ldl import restore as ldl_restore
from .ldl import signed as ldl_signed
from .ldl import threshold as ldl_threshold
from .ldl import windows as ldl_windows
from .lu import front as lu
from .lu import threshold as lu_threshold
from .shared_state import (
    ASSEMBLE,
    NO_UNSTABLE_PIVOT,
    PANEL,
    PERTURBED,
    RESTORE,
    SOLVE,
    UPDATE,
    WEAK,
)

NO_STEP = np.int64(0)
_LOOSE, _FIRM = ALONE, TOGETHER = np.array([False, True])
TILE = np.int64(256)  # rows and columns of a tile of a large front
MIN_TILED_ORDER = 640  # smallest k + m of a front that is tiled

run_tile = by_method(
    cholesky=cholesky.run_tile,
    lu=lu.run_tile,
    ldlt=ldl.run_tile,
    ldlh=ldl.run_tile,
    signed_ldlh=ldl.run_tile,
)


@inner
def _delays_nothing(work, s):
    return True


@inner
def _small_only_by_cholesky(work, s, rank):
    return np.int64(0)


# Each method compiles only the functions that it needs.
receive_delayed = by_method(
    cholesky=_delays_nothing,
    lu=receive,
    ldlt=receive,
    ldlh=receive,
    signed_ldlh=_delays_nothing,
)
_add_delayed = by_method(
    cholesky=_delays_nothing,
    lu=add_delayed,
    ldlt=add_delayed,
    ldlh=add_delayed,
    signed_ldlh=_delays_nothing,
)
_factor_diagonal_block = by_method(
    cholesky=cholesky.factor_diagonal_block, lu=lu.factor_diagonal_block
)
factor_small = by_method(
    cholesky=cholesky.factor_small,
    lu=_small_only_by_cholesky,
    ldlt=_small_only_by_cholesky,
    ldlh=_small_only_by_cholesky,
    signed_ldlh=_small_only_by_cholesky,
)
eliminate_leaf = by_method(
    cholesky=cholesky.eliminate_leaf,
    lu=cholesky.eliminate_leaf,  # never called
    ldlt=ldl_threshold.eliminate_leaf,
    ldlh=ldl_threshold.eliminate_leaf,
    signed_ldlh=ldl_signed.eliminate_leaf,
)


@inner
def tile_size(work, s):
    """Return the rows and columns of a tile of front s; a small front is one tile."""
    k, m = shape(work, s)
    return TILE if k + m >= MIN_TILED_ORDER else k + m


@inner
def tile_count(work, order, size):
    """Return the number of tiles of a square block, or of its lower triangle."""
    tiles = (order + size - 1) // size
    return tiles * (tiles + 1) // 2 if work.method.one_triangle else tiles * tiles


@inner
def run_phase(work, kind, s, step, tiles, size, rank, shared):
    """Run all tiles of a phase, with the team if `shared`; return the least of `run_tile`."""
    good = NO_UNSTABLE_PIVOT
    if not shared or tiles <= 1:
        for tile in range(tiles):
            good = min(good, run_tile(work, kind, s, step, tile, size, rank))
        return good
    state = work.state
    open_phase(state, kind, s, step, tiles)
    while True:
        tile = claim(state)
        if tile < 0:
            break
        good = min(good, run_tile(work, kind, s, step, tile, size, rank))
        finish_tile(state)
    while load(state, DONE) < tiles:
        yield_thread(work.routines)
    close_phase(state)
    weak = load(state, WEAK)
    store(state, WEAK, NO_UNSTABLE_PIVOT)
    return min(good, weak)


@inner
def assemble_front(work, s, rank, shared):
    k, m = shape(work, s)
    size = tile_size(work, s)
    tiles = (k + m + size - 1) // size
    run_phase(work, ASSEMBLE, s, NO_STEP, tiles, size, rank, shared)
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
    size = tile_size(work, s)
    for step in range(0, k, width):
        if not _factor_diagonal_block(work, s, step, info):
            return False
        if step + width < k:
            order = k - step - width
            tiles = (order + size - 1) // size
            run_phase(work, SOLVE, s, step, tiles, size, rank, shared)
            run_phase(work, UPDATE, s, step, tile_count(work, order, size), size, rank, shared)
    tiles = (m + size - 1) // size
    return run_phase(work, PANEL, s, NO_STEP, tiles, size, rank, shared) == NO_UNSTABLE_PIVOT


@inner
def _eliminate_cholesky(work, s, rank, shared, info):
    """Eliminate all pivot columns of front s; return whether their pivots are positive."""
    return _eliminate(work, s, rank, shared, info, cholesky.BLOCK)


@inner
def _lacks_pivots(work, s, done, info):
    """Record that columns of front s from `done` on have no pivots; return False."""
    work.delays.eliminated[s], info[0] = done, -1
    return False


@inner
def _eliminate_lu(work, s, rank, shared, info):
    """Eliminate columns of front s with stable pivots.

    Return False if `make_list` fails, or as `_eliminate_ldl`.
    """
    k, m = shape(work, s)
    done = k
    if k + m <= lu_threshold.MAX_THRESHOLD_ROWS:
        good = lu_threshold.eliminate_by_threshold(work, s, _FIRM) == k
    else:
        good = _eliminate(work, s, rank, shared, info, lu.BLOCK)
    if not good:
        if not make_list(work, s):
            return False
        assemble_front(work, s, rank, shared)
        done = lu_threshold.eliminate_by_threshold(work, s, _LOOSE)
        if done < k and must_finish(work, s):
            least = replacement(work, s)
            replaced = lu_threshold.replace_rest(work, s, done, least)
            if replaced > 0 and is_below_schur(work, s):
                return _lacks_pivots(work, s, done, info)
            fetch_add(work.state, PERTURBED, replaced)
            done = k
    work.delays.eliminated[s] = done
    if work.delays.listed[s] >= 0:
        lu_threshold.label_rows(work, s, done)
    return True


@inner
def _eliminate_ldl(work, s, rank, shared, info):
    """Eliminate the columns of front s that have stable pivots.

    Return False if a front below a Schur complement has columns without an acceptable pivot.
    """
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
    done = ldl_threshold.eliminate_rest(work, s, done, k, k + m)
    if done < k and is_below_schur(work, s):
        done = ldl_threshold.eliminate_before_schur(work, s, done)
        if done < k:
            return _lacks_pivots(work, s, done, info)
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
    size = tile_size(work, s)
    done, end = np.int64(0), k
    while done < end:
        width = min(ldl.BLOCK, end - done)
        eliminated = ldl.factor_diagonal_block(work, s, done, width, rank)
        tiles = (k + m - done - width + size - 1) // size
        step = ldl.packed(done, eliminated, width, eliminated, shared)
        good = min(eliminated, run_phase(work, SOLVE, s, step, tiles, size, rank, shared))
        step = ldl.packed(done, eliminated, width, good, shared)
        failed = ldl.columns_of_pivot(work, s, done, good, eliminated)
        if good < eliminated:
            run_phase(work, RESTORE, s, step, tiles, size, rank, shared)
            ldl_restore.restore_diagonal(work, s, done, eliminated, width, good, rank)
        if good > 0 and done + good < k:
            tiles = ldl.tiles_below(work, s, done + good, size)
            run_phase(work, UPDATE, s, step, tiles, size, rank, shared)
        for i in range(width - eliminated):
            end -= 1
            ldl_threshold.exchange(work, s, done + width - 1 - i, end)
        for i in range(failed):
            end -= 1
            ldl_threshold.exchange(work, s, done + good + failed - 1 - i, end)
        done += good
    return done


@inner
def _eliminate_signed(work, s, rank, shared, info):
    """Eliminate all pivot columns of front s; return False if one is refused, info[0] from 1."""
    k, m = shape(work, s)
    if k + m <= ldl_windows.MAX_WINDOWED_ROWS:
        info[0] = ldl_signed.eliminate_in_order(work, s, rank, np.int64(0), k, k + m)
        return info[0] == 0
    size = tile_size(work, s)
    for done in range(0, k, ldl.BLOCK):
        width = min(ldl.BLOCK, k - done)
        end = done + width
        info[0] = ldl_signed.eliminate_in_order(work, s, rank, done, end, end)
        if info[0] != 0:
            return False
        step, tiles = (
            ldl.packed(done, width, width, width, shared),
            (k + m - end + size - 1) // size,
        )
        run_phase(work, SOLVE, s, step, tiles, size, rank, shared)
        if end < k:
            run_phase(
                work, UPDATE, s, step, ldl.tiles_below(work, s, end, size), size, rank, shared
            )
    return True


eliminate_front = by_method(
    cholesky=_eliminate_cholesky,
    lu=_eliminate_lu,
    ldlt=_eliminate_ldl,
    ldlh=_eliminate_ldl,
    signed_ldlh=_eliminate_signed,
)
