"""An ordering that runs on threads and can be awaited or cancelled."""

from __future__ import annotations

import heapq
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakMethod

import numpy as np

from ...compile import workers
from ...errors import OrderingTimeout
from ...machine.thread_group import ThreadGroup, run_with_threads
from ...machine.threads import BackgroundTask

Subgraph = TypeVar("Subgraph", bound=Any)
Result = TypeVar("Result")


class _Open(Generic[Subgraph]):
    """A queue of waiting parts, and the number of open parts: waiting or in work."""

    def __init__(self, subgraphs: list[Subgraph]) -> None:
        self._changed = threading.Condition()
        self._count = itertools.count()
        self._waiting: list[tuple[int, int, Subgraph]] = []
        self._open = 0
        self.error: BaseException | None = None
        self._add(subgraphs)

    def _add(self, subgraphs: list[Subgraph]) -> None:
        self._open += len(subgraphs)
        for subgraph in subgraphs:
            heapq.heappush(self._waiting, (-subgraph.names.size, next(self._count), subgraph))

    def take(self) -> Subgraph | None:
        """Return the largest waiting part, or None once no part is open."""
        with self._changed:
            while not self._waiting and self._open:
                self._changed.wait()
            return heapq.heappop(self._waiting)[-1] if self._open else None

    def done(self, subgraphs: list[Subgraph]) -> None:
        """Report a part as done and add its smaller parts; the caller takes one of them next."""
        with self._changed:
            if self._open:
                self._add(subgraphs)
                self._open -= 1
            if not self._open:
                self._changed.notify_all()
            elif len(subgraphs) > 1:
                self._changed.notify(len(subgraphs) - 1)

    def failed(self, error: BaseException) -> None:
        """Record an error and drop all open parts."""
        with self._changed:
            self._open, self.error = 0, error
            self._changed.notify_all()


def work_off(
    subgraphs: list[Subgraph], work: Callable[[Subgraph], list[Subgraph]], threads: int
) -> None:
    """Process parts, the largest first, on `threads` threads with the calling one.

    Each part has an array `names`; `work` may return smaller parts. An exception of `work` is
    raised here once all threads have stopped.
    """
    open_ = _Open(subgraphs)

    def member() -> None:
        try:
            while (subgraph := open_.take()) is not None:
                open_.done(work(subgraph))
        except BaseException as error:
            open_.failed(error)

    def run(group: ThreadGroup) -> None:
        group.begin_each([member] * (threads - 1))
        member()

    run_with_threads(run)
    if open_.error is not None:
        raise open_.error


def _call(method: WeakMethod[Callable[[], None]]) -> None:
    """Call a method of an object, if the object still exists."""
    target = method()
    if target is not None:
        target()


class TaskPool(ABC, Generic[Result]):
    """A run of an ordering; as a context manager, it is cancelled on exit.

    Parameters
    ----------
    threads : int
        Number of threads.
    """

    compiled_as = "dissection"  # name of its compiled functions in `workers`

    def __init__(self, threads: int) -> None:
        workers.compile_for("cpu", self.compiled_as)
        self._threads = max(threads, 1)
        self._stop = np.zeros(1, np.int32)  # nonzero once cancelled
        self._task = BackgroundTask(self._order, stop=partial(_call, WeakMethod(self.cancel)))

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result of `_order` and return it.

        Raises
        ------
        OrderingTimeout
            If it is not done after `timeout` seconds.
        """
        try:
            return self._task.result(None if timeout == np.inf else timeout)
        except TimeoutError as error:
            raise OrderingTimeout.after(timeout, "nested dissection", "") from error
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Cancel the run; its threads stop by themselves, at the next level at the latest."""
        self._stop[0] = 1

    @abstractmethod
    def _order(self) -> Result:
        """Compute the result of the run."""

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None or issubclass(kind, OrderingTimeout):
            self.cancel()
        else:  # such as Ctrl-C: wait for the threads, since the caller may change its arrays
            self._task.end()
