"""Threads for parts of long lists, and for background tasks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from .resources import thread_count
from .thread_group import Job, ThreadGroup, run_each, run_with_threads

MIN_PARALLEL_ENTRIES = 1 << 17  # entries of a part: fewer are done before a thread has started
MAX_PARTS = 16  # parts of a list: more threads only share the memory bandwidth
_ROWS = 1024  # rows of a block that a core's cache holds during its transposition

Result = TypeVar("Result")


def bounds_of(pointer: np.ndarray | int) -> np.ndarray:
    """Return the bounds of the parts of a list, with about equally many entries in each.

    Parameters
    ----------
    pointer : (n + 1,) int array, or int
        Extents of the entries of n items; or the number of items of one entry each. If it is
        corrupt, parts have any size.

    Examples
    --------
    >>> bounds_of(np.arange(4))
    array([0, 3])
    """
    if isinstance(pointer, int):
        count = max(min(MAX_PARTS, thread_count(), pointer // MIN_PARALLEL_ENTRIES), 1)
        return pointer * np.arange(count + 1) // count
    n = pointer.size - 1
    entries = max(int(pointer[-1]), 0)
    count = min(MAX_PARTS, thread_count(), (n + entries) // MIN_PARALLEL_ENTRIES, n)
    if count < 2:
        return np.array([0, n])
    shares = entries * np.arange(1, count) // count
    inner = np.searchsorted(pointer, shares, side="right").clip(1, n - 1)
    return np.concatenate([[0], np.unique(inner), [n]])


def is_short(pointer: np.ndarray | int) -> bool:
    """Return whether `bounds_of` certainly gives one part, in a tenth of its time."""
    if isinstance(pointer, int):
        return pointer < 2 * MIN_PARALLEL_ENTRIES
    return pointer.size - 1 + int(pointer[-1]) < 2 * MIN_PARALLEL_ENTRIES


def parallel_for(work: Callable[[int, int], Result], pointer: np.ndarray | int) -> list[Result]:
    """Return the results of ``work(first, last)`` for the parts of a list, in order.

    Parameters
    ----------
    work : callable
        Runs without the GIL. Its exceptions are raised here, once no part is running. Parts
        without a thread run in the calling thread.
    pointer : (n + 1,) int array, or int
        See `bounds_of`.

    Examples
    --------
    >>> parallel_for(lambda first, last: last - first, np.arange(4))
    [3]
    """
    if is_short(pointer):
        return [work(0, pointer if isinstance(pointer, int) else pointer.size - 1)]
    return run_each(partial(work, *span) for span in pairwise(bounds_of(pointer).tolist()))


def copied(array: np.ndarray, dtype: type[np.generic] | None = None) -> np.ndarray:
    """Return a copy of a contiguous vector, of another type if given, which its numbers must fit.

    Examples
    --------
    >>> copied(np.arange(3), np.int32).dtype
    dtype('int32')
    """
    if array.size < 2 * MIN_PARALLEL_ENTRIES:
        return np.array(array, dtype)
    out = np.empty_like(array, dtype)

    def copy(first: int, last: int) -> None:
        out[first:last] = array[first:last]

    parallel_for(copy, array.size)
    return out


def columnwise(B: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return a copy of a matrix in Fortran order.

    Examples
    --------
    >>> columnwise(np.ones((3, 2)), np.dtype("f4")).strides
    (4, 12)
    """
    out = np.empty(B.shape, dtype, order="F")
    k = max(B.shape[1], 1)

    def copy(first: int, last: int) -> None:
        for begin in range(first // k, last // k, _ROWS):
            rows = slice(begin, min(begin + _ROWS, last // k))
            out[rows] = B[rows]

    parallel_for(copy, B.size)
    return out


def equal(first: np.ndarray, second: np.ndarray) -> bool:
    """Return whether two vectors are equal.

    Examples
    --------
    >>> equal(np.arange(3), np.arange(3, dtype=np.int32)), equal(np.arange(3), np.arange(4))
    (True, False)
    """
    if first.size != second.size:
        return False
    return all(parallel_for(lambda a, b: np.array_equal(first[a:b], second[a:b]), first.size))


class BackgroundTask(Generic[Result]):
    """A call that runs on a thread; as a context manager, it is over on exit.

    Parameters
    ----------
    work : callable
        Its exceptions are raised by `result`.
    now : bool
        Run it in the constructor instead.
    stop : callable, optional
        Makes it end early; called if it is still running on exit.

    Examples
    --------
    >>> with BackgroundTask(lambda: 6 * 7) as work:
    ...     work.result()
    42
    """

    def __init__(
        self,
        work: Callable[[], Result],
        *,
        now: bool = False,
        stop: Callable[[], None] | None = None,
    ) -> None:
        self._group = ThreadGroup(stop)
        try:
            begun = None if now else self._group.begin(work)
            self._job = Job(work) if begun is None else begun
            self._job.run()  # unless a thread has taken it
        except BaseException:  # nothing else refers to the thread
            self._group.end()
            raise

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the result, at most ``timeout`` seconds if given.

        Raises
        ------
        TimeoutError
            If the call takes longer.
        """
        return self._job.result(timeout)

    def join(self) -> None:
        """Wait until the call is over, with a result or an exception."""
        self._job.over.wait()

    def end(self) -> None:
        """Stop the call, and wait until it is over."""
        run_with_threads(lambda _: None, group=self._group)

    def __enter__(self) -> BackgroundTask[Result]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
