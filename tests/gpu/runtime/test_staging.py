"""Arrays that move in pieces are whole, though copies come late and pieces take turns."""

from __future__ import annotations

import ctypes
from collections import deque

import numpy as np
import pytest

from frontal import parts
from frontal.gpu.runtime import staging
from frontal.gpu.runtime.staging import PIECE, Staging


class Late:
    """A slot whose copy is done when it is waited for, and no sooner."""

    def __init__(self):
        self.host = np.full(PIECE, 0xA5, np.uint8)
        self._waiting: deque = deque()

    def send(self, address, count, stream):
        assert stream == "own"
        self._waiting.append((address, self.host.ctypes.data, count))

    def fetch(self, address, count, stream):
        assert stream == "own"
        self._waiting.append((self.host.ctypes.data, address, count))

    def wait(self):
        while self._waiting:
            ctypes.memmove(*self._waiting.popleft())


@pytest.fixture
def slots():
    return []


@pytest.fixture
def moving(slots, monkeypatch):
    monkeypatch.setattr(staging, "PIECE", 1 << 14)  # less would come of it
    monkeypatch.setattr(parts, "LEAST", 1 << 12)

    def make(count):
        slots.extend(Late() for _ in range(min(count, 3)))
        return slots

    return Staging(make)


@pytest.mark.parametrize("size", [1, 1 << 14, 1_000_003])
@pytest.mark.parametrize("dtype", ["u1", "f8"])
def test_all_of_an_array_comes_and_goes(slots, moving, dtype, size):
    given = np.random.default_rng(0).integers(0, 256, size).astype(dtype)
    there, kept = np.zeros(size, dtype), given.copy()
    moving.send(given, there.ctypes.data, "own")
    given[...] = 0  # what was sent is sent
    for slot in slots:
        slot.wait()
    np.testing.assert_array_equal(there, kept)
    moving.fetch(there.ctypes.data, given, "own")
    np.testing.assert_array_equal(given, kept)


def test_a_failure_leaves_all_slots(slots, moving):
    class Broken(Late):
        def send(self, *_):
            raise MemoryError

    given, there = np.arange(100_000), np.zeros(100_000, np.int64)
    moving.send(given, there.ctypes.data, "own")
    for slot in slots:
        slot.wait()
        slot.__class__ = Broken
    for _ in range(5):
        with pytest.raises(MemoryError):
            moving.send(given, given.ctypes.data, "own")
