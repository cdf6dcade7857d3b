"""Factors by segments, with panels on the host: the same bits in less memory, however late."""

import copy
import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal import problems
from frontal.gpu.sparse import backend as backends
from frontal.gpu.sparse import fronts, places, solve_tasks
from frontal.gpu.sparse import schedule as schedules
from frontal.gpu.sparse.pattern import Pattern
from frontal.gpu.sparse.streamed.pattern import StreamedPattern
from frontal.gpu.sparse.streamed.places import parts_with_inverses
from frontal.gpu.sparse.streamed.segments import segmentations

from ...conftest import fronts_cost
from ...emulation.counting import CountingDevice
from ...emulation.device import COMPILER
from ...emulation.lanes import LaneDevice
from ...factor.test_pivots import weak_pivots
from .indefinite_tools import of_kind
from .test_gpu_singular import paths
from .test_gpu_system import put

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to emulate kernels with")

KINDS = ("spd", "symmetric", "general")
LATE = ("copies", "kernels")


@pytest.fixture(scope="module")
def devices():
    """Of two streams one is as late as ever; kernels are loaded once."""
    return {late: LaneDevice(late) for late in LATE}


@pytest.fixture
def use(devices, monkeypatch):
    """Give `backend="gpu"` a device, with fronts of every kind although there are few."""

    def chosen(late="copies"):
        device = devices[late] if late in LATE else late
        device.memory, device.is_capturing = 1 << 40, False
        monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
        return device

    monkeypatch.setattr(frontal.gpu, "available", lambda: True)
    monkeypatch.setattr(backends, "Pattern", lambda *of: Pattern(*of, small=32, fewest=1))
    monkeypatch.setattr(solve_tasks, "_WARPS", 0)  # small ones in solves, too
    monkeypatch.setattr(solve_tasks, "_SMALL_ENTRIES", 600)
    monkeypatch.setattr(schedules, "_EPOCH", 2)
    monkeypatch.setattr(schedules, "_GROUP", 4)
    return chosen


def matrix(kind, dtype="f8", n=8):
    """A solid's, with fronts of every kind."""
    a = problems.convdiff3d(n) if kind == "general" else problems.poisson3d(n)
    if kind == "symmetric":
        a = of_kind(a - 0.63 * sp.eye_array(n**3), dtype, frontal.method.LDLT)
    elif kind == "spd":
        a = of_kind(a, dtype, frontal.method.LDLH)
    elif np.dtype(dtype).kind == "c":
        a = a * np.exp(0.2j) + 1j * sp.eye_array(n**3)
    return sp.csc_array(a).astype(dtype)


def analyzed(a, kind, **options):
    """Fronts are not merged until few are left."""
    with fronts_cost(1e-7):
        return frontal.analyze(a, kind=kind, backend="gpu", ordering="nesdis", **options)


def least_of(analysis, dtype="f8"):
    """The least limit that there are segments for."""
    with pytest.raises(frontal.FactorMemoryError) as error:
        analysis.memory_for(dtype, memory=0)
    return error.value.required


def numeric(factor):
    return factor._numbers.factor


def check_same(one, other):
    """All that factors have and tell, bit by bit."""
    for a, b in zip(numeric(one).to_host(), numeric(other).to_host(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.diag(), other.diag())
    assert one.growth == other.growth
    assert one.slogdet() == other.slogdet()
    assert numeric(one).health() == numeric(other).health()
    assert numeric(one).largest_multiplier == numeric(other).largest_multiplier


CASES = [
    *((kind, "f8", late) for kind in KINDS for late in LATE),
    *((kind, "c16", "copies") for kind in KINDS),
    *(("spd", "c8", "kernels"), ("general", "f4", "kernels")),
]


@pytest.mark.parametrize(("kind", "dtype", "late"), CASES)
def test_the_same_bits_in_the_least_memory(use, kind, dtype, late):
    device, a = use(late), matrix(kind, dtype)
    analysis = analyzed(a, kind)
    whole = analysis.factorize(a, memory="device")
    part = analysis.factorize(a, memory=least_of(analysis, dtype))
    pattern = numeric(part).pattern
    for some in (pattern.schedule.small, ~pattern.schedule.small):
        assert np.unique(pattern.segment[some]).size > 3
    b = np.random.default_rng(4).standard_normal((a.shape[0], 9)).astype(dtype)
    np.testing.assert_array_equal(part.solve(b), whole.solve(b))
    check_same(part, whole)
    for turn, scale in enumerate((2, 0.7, 3)):
        values = scale * a.data
        given = values if kind == "general" or turn == 1 else put(device, values)
        for factor in (part, whole):
            factor.refactorize(given)
        found, wanted = (factor.solve(b[:, turn], "NTH"[turn]) for factor in (part, whole))
        np.testing.assert_array_equal(found, wanted)
    check_same(part, whole)
    assert numeric(part).pattern is pattern


def taken(kind, share, rhs):
    """Bytes that a factor with its solves takes at most, and what was told before."""
    device = CountingDevice()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
        patch.setattr(frontal.gpu, "available", lambda: True)
        patch.setattr(fronts, "_ROOM", 0)
        a = matrix(kind, n=10)
        analysis = frontal.analyze(a, kind=kind, backend="gpu")
        limit, whole = least_of(analysis), analysis.memory_for("f8", memory="device")["total"]
        limit += int(share * (whole - limit))
        told = analysis.memory_for("f8", rhs=rhs, memory=limit)
        assert not device.count.most
        factor, b = analysis.factorize(a, memory=limit), np.ones((a.shape[0], rhs))
        factor.solve(b)
        for scale in (2, 3):
            factor.refactorize(scale * a)
            factor.solve(b)
        assert factor.growth > 0
    return device.count.most, told, limit, factor


@pytest.mark.parametrize(
    ("kind", "share", "rhs"),
    [("spd", 0, 1), ("spd", 0.5, 17), ("symmetric", 0, 1), ("general", 0, 9)],
)
def test_no_more_is_taken_than_was_told(kind, share, rhs):
    most, told, limit, factor = taken(kind, share, rhs)
    assert 0.9 * told["device"] <= most <= told["device"]
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
    ends = layout.inside[0] + layout.size + pattern._inverses
    assert (ends <= layout.length[segment]).all()
    after = np.flatnonzero(np.diff(segment) == 0) + 1
    assert (layout.inside[0][after] >= ends[after - 1]).all()
    assert (layout.inside[0][first_of[:-1]] == 0).all()
    begins, sizes, first, last, need = map(np.concatenate, zip(*parts, strict=True))
    there = np.flatnonzero(sizes)
    return [x[there] for x in (begins, begins + sizes, first, last, need)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("slack", [0, 1])
def test_nothing_has_two_owners(use, monkeypatch, kind, slack):
    """In any order that launches, copies and waits allow."""
    device = use()
    monkeypatch.setattr(places, "_SLACK", slack)
    symbolic = analyzed(matrix(kind, n=10), kind).symbolic
    whole = Pattern(device, symbolic.plan, symbolic.method, 32, 1)
    f8 = np.dtype("f8")
    parts = parts_with_inverses(whole, np.diff(whole.inverse), f8)
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
    a = matrix("spd", n=10)
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
    device, a = use(), matrix("spd")
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
        patch.setattr("frontal.backends._faster", lambda dtype, flops: "gpu")
        with pytest.warns(frontal.PerformanceWarning, match="the CPU takes over"):
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


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_copies_and_pickles(use, kind):
    use("kernels")
    a = matrix(kind)
    analysis, b = analyzed(a, kind), np.cos(np.arange(512.0))
    limit = least_of(analysis)
    factor = analysis.factorize(a, memory=limit)
    first = factor.solve(b)
    twin, there = factor.copy(), copy.copy(factor)
    factor.refactorize(2 * a)
    for one in (twin, there):
        np.testing.assert_array_equal(one.solve(b), first)
        assert one._numbers.memory == limit
        assert numeric(one).storage.windows.host is not numeric(factor).storage.windows.host
    np.testing.assert_array_equal(twin.refactorize(2 * a).solve(b), factor.solve(b))
    for one in (pickle.loads(pickle.dumps(there)), there.to_cpu()):
        assert one.info["backend"] == "cpu"
        np.testing.assert_allclose(one.solve(b), first, rtol=1e-9)
        one.refactorize(2 * a)  # the limit was one of the device
    factor.free()
    with pytest.raises(frontal.FactorFreedError):
        factor.solve(b)
    np.testing.assert_array_equal(there.solve(b), first)
    with pytest.raises(ValueError, match="no profile"):
        there.profile()


def test_what_is_not_definite_goes_on_by_segments(use):
    use("kernels")
    a = matrix("spd")
    bad = a.copy()
    bad.setdiag(np.where(np.arange(512) == 300, -1.0, a.diagonal()))
    analysis = analyzed(a, "spd")
    limit = 3 * least_of(analysis) // 2
    factor = analysis.factorize(a, memory=limit)
    first = factor.solve(np.ones(512))
    with pytest.raises(frontal.NotPositiveDefiniteError) as error:
        factor.refactorize(bad)
    assert error.value.column == 300
    with pytest.raises(frontal.FactorInvalidError):
        factor.solve(np.ones(512))
    np.testing.assert_array_equal(factor.refactorize(a).solve(np.ones(512)), first)
    with fronts_cost(1e-7):
        guess = frontal.analyze(a, backend="gpu", ordering="nesdis")
    part, whole = (guess.factorize(bad, memory=memory) for memory in (limit, "device"))
    assert part.analysis.method == "ldlt"
    assert numeric(part).pattern.count > 2
    assert part.inertia == whole.inertia == (511, 1, 0)
    check_same(part, whole)


@pytest.mark.parametrize("kind", ["general", "symmetric"])
def test_columns_go_to_other_fronts(use, kind):
    """A plan that is amended has segments of its own."""
    use()
    a = weak_pivots(1e-12) if kind == "general" else problems.stokes2d(14)
    given = {"ordering": np.arange(300)} if kind == "general" else {}
    first = weak_pivots(1.0) if kind == "general" else a
    with fronts_cost(1e-9) if given else nullcontext():
        analysis = frontal.analyze(first, kind=kind, backend="gpu", **given)
    part, whole = (analysis.factorize(a, memory=x) for x in ("streamed", "device"))
    assert part.analysis.amendments == whole.analysis.amendments == 1
    assert numeric(part).pattern.count > 1
    check_same(part, whole)
    b = np.ones(a.shape[0])
    np.testing.assert_array_equal(part.solve(b), whole.solve(b))


def test_null_vectors(use):
    use("kernels")
    a, options = paths(3, 20), {"singular": "allow"}
    analysis = frontal.analyze(a, kind="symmetric", backend="gpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part, whole = (analysis.factorize(a, memory=x, **options) for x in ("streamed", "device"))
    np.testing.assert_array_equal(part.null_space(), whole.null_space())
    assert part.null_columns.size == 3
    assert part.rcond() == whole.rcond()


def test_mixed_precision(use):
    use("kernels")
    a, b, options = matrix("general"), np.cos(np.arange(512.0)), {"precision": "mixed"}
    analysis = analyzed(a, "general")
    part, whole = (analysis.factorize(a, memory=x, **options) for x in ("streamed", "device"))
    for _ in range(2):
        np.testing.assert_array_equal(part.solve(b), whole.solve(b))
        part.refactorize(2 * a), whole.refactorize(2 * a)
    assert part.dtype == "f4"
    assert part.slogdet() == whole.slogdet()  # in double
    assert numeric(part).pattern.dtype == "f8"


def test_panels_come_once_for_all_columns(use):
    """Each way, if there is memory for their messages; and not what is on the device already."""
    device, a = use(), matrix("spd")
    analysis = analyzed(a, "spd")
    for memory, columns in (("streamed", (1, 1, 9, 17)), (least_of(analysis), (1, 1))):
        factor = analysis.factorize(a, memory=memory)
        sizes, found = 8 * numeric(factor).pattern.places.length, []
        for count in columns:
            device.copied = 0
            factor.solve(np.ones((512, count)), refine=0)
            found.append(device.copied)
        again = sizes[2:].sum() + sizes[:-2].sum()  # the first two lie there in the end
        assert found == [sizes.sum() + sizes[:-2].sum(), *[again] * (len(columns) - 1)]
    assert sizes.size > 4
    device.copied = 0
    factor.solve(np.ones((512, 9)), refine=0)  # in some passes
    assert device.copied > again
    assert device.copied % again == 0


def test_no_graph_has_its_solves(use):
    device, a = use(), matrix("spd")
    factor = analyzed(a, "spd").factorize(a, memory="streamed")
    b = put(device, np.ones((512, 1)))
    factor.solve(b, refine=0)
    device.is_capturing = True
    with pytest.raises(ValueError, match="come from the host"):
        factor.solve(b, refine=0)
