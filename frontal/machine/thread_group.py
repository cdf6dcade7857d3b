"""Threads that end before their caller continues, wherever Ctrl-C interrupts it.

Python raises `KeyboardInterrupt` in the main thread between any two instructions: after a thread
has started and before a list holds it, or inside of `threading.Condition`, which then stays locked.
Therefore a thread enters its group itself, before it works, and does not work if the group has
ended; the main thread takes no lock that other threads take; and it waits for them in C, where
further interrupts are deferred until after the wait.
"""

from __future__ import annotations

import _thread
import ctypes
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Result = TypeVar("Result")

_START_SECONDS = 1.0  # limit for a thread to start: below 1 ms unless memory is short
_WAIT_MICROSECONDS = 60_000_000  # one wait in C, after which the group is checked again

_python = ctypes.CDLL(None, handle=ctypes.pythonapi._handle)  # its calls release the GIL
_new_lock, _release = _python.PyThread_allocate_lock, _python.PyThread_release_lock
_acquire = _python.PyThread_acquire_lock_timed
_new_lock.restype, _release.restype = ctypes.c_void_p, None
_release.argtypes = [ctypes.c_void_p]
_acquire.argtypes = [ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int]
_latches: list[int] = []  # acquired locks, by address, for groups that wait


class WaitFlag:
    """A flag that threads wait for; an interrupted wait leaves nothing locked."""

    def __init__(self) -> None:
        self.is_set = False
        self._waiting: list[_thread.LockType] = []  # a lock of each thread that waits

    def set(self) -> None:
        """Set the flag and wake the threads that wait."""
        self.is_set = True
        while self._waiting:
            self._waiting.pop().release()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the flag is set, for a limited time if given; return whether it is set."""
        if not self.is_set:
            lock = _thread.allocate_lock()
            lock.acquire()
            self._waiting.append(lock)
            if not self.is_set:  # after that, `set` finds the lock
                lock.acquire(True, -1 if seconds is None else max(seconds, 0))
        return self.is_set


class Job(Generic[Result]):
    """A call that the first thread to take it runs, and its result.

    Attributes
    ----------
    begun, over : WaitFlag
        A thread has taken the call; its result is stored.

    Examples
    --------
    >>> job = Job(lambda: 6 * 7)
    >>> job.run(), job.run(), job.result()
    (True, False, 42)
    """

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = [work]  # its pop is atomic
        self._results: list[Result] = []
        self._error: BaseException | None = None
        self.begun, self.over = WaitFlag(), WaitFlag()

    def cancel(self) -> bool:
        """Prevent the call; return False if a thread has taken it."""
        return self._take() is not None

    def _take(self) -> Callable[[], Result] | None:
        try:
            return self._work.pop()
        except IndexError:
            return None

    def run(self, active: set[Job] | None = None) -> bool:
        """Run the call unless a thread has taken it; return whether it ran.

        Parameters
        ----------
        active : set of Job, optional
            Remove the job from this set before `over` is set.
        """
        work = self._take()
        if work is None:
            return False
        self.begun.set()
        try:
            self._results.append(work())
        except BaseException as error:
            self._error = error
        finally:
            if active is not None:
                active.discard(self)
            self.over.set()
        return True

    def result(self, seconds: float | None = None) -> Result:
        """Wait for the result, for a limited time if given.

        Raises
        ------
        TimeoutError
            If it is not stored in time.
        BaseException
            The exception that the call raised.
        """
        if not self.over.wait(seconds):
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._results[0]


class ThreadGroup:
    """Threads that run jobs.

    A thread writes `active`, then reads `closed`; the caller writes `closed`, then reads `active`.
    So a thread that works is never overlooked, whatever instruction an interrupt prevents.

    Parameters
    ----------
    stop : callable, optional
        Makes running jobs end early; may be called more than once.

    Attributes
    ----------
    active : set of Job
        Jobs that threads have taken, or are about to take.
    closed : bool
        Threads take no more jobs.
    """

    def __init__(self, stop: Callable[[], None] | None = None) -> None:
        self.active: set[Job] = set()
        self.closed = False
        self._stop, self._latch = stop, 0

    def start(self, job: Job) -> bool:
        """Start a thread for a job; return False if there can be no more threads."""
        try:
            _thread.start_new_thread(self._run, (job,))
        except (RuntimeError, MemoryError):  # no memory for its stack, or a limit
            return False
        return True

    def begin(self, work: Callable[[], Result]) -> Job[Result] | None:
        """Start a thread and wait until it has taken a call; None if there can be no more threads.

        A thread without memory for its first steps ends silently, and `threading.Thread.start`
        would wait for it forever.

        Examples
        --------
        >>> ThreadGroup().begin(lambda: 6 * 7).result()
        42
        """
        job = Job(work)
        if not self.start(job):
            return None
        return None if not job.begun.wait(_START_SECONDS) and job.cancel() else job

    def begin_each(self, calls: Iterable[Callable[[], Result]]) -> list[Job[Result]]:
        """Begin the first of these calls, one a thread, until no thread can start."""
        jobs: list[Job[Result]] = []
        for job in map(self.begin, calls):
            if job is None:
                break
            jobs.append(job)
        return jobs

    def _run(self, job: Job) -> None:
        self.active.add(job)
        try:
            if not self.closed:
                job.run(self.active)
        finally:
            self.active.discard(job)
            latch = self._latch
            if latch and not self.active:
                _release(latch)

    def end(self) -> None:
        """Prevent further jobs, stop those that run, and wait until no thread has one.

        An interrupt may prevent the call or its first steps: see `run_with_threads`.
        """
        self.closed = True
        while self.active:
            if self._stop is not None:
                self._stop()
            self._latch = self._latch or _acquired_lock()
            if self.active:  # after that, the last thread finds the lock
                _acquire(self._latch, _WAIT_MICROSECONDS, 0)
        self._stop = None  # it may refer to the owner of this group
        if self._latch:
            latch, self._latch = self._latch, 0
            _latches.append(latch)


def _acquired_lock() -> int:
    if _latches:
        return _latches.pop()
    lock = _new_lock()
    if not lock:
        raise MemoryError("a lock cannot be allocated")
    _acquire(lock, 0, 0)
    return lock


def run_with_threads(
    body: Callable[[ThreadGroup], Result],
    stop: Callable[[], None] | None = None,
    group: ThreadGroup | None = None,
) -> Result:
    """Call `body` with a group of threads; return or raise only once no thread has a job.

    Parameters
    ----------
    body : callable
        Begins jobs, and waits for them if it needs their results.
    stop : callable, optional
        See `ThreadGroup`; called if jobs are running when `body` is left.
    group : ThreadGroup, optional
        An existing group, used instead of a new one.

    Examples
    --------
    >>> run_with_threads(lambda group: group.begin(lambda: 6 * 7).result())
    42
    """
    group = ThreadGroup(stop) if group is None else group
    try:
        try:
            return body(group)
        finally:
            group.end()
    finally:  # an interrupt may have prevented the first call
        group.end()


def run_each(calls: Iterable[Callable[[], Result]]) -> list[Result]:
    """Run calls at the same time, the last one in this thread; return their results in order.

    This thread also runs each call that no thread has begun by then. An exception of any call is
    raised, once no call is running.

    Examples
    --------
    >>> run_each([lambda: 6, lambda: 7])
    [6, 7]
    """
    *others, last = calls
    jobs = [Job(call) for call in others]

    def body(group: ThreadGroup) -> list[Result]:
        for job in jobs:
            if not group.start(job):
                break
        result = last()
        for job in jobs:
            job.run()
        return [*(job.result() for job in jobs), result]

    return run_with_threads(body)
