"""Four consecutive entries of an array as one value, for explicit vector instructions.

LLVM vectorizes loops, but the loops over a small front are too short for that to pay.
"""

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model

from .._typing import Untyped
from ..compile.jit import intrinsic

WIDTH = 4


class Simd4(types.Type):
    """Type of four entries of a scalar type; operations on complex entries are scalar."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(f"Four({dtype})")


@register_model(Simd4)
class _Simd4Model(models.PrimitiveModel):
    def __init__(self, manager: Untyped, kind: Simd4) -> None:
        entry = manager.lookup(kind.dtype).get_value_type()
        vector_type = ir.ArrayType if isinstance(kind.dtype, types.Complex) else ir.VectorType
        super().__init__(manager, kind, vector_type(entry, WIDTH))


def _place(
    context: Untyped, builder: Untyped, kind: Untyped, array: Untyped, at: Untyped
) -> Untyped:
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [at])


def _extract(builder: Untyped, value: Untyped, i: int) -> Untyped:
    """Return entry i of a value."""
    if isinstance(value.type, ir.ArrayType):
        return builder.extract_value(value, i)
    return builder.extract_element(value, ir.IntType(32)(i))


def _pack(context: Untyped, builder: Untyped, kind: Simd4, entries: Untyped) -> Untyped:
    value = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for i, entry in enumerate(entries):
        if isinstance(value.type, ir.ArrayType):
            value = builder.insert_value(value, entry, i)
        else:
            value = builder.insert_element(value, entry, ir.IntType(32)(i))
    return value


def _entrywise(name: str) -> Untyped:
    """Return the code generator of an operation on two values, entry by entry."""

    def codegen(context: Untyped, builder: Untyped, signature: Untyped, values: Untyped) -> Untyped:
        kind = signature.return_type
        if not isinstance(kind.dtype, types.Complex):
            return getattr(builder, f"f{name}")(*values)
        entry_signature = kind.dtype(kind.dtype, kind.dtype)
        function = context.get_function(getattr(operator, name), entry_signature)
        pairs = ([_extract(builder, value, i) for value in values] for i in range(WIDTH))
        return _pack(context, builder, kind, [function(builder, pair) for pair in pairs])

    return codegen


@intrinsic
def simd_add(typingctx, v, w):
    """Return the sums of the entries of two values."""
    return v(v, v), _entrywise("add")


@intrinsic
def simd_subtract(typingctx, v, w):
    """Return the differences of the entries of two values."""
    return v(v, v), _entrywise("sub")


@intrinsic
def simd_multiply(typingctx, v, w):
    """Return the products of the entries of two values."""
    return v(v, v), _entrywise("mul")


@intrinsic
def simd_multiply_add(typingctx, u, v, w):
    """Return u v + w, entry by entry, with one rounding if the processor has an instruction."""
    kind = u

    def codegen(context, builder, signature, values):
        if isinstance(kind.dtype, types.Complex):
            product = _entrywise("mul")(context, builder, signature, values[:2])
            return _entrywise("add")(context, builder, signature, (product, values[2]))
        form = values[0].type
        name = f"llvm.fmuladd.v{WIDTH}{form.element.intrinsic_name}"
        fused = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(form, [form] * 3), name
        )
        return builder.call(fused, values)

    return kind(kind, kind, kind), codegen


@intrinsic
def simd_broadcast(typingctx, x):
    """Return a value with four equal entries."""
    kind = Simd4(x)

    def codegen(context, builder, signature, values):
        return _pack(context, builder, kind, values * WIDTH)

    return kind(x), codegen


@intrinsic
def load(typingctx, array, at):
    """Return four entries of an array, from `at` on."""
    kind = Simd4(array.dtype)

    def codegen(context, builder, signature, values):
        pointer = _place(context, builder, signature.args[0], *values)
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        if not isinstance(array.dtype, types.Complex):
            vector_pointer = context.get_value_type(kind).as_pointer()
            return builder.load(builder.bitcast(pointer, vector_pointer), align=size)
        places = (builder.gep(pointer, [ir.IntType(64)(i)]) for i in range(WIDTH))
        entries = [context.unpack_value(builder, array.dtype, place) for place in places]
        return _pack(context, builder, kind, entries)

    return kind(array, types.uint64), codegen


@intrinsic
def store(typingctx, array, at, v):
    """Write four entries to an array, from `at` on."""

    def codegen(context, builder, signature, values):
        pointer = _place(context, builder, signature.args[0], *values[:2])
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        if not isinstance(array.dtype, types.Complex):
            builder.store(
                values[2], builder.bitcast(pointer, values[2].type.as_pointer()), align=size
            )
        else:
            for i in range(WIDTH):
                place = builder.gep(pointer, [ir.IntType(64)(i)])
                context.pack_value(builder, array.dtype, _extract(builder, values[2], i), place)
        return context.get_dummy_value()

    return types.void(array, types.uint64, v), codegen


@intrinsic
def simd_sum(typingctx, v):
    """Return the sum of the four entries."""

    def codegen(context, builder, signature, values):
        a, b, c, d = (_extract(builder, values[0], i) for i in range(WIDTH))
        add = context.get_function(operator.add, v.dtype(v.dtype, v.dtype))
        return add(builder, (add(builder, (a, b)), add(builder, (c, d))))

    return v.dtype(v), codegen
