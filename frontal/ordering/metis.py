"""METIS nested dissection by pymetis, in worker processes.

pymetis holds the interpreter lock and METIS handles no signal, so a call in this process could
not be interrupted, limited in time or run beside other work. A worker process is started
when first needed, reused by later calls, and killed when a run is cancelled.

References: A. George, SIAM J. Numer. Anal. 10 (1973), nested dissection; G. Karypis, V. Kumar,
SIAM J. Sci. Comput. 20 (1998), METIS.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import subprocess
import sys
import threading
from functools import partial
from io import FileIO
from pathlib import Path

import numpy as np

from ..errors import FrontalError, OrderingTimeout
from ..machine.threads import BackgroundTask
from .components import MAX_AMD_NODES, Components, CompressedGraph

SCRIPT = Path(__file__).with_name("_metis_worker.py")


class MetisNotFoundError(FrontalError, ImportError):
    """An ordering by METIS was requested by name, and pymetis cannot be imported."""


def available() -> bool:
    """Return whether pymetis is installed and this interpreter can be started as a process."""
    return bool(sys.executable) and importlib.util.find_spec("pymetis") is not None


class _Worker:
    """A process that runs METIS on one graph after another."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(SCRIPT), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # a forked process could write buffered data again
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._to: FileIO = self.process.stdin  # type: ignore[assignment]
        self._from: FileIO = self.process.stdout  # type: ignore[assignment]
        _alive.add(self)

    def order(self, compressed: CompressedGraph, imbalance: int) -> np.ndarray:
        """Run METIS on a component; wait until it is done or another thread kills it."""
        graph = compressed.graph
        head = np.array([graph.n, graph.nnz, imbalance])
        try:
            for array in (head, graph.indptr, graph.indices, compressed.weights):
                self._write(np.ascontiguousarray(array, np.int64))
            status, size = self._read(16).view(np.int64)
            reply = self._read(int(size))
        except (OSError, EOFError) as error:
            raise RuntimeError(
                "the process that runs METIS ended. Likely causes: (a) it ran out of memory; "
                "(b) something killed it. Try: the ordering 'amd', which needs less memory"
            ) from error
        if status:
            raise RuntimeError(f"METIS failed: {reply.tobytes().decode()}")
        return reply.view(np.int64).astype(np.int32)

    def _write(self, values: np.ndarray) -> None:
        remaining = memoryview(values).cast("B") if values.size else memoryview(b"")
        while remaining:
            remaining = remaining[self._to.write(remaining) :]

    def _read(self, size: int) -> np.ndarray:
        values = np.empty(size, np.uint8)
        remaining = memoryview(values)
        while remaining:
            got = self._from.readinto(remaining)
            if not got:
                raise EOFError
            remaining = remaining[got:]
        return values

    def kill(self) -> None:
        """Kill the process; METIS ignores milder signals."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """Kill the process and close its pipes; no other thread may be using them."""
        self.kill()
        self._forget()

    def disown(self) -> None:
        """Release, in a forked process, a worker that belongs to the parent."""
        self.process.returncode = 0
        self._forget()

    def _forget(self) -> None:
        self._to.close()
        self._from.close()
        _alive.discard(self)


_alive: set[_Worker] = set()
_idle: list[_Worker] = []  # append and pop are atomic


def _take() -> _Worker:
    """Return an idle worker that is still alive, or a new one."""
    while _idle:
        worker = _idle.pop()
        if worker.process.poll() is None:
            return worker
        worker.close()
    return _Worker()


def _give_back(worker: _Worker) -> None:
    if _idle:
        worker.close()
    else:
        _idle.append(worker)


def _after_fork() -> None:
    for worker in list(_alive):
        worker.disown()
    _idle.clear()


def _at_exit() -> None:
    while _idle:
        _idle.pop().close()
    for worker in list(_alive):  # a thread may still use its pipes
        worker.kill()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


class MetisRun:
    """A run of METIS on a graph; as a context manager, it is cancelled on exit if it is not done.

    Parameters
    ----------
    components : Components
        The graph. If it is not split into components yet, the run splits it in the background.
    imbalance : int
        METIS's ``ufactor``, in thousandths of the mean size of the two sides of a separator;
        -1 for METIS's default, 200.

    Raises
    ------
    MetisNotFoundError
        If pymetis is not installed.
    """

    def __init__(self, components: Components, imbalance: int = -1) -> None:
        if not available():
            raise MetisNotFoundError(
                "METIS needs the package pymetis, which is not installed. "
                "Try: `pip install pymetis`, or the ordering 'amd'"
            )
        worker = _take()
        self._worker: _Worker | None = worker  # None once done or cancelled
        self._lock = threading.Lock()
        self._task = BackgroundTask(
            partial(self._work, worker, components, imbalance), stop=self.cancel
        )

    def _work(self, worker: _Worker, components: Components, imbalance: int) -> np.ndarray:
        try:
            perms = [
                worker.order(part, imbalance) if part.graph.n > MAX_AMD_NODES else part.order()
                for part in components.compressed
            ]
        except BaseException:
            self._claim()
            worker.close()
            raise
        if self._claim():
            _give_back(worker)
        else:
            worker.close()
        return components.assemble(perms)

    def _claim(self) -> _Worker | None:
        """Return the worker to the first caller: the thread that uses it, or a cancelling one."""
        with self._lock:
            worker, self._worker = self._worker, None
        return worker

    def result(self, timeout: float | None = None) -> np.ndarray:
        """Wait for the order: (n,) int32 array ``perm``, the node eliminated k-th.

        Raises
        ------
        OrderingTimeout
            If METIS is not done after `timeout` seconds; it is killed then.
        RuntimeError
            If METIS fails, or another process kills its worker.
        """
        try:
            return self._task.result(None if timeout == np.inf else timeout)
        except TimeoutError as error:
            faster = ", which is about ten times faster"
            raise OrderingTimeout.after(timeout, "METIS", faster) from error
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Kill METIS if it still runs."""
        worker = self._claim()
        if worker is not None:
            worker.kill()  # its thread then closes the pipes

    def __enter__(self) -> MetisRun:
        return self

    def __exit__(self, *exception: object) -> None:
        self.cancel()
