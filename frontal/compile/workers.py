"""Worker processes that compile beside the first call: Numba's global lock blocks threads.

If nothing is compiled yet for a kind of system, up to eight processes compile its functions in
`manifest`, those with the longest chain of callers first. They share one folder of compiled code
and `CompileLocks` with this process, which loads code that exists, waits for functions that a
worker is compiling, and compiles the rest. Nothing depends on the workers.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..machine.resources import available_memory, thread_count
from ..machine.thread_group import Job, ThreadGroup
from . import jit, locks, worker

MAX_PROCESSES = 8  # workers
_BYTES = 4 * 10**8  # memory of a worker
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from frontal.compile import worker; worker.main()"

_first = not jit._FOLDER.is_dir()  # nothing has ever been compiled here
_asked: set[tuple[str, str, np.dtype | None]] = set()  # kinds that were requested
_pools: list[WorkerPool] = []  # at most one


def count() -> int:
    """Return the number of workers: ``FRONTAL_HELPERS``, else what cores and memory permit.

    Without the variable at most one less than the cores, and at most half of the memory. None in a
    child of `multiprocessing`.
    """
    processes = sys.modules.get("multiprocessing.process")
    if not sys.executable or (processes is not None and processes.parent_process() is not None):
        return 0
    asked = os.environ.get("FRONTAL_HELPERS", "").strip()
    if asked.isdigit():
        return int(asked)
    memory = available_memory()
    room = MAX_PROCESSES if memory is None else memory // (2 * _BYTES)
    return max(0, min(MAX_PROCESSES, thread_count() - 1, room))


def begin() -> None:
    """Start workers before the kind of a system is known, if nothing has ever been compiled."""
    global _first
    if not _first:
        return
    _first = False
    if number := count():
        with contextlib.suppress(OSError):
            jit._FOLDER.mkdir(parents=True)  # raises if another process has made it
            _start(number)


def compile_for(backend: str, what: str, dtype: np.dtype | None = None) -> None:
    """Let workers compile the functions of a kind of system, unless a process has started on it.

    Parameters
    ----------
    backend : {"cpu", "gpu"}
    what : str
        Name of a method, ``"dissection"`` or ``"layers"``.
    dtype : numpy.dtype, optional
    """
    asked = backend, what, dtype
    if asked in _asked:  # the name of a type takes longer to compute than a small factor
        return
    _asked.add(asked)
    kind = " ".join(str(word) for word in asked if word is not None)
    if (number := count()) and _is_first(kind):
        with contextlib.suppress(OSError):  # no process or memory available
            if not (_pools and _pools[-1].ask([kind])):
                _start(number, kind)


def compile_all(kinds: Sequence[str], number: int) -> None:
    """Compile the listed functions of some kinds of systems by ``number`` workers, and wait."""
    if count():
        with contextlib.suppress(OSError):
            _start(number, *kinds).wait()


def _is_first(kind: str) -> bool:
    """Return whether this process is the first to compile for a kind, and mark the kind."""
    try:
        jit._FOLDER.mkdir(parents=True, exist_ok=True)
        worker.mark_of(kind).touch(exist_ok=False)
    except OSError:
        return False
    return True


def _start(number: int, *kinds: str) -> WorkerPool:
    pool = WorkerPool(number, kinds)
    _pools[:] = [pool]
    return pool


class WorkerPool:
    """Worker processes, until they are done.

    Parameters
    ----------
    number : int
        Number of processes.
    kinds : sequence of str
        Kinds of systems to begin with.

    Attributes
    ----------
    kinds : list of str
        Kinds of systems they compile for; marks of unfinished kinds are removed at the end.

    Raises
    ------
    OSError
        If no process can be started.
    """

    def __init__(self, number: int, kinds: Sequence[str] = ()) -> None:
        self.kinds: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="frontal-helpers-"))
        self._workers: list[subprocess.Popen[bytes]] = []
        self._locks = locks.CompileLocks(self._folder, "main", self._workers)
        self._reaper = Job(self._reap)
        self.ask(kinds)
        try:
            for _ in range(number):
                self._add()
        except OSError:
            self.end()
            raise
        locks.active = self._locks
        ThreadGroup().start(self._reaper)

    def _add(self) -> None:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CODE, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            bufsize=0,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        settings = {
            "folder": str(jit._FOLDER.absolute()),
            "claims": str(self._folder),
            "who": str(len(self._workers)),
            "sources": jit.SOURCES,
        }
        self._workers.append(process)
        with contextlib.suppress(OSError):  # the process has ended
            process.stdin.write(json.dumps(settings).encode() + b"\n")  # type: ignore[union-attr]

    def ask(self, kinds: Sequence[str]) -> bool:
        """Request kinds; return whether a worker is running."""
        try:
            for kind in kinds:
                worker.request(self._folder, kind)
        except OSError:  # all workers have ended
            return False
        self.kinds += kinds
        return any(process.poll() is None for process in self._workers)

    def wait(self) -> None:
        """Wait until the workers are done."""
        self._reaper.run()  # unless a thread has taken it
        self._reaper.over.wait()

    def end(self) -> None:
        """Kill the workers."""
        for process in self._workers:
            process.kill()
        self._reaper.run()
        self._reaper.over.wait(2.0)

    def disown(self) -> None:
        """Release in a forked process the workers of the parent."""
        for process in self._workers:
            process.returncode = 0
            if process.stdin is not None:
                process.stdin.close()

    def _reap(self) -> None:
        for process in self._workers:
            process.wait()
            if process.stdin is not None:
                process.stdin.close()
        for kind in self.kinds:
            with contextlib.suppress(OSError):
                if not worker.is_done(kind):  # let another process compile it
                    worker.mark_of(kind).unlink()
        if locks.active is self._locks:
            locks.active = None
        shutil.rmtree(self._folder, ignore_errors=True)


def _at_exit() -> None:
    for pool in _pools:
        pool.end()


def _after_fork() -> None:
    for pool in _pools:
        pool.disown()
    _pools.clear()
    locks.active = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
