"""Python threads around compiled code, with Ctrl-C and progress.

Where there is no memory for so many threads, or for what BLAS keeps for each of them, fewer work:
a team needs none but its leader.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from .. import phases
from ..protocol import Progress
from . import team
from .blas_limit import BlasMemoryError

_POLL_SECONDS = 0.1


def run_team(
    member: Callable[[int], None],
    threads: int,
    state: np.ndarray,
    fronts: int,
    progress: Progress | None,
) -> None:
    """Run all members in threads; the calling thread stays free for Ctrl-C and progress.

    Raises
    ------
    BlasMemoryError
        If there is no room for the leader either.
    """
    failures: list[BaseException] = []

    def guarded(rank: int) -> None:
        try:
            member(rank)
        except BlasMemoryError as error:  # it has not begun
            if rank == 0:
                failures.append(error)
                state[phases.QUIT] = state[team.INTERRUPT] = 1
        except BaseException as error:
            failures.append(error)
            state[phases.QUIT] = state[team.INTERRUPT] = 1

    crew = _started(guarded, threads)
    if not crew:
        guarded(0)
    try:
        for thread in crew:
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                if progress:
                    progress("factorization", float(state[team.PROGRESS]), float(fronts))
        if progress:
            progress("factorization", float(state[team.PROGRESS]), float(fronts))
    except BaseException:
        state[team.INTERRUPT] = 1
        for thread in crew:
            thread.join()
        raise
    if failures:
        raise failures[0]


def _started(member: Callable[[int], None], threads: int) -> list[threading.Thread]:
    """The leader's thread, and those of as many helpers as can be."""
    crew: list[threading.Thread] = []
    for rank in range(threads):
        thread = threading.Thread(target=member, args=(rank,), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no memory for its stack, or no more threads may be
            break
        crew.append(thread)
    return crew
