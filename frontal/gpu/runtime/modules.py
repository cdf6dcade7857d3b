"""The kernel files of a device as modules, each compiled when it is first needed, or begun before.

Compilation waits for nothing: NVRTC lets other threads go on, and work at other files.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from ... import _jit
from ...machine import thread_count
from . import jit
from .cubins import Cubins, digest

log = logging.getLogger("frontal")

_MOST_THREADS = 8


class Module(Protocol):
    """CuPy's, as far as it is asked."""

    def get_function(self, name: str) -> object: ...


class Source(NamedTuple):
    """A kernel file, its scalar type and its constants."""

    file: str
    dtype: np.dtype
    constants: tuple[tuple[str, int], ...]


@cache
def _kept(architecture: str) -> Cubins:
    return Cubins(_jit._FOLDER / f"kernels-sm_{architecture}.cubins")


@cache
def _compilers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, min(thread_count(), _MOST_THREADS)), "frontal-nvrtc")


class Modules:
    """Modules of the device ``index``, of a compute capability."""

    def __init__(self, index: int, major: int, minor: int) -> None:
        self._index, self._cubins = index, _kept(f"{major}{minor}")
        self._begun: dict[Source, Future[bytes]] = {}
        self._loaded: dict[Source, Module] = {}

    def begin(self, source: Source) -> None:
        """Compile on a thread what neither is on disk nor under way."""
        if source not in self._begun and source not in self._loaded:
            self._begun[source] = _compilers().submit(self._code, source)

    def loaded(self, source: Source) -> Module:
        """Return the module, on the current device."""
        if source not in self._loaded:
            begun = self._begun.pop(source, None)
            code = self._code(source) if begun is None else begun.result()
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
            module.load(self._code(source, anew=True))
        return module

    def _code(self, source: Source, anew: bool = False) -> bytes:
        file, dtype, constants = source
        key = digest(jit.source(file), jit.device_options(file, dtype, dict(constants)))

        def compiled() -> bytes:
            import cupy

            with cupy.cuda.Device(self._index):
                return jit.machine_code(file, dtype, dict(constants))

        return self._cubins.get(key, compiled, anew)
