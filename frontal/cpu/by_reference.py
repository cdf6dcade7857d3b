"""Named tuples of arrays by reference, in compiled code.

Numba passes a tuple by value: with dozens of arrays, each call would copy hundreds of words, which
is slow for small fronts.
"""

from __future__ import annotations

from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model

from ..compile.jit import inner, intrinsic


class Reference(types.CPointer):
    """Pointer to a named tuple, with its attributes, which do not change during its life."""

    def field(self, name: str) -> tuple[int, types.Type]:
        """Return the position and the type of an attribute."""
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
    return impl_ret_borrowed(context, builder, field_type, value)  # a counted reference


@intrinsic
def reference(typingctx, values):
    """Return a pointer to a named tuple, valid until the calling function returns.

    Arrays that only the tuple references live until a later `keep_alive` of the tuple.
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
    """Keep the arrays of tuples alive up to this call: a pointer to a tuple does not."""
