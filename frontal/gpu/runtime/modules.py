"""Modules of a device: kernel files, compiled at first use or started earlier on threads.

Compilation blocks nothing: NVRTC lets other threads continue and compile other files.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple, Protocol

import numpy as np

from ...compile import jit as host_jit
from ...machine.resources import thread_count
from ...machine.thread_group import Job, ThreadGroup
from . import jit
from .cubins import Cubins, digest

log = logging.getLogger("frontal")

_MAX_COMPILE_THREADS = 8  # threads in NVRTC, which compile one kernel each


class Module(Protocol):
    """The members of CuPy's module that are used."""

    def get_function(self, name: str) -> object: ...


class Source(NamedTuple):
    """A kernel file, its scalar type and its constants."""

    file: str
    dtype: np.dtype
    constants: tuple[tuple[str, int], ...]


@cache
def _cubin_file(architecture: str) -> Cubins:
    return Cubins(host_jit._FOLDER / f"kernels-sm_{architecture}.cubins")


class Compilers:
    """At most ``threads`` threads that compile, and a queue of kernel files."""

    def __init__(self, threads: int) -> None:
        self._threads, self._waiting = threads, deque[Job[bytes]]()
        self._group = ThreadGroup(stop=self._waiting.clear)

    def begin(self, work: Callable[[], bytes]) -> Job[bytes]:
        """Queue a compilation for the next free thread; another thread may run the job first."""
        job = Job(work)
        self._waiting.append(job)
        if len(self._group.active) < self._threads:
            self._group.begin(self._work_off)
        return job

    def _work_off(self) -> None:
        while self._waiting:
            try:
                job = self._waiting.popleft()
            except IndexError:  # another thread took the job
                return
            job.run()

    def end(self) -> None:
        """Wait until no thread compiles: the process must not exit while NVRTC runs."""
        self._group.end()


@cache
def _compilers() -> Compilers:
    return Compilers(max(1, min(thread_count(), _MAX_COMPILE_THREADS)))


def _at_exit() -> None:
    if _compilers.cache_info().currsize:
        _compilers().end()


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_compilers.cache_clear)
atexit.register(_at_exit)


class Modules:
    """Modules of the device ``index``, of a compute capability."""

    def __init__(self, index: int, major: int, minor: int) -> None:
        self._index, self._cubins = index, _cubin_file(f"{major}{minor}")
        self._begun: dict[Source, Job[bytes]] = {}
        self._loaded: dict[Source, Module] = {}

    def begin(self, source: Source) -> None:
        """Compile a file on a thread, unless it is on disk or being compiled."""
        if source not in self._begun and source not in self._loaded:
            self._begun[source] = _compilers().begin(partial(self._code, source))

    def loaded(self, source: Source) -> Module:
        """Return the module, loaded on the current device."""
        if source not in self._loaded:
            begun = self._begun.pop(source, None) or Job(partial(self._code, source))
            begun.run()  # unless a thread has taken it
            code = begun.result()
            self._loaded[source] = self._load(source, code)
        return self._loaded[source]

    def _load(self, source: Source, code: bytes) -> Module:
        from cupy.cuda import driver, function

        module = function.Module()
        try:
            module.load(code)
        except driver.CUDADriverError as error:  # compiled for another driver
            log.info(
                "recompiling %s, because its cached code cannot be loaded: %s", source.file, error
            )
            module = function.Module()
            module.load(self._code(source, recompile=True))
        return module

    def _code(self, source: Source, recompile: bool = False) -> bytes:
        file, dtype, constants = source
        key = digest(jit.source(file), jit.device_options(file, dtype, dict(constants)))

        def compiled() -> bytes:
            import cupy

            with cupy.cuda.Device(self._index):
                return jit.machine_code(file, dtype, dict(constants))

        return self._cubins.get(key, compiled, recompile)
