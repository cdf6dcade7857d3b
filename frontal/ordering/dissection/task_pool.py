"""An ordering at work on threads, which can be waited for and ended."""

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
    """Parts that wait, and how many are not done: waiting ones and those at work."""

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
        """The largest part that waits; None once there will be none any more."""
        with self._changed:
            while not self._waiting and self._open:
                self._changed.wait()
            return heapq.heappop(self._waiting)[-1] if self._open else None

    def done(self, subgraphs: list[Subgraph]) -> None:
        """A part is done, which leaves others; who asks next has one of them."""
        with self._changed:
            if self._open:
                self._add(subgraphs)
                self._open -= 1
            if not self._open:
                self._changed.notify_all()
            elif len(subgraphs) > 1:
                self._changed.notify(len(subgraphs) - 1)

    def failed(self, error: BaseException) -> None:
        """Nothing of what waits is worth its time any more."""
        with self._changed:
            self._open, self.error = 0, error
            self._changed.notify_all()


def work_off(
    subgraphs: list[Subgraph], work: Callable[[Subgraph], list[Subgraph]], threads: int
) -> None:
    """Work off parts, each of which may leave smaller ones, the largest first.

    Parameters
    ----------
    parts : list
        They have `names`.
    work : callable
        Works on one; what it raises is raised here, once no thread is at work any more.
    threads : int
        How many work, this one included.
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
    """Call a method of an object that is not kept alive by it."""
    target = method()
    if target is not None:
        target()


class TaskPool(ABC, Generic[Result]):
    """An ordering at work; as a context manager, it is ended on leaving.

    Parameters
    ----------
    threads : int
        How many work.
    """

    compiled_as = "dissection"  # by `workers`

    def __init__(self, threads: int) -> None:
        workers.compile_for("cpu", self.compiled_as)
        self._threads = max(threads, 1)
        self._stop = np.zeros(1, np.int32)  # not zero once nobody waits any more
        self._task = BackgroundTask(self._order, stop=partial(_call, WeakMethod(self.cancel)))

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the order: (n,) int32 array ``perm``, the node eliminated k-th.

        Raises
        ------
        OrderingTimeout
            If it is not there after `timeout` seconds.
        """
        try:
            return self._task.result(None if timeout == np.inf else timeout)
        except TimeoutError as error:
            raise OrderingTimeout(
                f"nested dissection was not done in time ({timeout:.3g} s were left). Likely "
                "causes: (a) the graph is larger than the time limit allows; (b) other work keeps "
                "the processor busy. Try a larger time limit, or the ordering 'amd'"
            ) from error
        finally:
            self.cancel()

    def cancel(self) -> None:
        """End it, if it is still at work: its threads leave by themselves, within a level."""
        self._stop[0] = 1

    @abstractmethod
    def _order(self) -> Result:
        """What is waited for."""

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is None or issubclass(kind, OrderingTimeout):
            self.cancel()
        else:  # such as Ctrl-C: the caller may change the arrays that it gave
            self._task.end()
