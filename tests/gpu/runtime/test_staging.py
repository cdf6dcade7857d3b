"""Arrays that go to a device piece by piece: all of them arrives, whoever sends what."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from frontal import parts
from frontal.gpu.runtime import staging

STREAM = SimpleNamespace(ptr=7)


class Cuda:
    """What is asked of CuPy: copies are made when their event is waited for, as late as can be."""

    def __init__(self):
        self.waiting, self.kept, self.limit = [], [], 1 << 30
        copy = SimpleNamespace(memcpyAsync=self.copy, memcpyHostToDevice=1)
        self.runtime, self.Device = copy, nullcontext

    def alloc_pinned_memory(self, size):
        self.kept.append(ctypes.create_string_buffer(size))
        self.kept[-1].ptr = ctypes.addressof(self.kept[-1])
        return self.kept[-1]

    def copy(self, target, source, size, kind, stream):
        if size > self.limit:
            raise RuntimeError("no copy")
        self.waiting.append((source, (target, source, size)))

    def Event(self, disable_timing):
        cuda, mine = self, []

        def record(stream):
            mine.append(cuda.waiting[-1])

        def synchronize():
            for one in mine:
                if one in cuda.waiting:
                    cuda.waiting.remove(one)
                    ctypes.memmove(*one[1])
            mine.clear()

        return SimpleNamespace(record=record, synchronize=synchronize)

    def finish(self):
        for _, copy in self.waiting:
            ctypes.memmove(*copy)


@pytest.fixture
def pieces(monkeypatch):
    monkeypatch.setattr(staging, "PIECE", 100)


@pytest.mark.parametrize("size", [1, 25, 26, 99, 1000])
def test_all_pieces_arrive(pieces, size):
    cuda = Cuda()
    sender = staging.Staging(SimpleNamespace(cuda=cuda), 0)
    for turn in range(2):
        source, target = np.arange(size) + turn, np.zeros(size, int)
        sender.send(source, target.ctypes.data, STREAM)
        kept = source.copy()
        source[:] = -1  # it has been read
        cuda.finish()
        cuda.waiting.clear()
        np.testing.assert_array_equal(target, kept)
    assert len(cuda.kept) == 2


def test_an_error_arrives_and_pieces_come_back(pieces, monkeypatch):
    monkeypatch.setattr(parts, "LEAST", 300)
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "1")
    cuda = Cuda()
    sender = staging.Staging(SimpleNamespace(cuda=cuda), 0)
    cuda.limit = 10
    target = np.zeros(200, int)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="no copy"):
            sender.send(np.arange(200), target.ctypes.data, STREAM)
    assert len(cuda.kept) == 2
