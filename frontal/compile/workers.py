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
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..machine.resources import available_memory, thread_count
from ..machine.thread_group import Job, ThreadGroup
from . import jit, locks, worker

MAX_PROCESSES = 8  # workers
_BYTES = 4 * 10**8  # memory of a worker
_ABANDONED = 120.0  # seconds after which another process may compile a marked kind
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
    if asked in _asked:
        return
    _asked.add(asked)
    kind = " ".join(str(word) for word in asked if word is not None)
    if (number := count()) and _claimed(kind):
        with contextlib.suppress(OSError):  # no process or memory available
            pool = _pools[-1] if _pools and _pools[-1].ask([kind]) else _start(number, kind)
            pool.kinds.append(kind)


def compile_all(kinds: Sequence[str], number: int) -> None:
    """Compile the listed functions of some kinds of systems by ``number`` workers, and wait."""
    if count():
        with contextlib.suppress(OSError):
            _start(number, *kinds).wait()


def _claimed(kind: str) -> bool:
    """Return whether this process is the first to compile for a kind."""
    mark = worker.mark_of(kind)
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            mark.touch(exist_ok=False)
            return True
        if time.time() - mark.stat().st_mtime > _ABANDONED and not worker.is_done(kind):
            mark.touch()
            return True
    except OSError:
        pass
    return False


def _start(number: int, *kinds: str) -> WorkerPool:
    pool = WorkerPool(number)
    if kinds:
        pool.ask(kinds)
    _pools[:] = [pool]
    return pool


class WorkerPool:
    """Worker processes, until they are done.

    Parameters
    ----------
    number : int
        Number of processes.

    Attributes
    ----------
    kinds : list of str
        Kinds of systems they compile for; marks of unfinished kinds are removed at the end.

    Raises
    ------
    OSError
        If no process can be started.
    """

    def __init__(self, number: int) -> None:
        self.kinds: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="frontal-helpers-"))
        self._workers: list[subprocess.Popen[bytes]] = []
        self._locks = locks.CompileLocks(self._folder, "main", self._workers)
        self._reaper = Job(self._reap)
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
        who = str(len(self._workers))
        self._workers.append(process)
        folders = {"folder": str(jit._FOLDER.absolute()), "claims": str(self._folder)}
        _write(process, {**folders, "who": who, "sources": jit.SOURCES})

    def ask(self, kinds: Sequence[str]) -> bool:
        """Request kinds; return whether a worker still listens."""
        listening = [process for process in self._workers if process.poll() is None]
        delivered = [_write(process, kinds) for process in listening]
        return any(delivered)

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


def _write(process: subprocess.Popen[bytes], what: object) -> bool:
    """Send a line to a worker; return whether it has its input open."""
    try:
        process.stdin.write(json.dumps(what).encode() + b"\n")  # type: ignore[union-attr]
    except (OSError, ValueError):
        return False
    return True


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
