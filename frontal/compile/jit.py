"""Compilation of this package's functions: Numba, without the GIL, cached on disk.

Numba's cache checks only the file of the compiled function: after an edit of a callee in another
file it would return stale machine code. The cache folder here is named by a digest of all
source files of the package, so that stale code cannot be found.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numba
import numba.extending

from .cache import DiskCache

log = logging.getLogger("frontal")

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _digest_of_sources() -> str:
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    """Return ``FRONTAL_CACHE_DIR``, else ``NUMBA_CACHE_DIR``, else the user's cache folder."""
    home = os.environ.get("FRONTAL_CACHE_DIR") or os.environ.get("NUMBA_CACHE_DIR")
    if not home:
        base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME")
        home = os.path.join(base or os.path.expanduser("~/.cache"), "frontal")
    return Path(home) / SOURCES


SOURCES = _digest_of_sources()  # differs for each version of this package

_FOLDER = _cache_folder()
# options of functions that Python calls, and of all others
_OUTER: dict[str, object] = {"no_cfunc_wrapper": True, "nogil": True}
_INNER = _OUTER | {"no_cpython_wrapper": True}
IS_TRIED = False  # with this version of Numba
with contextlib.suppress(ImportError):  # a later version may have moved what is patched
    from .numba_patches import RELEASES, ForCallers, ForPython

    if numba.version_info.short in RELEASES:
        IS_TRIED = True
        _OUTER["pipeline_class"], _INNER["pipeline_class"] = ForPython, ForCallers
if not IS_TRIED:
    log.info("the first call takes longer: frontal is not tested with this version of Numba")
if not _FOLDER.is_dir():
    log.info("compiling for the first time: about 10 seconds; the code is cached in %s", _FOLDER)


def _compiled(
    function: Callable[Parameters, Result], base: dict[str, object], **options: object
) -> Callable[Parameters, Result]:
    compile_: Any = numba.njit
    dispatcher = compile_(error_model="numpy", **(base | options))(function)
    dispatcher._cache = DiskCache(function, _FOLDER, base is _OUTER, lean=IS_TRIED)
    if base is _OUTER:  # compiled code calls the same function without machine code of its own
        dispatcher.for_callers = functools.cache(lambda: allocating(function))
    return dispatcher


def jit(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile at the first call with each combination of argument types; cache the code on disk."""
    return _compiled(function, _OUTER)


def brief(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile as `jit` does but hold the GIL, for one pass over short arrays.

    Releasing and reacquiring the GIL can wait for longer than a small system takes.
    """
    return _compiled(function, _OUTER, nogil=False)


def inner(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile as `jit` does in half the time, for functions that only compiled code calls.

    Python must not call them: without the wrapper the process crashes. They must not create arrays
    or return tuples that contain arrays, since they do not count references, which took a third of
    a factorization.
    """
    return _compiled(function, _INNER, _nrt=False)


def forced(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile as `inner` does, for small functions of inner loops: LLVM inlines them."""
    return _compiled(function, _INNER, _nrt=False, forceinline=True)


def view(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile as `inner` does, for functions that return a view of an array: Numba inlines them."""
    return _compiled(function, _INNER, _nrt=False, inline="always")


def allocating(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile as `inner` does, for functions that may create and return arrays."""
    return _compiled(function, _INNER)


def inlined(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Compile as `allocating` does, for functions that Numba inlines: one compilation less."""
    return _compiled(function, _INNER, inline="always")


def intrinsic(
    function: Callable[Concatenate[object, Parameters], object],
) -> Callable[Parameters, Any]:
    """Make a function that generates its own LLVM code, see `numba.extending.intrinsic`.

    Callers omit the typing context, its first argument; a call returns the result of the code.
    """
    wrapped: Any = numba.extending.intrinsic(function)
    return wrapped
