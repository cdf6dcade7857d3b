"""A process that compiles beside another one, and leaves what it compiled in the folder on disk.

Started by `helpers`. Lines of JSON come in on stdin: at first the folders, then kinds of systems.
It ends when all is compiled and nothing more is asked for, and with the process that began it.
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

_FIRST = 30.0  # seconds for which it waits to be told what to do
_LISTEN = 5.0  # seconds for which it waits for more to do
_STUCK = 60.0  # seconds after which it leaves the rest to whoever has begun it
_PAUSE = 0.02

Orders = queue.Queue[list[str]]


class CompileJob(NamedTuple):
    """A function to compile."""

    function: Untyped  # a dispatcher of Numba
    types: tuple[Untyped, ...]
    path: Path


class CompileQueue:
    """What is to be compiled, the longest chain of callers first.

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
        self._jobs: dict[int, CompileJob | None] = {}  # None where it cannot be made
        self._finished: set[int] = set()

    def prepare(self) -> None:
        """Do what each process has to do before it can compile; what is for a GPU waits for one."""
        modules = {item.function.partition(":")[0] for item in self._items}
        for module in (name for name in modules if not name.startswith("frontal.gpu.")):
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        numba.njit(lambda: None).compile(())

    def add(self, kinds: list[str]) -> None:
        """Compile what systems of these kinds need, after what is at work already."""
        wanted = {k for k, item in enumerate(self._items) if {*item.kinds} & {*kinds}}
        self.kinds += kinds
        remaining = {*self._remaining} | wanted - self._wanted
        self._wanted |= wanted
        self._remaining = sorted(remaining, key=lambda k: -self._levels[k])

    def step(self) -> bool:
        """Compile one function, if one is ready that nobody else compiles."""
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
        """Tell whether nothing is left, in files too."""
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
        except Exception:  # whoever needs it will tell
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
        except Exception:  # a list for other versions
            return None
        return CompileJob(function, types, path)


def _listen(orders: Orders, claims: Path) -> None:
    """Pass on what is asked for; end the process with the one that asks."""
    for line in sys.stdin:
        orders.put(json.loads(line))
    shutil.rmtree(claims, ignore_errors=True)
    os._exit(0)


def alone() -> None:
    """Be a process that does nothing else, and ends without a look at what it has made."""
    main()
    os._exit(0)


def main() -> None:
    """Work until nothing is left and nothing comes any more."""
    gc.disable()  # it ends soon
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    settings = json.loads(sys.stdin.readline())
    if settings["sources"] != jit.SOURCES:  # the package has changed meanwhile
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
