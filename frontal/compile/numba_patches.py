"""Patches that speed up Numba's compiler by a third, without work that this package does not need.

The patches are active while functions of this package are compiled, under Numba's global lock,
and are removed afterwards.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import NamedTuple

from numba.core import event, ir, types
from numba.core.base import BaseContext
from numba.core.compiler import Compiler, Flags
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.types.functions import BaseFunction

from .._typing import Untyped
from .linking import BitcodeUnit
from .numba_passes import IDLE

_LOCKS = "numba:compiler_lock", "numba:llvm_lock"
_SIMPLE = types.Number, types.Boolean, types.Literal, types.Array, types.BaseTuple
_resolved: dict[tuple[Untyped, ...], Untyped] = {}
_interned: dict[Flags, Flags] = {}
_sizes: dict[str, int] = {}
_holders: dict[type, int] = {}
_active: list[bool] = []


class InternedFlags(Flags):
    """Immutable flags with one object for equal values.

    Numba uses flags as keys of compiled code, where all have one hash value and are compared option
    by option.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    @classmethod
    def intern(cls, flags: Flags) -> Flags:
        """Return the object with these values."""
        if isinstance(flags, cls):
            return flags
        return _interned.setdefault(flags, cls(flags))


class _Instead(NamedTuple):
    """The replacement of an attribute."""

    owner: Untyped
    name: str
    new: Untyped


@contextlib.contextmanager
def patched_compiler(is_ours: Callable[[Untyped], bool]) -> Iterator[None]:
    """Make Numba compile without garbage collection, lock events and repeated work.

    Parameters
    ----------
    is_ours : callable
        Returns whether the function of a dispatcher belongs to this package.
    """
    if _active:  # a callee
        yield
        return
    patches = [
        _Instead(event, "start_event", _without_locks(event.start_event)),
        _Instead(event, "end_event", _without_locks(event.end_event)),
        _Instead(PostProcessor, "run", _post_processed(PostProcessor.run)),
        _Instead(ConfigStack, "enter", _with_interned_flags(ConfigStack.enter)),
        _Instead(Compiler, "_compile_bytecode", _as_bitcode(Compiler._compile_bytecode)),
        _Instead(BaseContext, "get_abi_sizeof", _cached_sizes(BaseContext.get_abi_sizeof)),
        _Instead(ir.Inst, "_rec_list_vars", _variables),
        _Instead(BaseFunction, "get_call_type", _remembered(BaseFunction.get_call_type)),
        _Instead(
            types.Dispatcher,
            "get_call_type",
            _without_values(types.Dispatcher.get_call_type, is_ours),
        ),
        *(_Instead(cls, "run_pass", skip(cls.run_pass)) for cls, skip in IDLE),
    ]
    collects = gc.isenabled()
    gc.disable()
    try:
        _active.append(True)
        with contextlib.ExitStack() as back:
            for patch in patches:
                back.callback(
                    _restore, patch.owner, patch.name, patch.owner.__dict__.get(patch.name)
                )
                setattr(patch.owner, patch.name, patch.new)
            yield
    finally:
        _active.clear()
        if collects:
            _leave_young()
            gc.enable()


def _leave_young() -> None:
    """Move all objects to the oldest generation, which is collected later."""
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


def _restore(owner: Untyped, name: str, old: Untyped) -> None:
    if old is None:
        delattr(owner, name)
    else:
        setattr(owner, name, old)


def _without_locks(tell: Callable[..., None]) -> Callable[..., None]:
    def notified(kind: str, *args: object, **named: object) -> None:
        if kind not in _LOCKS:
            tell(kind, *args, **named)

    return notified


def _post_processed(run: Callable[..., None]) -> Callable[..., None]:
    """Wrap `run` so that it finds the lifetimes of variables only when they are used.

    Numba finds them after each pass, but uses them only in the last one and in generators.
    """

    def processed(self: Untyped, emit_dels: bool = False, **named: object) -> None:
        code = self.func_ir
        if emit_dels or code.is_generator:
            run(self, emit_dels, **named)
            return
        code.blocks = canonicalize_cfg(code.blocks)
        code.variable_lifetime = VariableLifetime(code.blocks)
        code.generator_info = None

    return processed


def _with_interned_flags(enter: Callable[..., Untyped]) -> Callable[..., Untyped]:
    def entered(self: Untyped, flags: Flags) -> Untyped:
        return enter(self, InternedFlags.intern(flags))

    return entered


def _as_bitcode(compile_: Callable[[Untyped], Untyped]) -> Callable[[Untyped], Untyped]:
    """Make Numba's own functions that only compiled code calls units without machine code."""

    def compiled(self: Untyped) -> Untyped:
        state = self.state
        if state.library is None and state.flags.no_cpython_wrapper:
            state.library = BitcodeUnit(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        return light(self.state, compile_(self))

    return compiled


def light(state: Untyped, result: Untyped) -> Untyped:
    """Return a compilation result; clear its Numba IR, a graph of many small objects."""
    for block in state.func_ir.blocks.values():
        block.body.clear()
        block.scope.localvars = None
    return result._replace(type_annotation="") if hasattr(result, "type_annotation") else result


def _cached_sizes(size: Callable[[Untyped, Untyped], int]) -> Callable[[Untyped, Untyped], int]:
    """Cache `size`, for which llvmlite writes a module for each type and LLVM parses it."""

    def cached(self: Untyped, kind: Untyped) -> int:
        name = str(kind)
        if "%" in name:  # a named type, defined elsewhere
            return size(self, kind)
        if name not in _sizes:
            _sizes[name] = size(self, kind)
        return _sizes[name]

    return cached


def _variables(self: Untyped, within: Untyped) -> list[Untyped]:
    """List variables as Numba does, without its chain of `isinstance` tests for each object."""
    variables: list[Untyped] = []
    _gather(within, variables)
    return variables


def _gather(within: Untyped, variables: list[Untyped]) -> None:
    """Append the variables in an object, whose kind is cached by its type."""
    value_type = type(within)
    kind = _holders.get(value_type)
    if kind is None:
        kinds = (ir.Var, ir.Inst, (list, tuple), dict, object)
        kind = _holders[value_type] = next(
            k for k, base in enumerate(kinds) if issubclass(value_type, base)
        )
    if kind == 0:
        variables.append(within)
    elif kind == 1:
        variables.extend(within.list_vars())
    elif kind < 4:
        for item in within if kind == 2 else within.values():
            _gather(item, variables)


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


def _without_values(
    resolve: Callable[..., Untyped], is_ours: Callable[[Untyped], bool]
) -> Callable[..., Untyped]:
    """Wrap `resolve` so that constants, each a type, cause no separate compilation."""

    def resolved(self: Untyped, context: Untyped, args: Untyped, kws: Untyped) -> Untyped:
        if is_ours(self.dispatcher):
            args = tuple(map(_without_value, args))
        return resolve(self, context, args, kws)

    return resolved


def _without_value(kind: Untyped) -> Untyped:
    constant = isinstance(kind, types.IntegerLiteral | types.BooleanLiteral)
    return types.unliteral(kind) if constant else kind
