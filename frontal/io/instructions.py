"""Processor instructions that Numba does not expose: loads by address, bit counts of integers."""

from __future__ import annotations

from llvmlite import ir
from numba import types  # type: ignore[attr-defined]

from ..compile.jit import intrinsic

_BYTE, _WORD, _WIDE = ir.IntType(8), ir.IntType(64), ir.IntType(128)


def _load(builder, values, kind):
    """Load an integer from an address plus an offset; it need not be aligned."""
    address = builder.add(*values)
    return builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)


@intrinsic
def byte(typingctx, text, place):
    """Return the byte at an offset from an address, as int64."""

    def codegen(context, builder, signature, values):
        return builder.zext(_load(builder, values, _BYTE), _WORD)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def eight_bytes(typingctx, text, place):
    """Return the eight bytes from an offset on, as uint64."""

    def codegen(context, builder, signature, values):
        return _load(builder, values, _WORD)

    return types.uint64(types.int64, types.int64), codegen


@intrinsic
def float64_from_bits(typingctx, bits):
    """Return the float64 with these 64 bits."""

    def codegen(context, builder, signature, values):
        return builder.bitcast(values[0], ir.DoubleType())

    return types.float64(types.uint64), codegen


@intrinsic
def high_product(typingctx, a, b):
    """Return the upper 64 bits of the product of two unsigned integers."""

    def codegen(context, builder, signature, values):
        product = builder.mul(*(builder.zext(value, _WIDE) for value in values))
        return builder.trunc(builder.lshr(product, ir.Constant(_WIDE, 64)), _WORD)

    return types.uint64(types.uint64, types.uint64), codegen


@intrinsic
def leading_zeros(typingctx, a):
    """Return the number of zero bits above the highest one bit."""

    def codegen(context, builder, signature, values):
        return builder.ctlz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


@intrinsic
def trailing_zeros(typingctx, a):
    """Return the number of zero bits below the lowest one bit."""

    def codegen(context, builder, signature, values):
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen
