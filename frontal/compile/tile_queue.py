"""Phases of independent tiles for threads in compiled code: one leader, any number of helpers.

The leader opens a phase, works on its tiles and waits until it is done; helpers take tiles of the
open phase. A tile is claimed by compare-and-swap on a word that holds the number of the phase and
its next tile, so no thread can claim a tile of a closed phase. The leader alone can finish every
phase: helpers that start late, or never, cost only time.
"""

from __future__ import annotations

import numpy as np

from .atomics import fetch_add, load, store, swap_if
from .jit import inner

# Entries of the shared int64 array. The last one numbers phases; entries between are for others.
WORD, TILES, DONE, KIND, FRONT, STEP, QUIT = np.arange(7)
STATE_SIZE = 16  # entries
CLOSED = -1  # word without an open phase
_TILE = (1 << 32) - 1  # bits of a word that hold its next tile


def closed_state() -> np.ndarray:
    """Return the shared array of a new team, whose helpers may claim before a phase is open.

    A word of 0 would be a phase: `open_phase` writes its number of tiles before the word.
    """
    state = np.zeros(STATE_SIZE, np.int64)
    state[WORD] = CLOSED
    return state


@inner
def open_phase(state, kind, front, step, tiles):
    """Publish a phase: helpers may claim its tiles from now on."""
    number = state[STATE_SIZE - 1] + 1
    state[STATE_SIZE - 1] = number
    state[TILES] = tiles
    state[KIND] = kind
    state[FRONT] = front
    state[STEP] = step
    store(state, DONE, 0)
    store(state, WORD, number << 32)


@inner
def claim(state):
    """Claim a tile of the open phase: return its index, -1 if none is left, -2 if none is open."""
    while True:
        word = load(state, WORD)
        if word < 0:
            return -2
        tile = word & _TILE
        if tile >= state[TILES]:
            return -1
        if swap_if(state, WORD, word, word + 1):
            return tile


@inner
def finish_tile(state):
    """Count a claimed tile as done, for the leader."""
    fetch_add(state, DONE, 1)


@inner
def close_phase(state):
    """Make tiles unclaimable, so that the next phase's fields can be written."""
    store(state, WORD, CLOSED)
