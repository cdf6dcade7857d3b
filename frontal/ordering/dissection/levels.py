"""Coarser graphs of a large component by a team of threads, equal to those of one thread.

A level is computed in phases (`compile.tile_queue`), whose tiles are ranges of its nodes. The
result of a tile depends on the graph alone. All levels are stored consecutively from the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.atomics import call, load, yield_address
from ...compile.jit import jit
from ...compile.tile_queue import (
    DONE,
    FRONT,
    KIND,
    QUIT,
    TILES,
    claim,
    close_phase,
    closed_state,
    finish_tile,
    open_phase,
)
from ...machine.thread_group import Job, ThreadGroup, run_with_threads
from .bisect import MAX_COARSE_SHARE, MIN_LEVEL_NODES, with_levels
from .coarsen import (
    MAX_ROUNDS,
    MAX_UNMATCHED_SHARE,
    accept,
    contract,
    count_max_entries,
    count_pairs,
    heaviest_node,
    number_pairs,
    pair_at_distance_two,
    propose,
)
from .graph import Levels, Weighted, level, scrambled

MIN_SHARED_EDGES = 50_000  # edges of the smallest level that is coarsened by the team
TILE = 10_000  # least edges of a tile
TILES_PER_THREAD = 3  # tiles of a phase, so that threads end at about the same time
LEVELS_SIZE_RATIO = 3  # most nodes and entries of all levels over those of the graph
MAX_LEVELS = 64  # coarser graphs of one graph
COPY, FREE, PROPOSE, ACCEPT, ALONE, PAIR, NUMBER, CONTRACT, JOIN = np.arange(9)
# Columns of `SharedLevels.tally`, by tile: nodes that may be matched, and unmatched nodes; pairs of
# earlier tiles; the tile's entries: start of their space, number, and final position.
OPEN, UNMATCHED, PAIRS, BEGIN, USED, PLACE = np.arange(6)


class SharedLevels(NamedTuple):
    """State that the threads of a team share.

    Attributes
    ----------
    finest : Weighted
        The graph.
    levels : Levels
        The levels, in arrays that may be larger than needed.
    mate, proposal, weight, free : (n,) int32 arrays
        State of the nodes of a level during matching; see `coarsen`.
    near, edge : int32 arrays
        Rows of coarse nodes before their final positions are known.
    tally : (tiles + 1, 6) int64 array
        Counts of each tile.
    numbers : (4,) int64 array
        Largest weight of a node, seed of the level, least edges of a level for the team, least
        edges of a tile.
    state : int64 array
        See `tile_queue.closed_state`.
    pause : int
        Address of a C function that yields the processor to other threads.
    """

    finest: Weighted
    levels: Levels
    mate: np.ndarray
    proposal: np.ndarray
    weight: np.ndarray
    free: np.ndarray
    near: np.ndarray
    edge: np.ndarray
    tally: np.ndarray
    numbers: np.ndarray
    state: np.ndarray
    pause: int


def _shared(finest: Weighted, tiles: int) -> SharedLevels:
    n, nnz = finest.weight.size, finest.near.size
    nodes, entries = LEVELS_SIZE_RATIO * n + 1, LEVELS_SIZE_RATIO * nnz
    near, edge = np.empty((2, entries), np.int32)
    weight, coarse_of = np.empty((2, nodes), np.int32)
    graph = Weighted(np.zeros(nodes + 1, np.int64), near, edge, weight)
    first = np.zeros(MAX_LEVELS + 2, np.int64)
    first[1] = n
    mate, proposal, node_weight, free = np.empty((4, n), np.int32)
    rows = np.empty((2, nnz), np.int32)
    return SharedLevels(
        finest,
        Levels(graph, coarse_of, first),
        mate,
        proposal,
        node_weight,
        free,
        rows[0],
        rows[1],
        np.zeros((tiles + 1, 6), np.int64),
        np.array([0, 0, MIN_SHARED_EDGES, TILE]),
        closed_state(),
        yield_address(),
    )


@jit
def _copy(finest, graph, first, last):
    """Copy the rows of a range to level 0."""
    for v in range(first, last):
        graph.begin[v + 1] = finest.begin[v + 1]
        graph.weight[v] = finest.weight[v]
    for p in range(finest.begin[first], finest.begin[last]):
        graph.near[p], graph.edge[p] = finest.near[p], finest.edge[p]


@jit
def _match_alone(mate, first, last):
    """Match unmatched nodes with themselves."""
    for v in range(first, last):
        if mate[v] < 0:
            mate[v] = v


@jit
def _join(shared, tile, end, pairs):
    """Copy the rows of a tile to their final positions."""
    begin, graph = shared.tally[tile, BEGIN], shared.levels.graph
    place = shared.tally[tile, PLACE]
    for q in range(shared.tally[tile, USED]):
        graph.near[place + q] = shared.near[begin + q]
        graph.edge[place + q] = shared.edge[begin + q]
    for c in range(shared.tally[tile, PAIRS], pairs):
        graph.begin[end + c + 1] += place


@jit
def _run(shared, kind, k, tile, tiles):
    """Compute a tile of a phase of level k."""
    levels, count = shared.levels, shared.tally
    heaviest, seed = shared.numbers[0], shared.numbers[1]
    start, end = levels.first[k], levels.first[k + 1]
    first, last = (end - start) * tile // tiles, (end - start) * (tile + 1) // tiles
    if kind == COPY:
        return _copy(shared.finest, levels.graph, first, last)
    n = end - start
    graph = level(levels, k)
    mate, proposal, weight = shared.mate[:n], shared.proposal[:n], shared.weight[:n]
    coarse_of = levels.coarse_of[start:end]
    free = shared.free[first : first + count[tile, OPEN]]
    if kind == FREE:
        for v in range(first, last):
            mate[v] = proposal[v] = -1
            weight[v], shared.free[v] = graph.weight[v], v
        count[tile, OPEN] = last - first
    elif kind == PROPOSE:
        propose(graph, free, mate, weight, proposal, heaviest, seed)
    elif kind == ACCEPT:
        count[tile, OPEN] = accept(free, mate, weight, proposal)
    elif kind == ALONE:
        count[tile, UNMATCHED] = np.sum(mate[first:last] < 0)
    elif kind == PAIR:
        _match_alone(mate, first, last)
        count[tile + 1, PAIRS] = count_pairs(mate, first, last)
        count[tile + 1, BEGIN] = count_max_entries(graph, mate, first, last)
    elif kind == NUMBER:
        number_pairs(mate, first, last, count[tile, PAIRS], coarse_of)
    elif kind == CONTRACT:
        begin, weights = levels.graph.begin[end:], levels.graph.weight[end:]
        coarse = Weighted(begin, shared.near, shared.edge, weights[: count[tiles, PAIRS]])
        count[tile, USED] = contract(
            graph, mate, coarse_of, coarse, first, last, count[tile, PAIRS], count[tile, BEGIN]
        )
    else:
        _join(shared, tile, end, count[tile + 1, PAIRS])


@jit
def _phase(shared, kind, k, tiles):
    """Run a phase together with the helpers; return whether it was completed."""
    state = shared.state
    open_phase(state, kind, k, 0, tiles)
    while True:
        tile = claim(state)
        if tile < 0:
            break
        _run(shared, kind, k, tile, tiles)
        finish_tile(state)
    while load(state, DONE) < tiles and load(state, QUIT) == 0:
        call(shared.pause, ())
    close_phase(state)
    return load(state, QUIT) == 0


@jit
def _match(shared, k, tiles):
    """Match the nodes of level k; return whether all phases were completed."""
    count, done = shared.tally, _phase(shared, FREE, k, tiles)
    for _ in range(MAX_ROUNDS):
        done = done and _phase(shared, PROPOSE, k, tiles) and _phase(shared, ACCEPT, k, tiles)
        if not done or count[:tiles, OPEN].sum() == 0:
            break
    done = done and _phase(shared, ALONE, k, tiles)
    n = shared.levels.first[k + 1] - shared.levels.first[k]
    if done and count[:tiles, UNMATCHED].sum() > MAX_UNMATCHED_SHARE * n:
        pair_at_distance_two(level(shared.levels, k), shared.mate[:n], shared.numbers[0])
    return done and _phase(shared, PAIR, k, tiles)


@jit
def _make_level(shared, k, tiles):
    """Compute level k + 1; return whether it exists."""
    levels, count = shared.levels, shared.tally
    if not _match(shared, k, tiles):
        return False
    count[0, PAIRS] = count[0, BEGIN] = 0
    for tile in range(tiles):
        count[tile + 1, PAIRS] += count[tile, PAIRS]
        count[tile + 1, BEGIN] += count[tile, BEGIN]
    start, end, pairs = levels.first[k], levels.first[k + 1], count[tiles, PAIRS]
    if pairs > MAX_COARSE_SHARE * (end - start) or end + pairs > levels.coarse_of.size:
        return False
    if not (_phase(shared, NUMBER, k, tiles) and _phase(shared, CONTRACT, k, tiles)):
        return False
    place = levels.graph.begin[end]
    for tile in range(tiles):
        count[tile, PLACE] = place
        place += count[tile, USED]
    if place > levels.graph.near.size or not _phase(shared, JOIN, k, tiles):
        return False
    levels.first[k + 2] = end + pairs
    return True


@jit
def _lead(shared, size, seed, stop):
    """Compute levels while they are large enough for a team; return the number of the last."""
    levels, k = shared.levels, 0
    min_edges, tile = shared.numbers[2], shared.numbers[3]
    shared.numbers[0] = heaviest_node(shared.finest.weight.astype(np.int64).sum())
    entries = shared.finest.near.size
    if not _phase(shared, COPY, 0, size * TILES_PER_THREAD):
        return k
    while (
        levels.first[k + 1] - levels.first[k] > MIN_LEVEL_NODES
        and entries > min_edges
        and stop[0] == 0
    ):
        shared.numbers[1] = scrambled(seed, k + 1)
        tiles = max(min(size * TILES_PER_THREAD, entries // tile), 1)
        if k == MAX_LEVELS or not _make_level(shared, k, tiles):
            break
        k += 1
        entries = levels.graph.begin[levels.first[k + 1]] - levels.graph.begin[levels.first[k]]
    return k


@jit
def _help(shared):
    """Compute tiles until the `QUIT` flag is set."""
    state = shared.state
    while load(state, QUIT) == 0:
        tile = claim(state)
        if tile < 0:
            call(shared.pause, ())
        else:
            _run(shared, state[KIND], state[FRONT], tile, state[TILES])
            finish_tile(state)


def _appended(buffer: np.ndarray, used: int, more: np.ndarray) -> np.ndarray:
    """Append an array after the used part of a buffer; return the result."""
    if used + more.size > buffer.size:
        return np.concatenate([buffer[:used], more])
    buffer[used : used + more.size] = more
    return buffer[: used + more.size]


def team_levels(graph: Weighted, seed: int, size: int, stop: np.ndarray) -> Levels:
    """Return the levels of a graph as `bisect.with_levels`, by `size` threads."""
    shared = _shared(graph, size * TILES_PER_THREAD)

    helpers: list[Job[None]] = []

    def quit_phases() -> None:
        shared.state[QUIT] = 1

    def guarded() -> None:
        try:
            _help(shared)
        except BaseException:
            quit_phases()  # no thread waits for its tile
            raise

    def lead(group: ThreadGroup) -> int:
        helpers.extend(group.begin_each([guarded] * (size - 1)))
        return _lead(shared, size, seed, stop)

    last = run_with_threads(lead, quit_phases)
    for helper in helpers:
        helper.result()
    (begin, near, edge, weight), coarse_of, first = shared.levels
    used, end = first[last : last + 2].tolist()
    entries = int(begin[used])
    inside = slice(entries, int(begin[end]))
    coarsest = Weighted(
        begin[used : end + 1] - entries, near[inside], edge[inside], weight[used:end]
    )
    (*rows, more), rest_coarse, rest_first = with_levels(coarsest, last, seed, stop)
    return Levels(
        Weighted(
            _appended(begin, used, rows[0] + entries),
            _appended(near, entries, rows[1]),
            _appended(edge, entries, rows[2]),
            _appended(weight, used, more),
        ),
        _appended(coarse_of, used, rest_coarse),
        np.concatenate([first[:last], rest_first + used]),
    )
