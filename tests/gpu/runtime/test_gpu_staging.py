"""Large arrays arrive whole and in the order of a stream; here by a fake CUDA."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from frontal.gpu.runtime import staging
from frontal.gpu.runtime.staging import LEAST, Staging


class Fake:
    """As much of `cupy.cuda` as copies need; copies come late, when somebody waits for them."""

    class CUDARuntimeError(Exception):
        """As CuPy's."""

    def __init__(self, memory=True):
        self.memory, self.waited, self.devices = memory, [], set()
        runtime = {"memcpyAsync": self._copy, "setDevice": self.devices.add}
        self.runtime = SimpleNamespace(CUDARuntimeError=self.CUDARuntimeError, **runtime)
        self.streams = []
        self.current = self.Stream()

    def PinnedMemory(self, size):
        if not self.memory:
            raise self.CUDARuntimeError
        return ctypes.create_string_buffer(size)

    def PinnedMemoryPointer(self, memory, first):
        part = (ctypes.c_char * (len(memory) - first)).from_buffer(memory, first)
        part.ptr = ctypes.addressof(part)
        return part

    def Stream(self, non_blocking=True):
        stream = SimpleNamespace(ptr=len(self.streams), late=[])
        stream.wait_event = lambda event: self.waited.append((stream.ptr, event.of))
        self.streams.append(stream)
        return stream

    def Event(self, disable_timing=True):
        event = SimpleNamespace(of=None, late=[])
        event.record = lambda stream: vars(event).update(of=stream.ptr, late=stream.late)
        event.synchronize = lambda: [event.late.pop(0)() for _ in list(event.late)]
        return event

    def get_current_stream(self):
        return self.current

    def _copy(self, target, source, size, kind, stream):
        assert kind == 1
        self.streams[stream].late.append(lambda: ctypes.memmove(target, source, size))

    def finish(self):
        for stream in self.streams:
            for copy in stream.late:
                copy()
            stream.late.clear()


@pytest.mark.parametrize("size", [LEAST, 3 * LEAST + 13, (21 << 20) + 1])
def test_all_bytes_arrive_and_the_stream_waits_for_them(size):
    cuda = Fake()
    source = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    target = np.zeros_like(source)
    copies = Staging(cuda, 3)
    for _ in range(2):
        assert copies.send(source, target.ctypes.data)
        cuda.finish()
        np.testing.assert_array_equal(target, source)
        source = source[::-1].copy()
    others = range(1, 5)
    assert {(0, other) for other in others} | {(other, 0) for other in others} <= {*cuda.waited}
    assert cuda.devices == {3}


def test_others_copy_meanwhile_as_the_driver_does(monkeypatch):
    copies, found = Staging(Fake(), 0), []
    source, target = np.ones((2, LEAST // 8)), np.zeros((2, LEAST // 8))

    def meanwhile(share, ends):
        found.append(copies.send(source, target.ctypes.data))

    monkeypatch.setattr(staging, "in_parts", meanwhile)
    assert copies.send(source, target.ctypes.data)
    assert found == [False]


def test_without_memory_for_it_the_driver_copies():
    source = np.ones(LEAST // 8)
    copies = Staging(Fake(memory=False), 0)
    assert not copies.send(source, source.ctypes.data)
    assert not copies.send(source, source.ctypes.data)
