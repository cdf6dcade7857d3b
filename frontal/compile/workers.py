"""Processes that compile beside the first call: Numba holds one lock, so that threads gain nothing.

Where nothing is compiled yet for a kind of system, up to eight processes compile what
`signatures` lists for it, what is at the bottom of the longest chain of callers first. Together
with this process they share one folder of compiled code, and `CompileLocks`: this process loads
what is there, waits for what another one is compiling, and compiles the rest. Nothing depends on
them.
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

MAX_PROCESSES = 8
_BYTES = 4 * 10**8  # of memory that a process takes
_ABANDONED = 120.0  # seconds after which another process may compile what one has begun
_CODE = "import sys; sys.path[:] = sys.argv[1:]; from frontal.compile import worker; worker.alone()"

_first = not jit._FOLDER.is_dir()  # nothing has ever been compiled here
_asked: set[tuple[str, str, np.dtype | None]] = set()  # kinds that need no look any more
_crews: list[WorkerPool] = []  # one, if it still works


def count() -> int:
    """How many processes may help: ``FRONTAL_HELPERS``, at most one less than there are cores."""
    asked = os.environ.get("FRONTAL_HELPERS", "").strip()
    if asked.isdigit():
        return int(asked)
    memory = available_memory()
    room = MAX_PROCESSES if memory is None else memory // (2 * _BYTES)
    return max(0, min(MAX_PROCESSES, thread_count() - 1, room))


def begin() -> None:
    """Start processes before the kind of a system is known, if nothing has ever been compiled."""
    global _first
    if not _first:
        return
    _first = False
    if _may() and (number := count()):
        try:
            jit._FOLDER.mkdir(parents=True)  # no other process does so too
        except OSError:
            return
        _start(number)


def compile_for(backend: str, what: str, dtype: np.dtype | None = None) -> None:
    """Let processes compile what systems of a kind need, if no process has begun with it.

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
    """Compile what is listed for systems of some kinds, and wait for it."""
    if count():
        crew = _start(number, *kinds)
        if crew is not None:
            crew.wait()


def mark(kinds: Sequence[str]) -> None:
    """Tell later processes that all is compiled for systems of some kinds."""
    for kind in kinds:
        mark_of(jit._FOLDER, kind).write_bytes(DONE)


def _may() -> bool:
    """Whether this is a process of its own, that can start others."""
    others = sys.modules.get("multiprocessing.process")
    child = others is not None and others.parent_process() is not None
    return bool(sys.executable) and not child


def _claimed(kind: str) -> bool:
    """Whether this process is the first that compiles for a kind."""
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
    except OSError:  # no process, or no memory for one
        return None
    if kinds:
        crew.ask([*kinds])
    _crews[:] = [crew]
    return crew


class WorkerPool:
    """Processes that compile, until they are done.

    Parameters
    ----------
    number : int
        How many.

    Attributes
    ----------
    kinds : list of str
        Marked as compiled once they are done.
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
        """Tell what to compile; whether one still listens."""
        listening = [process for process in self._crew if process.poll() is None]
        delivered = [self._tell(process, kinds) for process in listening]
        return any(delivered)

    def wait(self) -> None:
        """Wait until they are done."""
        self._reaper.run()  # unless a thread does
        self._reaper.over.wait()

    def end(self) -> None:
        """End them at once."""
        self._kill()
        self._reaper.run()
        self._reaper.over.wait(2.0)

    def disown(self) -> None:
        """In a forked process: let go of those that belong to the parent."""
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
                if mark.read_bytes() != DONE:  # another process may help
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
