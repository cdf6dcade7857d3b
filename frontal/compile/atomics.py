"""Machine-level operations in compiled code: calls and arrays by address, atomic operations."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils

from .jit import intrinsic, view


def yield_address() -> int:
    """Return the address of the system function that yields the core to another thread."""
    if sys.platform == "win32":
        entry = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined]
    else:
        entry = ctypes.CDLL(None).sched_yield
    return ctypes.cast(entry, ctypes.c_void_p).value or 0


def _c_function(result: types.Type) -> Callable[..., int]:
    """Make an intrinsic that calls a C function with this result by its address.

    Its second argument is a tuple: an int64 is passed as a pointer or a size, an int32 or uint8 by
    reference to a stack slot.
    """

    def called(typingctx, address, arguments):
        return result(address, arguments), codegen

    def codegen(context, builder, signature, values):
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
        silent = result == types.void
        returned = ir.VoidType() if silent else ir.IntType(32)
        function = ir.FunctionType(returned, [pointer] * len(passed)).as_pointer()
        value = builder.call(builder.inttoptr(values[0], function), passed)
        return context.get_dummy_value() if silent else value

    return intrinsic(called)


call, status = _c_function(types.void), _c_function(types.int32)


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
                builder.store(value, _entry(context, builder, table, values[1], index))
        return context.get_dummy_value()

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


def _fetch(operation: str) -> Callable[..., int]:
    """Make an atomic operation of LLVM on an entry of an int64 array; it returns the old value."""

    def fetched(typingctx, array, index, value):
        return types.int64(array, types.int64, types.int64), codegen

    def codegen(context, builder, signature, values):
        pointer = _entry(context, builder, signature.args[0], values[0], values[1])
        return builder.atomic_rmw(operation, pointer, values[2], "seq_cst")

    return intrinsic(fetched)


fetch_add, fetch_min, store = _fetch("add"), _fetch("min"), _fetch("xchg")


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
