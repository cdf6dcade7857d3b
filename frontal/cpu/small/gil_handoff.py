"""Turns of threads that come back from compiled code to Python.

Compiled code runs without Python's lock, and takes it again at its end. Whoever finds it taken is
put to sleep, and woken some twenty microseconds after it is free: as long as a small system takes
to be solved, so that four threads do hardly more than one. What Python does between two compiled
calls takes less. So who comes back waits for its turn awake, and without the lock: until the one
before has gone into compiled code again. A turn is given up by whoever comes there next, so that a
thread which does something else, or has ended, makes others wait once, and not for long.
"""

from __future__ import annotations

import numpy as np

from ...compile.atomics import call, load, store, swap_if
from ...compile.jit import inner

TURN = np.zeros(8, np.int64)  # whether a thread is between compiled calls; a cache line of its own
_PATIENCE = 1 << 15  # looks: more than twice as long as it takes to be woken


@inner
def leave_python(turn):
    """Compiled code begins: the lock is free."""
    store(turn, 0, 0)


@inner
def enter_python(turn, others_run):
    """Compiled code ends: wait until the lock is likely to be free."""
    for look in range(_PATIENCE):
        if load(turn, 0) == 0 and swap_if(turn, 0, 0, 1):
            break
        if look % 64 == 63:
            call(others_run, ())
