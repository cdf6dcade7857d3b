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
from . import jit, locks
from .locks import DONE, mark_of

MAX_PROCESSES = 8  # workers
_BYTES = 4 * 10**8  # memory of a worker
_ABANDONED = 120.0  # seconds after which another process may compile a marked kind
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from frontal.compile import worker; worker.alone()"

_first = not jit._FOLDER.is_dir()  # nothing has ever been compiled here
_asked: set[tuple[str, str, np.dtype | None]] = set()  # kinds that were requested
_crews: list[WorkerPool] = []  # at most one


def count() -> int:
    """Return the number of workers: ``FRONTAL_HELPERS``, else what cores and memory permit.

    Without the variable at most one less than the cores, and at most half of the memory.
    """
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
    if _may() and (number := count()):
        try:
            jit._FOLDER.mkdir(parents=True)  # raises if another process has made it
        except OSError:
            return
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
    if not (_may() and (number := count()) and _claimed(kind)):
        return
    crew = _crews[-1] if _crews and _crews[-1].ask([kind]) else _start(number, kind)
    if crew is not None:
        crew.kinds.append(kind)


def compile_all(kinds: Sequence[str], number: int) -> None:
    """Compile the listed functions of some kinds of systems by ``number`` workers, and wait."""
    if count():
        crew = _start(number, *kinds)
        if crew is not None:
            crew.wait()


def mark(kinds: Sequence[str]) -> None:
    """Record on disk that all functions of some kinds of systems are compiled."""
    for kind in kinds:
        mark_of(jit._FOLDER, kind).write_bytes(DONE)


def _may() -> bool:
    """Return whether this process may start others: it is no child of `multiprocessing`."""
    others = sys.modules.get("multiprocessing.process")
    child = others is not None and others.parent_process() is not None
    return bool(sys.executable) and not child


def _claimed(kind: str) -> bool:
    """Return whether this process is the first to compile for a kind."""
    path = mark_of(jit._FOLDER, kind)
    try:
        jit._FOLDER.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.open("x").close()
            return True
        old = time.time() - path.stat().st_mtime > _ABANDONED
        if old and not path.read_bytes():
            os.utime(path)
            return True
    except OSError:
        pass
    return False


def _start(number: int, *kinds: str) -> WorkerPool | None:
    try:
        crew = WorkerPool(number)
    except OSError:  # no process or memory available
        return None
    if kinds:
        crew.ask([*kinds])
    _crews[:] = [crew]
    return crew


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
    """

    def __init__(self, number: int) -> None:
        self.kinds: list[str] = []
        self._folder = Path(tempfile.mkdtemp(prefix="frontal-helpers-"))
        self._crew: list[subprocess.Popen[bytes]] = []
        self._claims = locks.CompileLocks(self._folder, "main", self._alive, self._lost)
        self._reaper = Job(self._reap)
        try:
            for name in map(str, range(number)):
                self._crew.append(self._helper(name))
        except OSError:
            self._kill()
            self._clean()
            raise
        locks.shared.append(self._claims)
        ThreadGroup().start(self._reaper)

    def _helper(self, name: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CODE, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            bufsize=0,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        settings = {"folder": str(jit._FOLDER.absolute()), "claims": str(self._folder), "who": name}
        self._tell(process, {**settings, "sources": jit.SOURCES})
        return process

    def _tell(self, process: subprocess.Popen[bytes], what: object) -> bool:
        try:
            process.stdin.write(json.dumps(what).encode() + b"\n")  # type: ignore[union-attr]
        except (OSError, ValueError):
            return False
        return True

    def ask(self, kinds: list[str]) -> bool:
        """Request kinds; return whether a worker still listens."""
        listening = [process for process in self._crew if process.poll() is None]
        delivered = [self._tell(process, kinds) for process in listening]
        return any(delivered)

    def wait(self) -> None:
        """Wait until the workers are done."""
        self._reaper.run()  # unless a thread has taken it
        self._reaper.over.wait()

    def end(self) -> None:
        """Kill the workers."""
        self._kill()
        self._reaper.run()
        self._reaper.over.wait(2.0)

    def disown(self) -> None:
        """Release in a forked process the workers of the parent."""
        for process in self._crew:
            process.returncode = 0
            if process.stdin is not None:
                process.stdin.close()

    def _alive(self, name: str) -> bool:
        return not name.isdigit() or self._crew[int(name)].poll() is None

    def _lost(self, name: str) -> None:
        if name.isdigit():
            self._crew[int(name)].kill()

    def _kill(self) -> None:
        for process in self._crew:
            process.kill()
        for process in self._crew:
            process.wait()

    def _reap(self) -> None:
        for process in self._crew:
            process.wait()
        for kind in self.kinds:
            with contextlib.suppress(OSError):
                mark = mark_of(jit._FOLDER, kind)
                if mark.read_bytes() != DONE:  # not done: let another process compile it
                    mark.unlink()
        self._clean()

    def _clean(self) -> None:
        if self._claims in locks.shared:
            locks.shared.remove(self._claims)
        shutil.rmtree(self._folder, ignore_errors=True)
        for process in self._crew:
            if process.stdin is not None:
                process.stdin.close()


def _at_exit() -> None:
    for crew in _crews:
        crew.end()


def _after_fork() -> None:
    for crew in _crews:
        crew.disown()
    _crews.clear()
    locks.shared.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
