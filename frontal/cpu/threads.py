"""Python threads around compiled code, with Ctrl-C and progress."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from .. import phases
from ..protocol import Progress
from . import team

_POLL_SECONDS = 0.1


def run_team(
    member: Callable[[int], None],
    threads: int,
    state: np.ndarray,
    fronts: int,
    progress: Progress | None,
) -> None:
    """Run all members in threads; the calling thread stays free for Ctrl-C and progress."""
    failures: list[BaseException] = []

    def guarded(rank: int) -> None:
        try:
            member(rank)
        except BaseException as error:
            failures.append(error)
            state[phases.QUIT] = state[team.INTERRUPT] = 1

    crew = [threading.Thread(target=guarded, args=(rank,), daemon=True) for rank in range(threads)]
    for thread in crew:
        thread.start()
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
