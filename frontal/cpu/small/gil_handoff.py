"""Handoff of the GIL between threads that return from compiled code to Python.

Compiled code runs without the GIL and acquires it again at its end. A thread that finds it held
sleeps and is woken about 20 us after its release. A small system is solved in that time, so four
threads would do hardly more than one. The Python code between two compiled calls takes less time.
Threads returning from compiled code therefore spin, without the GIL, until the previous thread has
entered compiled code again. The next thread to enter compiled code releases the slot, so a thread
that does something else, or has ended, delays the others once and briefly.
"""

from __future__ import annotations

import numpy as np

from ...compile.atomics import call, load, store, swap_if
from ...compile.jit import inner

TURN = np.zeros(8, np.int64)  # 1 if a thread is between compiled calls; fills a cache line
_PATIENCE = 1 << 15  # polls: more than twice the time to wake a thread


@inner
def leave_python(turn):
    """Release the slot: compiled code begins, and the GIL is free."""
    store(turn, 0, 0)


@inner
def enter_python(turn, others_run):
    """Wait until the GIL is likely to be free: compiled code ends.

    `others_run` is the address of the system's thread yield.
    """
    for look in range(_PATIENCE):
        if load(turn, 0) == 0 and swap_if(turn, 0, 0, 1):
            break
        if look % 64 == 63:
            call(others_run, ())
