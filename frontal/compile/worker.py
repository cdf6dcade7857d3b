"""Worker process that compiles functions and stores them in the cache folder.

Started by `workers` with a folder of `CompileLocks`, in which a file requests a kind of system. The
process exits when all functions are compiled and no more are requested, or with its parent.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numba

from .._typing import Untyped
from . import jit, locks, manifest

_LISTEN = 5.0  # seconds to wait for a request
_STUCK = 60.0  # seconds without progress after which the rest is left to others
_PAUSE = 0.02  # seconds between two checks
_REQUEST = "kind "  # first characters of files that request
_DONE = b"done"


def mark_of(kind: str) -> Path:
    """Return the file that marks a kind of system as being compiled, or as compiled."""
    return jit._FOLDER / ("helped-" + kind.replace(" ", "-"))


def mark_done(kind: str) -> None:
    """Record on disk that all functions of a kind of system are compiled."""
    mark_of(kind).write_bytes(_DONE)


def is_done(kind: str) -> bool:
    """Return whether all functions of a kind of system are compiled; its mark must exist."""
    return mark_of(kind).read_bytes() == _DONE


def request(folder: Path, kind: str) -> None:
    """Request the functions of a kind of system from the workers of a folder."""
    (folder / (_REQUEST + kind)).touch()


class CompileJob(NamedTuple):
    """A function to compile."""

    function: Untyped  # a dispatcher of Numba
    types: tuple[Untyped, ...]
    path: Path


class CompileQueue:
    """Functions to compile, those with the longest chain of callers first.

    Parameters
    ----------
    claims : CompileLocks
        Shared with the other processes.
    folder : path
        Folder of requests.

    Attributes
    ----------
    remaining : list of int
        Items of the manifest that are requested and not compiled.
    """

    def __init__(self, claims: locks.CompileLocks, folder: Path) -> None:
        self.remaining: list[int] = []
        self._claims, self._folder = claims, folder
        self._manifest = manifest.known()
        self._levels = self._manifest.levels()
        self._kinds: set[str] = set()
        self._marked: set[str] = set()  # kinds marked as compiled
        self._finished: set[int] = set()
        self._job = functools.cache(self._new_job)

    def prepare(self) -> None:
        """Initialize what all compilations need; GPU modules are imported only on demand."""
        modules = {item.function.partition(":")[0] for item in self._manifest.items}
        for module in (name for name in modules if not name.startswith("frontal.gpu.")):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        numba.njit(lambda: None).compile(())

    def step(self) -> bool:
        """Compile one function that is ready and that no other process compiles; return whether."""
        self._read_requests()
        for place in [*self.remaining]:
            if self._is_finished(place):
                self.remaining.remove(place)
            elif all(map(self._is_finished, self._manifest.items[place].needs)):
                job = self._job(place)
                if job is not None and self._claims.take(job.path.name):
                    self._compile(place, job)
                    return True
        if not self.remaining:
            self._mark_done()
        return False

    def _read_requests(self) -> None:
        files = self._folder.glob(f"{_REQUEST}*")
        kinds = {path.name.removeprefix(_REQUEST) for path in files}
        if kinds <= self._kinds:
            return
        self._kinds |= kinds
        items = enumerate(self._manifest.items)
        wanted = {k for k, item in items if self._kinds & {*item.kinds}} - self._finished
        self.remaining = sorted(wanted, key=lambda k: -self._levels[k])

    def _mark_done(self) -> None:
        for kind in self._kinds - self._marked:
            self._marked.add(kind)
            with contextlib.suppress(OSError):
                mark_done(kind)

    def _compile(self, place: int, job: CompileJob) -> None:
        try:
            job.function.compile(job.types)
        except Exception:  # its user will see the error
            self._finished.add(place)
        finally:
            self._claims.release(job.path.name)

    def _is_finished(self, place: int) -> bool:
        if place not in self._finished:
            job = self._job(place)
            if job is None or job.path.exists():
                self._finished.add(place)
        return place in self._finished

    def _new_job(self, place: int) -> CompileJob | None:
        item = self._manifest.items[place]
        try:
            function: Untyped = manifest.named(item.function)
            types = self._manifest.signature(item)
            path = function._cache.path(types, function.targetctx.codegen())
        except Exception:  # the manifest is of other versions
            return None
        return CompileJob(function, types, path)


def main() -> None:
    """Compile until nothing is left and no request arrives; exit without cleanup."""
    gc.disable()  # the process is short-lived
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings = json.loads(sys.stdin.readline())
    if settings["sources"] != jit.SOURCES:  # the package has changed since
        os._exit(0)
    folder, jit._FOLDER = Path(settings["claims"]), Path(settings["folder"])
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    locks.active = locks.CompileLocks(folder, settings["who"])
    queue = CompileQueue(locks.active, folder)
    queue.prepare()
    progress = time.monotonic()
    while time.monotonic() - progress < (_STUCK if queue.remaining else _LISTEN):
        if queue.step():
            progress = time.monotonic()
        else:
            time.sleep(_PAUSE)
    os._exit(0)


def _end_with_parent(folder: Path) -> None:
    """Exit the process when the parent, which writes no more, closes the stream."""
    sys.stdin.read()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
