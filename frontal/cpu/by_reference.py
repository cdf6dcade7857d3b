"""A named tuple of arrays by reference, in compiled code.

Numba passes a tuple by value: for one of dozens of arrays each call would copy hundreds of words,
which is felt where fronts are small.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model

from ..compile.jit import inner, intrinsic


class Reference(types.CPointer):
    """Pointer to a named tuple, with its attributes; they are not changed while it lives."""

    def field(self, name: str) -> tuple[int, types.Type]:
        """Place and type of an attribute."""
        place = self.dtype.fields.index(name)
        return place, self.dtype.types[place]


register_model(Reference)(models.PointerModel)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind, name):
        return kind.field(name)[1] if name in kind.dtype.fields else None


@lower_getattr_generic(Reference)
def _load(context, builder, kind, pointer, name):
    place, field_type = kind.field(name)
    address = cgutils.gep_inbounds(builder, pointer, 0, place)
    value = context.data_model_manager[field_type].load_from_data_pointer(builder, address)
    return impl_ret_borrowed(context, builder, field_type, value)  # counted, where references are


@intrinsic
def reference(typingctx, values):
    """A pointer to a named tuple, for as long as the calling function runs.

    Arrays that it alone refers to live until a later `keep_alive` of it.
    """
    signature = Reference(values)(values)

    def codegen(context, builder, signature, arguments):
        model = context.data_model_manager[signature.args[0]]
        slot = cgutils.alloca_once(builder, model.get_data_type())
        builder.store(model.as_data(builder, arguments[0]), slot)
        return slot

    return signature, codegen


@inner
def keep_alive(values):
    """Keep the arrays of tuples until here: a pointer to them does not."""
