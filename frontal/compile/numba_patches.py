"""Compilers of this package, and patches that make Numba's compiler faster.

The patches are active while functions of this package are compiled, under Numba's global lock, and
are removed afterwards. They skip work that this package does not need.

User seconds of a first `solve` with Numba 0.68, on an empty cache: 13.9, without all of this 21.0;
without a single one of them

- the pause of garbage collection: 16.5
- `_remembered`: 15.4
- `_without_values`: 14.9
- `_CalleeFlags` and `_as_bitcode`: 14.6

`_without_machine_code` was added later: 12.5, without it 13.5 (another machine).
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator

from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, Flags
from numba.core.types.functions import BaseFunction

from .._typing import Untyped
from .linking import BitcodeUnit, LinkedUnit

RELEASES = (0, 63), (0, 64), (0, 65), (0, 66), (0, 67), (0, 68)  # of Numba, tried with the tests
_CALLEE_OPTIONS = "nrt", "error_model", "forceinline", "boundscheck"
_SIMPLE = types.Number, types.Boolean, types.Literal, types.Array, types.BaseTuple

_resolved: dict[tuple[Untyped, ...], Untyped] = {}
_active: list[bool] = []


class _CalleeFlags(Flags):
    """Flags of a function; its callees see only the options that affect them.

    Numba compiles its own functions again for callers with other flags.
    """

    __slots__ = ()

    def copy(self) -> Flags:
        """Return the flags for callees."""
        visible = Flags()
        for name in _CALLEE_OPTIONS:
            setattr(visible, name, getattr(self, name))
        return visible


class _Compiler(Compiler):
    library: type[JITCodeLibrary] = LinkedUnit

    def __init__(self, typing: Untyped, target: Untyped, library: Untyped, *others: Untyped):
        args, result, flags, local = others
        super().__init__(typing, target, library, args, result, _CalleeFlags(flags), local)

    def compile_extra(self, func: Untyped) -> Untyped:
        """Compile a function and all its callees."""
        with patched_compiler():
            return super().compile_extra(func)

    def _compile_bytecode(self) -> Untyped:
        self.state.library = _new_library(self.library, self.state)
        return super()._compile_bytecode()


class ForPython(_Compiler):
    """Compiler of functions that Python calls."""


class ForCallers(_Compiler):
    """Compiler of functions that compiled code calls."""

    library = BitcodeUnit


def _new_library(library: type[JITCodeLibrary], state: Untyped) -> JITCodeLibrary:
    created = library(state.targetctx.codegen(), state.func_id.func_qualname)
    created.enable_object_caching()
    return created


@contextlib.contextmanager
def patched_compiler() -> Iterator[None]:
    """Make Numba compile without garbage collection and repeated work."""
    if _active:  # a callee
        yield
        return
    collects = gc.isenabled()
    gc.disable()
    try:
        _active.append(True)
        with contextlib.ExitStack() as back:
            for owner, name, wrap in PATCHES:
                old = vars(owner)[name]
                back.callback(setattr, owner, name, old)
                setattr(owner, name, wrap(old))
            yield
    finally:
        _active.clear()
        if collects:
            if gc.get_freeze_count() == 0:  # the next collection skips all objects of now
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _as_bitcode(compile_: Callable[[Untyped], Untyped]) -> Callable[[Untyped], Untyped]:
    """Make Numba's own functions that only compiled code calls units without machine code.

    Drop the annotation of types, which holds Numba's IR, a graph of many small objects.
    """

    def compiled(self: Untyped) -> Untyped:
        state = self.state
        if state.library is None and state.flags.no_cpython_wrapper:
            state.library = _new_library(BitcodeUnit, state)
        result = compile_(self)
        return result._replace(type_annotation="") if hasattr(result, "type_annotation") else result

    return compiled


def _remembered(resolve: Callable[..., Untyped]) -> Callable[..., Untyped]:
    """Cache `resolve`, which resolves a function for a context and types, for operators."""

    def resolved(self: Untyped, context: Untyped, args: Untyped, kws: Untyped) -> Untyped:
        if kws or not all(isinstance(kind, _SIMPLE) for kind in args):
            return resolve(self, context, args, kws)
        key = self, tuple(args)
        signature = _resolved.get(key)
        if signature is None:
            signature = resolve(self, context, args, kws)
            operator = self.typing_key  # other implementations depend on flags
            if signature is not None and self.get_impl_key(signature) is operator:
                _resolved[key] = signature
        return signature

    return resolved


def _without_values(resolve: Callable[..., Untyped]) -> Callable[..., Untyped]:
    """Wrap `resolve` so that constants, each a type, cause no separate compilation."""

    def resolved(self: Untyped, context: Untyped, args: Untyped, kws: Untyped) -> Untyped:
        if issubclass(self.dispatcher._compiler.pipeline_class, _Compiler):
            args = tuple(
                types.unliteral(kind)
                if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral)
                else kind
                for kind in args
            )
        return resolve(self, context, args, kws)

    return resolved


def _without_machine_code(owned: property) -> property:
    """Make the type of a function that Python calls stand for its `for_callers`."""

    def dispatcher(self: Untyped) -> Untyped:
        function = owned.fget(self)  # type: ignore[misc]
        return function.for_callers() if hasattr(function, "for_callers") else function

    return property(dispatcher)


PATCHES: tuple[tuple[type, str, Callable[[Untyped], Untyped]], ...] = (  # wrappers
    (CompilerBase, "_compile_bytecode", _as_bitcode),
    (BaseFunction, "get_call_type", _remembered),
    (types.Dispatcher, "get_call_type", _without_values),
    (types.Dispatcher, "dispatcher", _without_machine_code),
)
