"""Machine-level operations in compiled code: calls and arrays by address, atomic operations."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils

from .jit import intrinsic, view


def yield_address() -> int:
    """Return the address of the system function that yields the core to another thread."""
    if sys.platform == "win32":
        entry: Any = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined]
    else:
        entry = ctypes.CDLL(None).sched_yield
    return ctypes.cast(entry, ctypes.c_void_p).value or 0


@intrinsic
def call(typingctx, address, arguments):
    """Call a C function all of whose parameters are pointers.

    An int64 argument is passed as a pointer; an int32 or uint8 is passed by reference to a stack
    slot.
    """
    return types.void(address, arguments), _calls


@intrinsic
def status(typingctx, address, arguments):
    """Call as `call` does a C function that returns an int; int64 also passes a size."""
    return types.int32(address, arguments), _calls


def _calls(context, builder, signature, values):
    pointer, passed = ir.IntType(8).as_pointer(), []
    for value, kind in zip(
        cgutils.unpack_tuple(builder, values[1]), signature.args[1].types, strict=True
    ):
        if kind == types.int64:
            passed.append(builder.inttoptr(value, pointer))
        else:
            slot = cgutils.alloca_once(builder, value.type)
            builder.store(value, slot)
            passed.append(builder.bitcast(slot, pointer))
    silent = signature.return_type == types.void
    result = ir.VoidType() if silent else ir.IntType(32)
    function = ir.FunctionType(result, [pointer] * len(passed)).as_pointer()
    returned = builder.call(builder.inttoptr(values[0], function), passed)
    return context.get_dummy_value() if silent else returned


@intrinsic
def write_addresses(typingctx, arrays, table):
    """Write address and size of each contiguous array of a tuple to a table of int64 pairs."""
    if any(array.layout != "C" or array.ndim != 1 for array in arrays):
        return None

    def codegen(context, builder, signature, values):
        for k, (array, kind) in enumerate(
            zip(cgutils.unpack_tuple(builder, values[0]), signature.args[0].types, strict=True)
        ):
            array_struct = context.make_array(kind)(context, builder, array)
            address = builder.ptrtoint(array_struct.data, ir.IntType(64))
            for place, value in ((2 * k, address), (2 * k + 1, array_struct.nitems)):
                index = context.get_constant(types.intp, place)
                builder.store(value, _entry(context, builder, table_type, values[1], index))
        return context.get_dummy_value()

    table_type = table
    return types.void(arrays, table), codegen


@intrinsic
def _pointer(typingctx, address):
    def codegen(context, builder, signature, values):
        return builder.inttoptr(values[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), codegen


@view
def array_of(table, k, dtype):
    """Return the k-th array of a table of `write_addresses`, as `dtype`; it must be alive."""
    return carray(_pointer(table[2 * k]), table[2 * k + 1], dtype)


def _entry(context, builder, array_type, array, index):
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [index])


@intrinsic
def fetch_add(typingctx, array, index, amount):
    """Atomically add to an entry of an int64 array; return the old value."""
    signature = types.int64(array, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        pointer = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.atomic_rmw("add", pointer, values[2], "seq_cst")

    return signature, codegen


@intrinsic
def fetch_min(typingctx, array, index, value):
    """Atomically lower an entry to `value` if that is less; return the old value."""
    signature = types.int64(array, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        pointer = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.atomic_rmw("min", pointer, values[2], "seq_cst")

    return signature, codegen


@intrinsic
def store(typingctx, array, index, value):
    """Atomically write an entry of an int64 array."""
    signature = types.int64(array, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        pointer = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.atomic_rmw("xchg", pointer, values[2], "seq_cst")

    return signature, codegen


@intrinsic
def swap_if(typingctx, array, index, expected, value):
    """Atomically write an entry if it equals `expected`; return whether it did."""
    signature = types.boolean(array, types.int64, types.int64, types.int64)

    def codegen(context, builder, signature, values):
        pointer = _entry(context, builder, signature.args[0], values[0], values[1])
        result = builder.cmpxchg(pointer, values[2], values[3], "seq_cst", "seq_cst")
        return builder.zext(builder.extract_value(result, 1), ir.IntType(1))

    return signature, codegen


@intrinsic
def load(typingctx, array, index):
    """Atomically read an entry of an int64 array."""
    signature = types.int64(array, types.int64)

    def codegen(context, builder, signature, values):
        pointer = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.load_atomic(pointer, "seq_cst", 8)

    return signature, codegen
