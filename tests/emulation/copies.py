"""As much of `cupy.cuda` as copies need, without a GPU: copies come late, when somebody waits."""

from __future__ import annotations

import ctypes
import itertools
from types import SimpleNamespace

from frontal.gpu.runtime.staging import Calls, address_of

_POINTER = ctypes.c_void_p


class FakeCuda:
    """As much of `cupy.cuda` as `Staging` needs.

    Parameters
    ----------
    memory : bool
        Whether there is some that stays where it is.
    code : int
        What copies return.

    Attributes
    ----------
    free : event
        Recorded before anything else.
    """

    class CUDARuntimeError(Exception):
        """As CuPy's."""

    def __init__(self, memory=True, code=0):
        self.memory, self.code, self.waited, self.devices = memory, code, [], set()
        known = {"CUDARuntimeError": self.CUDARuntimeError, "setDevice": self.devices.add}
        self.runtime = SimpleNamespace(**known)
        self.driver = SimpleNamespace(CUDADriverError=RuntimeError)
        self.late, self.of, self.names = {}, {}, itertools.count(1)
        self.current = self.Stream()
        self.free = self.Event()
        self.free.record(self.current)
        function, three = ctypes.CFUNCTYPE, (_POINTER, _POINTER, ctypes.c_size_t)
        copy = function(ctypes.c_int, *three, _POINTER)(self._copy)
        record = function(ctypes.c_int, _POINTER, _POINTER)(self._record)
        wait = function(ctypes.c_int, _POINTER)(self._wait)
        self.entries = copy, copy, record, wait

    def calls(self):
        """See `Staging`."""
        return Calls(*map(address_of, (ctypes.memmove, *self.entries)))

    def PinnedMemory(self, size):
        if not self.memory:
            raise self.CUDARuntimeError
        buffer = ctypes.create_string_buffer(size)
        return SimpleNamespace(ptr=ctypes.addressof(buffer), buffer=buffer)

    def Stream(self, non_blocking=True):
        stream = SimpleNamespace(ptr=next(self.names))
        stream.wait_event = lambda event: self.waited.append((stream.ptr, self.of.get(event.ptr)))
        self.late[stream.ptr] = []
        return stream

    def Event(self, disable_timing=True):
        event = SimpleNamespace(ptr=next(self.names))
        event.record = lambda stream: self._record(event.ptr, stream.ptr)
        return event

    def get_current_stream(self):
        return self.current

    def _record(self, event, stream):
        self.of[event] = stream
        return 0

    def _wait(self, event):
        if event in self.of:
            self._finish(self.late[self.of[event]])
        return 0

    def _copy(self, target, source, size, stream):
        self.late[stream].append(lambda: ctypes.memmove(target, source, size))
        return self.code

    @staticmethod
    def _finish(copies):
        while copies:
            copies.pop(0)()

    def finish(self):
        """Make all copies that nobody has waited for."""
        for copies in self.late.values():
            self._finish(copies)
