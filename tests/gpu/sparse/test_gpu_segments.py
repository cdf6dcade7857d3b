"""Memory of factors by segments: no more than was told, in places of their own; where they go."""

import pickle

import numpy as np
import pytest

import frontal
import frontal.gpu.runtime.device
from frontal import problems
from frontal.gpu.sparse.layout import interval_packing
from frontal.gpu.sparse.layout.panels import parts_of, shapes_of
from frontal.gpu.sparse.out_of_core.pattern import StreamedPattern
from frontal.gpu.sparse.out_of_core.segments import segmentations
from frontal.gpu.sparse.pattern import DevicePattern

from ...emulation.compiling import COMPILER
from ...emulation.counting import CountingDevice
from ...emulation.traffic import numeric
from ...matrices import solid_system
from .streamed_tools import KINDS, analyzed, choosing, device_bytes, emulated, least_of  # noqa: F401

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to emulate kernels with")


@pytest.mark.parametrize(
    ("kind", "share", "rhs"),
    [("spd", 0, 1), ("spd", 0.5, 17), ("symmetric", 0, 1), ("general", 0, 9)],
)
def test_no_more_is_taken_than_was_told(kind, share, rhs):
    most, told, limit, factor = device_bytes(kind, 10, rhs, share=share)
    # what is told has room for probes, which a certificate makes needless
    assert 0.85 * told["device"] <= most <= told["device"]
    assert told["device"] <= limit or rhs > 1
    assert told["host"] == numeric(factor).storage.windows.host.nbytes
    assert factor.info["memory"] > told["host"]


def owners(pattern):
    """Beginning and end in memory, first and last time and wait of all parts, piece by piece."""
    layout, clock, plan = pattern.places, pattern._clock, pattern.plan
    time, begin, segment = clock.time, clock.begin, pattern.segment
    blocks, products, pieces, sent = np.split(
        pattern._lives.size, np.cumsum([time.size, time.size, pattern.count])
    )
    dies = np.where(plan.parent >= 0, time[plan.parent], time)
    gone = np.append(begin[2:], begin[-1]) - 1  # when the next segment is over, too
    need = clock.over[np.searchsorted(clock.over, layout.places.need)]
    np.testing.assert_array_equal(need, layout.places.need)
    none = np.full(pattern.count, -1)  # what comes after launches waits for nothing
    need = np.where(pattern.schedule.small, -1, need)
    parts = (
        (layout.places.block, blocks, time, dies, need),
        (layout.places.product, products, time, time, need),
        (layout.piece, pieces, begin[:-1], gone, none),
        (layout.sent, np.maximum(sent - 64, 0), clock.tiles, begin[1:] - 1, none),
    )
    first_of = np.searchsorted(segment, np.arange(pattern.count + 1))
    ends = layout.inside + layout.size
    assert (ends <= layout.length[segment]).all()
    after = np.flatnonzero(np.diff(segment) == 0) + 1
    assert (layout.inside[after] >= ends[after - 1]).all()
    assert (layout.inside[first_of[:-1]] == 0).all()
    begins, sizes, first, last, need = map(np.concatenate, zip(*parts, strict=True))
    there = np.flatnonzero(sizes)
    return [x[there] for x in (begins, begins + sizes, first, last, need)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slack", [0, 1])
def test_nothing_has_two_owners(use, monkeypatch, kind, slack):
    """In any order that launches, copies and waits allow."""
    device = use()
    monkeypatch.setattr(interval_packing, "SLACK", slack)
    symbolic = analyzed(solid_system(kind, n=10), kind).symbolic
    whole = DevicePattern(device, symbolic.plan, symbolic.method, 32, 1)
    f8 = np.dtype("f8")
    parts = parts_of(whole, shapes_of(whole, f8)[-1], f8)
    for segment in segmentations(whole.plan, parts):
        pattern = StreamedPattern(whole, segment, f8)
        schedule, clock, parent = pattern.schedule, pattern._clock, whole.plan.parent
        assert (clock.time[parent[parent >= 0]] > clock.time[parent >= 0]).all()
        assert (np.diff(segment) >= 0).all()
        tiled = ~schedule.small
        epoch = schedule.time - schedule.small_levels
        np.testing.assert_array_equal(clock.over[clock.time[tiled]], epoch[tiled])
        np.testing.assert_array_equal(schedule.small, whole.schedule.small)
        begin, end, first, last, need = owners(pattern)
        assert end.max() <= pattern.places.places.entries
        assert pattern.least <= pattern.places.places.entries
        for i in range(begin.size):
            others = np.flatnonzero((begin < end[i]) & (end > begin[i]) & (first > first[i]))
            assert (first[others] > last[i]).all()
            own = np.searchsorted(clock.begin, first[others], "right")
            late = own > np.searchsorted(clock.begin, last[i], "right")  # segments
            assert ((need[others] >= clock.over[last[i] + 1]) | late | (need[others] < 0)).all()
            together = np.flatnonzero((begin < end[i]) & (end > begin[i]) & (first == first[i]))
            assert (together == i).all()
        windows = pattern.places.window + pattern.places.length
        assert windows.max() <= pattern.places.places.panels
        assert (pattern.places.window[1::2] >= windows[::2].max()).all()


def test_the_least_limit_is_told_before_anything_is_taken(monkeypatch):
    device = CountingDevice()
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
    monkeypatch.setattr(frontal.gpu, "available", lambda: True)
    a = solid_system("spd", n=10)
    analysis = frontal.analyze(a, kind="spd", backend="gpu")
    limit = least_of(analysis)
    with pytest.raises(frontal.FactorMemoryError) as error:
        analysis.factorize(a, memory=limit - 1)
    assert (error.value.required, error.value.available) == (limit, limit - 1)
    with pytest.raises(frontal.FactorMemoryError) as error:
        frontal.solve(a, np.ones(1000), kind="spd", backend="gpu", memory=limit // 2)
    assert not device.count.most
    device.memory = limit - 1  # less than is asked for
    with pytest.raises(frontal.FactorMemoryError) as error:
        analysis.factorize(a, memory="streamed")
    assert error.value.required == limit
    device.memory = limit
    for memory in ("streamed", "auto", 1 << 40, np.int64(limit), float(limit)):
        assert numeric(analysis.factorize(a, memory=memory)).storage.panels.nbytes < limit
    assert device.count.most <= limit


def test_where_a_factor_goes_by_itself(use):
    """On the device, by segments, to the CPU; and nowhere else than was insisted on."""
    device, a = use(), solid_system("spd")
    analysis = analyzed(a, "spd")
    limit, whole = least_of(analysis), analysis.memory_for("f8", memory="device")
    assert analysis.memory_for("f8") == analysis.memory == whole
    assert numeric(analysis.factorize(a)).storage.nbytes < whole["total"]
    device.memory = whole["total"] - whole["index"]  # the index arrays are there
    assert analysis.memory_for("f8") == whole
    device.memory -= 1
    told = analysis.memory_for("f8")
    assert told == analysis.memory_for("f8", memory=device.memory)
    assert told["host"] > 0
    factor = analysis.factorize(a)
    assert factor.info["device"] == "emulated, panels on the host"
    with pytest.raises(frontal.FactorMemoryError) as error:
        analysis.factorize(a, memory="device")
    assert error.value.required <= whole["total"]
    device.memory = limit - 1
    assert analysis.memory_for("f8") == whole
    auto, b = analysis.on("auto"), np.ones(a.shape[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FRONTAL_BACKEND", "auto")
        patch.setattr("frontal.backend.choose._faster", lambda dtype, flops: "gpu")
        with pytest.warns(frontal.PerformanceWarning, match="falling back to the CPU"):
            assert auto.factorize(a).info["backend"] == "cpu"
        for memory in ("streamed", limit - 1):
            with pytest.raises(frontal.FactorMemoryError):
                auto.factorize(a, memory=memory)
    np.testing.assert_allclose(a @ factor.solve(b), b)


@pytest.mark.parametrize("memory", ["host", "", None, -1, float("nan"), True, [4]])
def test_what_is_no_memory(memory):
    with pytest.raises(ValueError, match="choose 'auto'"):
        frontal.factorize(problems.poisson2d(4), memory=memory)
    with pytest.raises(ValueError, match="choose 'auto'"):
        frontal.analyze(problems.poisson2d(4)).memory_for("f8", memory=memory)


@pytest.mark.parametrize("n", [4, 40])
def test_a_limit_of_the_cpu(n):
    """For small systems, too, which go another way; names mean nothing there."""
    a, b = problems.poisson2d(n), np.ones(n * n)
    analysis = frontal.analyze(a, backend="cpu")
    told = analysis.memory_for("f8", threads=1)
    assert (told["device"], told["host"]) == (0, told["total"])
    for memory in (told["total"] // 2, 0):
        with pytest.raises(frontal.FactorMemoryError) as error:
            frontal.solve(a, b, backend="cpu", memory=memory)
        assert error.value.available == memory
        with pytest.raises(frontal.FactorMemoryError):
            analysis.memory_for("f8", memory=memory)
    required = error.value.required
    with pytest.raises(frontal.FactorMemoryError):
        analysis.factorize(a, memory=required - 1)
    factor = analysis.factorize(a, memory=required)
    np.testing.assert_allclose(a @ factor.refactorize(2 * a).solve(b), b / 2)
    assert pickle.loads(pickle.dumps(factor))._numbers.memory == required
    for memory in ("device", "streamed"):
        np.testing.assert_allclose(a @ analysis.factorize(a, memory=memory).solve(b), b)
