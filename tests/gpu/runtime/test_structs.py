"""Structs that kernels share with the host: headers as described, layouts as compiled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from frontal.gpu.dense import structs as dense
from frontal.gpu.runtime import jit
from frontal.gpu.runtime.structs import Struct, StructHeader, filled
from frontal.gpu.sparse import structs as sparse

from ...emulation.compiling import COMPILER, EmulationError
from ...emulation.device import EmulatedDevice
from ...structs import HEADERS

headers = pytest.mark.parametrize("header", HEADERS, ids=lambda header: header.path)
FIELDS = {"first": "const T *", "count": "int", "spare": "int", "share": "real_t<T>"}
PAIR = Struct("Pair", "Two.", FIELDS, {})
READ = """
using T = SCALAR;
extern "C" __global__ void read_pair(Pair<T> pair, const T *array, int *found) {
    found[0] = pair.first == array;
    found[1] = pair.count;
    found[2] = (int)pair.share;
}
"""


@headers
def test_headers_are_those_of_their_descriptions(header):
    assert jit.text(header.path) == header.text(), "run `python -m tests.structs`"


@headers
def test_a_change_on_the_host_changes_the_header(header):
    for struct in header.structs:
        names = list(struct.fields)
        other_order = {name: struct.fields[name] for name in reversed(names)}
        other_type = {**struct.fields, names[-1]: "char"}
        fewer = {name: struct.fields[name] for name in names[1:]}
        for fields in (other_order, other_type, fewer):
            changed = replace(struct, fields=fields)
            assert changed.definition() != struct.definition()
    for name in header.constants:
        assert f"constexpr int {name} = " in header.text()


def header_of(struct: Struct) -> str:
    return StructHeader("pair.cuh", "", "", ("common/scalar.cuh",), {}, (struct,)).text()


def kernel_of(text: str, scalar: str):
    text = text.replace('#include "common/scalar.cuh"\n', jit.text("common/scalar.cuh"))
    text = text.replace("#pragma once\n", "")
    device = EmulatedDevice(sources={"pair.cu": text + READ})
    return device, device.kernel("pair.cu", "read_pair", scalar)


needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


@needs_compiler
@pytest.mark.parametrize("scalar", ["f4", "f8", "c8", "c16"])
def test_a_kernel_reads_what_the_host_filled(scalar):
    device, kernel = kernel_of(header_of(PAIR), scalar)
    array, found = np.zeros(3, scalar), np.zeros(3, np.int32)
    pair = filled(device, PAIR, scalar, first=array, count=7, spare=0, share=5.0)
    kernel((1,), (1,), (pair, array, found))
    assert found.tolist() == [1, 7, 5]


@needs_compiler
@pytest.mark.parametrize(
    "fields",
    [
        {name: FIELDS[name] for name in ("count", "spare", "first", "share")},
        {**FIELDS, "count": "long long"},
        {**FIELDS, "more": "int"},
    ],
    ids=["order", "type", "field"],
)
def test_the_compiler_refuses_another_layout(fields):
    """What the header defines is changed, and what it asserts is not."""
    text = header_of(PAIR).replace(PAIR.definition(), replace(PAIR, fields=fields).definition())
    with pytest.raises(EmulationError, match="static assertion failed"):
        kernel_of(text, "f8")


def test_layouts_do_not_depend_on_the_scalar():
    between = {"share": "real_t<T>", "count": "int"}
    with pytest.raises(ValueError, match=r"the layout of .* depends on the scalar type"):
        replace(PAIR, fields=between).checks()
    with pytest.raises(ValueError, match="has 24 bytes, not a multiple of 16"):
        replace(PAIR, align=16).checks()


def test_filled_wants_every_field_and_no_other():
    device = EmulatedDevice()
    begin, nothing = np.zeros(2, np.int64), None
    struct = filled(device, sparse.ENTRIES, begin=begin, source=nothing, place=16)
    assert struct.shape == ()
    assert struct.dtype == "V24"
    values = struct.view(sparse.ENTRIES.dtype)
    assert values.tolist() == (begin.ctypes.data, 0, 16)
    with pytest.raises(TypeError, match="fields and values of Entries differ: place"):
        filled(device, sparse.ENTRIES, begin=begin, source=nothing)
    with pytest.raises(TypeError, match="fields and values of Window differ: k"):
        filled(device, dense.WINDOW, i=0, j=0, m=1, n=1, k=2)
