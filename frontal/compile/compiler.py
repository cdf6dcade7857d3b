"""Numba pipelines for the units of `compile.linking`, with `compile.numba_patches`."""

from __future__ import annotations

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags

from .._typing import Untyped
from .linking import BitcodeUnit, LinkedUnit
from .numba_patches import InternedFlags, light, patched_compiler

_CALLEE_OPTIONS = ("nrt", "error_model", "forceinline", "boundscheck")


class _CalleeFlags(Flags):
    """Flags of a function; its callees see only the options that affect them.

    Numba compiles its own functions again for callers with other flags, and compares flags often.
    """

    __slots__ = ()

    def copy(self) -> Flags:
        """Return the flags for callees."""
        visible = Flags()
        for name in _CALLEE_OPTIONS:
            setattr(visible, name, getattr(self, name))
        return InternedFlags.intern(visible)


class _Compiler(Compiler):
    library: type[JITCodeLibrary] = LinkedUnit

    def __init__(self, typing: Untyped, target: Untyped, library: Untyped, *others: Untyped):
        args, result, flags, local = others
        super().__init__(typing, target, library, args, result, _CalleeFlags(flags), local)

    def compile_extra(self, func: Untyped) -> Untyped:
        """Compile a function and all its callees."""
        with patched_compiler(_is_ours):
            return super().compile_extra(func)

    def _compile_bytecode(self) -> Untyped:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return light(state, super()._compile_bytecode())


def _is_ours(dispatcher: Untyped) -> bool:
    return issubclass(dispatcher._compiler.pipeline_class, _Compiler)


class ForPython(_Compiler):
    """Compiler of functions that Python calls."""


class ForCallers(_Compiler):
    """Compiler of functions that compiled code calls."""

    library = BitcodeUnit
