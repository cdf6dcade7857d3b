"""`Method` in compiled code: each method has its own type, and so its own machine code.

A method is a constant there, not an argument: Numba takes long to type an object of our classes.
"""

from __future__ import annotations

from collections.abc import Callable

from numba import types
from numba.core.base import BaseContext
from numba.core.imputils import lower_constant
from numba.core.typing.templates import AbstractTemplate, infer_global
from numba.extending import (
    models,
    overload_attribute,
    register_model,
    typeof_impl,
)

from .._typing import Untyped
from ..numeric.method import Method


class MethodType(types.Opaque):
    """Type of one method; it has no value at run time."""

    def __init__(self, method: Method) -> None:
        self.method = method
        super().__init__(f"Method({method.name})")


register_model(MethodType)(models.OpaqueModel)


@typeof_impl.register(Method)
def _type_of(method: Method, context: object) -> MethodType:
    return MethodType(method)


@lower_constant(MethodType)
def _lower(context: BaseContext, builder: object, kind: MethodType, method: Method) -> object:
    return context.get_dummy_value()


def _constant(name: str) -> None:
    @overload_attribute(MethodType, name, strict=False)  # type: ignore[call-arg]  # not in the stub
    def attribute(method: MethodType) -> Callable[[MethodType], object]:
        value = getattr(method.method, name)
        return lambda method: value


for _name in ("panels", "pivots", "one_triangle", "indefinite", "adjoint", "signed", "square_root"):
    _constant(_name)


def by_method(**functions: Callable[..., Untyped]) -> Callable[..., Untyped]:
    """Return a function for compiled code that calls a different function for each method.

    Parameters
    ----------
    **functions : compiled functions
        By the method's name. The first argument of each is a `Reference` with an attribute
        ``method``; only the function of that method is compiled.
    """
    return _chosen_by(lambda kind: functions[kind.field("method")[1].method.name])


def by_tuple(functions: dict[type, Callable[..., Untyped]]) -> Callable[..., Untyped]:
    """Return a function for compiled code that calls a different function for each named tuple.

    Parameters
    ----------
    functions : dict
        By the class of the tuple. The first argument of each is a `Reference` to it.
    """
    return _chosen_by(lambda kind: functions[kind.dtype.instance_class])


def _chosen_by(choose: Callable[[Untyped], Untyped]) -> Callable[..., Untyped]:
    def chosen(first: Untyped, *args: Untyped) -> Untyped:
        raise TypeError("only compiled code can call this function")

    class Chosen(AbstractTemplate):
        key = chosen

        def generic(self, args: Untyped, kws: Untyped) -> Untyped:
            return types.Dispatcher(choose(args[0])).get_call_type(self.context, args, kws)

        def get_impl_key(self, sig: Untyped) -> Untyped:
            return choose(sig.args[0]).get_overload(sig.args)

    infer_global(chosen, types.Function(Chosen))
    return chosen
