"""Work on threads: parts of long lists, and what is begun before it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from .resources import thread_count
from .thread_group import Job, ThreadGroup, run_each, run_with_threads

MIN_PARALLEL_ENTRIES = 1 << 17  # entries of a part: fewer are done before a thread has begun
MAX_PARTS = 16  # parts: more threads wait for the same memory
_ROWS = 1024  # of many columns that a core's cache holds while they are transposed

Result = TypeVar("Result")


def bounds_of(pointer: np.ndarray | int) -> np.ndarray:
    """Where parts of a list begin and end: about as many entries in each.

    Parameters
    ----------
    pointer : (n + 1,) int array, or int
        Extents of the entries of n items; or how many items of one entry there are. If it is
        corrupt, parts are of any size.

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
    """Whether a list is one part in any case: `bounds_of` says so, too, in ten times the time."""
    if isinstance(pointer, int):
        return pointer < 2 * MIN_PARALLEL_ENTRIES
    return pointer.size - 1 + int(pointer[-1]) < 2 * MIN_PARALLEL_ENTRIES


def parallel_for(work: Callable[[int, int], Result], pointer: np.ndarray | int) -> list[Result]:
    """What ``work(first, last)`` returns for the parts of a list, one after the other.

    Parameters
    ----------
    work : callable
        Runs without the GIL. What it raises is raised here, once no part is at work any more.
        Parts for which there can be no thread run in this one.
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
    """A copy of a contiguous vector; of another type, whose numbers have room there.

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
    """A copy of a matrix in Fortran order.

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
    """Whether two vectors are.

    Examples
    --------
    >>> equal(np.arange(3), np.arange(3, dtype=np.int32)), equal(np.arange(3), np.arange(4))
    (True, False)
    """
    if first.size != second.size:
        return False
    return all(parallel_for(lambda a, b: np.array_equal(first[a:b], second[a:b]), first.size))


class BackgroundTask(Generic[Result]):
    """Work that a thread has begun; as a context manager, it is over on leaving.

    Parameters
    ----------
    work : callable
        What it raises is raised by `result`.
    now : bool
        Do it at once instead.
    stop : callable, optional
        Make it end early; called where it is still at work on leaving.

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
            self._job.run()  # unless a thread does
        except BaseException:  # nothing else knows the thread
            self._group.end()
            raise

    def result(self, timeout: float | None = None) -> Result:
        """Wait for what it returns; some seconds, or as long as it takes.

        Raises
        ------
        TimeoutError
            If it takes longer.
        """
        return self._job.result(timeout)

    def join(self) -> None:
        """Wait until it is over, whatever came of it."""
        self._job.over.wait()

    def end(self) -> None:
        """Stop it, and wait until it is over."""
        run_with_threads(lambda _: None, group=self._group)

    def __enter__(self) -> BackgroundTask[Result]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()
