"""Factors by segments on an emulated device: matrices, and fronts of every kind."""

from functools import partial

import numpy as np
import pytest

import frontal
import frontal.gpu.runtime.device
from frontal.gpu.sparse import backend as backends
from frontal.gpu.sparse.layout import interval_packing, panels
from frontal.gpu.sparse.layout import schedule as schedules
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.gpu.sparse.solve import messages
from frontal.gpu.sparse.tasks import solves

from ...conftest import fronts_cost
from ...emulation.counting import CountingDevice
from ...emulation.device import LIMITS
from ...emulation.lanes import LaneDevice
from ...matrices import solid_system

KINDS = ("spd", "symmetric", "general")
LATE = ("copies", "kernels")


@pytest.fixture(scope="module", name="devices")
def emulated():
    """Of two streams one is as late as ever; kernels are loaded once."""
    return {late: LaneDevice(late) for late in LATE}


@pytest.fixture(name="use")
def choosing(devices, monkeypatch):
    """Give `backend="gpu"` a device, with fronts of every kind although there are few."""

    def chosen(late="copies"):
        device = devices[late] if late in LATE else late
        device.memory, device.is_capturing = 1 << 40, False
        monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
        return device

    monkeypatch.setattr(frontal.gpu, "available", lambda: True)
    monkeypatch.setattr(frontal.gpu.runtime.device, "at_work", lambda: False)  # else ahead of it
    monkeypatch.setattr(backends, "DevicePattern", partial(DevicePattern, small=32, fewest=1))
    monkeypatch.setattr(solves, "_WARPS", 0)  # small ones in solves, too
    monkeypatch.setattr(solves, "_SMALL_ENTRIES", 600)
    monkeypatch.setattr(schedules, "_EPOCH", 2)
    monkeypatch.setattr(schedules, "_GROUP", 4)
    return chosen


def analyzed(a, kind, **options):
    """Fronts are not merged until few are left."""
    with fronts_cost(1e-7):
        return frontal.analyze(a, kind=kind, backend="gpu", ordering="nesdis", **options)


def least_of(analysis, dtype="f8"):
    """The least limit that there are segments for."""
    with pytest.raises(frontal.FactorMemoryError) as error:
        analysis.memory_for(dtype, memory=0)
    return error.value.required


def device_bytes(kind, n, rhs, share=None, lent=1 << 23, limits=LIMITS):
    """Return peak device memory of a factor and its solves, its estimate, the limit, the factor.

    A `share` limits memory: from 0, the least that its segments need, to 1, all of the factor.
    """
    device = CountingDevice(limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
        patch.setattr(frontal.gpu, "available", lambda: True)
        patch.setattr(messages, "_MIN_LENT_BYTES", lent)
        patch.setattr(panels, "_SLACK", interval_packing.NO_SLACK)  # of a large matrix
        a = solid_system(kind, n=n)
        analysis = frontal.analyze(a, kind=kind, backend="gpu")
        limit = "device"
        if share is not None:
            limit, whole = least_of(analysis), analysis.memory_for("f8", memory="device")["total"]
            limit += int(share * (whole - limit))
        told = analysis.memory_for("f8", rhs=rhs, memory=limit)
        assert not device.count.most
        factor, b = analysis.factorize(a, memory=limit), np.ones((a.shape[0], rhs))
        factor.solve(b)
        for scale in (2, 3, 4):
            factor.refactorize(scale * a)
            factor.solve(b)
        assert factor.growth > 0
    return device.count.most, told, limit, factor
