"""The kernel files of a device as modules, each compiled when it is first needed, or begun before.

Compilation waits for nothing: NVRTC lets other threads go on, and work at other files.
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

_MAX_COMPILE_THREADS = 8


class Module(Protocol):
    """CuPy's, as far as it is asked."""

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
    """Threads that compile, at most so many, and the files that wait for one."""

    def __init__(self, threads: int) -> None:
        self._threads, self._waiting = threads, deque[Job[bytes]]()
        self._group = ThreadGroup(stop=self._waiting.clear)

    def begin(self, work: Callable[[], bytes]) -> Job[bytes]:
        """Have the next free thread compile; if there is none, whoever runs the job first."""
        job = Job(work)
        self._waiting.append(job)
        if len(self._group.active) < self._threads:
            self._group.begin(self._work_off)
        return job

    def _work_off(self) -> None:
        while self._waiting:
            try:
                job = self._waiting.popleft()
            except IndexError:  # another thread was faster
                return
            job.run()

    def end(self) -> None:
        """Wait until no thread compiles: a process must not end while NVRTC is at work."""
        self._group.end()


@cache
def _compilers() -> Compilers:
    return Compilers(max(1, min(thread_count(), _MAX_COMPILE_THREADS)))


def _at_exit() -> None:
    if _compilers.cache_info().currsize:
        _compilers().end()


if hasattr(os, "register_at_fork"):  # no other thread comes along
    os.register_at_fork(after_in_child=_compilers.cache_clear)
atexit.register(_at_exit)


class Modules:
    """Modules of the device ``index``, of a compute capability."""

    def __init__(self, index: int, major: int, minor: int) -> None:
        self._index, self._cubins = index, _cubin_file(f"{major}{minor}")
        self._begun: dict[Source, Job[bytes]] = {}
        self._loaded: dict[Source, Module] = {}

    def begin(self, source: Source) -> None:
        """Compile on a thread what neither is on disk nor under way."""
        if source not in self._begun and source not in self._loaded:
            self._begun[source] = _compilers().begin(partial(self._code, source))

    def loaded(self, source: Source) -> Module:
        """Return the module, on the current device."""
        if source not in self._loaded:
            begun = self._begun.pop(source, None) or Job(partial(self._code, source))
            begun.run()  # unless a thread does
            code = begun.result()
            self._loaded[source] = self._load(source, code)
        return self._loaded[source]

    def _load(self, source: Source, code: bytes) -> Module:
        from cupy.cuda import driver, function

        module = function.Module()
        try:
            module.load(code)
        except driver.CUDADriverError as error:  # of another driver
            log.info("compiling %s anew, which cannot be loaded: %s", source.file, error)
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
