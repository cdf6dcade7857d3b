"""Python threads around compiled code, with Ctrl-C and progress.

Where there is no memory for so many threads, or for what BLAS keeps for each of them, fewer work:
a team needs none but its leader.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from functools import partial

import numpy as np

from .. import phases
from ..parts import crew
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

    begun = crew(partial(guarded, rank) for rank in range(threads))  # the leader first
    if not begun:
        guarded(0)
    try:
        for one in begun:
            while not one.done():
                wait([one], _POLL_SECONDS)
                if progress:
                    progress("factorization", float(state[team.PROGRESS]), float(fronts))
        if progress:
            progress("factorization", float(state[team.PROGRESS]), float(fronts))
    except BaseException:
        state[team.INTERRUPT] = 1
        wait(begun)
        raise
    if failures:
        raise failures[0]
