"""Copies between host and device by several threads, through pinned memory.

The driver copies pageable memory with one thread, at a third of the speed of these threads if the
memory is in no cache. The threads run compiled code that calls the driver, so that none waits for
the GIL between pieces.
"""

from __future__ import annotations

import ctypes
import logging
import sys
from collections.abc import Callable, Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from ..._typing import Untyped
from ...compile.atomics import call, fetch_add, status
from ...compile.jit import jit
from ...machine import threads

log = logging.getLogger("frontal")

MIN_STAGED_BYTES = 2 << 20  # bytes: fewer are copied before a thread has started
_PIECE, _SHARE, _LANES = 1 << 20, 4 << 20, 8  # bytes a piece, bytes a thread, most threads


class Calls(NamedTuple):
    """Addresses of C functions: memmove, and copies and events of the driver."""

    move: int
    up: int
    down: int
    record: int
    wait: int


def address_of(function: Untyped) -> int:
    """Return the address of a C function."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def calls_of_driver() -> Calls:
    """Return the functions of the CUDA driver, which this process has loaded.

    Raises
    ------
    OSError, AttributeError
        If the library or a function has another name.
    """
    library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    copies = library.cuMemcpyHtoDAsync_v2, library.cuMemcpyDtoHAsync_v2
    waits = library.cuEventRecord, library.cuEventSynchronize
    return Calls(*map(address_of, (ctypes.memmove, *copies, *waits)))


class _StagingStream:
    """A stream with two buffers: one is filled while the other is copied."""

    def __init__(self, cuda: Untyped) -> None:
        self._memory = cuda.PinnedMemory(2 * _PIECE)
        self.copied = [cuda.Event(disable_timing=True) for _ in (0, 1)]
        self.stream = cuda.Stream(non_blocking=True)
        first, second = self.copied
        self.handles = self._memory.ptr, self.stream.ptr, first.ptr, second.ptr


class Staging:
    """Copies to and from the device ``index``, for one thread at a time.

    Parameters
    ----------
    cuda : module
        `cupy.cuda`.
    calls : callable
        Returns the functions of the driver, at the first copy.
    """

    def __init__(
        self, cuda: Untyped, index: int, calls: Callable[[], Calls] = calls_of_driver
    ) -> None:
        self._cuda, self._index, self._find, self._lock = cuda, index, calls, Lock()
        self._calls: Calls | None = None
        self._lanes: list[_StagingStream] = []
        self._failed = False

    def send(self, sources: Sequence[np.ndarray], targets: Sequence[int], after: Untyped) -> bool:
        """Copy contiguous arrays to addresses.

        Parameters
        ----------
        after : cupy.cuda.Event
            When it is reached, the targets may be written. Later work on the current stream waits
            for the copies.

        Returns
        -------
        bool
            False if nothing was copied: another thread is copying, or memory is short.
        """
        places = [source.ctypes.data for source in sources]
        return self._carry(_pieces(places, targets, [x.nbytes for x in sources]), _send, after)

    def fetch(self, source: int, target: np.ndarray, after: Untyped) -> bool:
        """Copy memory at an address to a contiguous array.

        Parameters
        ----------
        after : cupy.cuda.Event
            When it is reached, the source may be read.

        Returns
        -------
        bool
            See `send`.
        """
        return self._carry(_pieces([source], [target.ctypes.data], [target.nbytes]), _fetch, after)

    def _carry(self, pieces: np.ndarray, work: Callable[..., Untyped], after: Untyped) -> bool:
        if self._failed or not self._lock.acquire(blocking=False):
            return False
        try:
            count = min(1 + int(pieces[:, 2].sum()) // _SHARE, _LANES)
            if not self._ready(count):
                return False
            lanes = self._lanes[:count]
            for lane in lanes:
                lane.stream.wait_event(after)
            self._run(lanes, pieces, work)
            return True
        finally:
            self._lock.release()

    def _ready(self, count: int) -> bool:
        """Return whether ``count`` lanes exist; create missing ones."""
        try:
            self._calls = self._calls or self._find()
            while len(self._lanes) < count:
                self._lanes.append(_StagingStream(self._cuda))
        except (OSError, AttributeError, self._cuda.runtime.CUDARuntimeError) as error:
            log.info(
                "copies from and to the device use the driver only, without staging: %s", error
            )
            self._failed = True
        return not self._failed

    def _run(
        self, lanes: list[_StagingStream], pieces: np.ndarray, work: Callable[..., Untyped]
    ) -> None:
        counter = np.zeros(1, np.int64)

        def share(first: int, last: int) -> int:
            """Copy pieces on one lane; a late thread copies fewer."""
            self._cuda.runtime.setDevice(self._index)
            lane = lanes[first // threads.MIN_PARALLEL_ENTRIES]
            return int(work(pieces, counter, _PIECE, *lane.handles, self._calls))

        try:
            errors = threads.parallel_for(share, len(lanes) * threads.MIN_PARALLEL_ENTRIES)
        finally:  # later users of the memory wait, even after an error
            current = self._cuda.get_current_stream()
            for lane in lanes:
                for copied in lane.copied:
                    current.wait_event(copied)
        if any(errors):
            raise self._cuda.driver.CUDADriverError(max(errors))


def _pieces(sources: Sequence[int], targets: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """Return a (pieces, 3) int64 array: source, target, bytes."""
    copies = zip(sources, targets, sizes, strict=True)
    pieces = [(a + k, b + k, min(_PIECE, n - k)) for a, b, n in copies for k in range(0, n, _PIECE)]
    return np.array(pieces, np.int64).reshape(-1, 3)


@jit
def _send(pieces, counter, piece_bytes, memory, stream, first_event, second_event, calls):
    """Copy unclaimed pieces; on return all their sources are read, and the copies enqueued."""
    error, turn = np.int32(0), fetch_add(counter, 0, 1)
    buffer, next_buffer, copied, next_copied = (
        memory,
        memory + piece_bytes,
        first_event,
        second_event,
    )
    while turn < pieces.shape[0] and error == 0:
        source, target, size = pieces[turn, 0], pieces[turn, 1], pieces[turn, 2]
        error = status(calls.wait, (copied,))
        call(calls.move, (buffer, source, size))
        error = max(error, status(calls.up, (target, buffer, size, stream)))
        error = max(error, status(calls.record, (copied, stream)))
        buffer, next_buffer, copied, next_copied = next_buffer, buffer, next_copied, copied
        turn = fetch_add(counter, 0, 1)
    return error


@jit
def _fetch(pieces, counter, piece_bytes, memory, stream, first_event, second_event, calls):
    """Copy unclaimed pieces; on return all of them are in their targets."""
    error, turn, last = np.int32(0), fetch_add(counter, 0, 1), -1
    buffer, last_buffer, copied, last_copied = (
        memory,
        memory + piece_bytes,
        first_event,
        second_event,
    )
    while (turn < pieces.shape[0] or last >= 0) and error == 0:
        if turn < pieces.shape[0]:
            error = status(calls.down, (buffer, pieces[turn, 0], pieces[turn, 2], stream))
            error = max(error, status(calls.record, (copied, stream)))
        if last >= 0:
            error = max(error, status(calls.wait, (last_copied,)))
            call(calls.move, (pieces[last, 1], last_buffer, pieces[last, 2]))
        last = turn if turn < pieces.shape[0] else -1
        buffer, last_buffer, copied, last_copied = last_buffer, buffer, last_copied, copied
        turn = fetch_add(counter, 0, 1)
    return error
