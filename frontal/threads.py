"""How many threads to use, and BLAS kept to one thread while ours run."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController


def thread_count() -> int:
    """``FRONTAL_NUM_THREADS``, else the number of cores this process may run on.

    Raises
    ------
    ValueError
        If the variable is not a positive integer.
    """
    asked = os.environ.get("FRONTAL_NUM_THREADS")
    if asked:
        if not asked.strip().isdigit() or int(asked) < 1:
            raise ValueError(f"FRONTAL_NUM_THREADS is {asked!r}; give a positive integer")
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


@functools.cache
def _blas_libraries() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


class _SingleThreadedBlas:
    """A process-wide limit shared by all callers: the last one to leave lifts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: contextlib.AbstractContextManager | None = None

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._limit = _blas_libraries().limit(limits=1)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._limit is not None:
                self._limit.__exit__(None, None, None)
                self._limit = None


_single = _SingleThreadedBlas()


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS calls on the calling thread: nested thread pools spin against each other."""
    _single.enter()
    try:
        yield
    finally:
        _single.leave()


def available_memory() -> int | None:
    """Bytes that this process can still take, None where the system does not say."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None
