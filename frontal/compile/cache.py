"""Disk cache of compiled code: one file for each function and argument types, checked on reading.

Numba's cache ends the process with a traceback if a file is damaged, requires a writable folder,
and may return code of other types after two processes have written at once. Here a file contains
a checksum and its key, so that any invalid file is ignored and its function compiled again.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import pickle
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import llvmlite
import numba
from numba.core.caching import FunctionCache
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from .._typing import Untyped
from ..files.atomic_write import replacing
from . import locks
from .linking import BITCODE, LINKED, BitcodeUnit, LinkedUnit, Stamp

if TYPE_CHECKING:
    from numba.core.codegen import Codegen
    from numba.core.cpu import CPUContext
    from numba.core.typing.templates import Signature

log = logging.getLogger("frontal")

_CHECKSUM = 4  # bytes
_units: dict[Stamp, BitcodeUnit] = {}  # units that are also on disk


@functools.cache
def _digest_of_file(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _without_globals(environment: Untyped) -> tuple[str, list[object], str]:
    """Return the name of a function's module, its constants, and the name of its environment.

    Compiled code looks up no names, and importing modules of Numba is slow.
    """
    return environment.globals["__name__"], environment.consts, environment.env_name


def _environment(module_name: str, consts: list[object], name: str) -> Untyped:
    """Return the environment of `_without_globals`; create it if it does not exist."""
    environment: Untyped = lookup_environment(name)
    if environment is None:
        module = sys.modules.get(module_name)
        environment = Environment({"__name__": module_name} if module is None else vars(module))
        environment.consts[:] = consts
        environment.env_name = name
        Environment._memo[name] = environment
    return environment


class DiskCache(FunctionCache):
    """The cache interface of a Numba dispatcher.

    Parameters
    ----------
    function : callable
        Not compiled.
    folder : path
        Created at the first write; need not be writable.
    outer : bool
        Whether Python calls the code.
    lean : bool
        Load code without Numba's full set of implementations, which is slow to import.
    """

    def __init__(
        self, function: Callable[..., object], folder: Path, outer: bool, lean: bool = False
    ) -> None:
        self._outer, self._lean = outer, lean
        # The base class's __init__ would search for a writable folder.
        self._py_func = function
        self._cache_path = str(folder)
        self._folder = folder
        self.enable()

    def load_overload(self, sig: Signature, target_context: CPUContext) -> CompileResult | None:
        """Return compiled code for a signature, None if it must be compiled.

        Code that another process is compiling is waited for, see `CompileLocks`.
        """
        if self._lean:
            rtsys.initialize(target_context)  # what loaded code calls; a compiler does the rest
        else:
            target_context.refresh()
        if not self._enabled:
            return None
        compiled = self._read(sig, target_context)
        claims = locks.active
        if compiled is not None or claims is None:
            return compiled
        name = self.path(sig, target_context.codegen()).name
        if not claims.take(name):
            claims.wait(name)
        compiled = self._read(sig, target_context)  # another process may have written it
        if compiled is not None:
            claims.release(name)
        return compiled

    def save_overload(self, sig: Signature, data: CompileResult) -> None:
        """Store compiled code, if it contains no addresses of this process and the disk permits."""
        if not self._enabled:
            return
        try:
            if not data.library.has_dynamic_globals:
                self._write(sig, data)
        except OSError as error:
            log.info("compiled code is not cached: %s", error)
        finally:
            claims = locks.active
            if claims is not None:
                claims.release(self.path(sig, data.codegen).name)

    def path(self, sig: Signature, codegen: Codegen) -> Path:
        """Return the file for a signature."""
        return self._path(self._key(sig, codegen))

    def _read(self, sig: Signature, target_context: CPUContext) -> CompileResult | None:
        path = None
        try:
            key = self._key(sig, target_context.codegen())
            path = self._path(key)
            stored, code, stamp = self._stored(path)
            if stored == key:
                return self._rebuilt(target_context, code, stamp)
        except FileNotFoundError:
            pass
        except Exception as error:  # unpickling a damaged file may raise anything
            log.info("recompiling, because the cached code in %s cannot be read: %r", path, error)
        return None

    def _stored(self, path: Path) -> tuple[Untyped, list[Untyped], Stamp]:
        """Return the key, the code and the stamp of a file; raise ValueError if it is damaged."""
        content = path.read_bytes()
        checksum, body = content[:_CHECKSUM], content[_CHECKSUM:]
        if _checksum(body) != checksum:
            raise ValueError("the checksum is wrong: the file was truncated or changed")
        key, code = pickle.loads(body)
        return key, [*code], Stamp(path.name, checksum)

    def _rebuilt(self, context: CPUContext, code: list[Untyped], stamp: Stamp) -> CompileResult:
        codegen, kind = context.codegen(), code[0][1]
        code[-1] = [_environment(*fields) for fields in code[-1]]
        if kind not in (BITCODE, LINKED):
            return CompileResult._rebuild(context, *code)
        if kind == BITCODE:
            library = self._bitcode_unit(codegen, stamp, code[0])
        else:
            library = LinkedUnit.read(codegen, code[0])
        reader = SimpleNamespace(unserialize_library=lambda code: library)
        ready = SimpleNamespace(
            codegen=lambda: reader,
            get_executable=context.get_executable,
            typing_context=context.typing_context,
        )
        return CompileResult._rebuild(ready, *code)._replace(target_context=context)

    def _bitcode_unit(self, codegen: Codegen, stamp: Stamp, code: Untyped = None) -> BitcodeUnit:
        """Return a unit and its callees, read from their files unless `code` is its own."""
        if stamp not in _units:
            if code is None:
                _, (code, *_), now = self._stored(self._folder / stamp.name)
                if now != stamp:
                    raise ValueError(f"{stamp.name} has been recompiled since")
            name, _, (bitcode, stamps) = code
            calls = [self._bitcode_unit(codegen, called) for called in stamps]
            _units[stamp] = BitcodeUnit.read(codegen, name, bitcode, calls)
            _units[stamp].stamp = stamp
        return _units[stamp]

    def _write(self, sig: Signature, data: CompileResult) -> None:
        key = self._key(sig, data.codegen)
        path = self._path(key)
        *code, environments = data._reduce()
        body = dumps((key, [*code, [*map(_without_globals, environments)]]))
        checksum = _checksum(body)
        self._folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            stream.write(checksum + body)
        if isinstance(data.library, BitcodeUnit):
            data.library.stamp = Stamp(path.name, checksum)
            _units[data.library.stamp] = data.library

    def flush(self) -> None:
        """Do nothing: file names depend on the sources, so no file is ever stale."""

    def _key(self, sig: Signature, codegen: Codegen) -> tuple[object, ...]:
        """Return what the code depends on: versions, file, callers, types, processor, closure."""
        code = self._py_func.__code__
        source = _digest_of_file(code.co_filename), code.co_firstlineno
        versions = numba.__version__, llvmlite.__version__
        return (*versions, *source, self._outer, *self._index_key(sig, codegen))

    def _path(self, key: tuple[object, ...]) -> Path:
        function = self._py_func
        name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        return self._folder / f"{name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


def _checksum(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(_CHECKSUM, "little")
