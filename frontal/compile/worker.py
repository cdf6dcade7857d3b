"""Worker process that compiles functions and stores them in the cache folder.

Started by `workers`. Lines of JSON arrive on stdin: first the folders, then kinds of systems. The
process exits when all functions are compiled and no more are requested, or with its parent.
"""

from __future__ import annotations

import contextlib
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
from .manifest import Item

_FIRST = 30.0  # seconds to wait for the first request
_LISTEN = 5.0  # seconds to wait for another request
_STUCK = 60.0  # seconds without progress after which the rest is left to others
_PAUSE = 0.02  # seconds between two checks

Orders = queue.Queue[list[str]]


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
        self._table, self._items = manifest.known()
        self._levels = manifest.levels(self._items)
        self.kinds: list[str] = []
        self._wanted: set[int] = set()
        self._remaining: list[int] = []
        self._jobs: dict[int, CompileJob | None] = {}  # None if it cannot be resolved
        self._finished: set[int] = set()

    def prepare(self) -> None:
        """Initialize what all compilations need; GPU modules are imported only on demand."""
        modules = {item.function.partition(":")[0] for item in self._items}
        for module in (name for name in modules if not name.startswith("frontal.gpu.")):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        numba.njit(lambda: None).compile(())

    def add(self, kinds: list[str]) -> None:
        """Add the functions that systems of these kinds need."""
        wanted = {k for k, item in enumerate(self._items) if {*item.kinds} & {*kinds}}
        self.kinds += kinds
        remaining = {*self._remaining} | wanted - self._wanted
        self._wanted |= wanted
        self._remaining = sorted(remaining, key=lambda k: -self._levels[k])

    def step(self) -> bool:
        """Compile one function that is ready and that no other process compiles; return whether."""
        for place in [*self._remaining]:
            if self._is_finished(place):
                self._remaining.remove(place)
            elif all(self._is_finished(k) for k in self._items[place].needs if k in self._wanted):
                job = self._jobs[place]
                if job is not None and self._claims.take(job.path.name):
                    self._compile(place, job)
                    return True
        return False

    def done(self) -> bool:
        """Return whether nothing is left; if so, mark the kinds as compiled on disk."""
        if self._remaining:
            return False
        for kind in self.kinds:
            with contextlib.suppress(OSError):
                locks.mark_of(jit._FOLDER, kind).write_bytes(locks.DONE)
        self.kinds.clear()
        return True

    def _compile(self, place: int, job: CompileJob) -> None:
        try:
            job.function.compile(job.types)
        except Exception:  # its user will see the error
            self._finished.add(place)
        finally:
            self._claims.release(job.path.name)

    def _is_finished(self, place: int) -> bool:
        if place in self._finished:
            return True
        if place not in self._jobs:
            self._jobs[place] = self._job(self._items[place])
        job = self._jobs[place]
        if job is None or job.path.exists():
            self._finished.add(place)
            return True
        return False

    def _job(self, item: Item) -> CompileJob | None:
        try:
            function: Untyped = manifest.dispatcher(item)
            types = manifest.signature(self._table, item)
            path = function._cache.path(types, function.targetctx.codegen())
        except Exception:  # the manifest is of other versions
            return None
        return CompileJob(function, types, path)


def _listen(orders: Orders, claims: Path) -> None:
    """Queue the requests; exit the process when the parent closes the stream."""
    for line in sys.stdin:
        orders.put(json.loads(line))
    shutil.rmtree(claims, ignore_errors=True)
    os._exit(0)


def alone() -> None:
    """Run `main`, and exit without cleanup."""
    main()
    os._exit(0)


def main() -> None:
    """Compile until nothing is left and no request arrives."""
    gc.disable()  # the process is short-lived
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings = json.loads(sys.stdin.readline())
    if settings["sources"] != jit.SOURCES:  # the package has changed since
        return
    jit._FOLDER, folder = Path(settings["folder"]), Path(settings["claims"])
    orders: Orders = queue.Queue()
    threading.Thread(target=_listen, args=(orders, folder), daemon=True).start()
    claims = locks.CompileLocks(folder, settings["who"])
    locks.shared.append(claims)
    work = CompileQueue(claims)
    work.prepare()
    with contextlib.suppress(queue.Empty):
        work.add(orders.get(timeout=_FIRST))
        _work_off(work, orders)


def _work_off(work: CompileQueue, orders: Orders) -> None:
    since = time.monotonic()
    while True:
        with contextlib.suppress(queue.Empty):
            work.add(orders.get_nowait())
        if work.step():
            since = time.monotonic()
        elif work.done():
            try:
                work.add(orders.get(timeout=_LISTEN))
            except queue.Empty:
                return
            since = time.monotonic()
        elif time.monotonic() - since > _STUCK:
            return
        else:
            time.sleep(_PAUSE)
