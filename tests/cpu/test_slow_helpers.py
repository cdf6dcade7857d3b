"""The leader waits for tiles that helpers have: they are made slow, the bits stay the same."""

from __future__ import annotations

import ctypes
import threading
import time

import numpy as np
import pytest

import frontal
from frontal.backend import choose
from frontal.cpu import backend as cpu

from ..matrices import tiled_fronts

ARGUMENTS = (13, 10, 11)  # of gemm, syrk and trsm, the first in the table of routines


class SlowHelpers:
    """Puts a pause before the products of each thread, that of the leader is the shortest."""

    def __init__(self, monkeypatch, threads):
        self.calls, self._leader, self._all = 0, 0, threading.Barrier(threads)
        self._run, routines = cpu.run, cpu.routines(np.dtype(np.float64))
        kinds = [ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count) for count in ARGUMENTS]
        table = routines.table.copy()
        self._kept = [kind(self.after_a_pause(kind(int(table[i])))) for i, kind in enumerate(kinds)]
        for i, slow in enumerate(self._kept):
            table[i] = ctypes.cast(slow, ctypes.c_void_p).value
        monkeypatch.setattr(cpu, "routines", lambda dtype: routines._replace(table=table))
        monkeypatch.setattr(cpu, "run", self.run)

    def run(self, *given):
        if given[4]:
            self._leader = threading.get_ident()
        self._all.wait(timeout=20)
        return self._run(*given)

    def after_a_pause(self, routine):
        def call(*given):
            helps = threading.get_ident() != self._leader
            self.calls += helps
            time.sleep(4e-3 if helps else 1e-3)
            routine(*given)

        return call


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_tiles_of_slow_helpers_are_waited_for(monkeypatch, kind):
    monkeypatch.setattr(cpu, "_INLINE_FLOPS", 0)
    A = tiled_fronts(kind)
    analysis = frontal.analyze(A, kind=kind, ordering="natural", backend="cpu")
    factors = []
    for threads in (1, 3):
        monkeypatch.setenv("FRONTAL_NUM_THREADS", str(threads))
        choose._engines.pop(analysis, None)
        with monkeypatch.context() as patch:
            helpers = SlowHelpers(patch, threads)
            factors.append(analysis.factorize(A))
    assert helpers.calls > 0
    one, many = factors
    for name in ("L", "U"):
        assert np.array_equal(getattr(one, name).data, getattr(many, name).data)
    assert np.array_equal(one.perm_r, many.perm_r)
