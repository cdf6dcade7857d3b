"""An ordering at work on threads, which can be waited for and ended."""

from __future__ import annotations

import concurrent.futures
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import numpy as np

from ... import helpers
from ...errors import OrderingTimeout

Part = TypeVar("Part", bound=Any)
Found = TypeVar("Found")


def work_off(ready: list[Part], submit: Callable[[Part], Future[list[Part]]]) -> None:
    """Work off parts, each of which may leave smaller ones, the largest first.

    Parameters
    ----------
    ready : list
        Parts, which have `names`.
    submit : callable
        Begins to work on one.
    """
    open_: set[Future[list[Part]]] = set()
    while ready or open_:
        ready.sort(key=lambda part: -part.names.size)
        open_ |= {submit(part) for part in ready}
        done, open_ = concurrent.futures.wait(open_, return_when=FIRST_COMPLETED)
        ready = [part for future in done for part in future.result()]


class Running(ABC, Generic[Found]):
    """An ordering at work; as a context manager, it is ended on leaving.

    Parameters
    ----------
    threads : int
        How many work.
    """

    def __init__(self, threads: int) -> None:
        helpers.compile_for("cpu", "dissection")
        self._threads = max(threads, 1)
        self._stop = np.zeros(1, np.int32)  # not zero once nobody waits any more
        self._future: Future[Found] = Future()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def result(self, timeout: float | None = None) -> Found:
        """Wait for the order: (n,) int32 array ``perm``, the node eliminated k-th.

        Raises
        ------
        OrderingTimeout
            If it is not there after `timeout` seconds.
        """
        try:
            return self._future.result(None if timeout == np.inf else timeout)
        except concurrent.futures.TimeoutError as error:
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
    def _order(self, pool: ThreadPoolExecutor) -> Found:
        """What is waited for."""

    def _work(self) -> None:
        try:
            with ThreadPoolExecutor(self._threads) as pool:
                self._future.set_result(self._order(pool))
        except BaseException as error:
            self._future.set_exception(error)

    def __exit__(self, *exception: object) -> None:
        self.cancel()
