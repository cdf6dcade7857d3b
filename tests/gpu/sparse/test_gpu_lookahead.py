"""What is begun while a pattern is analyzed is what its factorization takes, and nothing else."""

import gc
import weakref

import numpy as np
import pytest

import frontal
from frontal import problems
from frontal.backend import choose
from frontal.gpu.runtime import device as devices
from frontal.gpu.sparse import pattern
from frontal.gpu.sparse.layout import panels
from frontal.numeric.method import CHOLESKY

from ...emulation.compiling import COMPILER
from ...emulation.counting import CountingDevice
from ...emulation.device import EmulatedDevice
from ...matrices import grid_system

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to emulate kernels with")


@pytest.fixture
def current(monkeypatch):
    """The devices that a test has: the first is the current one, which the process has used."""
    found = [CountingDevice(), EmulatedDevice()]
    monkeypatch.setattr(devices, "device_of", lambda array=None: found[0])
    monkeypatch.setattr(devices, "at_work", lambda: True)
    return found


@pytest.fixture(params=["light", "threads"])
def lists(request, monkeypatch):
    """Whether lists are made in the calling thread, as for a small matrix, or on others."""
    if request.param == "threads":
        monkeypatch.setattr(pattern, "_MIN_THREADED_ENTRIES", 0)


@pytest.fixture
def made(monkeypatch):
    """Names of lists, schedules and layouts that were made."""
    names = []

    def counted(module, name):
        make = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a, **k: (names.append(name), make(*a, **k))[1])

    counted(panels, "make_schedule")
    counted(panels.DeviceLayout, "from_fronts")
    for name in ("tile_tasks", "small_tasks", "solve_tasks"):
        counted(pattern, name)
    return names


def finished(analysis):
    """Wait for what is at work."""
    begun = choose._expected[analysis]
    begun.pattern.finish()
    return begun


@pytest.mark.usefixtures("lists")
@pytest.mark.parametrize("kind", ["spd", "general"])
def test_all_is_made_once_and_nothing_taken(current, made, kind):
    a = grid_system(kind, "f8", 14)
    plain = frontal.factorize(a, kind=kind, backend="cpu").solve(np.ones(196))
    assert not made
    analysis = frontal.analyze(a, kind=kind, backend="gpu")
    begun = finished(analysis)
    assert sorted(made) == ["from_fronts", "make_schedule", "solve_tasks", "tile_tasks"]
    assert not current[0].count.most
    factor = analysis.factorize(a)
    assert analysis.engine is begun
    np.testing.assert_allclose(factor.solve(np.ones(196)), plain, rtol=1e-9)
    assert len(made) == 4
    assert analysis not in choose._expected


@pytest.mark.usefixtures("lists")
def test_on_another_device_nothing_of_it_is_taken(current):
    a = grid_system("spd", "f8")
    analysis = frontal.analyze(a, backend="gpu")
    finished(analysis)
    current.reverse()
    assert analysis.engine.pattern.device is current[0]
    np.testing.assert_allclose(a @ analysis.factorize(a).solve(np.ones(81)), 1, rtol=1e-9)


@pytest.mark.usefixtures("lists")
def test_other_scalar_types_have_their_own(current):
    a = grid_system("general", "f8")
    analysis = frontal.analyze(a, kind="general", backend="gpu")
    for dtype in ("f4", "c16", "f8"):
        b = a.astype(dtype)
        x, info = analysis.factorize(b).solve(np.ones(81, dtype), return_info=True)
        assert info.backward_error < np.finfo(dtype).eps
        np.testing.assert_allclose(b @ x, 1, rtol=1e-2)


def test_who_does_not_factorize_there_begins_nothing(current, made, monkeypatch):
    a = grid_system("spd", "f8")
    small = frontal.analyze(a)  # is for the CPU
    assert frontal.analyze(a, backend="cpu") not in choose._expected
    assert small not in choose._expected
    monkeypatch.setattr(devices, "at_work", lambda: False)
    assert frontal.analyze(a, backend="gpu") not in choose._expected
    monkeypatch.setattr(devices, "at_work", lambda: True)

    def broken(array=None):
        raise RuntimeError("a process that was forked")

    monkeypatch.setattr(devices, "device_of", broken)
    assert frontal.analyze(a, backend="gpu") not in choose._expected
    assert not made


def test_a_device_is_wakened_for_who_factorizes_next(current, monkeypatch):
    began = []
    monkeypatch.setattr(current[0], "begin", lambda files, dtype: began.append((files, dtype)))
    wakened = choose.prewarm("gpu", CHOLESKY, np.dtype("f4"), 100)
    assert wakened is None  # it is at work already
    monkeypatch.setattr(devices, "at_work", lambda: False)
    assert choose.prewarm("auto", CHOLESKY, np.dtype("f4"), 100) is None
    assert choose.prewarm("cpu", CHOLESKY, np.dtype("f4"), 100) is None
    choose.prewarm("gpu", CHOLESKY, np.dtype("f4"), 100).result()
    [(files, dtype)] = began
    assert ({"front_small.cu", "front_tiles.cu", "system.cu"} <= {*dict(files)}, dtype) == (
        True,
        "f4",
    )


@pytest.mark.usefixtures("lists")
def test_what_was_begun_in_vain_goes_with_its_analysis(current):
    analysis = frontal.analyze(problems.poisson2d(20), backend="gpu")
    begun = weakref.ref(finished(analysis))
    del analysis
    gc.collect()
    assert begun() is None


@pytest.mark.usefixtures("lists")
def test_a_phase_from_a_folder_begins_with_its_plan(current, tmp_path, monkeypatch):
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE", str(tmp_path))
    monkeypatch.setattr("frontal.symbolic.disk_cache.MIN_CACHED_COLUMNS", 10)
    a = grid_system("spd", "f8")
    for _ in range(2):
        analysis = frontal.analyze(a, backend="gpu")
        assert finished(analysis).pattern._listed
        np.testing.assert_allclose(a @ analysis.factorize(a).solve(np.ones(81)), 1, rtol=1e-9)
