"""A timer of the stages of a symbolic phase."""

from __future__ import annotations

import time
from collections.abc import Callable

Progress = Callable[[str, float, float], None]


class StageTimer:
    """A timer of the stages, which reports them to the progress callback."""

    def __init__(self, progress: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._phase = ""
        self._since = 0.0

    def start(self, phase: str) -> None:
        self.stop()
        self._phase, self._since = phase, time.perf_counter()
        if self._progress:
            self._progress(phase, 0.0, 1.0)

    def stop(self) -> None:
        if self._phase:
            earlier = self.seconds.get(self._phase, 0.0)
            self.seconds[self._phase] = earlier + time.perf_counter() - self._since
            if self._progress:
                self._progress(self._phase, 1.0, 1.0)
            self._phase = ""
