"""Patches that skip passes of Numba with nothing to do for a function.

Each of these passes finds the lifetimes of variables, visits all statements and finds them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from numba.core import ir, types
from numba.core.ir_utils import fixup_var_define_in_scope
from numba.core.typed_passes import NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from .._typing import Untyped

_ARRAY_OPERATIONS = "unary", "binop", "inplace_binop", "call"
_CLOSURE_OPERATIONS = "make_function", "build_list", "build_tuple_unpack"

Pass = Callable[[Untyped, Untyped], bool]
IDLE: list[tuple[type, Callable[[Pass], Pass]]] = []  # passes, and the wrappers of their `run_pass`


def _idle(pass_class: type) -> Callable[[Callable[[Untyped], bool]], Callable[[Untyped], bool]]:
    """Make a pass run only for functions that satisfy a condition."""

    def registered(needed: Callable[[Untyped], bool]) -> Callable[[Untyped], bool]:
        def instead(run: Pass) -> Pass:
            def run_pass(self: Untyped, state: Untyped) -> bool:
                if needed(state):
                    return run(self, state)
                fixup_var_define_in_scope(state.func_ir.blocks)
                return False

            return run_pass

        IDLE.append((pass_class, instead))
        return needed

    return registered


def _assigned(state: Untyped) -> Iterator[tuple[ir.Var, Untyped]]:
    for block in state.func_ir.blocks.values():
        for statement in block.body:
            if type(statement) is ir.Assign:
                yield statement.target, statement.value


@_idle(NopythonRewrites)
def has_rewrites(state: Untyped) -> bool:
    """Return whether an operation or a call creates an array, or a variable names a field."""
    kinds = state.typemap
    if any(isinstance(kind, types.StringLiteral) for kind in kinds.values()):
        return True
    return any(
        isinstance(value, ir.Expr)
        and value.op in _ARRAY_OPERATIONS
        and isinstance(kinds[target.name], types.Array)
        for target, value in _assigned(state)
    )


@_idle(InlineClosureLikes)
def has_closures(state: Untyped) -> bool:
    """Return whether functions or lists are created, or `reduce` or a stencil is named."""
    for _, value in _assigned(state):
        if isinstance(value, ir.Expr):
            if value.op in _CLOSURE_OPERATIONS:
                return True
        elif isinstance(value, ir.Global | ir.FreeVar):
            named = value.value
            if named is reduce or type(named).__name__ == "StencilFunc":
                return True
    return False
