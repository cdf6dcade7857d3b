"""Compilers of Numba that make what `_library` says, in haste."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator

from numba.core import event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

from ._library import Part, Whole
from ._typing import Untyped


class _Flags(Flags):
    """Flags of a function, of which those that it calls see only what matters to them.

    Numba compiles its own functions anew for callers with other flags, and compares flags often.
    """

    __slots__ = ()

    def copy(self) -> Flags:
        """What those see that it calls: always the same object."""
        key = tuple(getattr(self, name) for name in _SEEN)
        if key not in _seen:
            _seen[key] = seen = _Seen()
            for name, value in zip(_SEEN, key, strict=True):
                setattr(seen, name, value)
        return _seen[key]


class _Seen(Flags):
    __slots__ = ("_hash",)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = super().__hash__()
            return self._hash


_SEEN = ("nrt", "error_model", "forceinline", "boundscheck")
_seen: dict[tuple[object, ...], Flags] = {}


_LOCKS = "numba:compiler_lock", "numba:llvm_lock"
_SIMPLE = types.Number, types.Boolean, types.Literal, types.Array, types.BaseTuple
_resolved: dict[tuple[Untyped, ...], Untyped] = {}


@contextlib.contextmanager
def _in_haste(typing: Untyped) -> Iterator[None]:
    """Without what Numba does beside compiling, which takes a quarter of its time.

    That is garbage collection among its many small objects, events about its locks, and the search
    for operators of numbers and arrays among all that is called the same.
    """
    if "resolve_function_type" in vars(typing):  # a function that another one calls
        yield
        return
    collects = gc.isenabled()
    gc.disable()
    old = [getattr(event, name) for name in ("start_event", "end_event")]
    event.start_event, event.end_event = map(_without_locks, old)
    typing.resolve_function_type = _remembering(typing.resolve_function_type)
    try:
        yield
    finally:
        del typing.resolve_function_type
        event.start_event, event.end_event = old
        if collects:
            gc.enable()


def _without_locks(tell: Callable[..., None]) -> Callable[..., None]:
    def told(kind: str, *others: object, **named: object) -> None:
        if kind not in _LOCKS:
            tell(kind, *others, **named)

    return told


def _remembering(resolve: Callable[..., Untyped]) -> Callable[..., Untyped]:
    """As `resolve`, which takes a function and types, but for an operator that was met before."""

    def resolved(function: Untyped, args: Untyped, kws: Untyped) -> Untyped:
        simple = isinstance(function, types.Function) and not kws
        if not (simple and all(isinstance(one, _SIMPLE) for one in args)):
            return resolve(function, args, kws)
        key = function, tuple(args)
        found = _resolved.get(key)
        if found is None:
            found = resolve(function, args, kws)
            operator = function.typing_key  # what Numba compiles anew depends on flags
            if found is not None and function.get_impl_key(found) is operator:
                _resolved[key] = found
        return found

    return resolved


class _Compiler(Compiler):
    library: type[JITCodeLibrary] = Whole

    def __init__(self, typing: Untyped, target: Untyped, library: Untyped, *others: Untyped):
        args, result, flags, local = others
        super().__init__(typing, target, library, args, result, _Flags(flags), local)

    def compile_extra(self, func: Untyped) -> Untyped:
        """Compile a function and all that it calls."""
        with _in_haste(self.state.typingctx):
            return super().compile_extra(func)

    def _compile_bytecode(self) -> Untyped:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super()._compile_bytecode()


class ForPython(_Compiler):
    """Compiles a function that Python calls."""


class ForCallers(_Compiler):
    """Compiles a function that compiled code calls."""

    library = Part
