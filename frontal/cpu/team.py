"""A team of threads inside compiled code: one leads, any number help.

The leader opens a phase of independent tiles, works on it and waits until it is done; helpers take
tiles of whatever phase is open. A tile is claimed by compare-and-swap on a word that holds the
phase's number and its next tile, so that nobody can take a tile of a phase that is over. The
leader alone can finish any phase: helpers that start late, or never, cost nothing but time.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from .._jit import inner, intrinsic

# Entries of the shared int64 array.
WORD, TILES, DONE, KIND, FRONT, STEP, QUIT, INTERRUPT, PROGRESS, FAILURE, PERTURBED, WEAK = (
    np.arange(12)
)
ROOM, NAMES = np.arange(12, 14)  # where free room begins, for panels and for names of columns
STATE_SIZE = 16
# Kinds of phases: whole subtrees, and the parts of a large front.
SUBTREES, ASSEMBLE, SOLVE, RESTORE, UPDATE, PANEL, UPPER_PANEL, BLOCK = np.arange(8)
NO_FAILURE = (1 << 62) - 1  # what FAILURE holds until a column fails
CRAMPED = 0  # what it holds when there was no room for what fronts take over from others
SOUND = (1 << 62) - 1  # what WEAK holds until a tile finds pivots too small for their columns
CLOSED = -1
_TILE = (1 << 32) - 1


def _entry(context, builder, array_type, array, index):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


@intrinsic
def fetch_add(typingctx, array, index, amount):
    """Atomically add to an entry of an int64 array; return the value before."""
    signature = types.int64(array, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        where = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.atomic_rmw("add", where, values[2], "seq_cst")

    return signature, codegen


@intrinsic
def fetch_min(typingctx, array, index, value):
    """Atomically lower an entry to `value` if that is less; return the value before."""
    signature = types.int64(array, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        where = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.atomic_rmw("min", where, values[2], "seq_cst")

    return signature, codegen


@intrinsic
def store(typingctx, array, index, value):
    """Atomically write an entry of an int64 array."""
    signature = types.int64(array, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        where = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.atomic_rmw("xchg", where, values[2], "seq_cst")

    return signature, codegen


@intrinsic
def _swap_if(typingctx, array, index, expected, value):
    """Write an entry if it holds `expected`; return whether it did."""
    signature = types.boolean(array, types.int64, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        where = _entry(context, builder, signature.args[0], values[0], values[1])
        result = builder.cmpxchg(where, values[2], values[3], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(result, 1), ir.IntType(1))

    return signature, codegen


@inner
def load(state, index):
    """Atomically read an entry."""
    return fetch_add(state, index, 0)


@inner
def open_phase(state, kind, front, step, tiles):
    """Publish a phase: helpers may take its tiles from now on."""
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
    """Take a tile of the open phase: its number, -1 if none is left, -2 if no phase is open."""
    while True:
        word = load(state, WORD)
        if word < 0:
            return -2
        tile = word & _TILE
        if tile >= state[TILES]:
            return -1
        if _swap_if(state, WORD, word, word + 1):
            return tile


@inner
def finish_tile(state):
    """Tell the leader that a claimed tile is done."""
    fetch_add(state, DONE, 1)


@inner
def close_phase(state):
    """Make the word unclaimable, so that the next phase's fields can be written."""
    store(state, WORD, CLOSED)
