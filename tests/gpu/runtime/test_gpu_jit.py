"""Kernel sources as one string, and batches as kernels take them."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from frontal.gpu.dense.lists import Batch as Listed
from frontal.gpu.dense.lists import described
from frontal.gpu.dense.operands import MatrixBatch, leading_dimension
from frontal.gpu.runtime import jit
from frontal.gpu.runtime.kernel import CudaKernel
from frontal.gpu.runtime.limits import H200, Limits

FILES = jit.files_of_entries()


class HostDevice:
    """Where arrays lie on the host: enough of a device to describe a batch."""

    xp = np

    def pointers(self, arrays):
        return [self.pointer(a) for a in arrays]

    def pointer(self, array):
        return array.ctypes.data

    def upload(self, array):
        return np.ascontiguousarray(array)

    def stays(self, array):
        return array


def test_files_of_all_rooms_are_found():
    assert len(FILES) == len(set(FILES))
    assert {"gemm.cu", "front_tiles.cu"} <= set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_a_source_needs_no_other_file(name):
    text = jit.source(name)
    assert "#include" not in text
    assert text.startswith(f'#line 1 "{name}"\n')
    assert text.count(" complex {\n") == ("scalar.cuh" in text)
    assert text.isascii()


@pytest.mark.parametrize("name", FILES)
def test_entries_are_found(name):
    entries = jit.entries(name)
    assert entries
    assert len(set(entries)) == len(entries)


def test_line_marks_lead_to_the_file():
    lines = jit.source(FILES[0]).splitlines()
    place = {}
    name, number = "", 0
    for line in lines:
        if line.startswith("#line"):
            _, number, name = line.split()
            name, number = name.strip('"'), int(number) - 1
            continue
        number += 1
        place.setdefault((name, number), line)
    for (name, number), line in place.items():
        original = jit.text(name).splitlines()[number - 1].encode("ascii", "replace").decode()
        assert line == ("" if original == "#pragma once" else original)


@pytest.mark.parametrize(
    ("dtype", "scalar"),
    [("f4", "float"), ("f8", "double"), ("c8", "complex<float>"), ("c16", "complex<double>")],
)
def test_options_name_the_scalar_and_the_constants(dtype, scalar):
    chosen = jit.options(np.dtype(dtype), {"TILE": 64, "BLOCK": 8})
    assert f"-DSCALAR={scalar}" in chosen
    assert chosen[-2:] == ("-DBLOCK=8", "-DTILE=64")


@pytest.mark.parametrize(
    ("name", "flushes"),
    [("front_tiles.cu", True), ("dense/gemm.cu", True), ("dense/qr.cu", False)]
    + [
        (name, False)
        for name in ("equilibrate.cu", "system.cu", "condition.cu", "batch_statistics.cu")
    ],
)
def test_what_reads_numbers_of_any_size_keeps_subnormal_ones(name, flushes):
    chosen = jit.device_options(name, np.dtype(np.float32))
    assert f"-ftz={str(flushes).lower()}" in chosen


def test_one_matrix():
    a = np.empty((5, 3), order="F")
    batch = MatrixBatch.from_array(HostDevice(), a)
    assert batch.wrapper == "native"
    assert batch.locator.item() == (a.ctypes.data, 5, 3, 5)
    assert (batch.count, batch.max_m, batch.max_n) == (1, 5, 3)


def test_one_size():
    a = np.empty((4, 8, 8)).transpose(0, 2, 1)[:, :5, :3]
    batch = MatrixBatch.from_array(HostDevice(), a)
    assert batch.wrapper == "batched"
    assert batch.locator.item() == (a.ctypes.data, 0, 64, 5, 3, 8)


def test_many_sizes():
    arrays = [np.empty((n, n), order="F") for n in (3, 0, 5)]
    batch = described(Listed.from_list("a", arrays, HostDevice()), HostDevice())
    assert batch.wrapper == "vbatched"
    pointers, table = batch.keep[:2]
    assert pointers.tolist() == [a.ctypes.data for a in arrays]
    assert table.tolist() == [3, 0, 5, 3, 0, 5, 3, 1, 5]
    assert batch.locator["n"] == table.ctypes.data + 3 * 4


def test_no_matrices():
    batch = described(Listed.from_list("a", [], HostDevice()), HostDevice())
    assert (batch.count, batch.max_n) == (0, 0)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.empty((5, 3), order="F"), 5),
        (np.empty((7, 3), order="F")[:5], 7),
        (np.empty((5, 1)), 5),
        (np.empty((1, 5)), 1),
        (np.empty((0, 4)), 1),
        (np.empty((2, 5, 5)).transpose(0, 2, 1), 5),
    ],
)
def test_leading_dimension(array, expected):
    assert leading_dimension(array) == expected


@pytest.mark.parametrize("array", [np.empty((5, 3)), np.empty((3, 1)).repeat(2, 1)[::2]])
def test_rows_that_are_contiguous_are_refused(array):
    with pytest.raises(ValueError, match="contiguous columns"):
        leading_dimension(array)


def test_limits_come_from_the_properties_of_a_device():
    properties = {
        "multiProcessorCount": 132,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
        "major": 9,
        "minor": 0,
        "regsPerMultiprocessor": 65536,
        "maxThreadsPerMultiProcessor": 2048,
    }
    assert Limits.from_properties(properties) == H200


@pytest.mark.parametrize("shared", [20 << 10, 48 << 10, 190 << 10])
def test_kernels_ask_for_shared_memory_beside_their_static(monkeypatch, shared):
    """48 KB of both together is what they get without asking."""
    static, most = 30 << 10, {"dynamic": 18 << 10}

    class Function:
        ptr = 1

        def __call__(self, grid, block, arguments, shared_mem):
            assert shared_mem <= most["dynamic"]

    driver = SimpleNamespace(
        funcGetAttribute=lambda attribute, function: static,
        funcSetAttribute=lambda attribute, function, value: most.update(dynamic=value),
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy.cuda", SimpleNamespace(driver=driver))
    CudaKernel(Function(), 227 << 10)((1,), (32,), (), shared)
    assert most["dynamic"] + static <= 227 << 10
