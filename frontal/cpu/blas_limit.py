"""Limit of one thread for BLAS while our threads call it: nested pools spin against each other.

OpenBLAS with its own threads has one number of threads for the process: the first caller lowers it
and the last one restores it, in any threads. MKL, BLIS and OpenBLAS with OpenMP have one number for
each thread: every caller lowers and restores that of its thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable

from scipy.linalg import cython_blas
from threadpoolctl import LibController, ThreadpoolController

from ..errors import FactorMemoryError
from ..machine.resources import address_space

_VERBS = ("get_num_threads", "set_num_threads", "get_parallel")
_OPENMP = 2  # result of openblas_get_parallel
_BUFFER = 64 << 20  # bytes of addresses required for a thread; OpenBLAS usually takes 32 MiB


class BlasMemoryError(FactorMemoryError):
    """Too few addresses for a thread's BLAS buffer, which BLAS would request forever."""


class SharedPool:
    """A BLAS thread pool of the process, and the users that limit it to one thread.

    threadpoolctl is not used here: with it, only the thread that set a limit can lift it.

    Parameters
    ----------
    count, choose : callable
        Return and set the number of threads.
    """

    def __init__(self, count: Callable[[], int], choose: Callable[[int], object]) -> None:
        self.count, self.choose = count, choose
        self._users: dict[object, int] = {}  # user: identifier of its thread
        self._before: int | None = None  # number of threads to restore
        # Garbage collection and signals may run `leave` for one user inside `enter` for another.
        self.lock = threading.RLock()

    def enter(self, user: object) -> None:
        """Limit the pool to one thread until `leave`.

        Raises
        ------
        BlasMemoryError
            If a limit of the address space leaves too little for another buffer.
        """
        with self.lock:
            self._require_addresses()
            self._users[user] = threading.get_ident()
            now = self.count()
            if now != 1:
                self._before = now
                self.choose(1)

    def leave(self, user: object) -> None:
        """Remove `user`, if present; the last one to leave restores the number of threads."""
        with self.lock:
            self._users.pop(user, None)
            self._restore()

    def after_fork(self) -> None:
        """Remove the users of other threads in a forked process, which has the calling one only."""
        self.lock = threading.RLock()
        current_thread = threading.get_ident()
        self._users = {
            user: thread for user, thread in self._users.items() if thread == current_thread
        }
        self._restore()

    def _require_addresses(self) -> None:
        available, required = address_space(), (len(self._users) + 1) * _BUFFER
        if available is not None and available < required:  # existing buffers are not reported
            raise BlasMemoryError(required, available)

    def _restore(self) -> None:
        before = self._before
        if self._users or before is None:
            return
        if self.count() == 1:  # else another caller has set a number since
            self.choose(before)
        self._before = None


def _openblas_pool(path: str) -> SharedPool | None:
    """Return the pool of an OpenBLAS with its own threads, in a library or its dependencies."""
    # PyDLL keeps the GIL: to reacquire it after each call takes longer than the call itself
    library = ctypes.PyDLL(path)
    for prefix in ("scipy_", ""):
        for suffix in ("", "64_", "_64"):
            names = (f"{prefix}openblas_{verb}{suffix}" for verb in _VERBS)
            count, choose, kind = (getattr(library, name, None) for name in names)
            if count and choose and kind and kind() != _OPENMP:
                return SharedPool(count, choose)
    return None


def _find() -> tuple[list[SharedPool], list[LibController]]:
    """Return pools of the process, and libraries with a number of threads for each thread.

    Only the BLAS that SciPy calls is limited, if the system can identify it. Windows cannot, and
    FlexiBLAS hides it: then all loaded BLAS libraries are limited.
    """
    with contextlib.suppress(OSError):
        scipy_pool = _openblas_pool(cython_blas.__file__)
        if scipy_pool is not None:
            return [scipy_pool], []
    pools, libraries = [], []
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        pool = _openblas_pool(library.filepath) if library.internal_api == "openblas" else None
        if pool is None:
            libraries.append(library)
        else:
            pools.append(pool)
    return pools, libraries


_POOLS, _LIBRARIES = _find()


class single_threaded_blas:  # noqa: N801 - a context manager, as those of contextlib are named
    """Context in which BLAS calls stay on the calling thread.

    Every thread that calls BLAS enters its own context; they overlap and nest in any order.
    """

    __slots__ = ("lowered", "user")

    def __init__(self) -> None:
        self.user: object | None = object()
        self.lowered: list[tuple[LibController, int]] = []

    def __enter__(self) -> None:
        try:
            for pool in _POOLS:
                pool.enter(self.user)
            for library in _LIBRARIES:
                count = library.get_num_threads()
                if count is not None and count > 1:
                    self.lowered.append((library, count))
                    library.set_num_threads(1)
        except BaseException:  # Ctrl-C before the end
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._leave()
        except BaseException:  # Ctrl-C before the end
            self._leave()
            raise

    def __del__(self) -> None:
        if self.user is not None:  # Ctrl-C before the body began
            self._leave()

    def _leave(self) -> None:
        for pool in _POOLS:
            pool.leave(self.user)
        for library, count in self.lowered:
            library.set_num_threads(count)
        self.user, self.lowered = None, []


def _before_fork() -> None:
    for pool in _POOLS:  # a lock held by another thread would stay locked in the new process
        pool.lock.acquire()


def _in_parent() -> None:
    for pool in _POOLS:
        pool.lock.release()


def _in_child() -> None:
    for pool in _POOLS:
        pool.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
