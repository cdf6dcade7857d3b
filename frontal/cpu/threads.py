"""Python threads around compiled code, with Ctrl-C and progress.

If memory is short for threads or for their BLAS buffers, fewer threads work: a team needs only its
leader.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..backend.protocol import Progress
from ..compile import tile_queue
from ..machine.thread_group import ThreadGroup, run_with_threads
from . import shared_state
from .blas_limit import BlasMemoryError

_POLL_SECONDS = 0.1  # between two reports of progress


def run_team(
    member: Callable[[int], None],
    threads: int,
    state: np.ndarray,
    fronts: int,
    progress: Progress | None,
) -> None:
    """Run all members in threads; the calling thread stays free for Ctrl-C and progress.

    All members have ended when this function returns or raises.

    Raises
    ------
    BlasMemoryError
        If there is no memory for the leader's BLAS buffer either.
    """
    failures: list[BaseException] = []

    def stop() -> None:
        state[tile_queue.QUIT] = state[shared_state.INTERRUPT] = 1

    def guarded(rank: int) -> None:
        try:
            member(rank)
        except BlasMemoryError as error:  # the member has not begun
            if rank == 0:
                failures.append(error)
                stop()
        except BaseException as error:
            failures.append(error)
            stop()

    def report() -> None:
        if progress:
            progress("factorization", float(state[shared_state.PROGRESS]), float(fronts))

    def run(group: ThreadGroup) -> None:
        begun = group.begin_each(partial(guarded, rank) for rank in range(threads))
        if not begun:  # no thread started, not even the leader's
            guarded(0)
        for job in begun:
            while not job.over.wait(_POLL_SECONDS):
                report()
        report()

    run_with_threads(run, stop)
    if failures:
        raise failures[0]
