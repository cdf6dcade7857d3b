"""BLAS kept to one thread while our threads call it: nested thread pools spin against each other.

OpenBLAS with threads of its own keeps one number of threads for the process: the first caller
lowers it, the last one puts it back, whichever threads they are. MKL, BLIS and OpenBLAS on OpenMP
keep a number for each thread: every caller lowers and puts back its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

from scipy.linalg import cython_blas
from threadpoolctl import ThreadpoolController

from ..errors import FactorMemoryError
from ..machine.resources import address_space

_VERBS = ("get_num_threads", "set_num_threads", "get_parallel")
_OPENMP = 2  # what openblas_get_parallel answers
_BUFFER = 64 << 20  # bytes of addresses for a thread: OpenBLAS takes 32 MiB of them as a rule


class BlasMemoryError(FactorMemoryError):
    """No addresses are left for what BLAS keeps for a thread; it would ask for them for ever."""


class SharedPool:
    """A thread pool of the whole process, and who wants it to have one thread.

    threadpoolctl is not asked here: it lets only that thread lift a limit that set it.

    Parameters
    ----------
    count, choose : callable
        Tell and choose the number of threads.
    """

    def __init__(self, count: Callable[[], int], choose: Callable[[int], Any]) -> None:
        self.count, self.choose = count, choose
        self._users: dict[object, int] = {}  # each with its thread
        self._before: int | None = None  # the number to put back
        # Garbage collection and signals may run one caller's end inside another one's beginning.
        self.lock = threading.RLock()

    def enter(self, user: object) -> None:
        """Have one thread from now on.

        Raises
        ------
        BlasMemoryError
            If addresses have a limit that leaves none for another buffer.
        """
        with self.lock:
            self._require_addresses()
            self._users[user] = threading.get_ident()
            now = self.count()
            if now != 1:
                self._before = now
                self.choose(1)

    def leave(self, user: object) -> None:
        """Put the number back if nobody else is inside; nothing happens if `user` has left."""
        with self.lock:
            self._users.pop(user, None)
            self._restore()

    def after_fork(self) -> None:
        """In a forked process: of all threads, only the calling one came along."""
        self.lock = threading.RLock()
        current_thread = threading.get_ident()
        self._users = {
            user: thread for user, thread in self._users.items() if thread == current_thread
        }
        self._restore()

    def _require_addresses(self) -> None:
        available, required = address_space(), (len(self._users) + 1) * _BUFFER
        if (
            available is not None and available < required
        ):  # some may be there already, which nobody tells
            raise BlasMemoryError(required, available)

    def _restore(self) -> None:
        before = self._before
        if self._users or before is None:
            return
        if self.count() == 1:  # else someone else has chosen a number since
            self.choose(before)
        self._before = None


def _openblas_pool(path: str) -> SharedPool | None:
    """The pool of an OpenBLAS with threads of its own: of a library, or of what it is linked to."""
    # keeping the GIL: whoever lets it go here waits for other threads, longer than for the answer
    library = ctypes.PyDLL(path)
    for prefix in ("scipy_", ""):
        for suffix in ("", "64_", "_64"):
            names = (f"{prefix}openblas_{verb}{suffix}" for verb in _VERBS)
            count, choose, kind = (getattr(library, name, None) for name in names)
            if count and choose and kind and kind() != _OPENMP:
                return SharedPool(count, choose)
    return None


def _find() -> tuple[list[SharedPool], list[Any]]:
    """Pools of the process, and libraries with a number for each thread.

    Only the BLAS that SciPy calls is limited where the system can tell which one that is. Windows
    cannot, and FlexiBLAS hides it: then all that are loaded are.
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
    """Keep BLAS calls on the calling thread.

    Every thread that calls BLAS enters for itself, in any order, overlap and nesting.
    """

    __slots__ = ("lowered", "user")

    def __init__(self) -> None:
        self.user: object | None = object()
        self.lowered: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        try:
            for pool in _POOLS:
                pool.enter(self.user)
            for library in _LIBRARIES:
                count = library.get_num_threads()
                if count is not None and count > 1:
                    self.lowered.append((library, count))
                    library.set_num_threads(1)
        except BaseException:  # Ctrl-C before all was done
            self._leave()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            self._leave()
        except BaseException:  # Ctrl-C before all was done
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
    for pool in _POOLS:  # a lock that another thread holds would never open in the new process
        pool.lock.acquire()


def _in_parent() -> None:
    for pool in _POOLS:
        pool.lock.release()


def _in_child() -> None:
    for pool in _POOLS:
        pool.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
