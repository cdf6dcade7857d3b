"""Worker process that compiles functions and stores them in the cache folder.

Started by `workers`. Lines of JSON arrive on stdin: first the folders, then kinds of systems. The
process exits when all functions are compiled and no more are requested, or with its parent.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import queue
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

_FIRST = 30.0  # seconds to wait for the first request
_LISTEN = 5.0  # seconds to wait for another request
_STUCK = 60.0  # seconds without progress after which the rest is left to others
_PAUSE = 0.02  # seconds between two checks
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
    """

    def __init__(self, claims: locks.CompileLocks) -> None:
        self._claims = claims
        self._manifest = manifest.known()
        self._levels = self._manifest.levels()
        self._kinds: set[str] = set()
        self._remaining: list[int] = []
        self._finished: set[int] = set()
        self._job = functools.cache(self._new_job)

    def prepare(self) -> None:
        """Initialize what all compilations need; GPU modules are imported only on demand."""
        modules = {item.function.partition(":")[0] for item in self._manifest.items}
        for module in (name for name in modules if not name.startswith("frontal.gpu.")):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        numba.njit(lambda: None).compile(())

    def add(self, kinds: list[str]) -> None:
        """Add the functions that systems of these kinds need."""
        self._kinds |= {*kinds}
        items = enumerate(self._manifest.items)
        wanted = {k for k, item in items if self._kinds & {*item.kinds}} - self._finished
        self._remaining = sorted(wanted, key=lambda k: -self._levels[k])

    def step(self) -> bool:
        """Compile one function that is ready and that no other process compiles; return whether."""
        for place in [*self._remaining]:
            if self._is_finished(place):
                self._remaining.remove(place)
            elif all(map(self._is_finished, self._manifest.items[place].needs)):
                job = self._job(place)
                if job is not None and self._claims.take(job.path.name):
                    self._compile(place, job)
                    return True
        return False

    def done(self) -> bool:
        """Return whether nothing is left; if so, mark the kinds as compiled on disk."""
        if self._remaining:
            return False
        for kind in self._kinds:
            with contextlib.suppress(OSError):
                mark_done(kind)
        return True

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
    if settings["sources"] == jit.SOURCES:  # the package has not changed since
        jit._FOLDER = Path(settings["folder"])
        requests: queue.Queue[list[str]] = queue.Queue()
        claims = Path(settings["claims"])
        threading.Thread(target=_listen, args=(requests, claims), daemon=True).start()
        locks.active = locks.CompileLocks(claims, settings["who"])
        work = CompileQueue(locks.active)
        work.prepare()
        with contextlib.suppress(queue.Empty):
            _work_off(work, requests)
    os._exit(0)


def _listen(requests: queue.Queue[list[str]], claims: Path) -> None:
    """Queue the requests; exit the process when the parent closes the stream."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    shutil.rmtree(claims, ignore_errors=True)
    os._exit(0)


def _work_off(work: CompileQueue, requests: queue.Queue[list[str]]) -> None:
    """Compile what is requested; raise queue.Empty if no request arrives."""
    work.add(requests.get(timeout=_FIRST))
    progress = time.monotonic()
    while time.monotonic() - progress < _STUCK:
        with contextlib.suppress(queue.Empty):
            work.add(requests.get_nowait())
        if work.step():
            progress = time.monotonic()
        elif work.done():
            work.add(requests.get(timeout=_LISTEN))
            progress = time.monotonic()
        else:
            time.sleep(_PAUSE)
