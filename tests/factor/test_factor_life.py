"""Factors from their first to their last day: copies, the way to the host, memory, the backend."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import errors, problems
from frontal.backend import choose as backend
from frontal.factor.solve import FactorSolver
from frontal.gpu.sparse.backend import GpuBackend
from frontal.gpu.sparse.factor import GpuFactor

from ..emulation.traffic import put
from ..matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")

B = np.random.default_rng(0).standard_normal((81, 2))


@pytest.fixture
def automatic(monkeypatch):
    """Let `backend="auto"` take the GPU for everything."""
    monkeypatch.delenv("FRONTAL_BACKEND", raising=False)
    monkeypatch.setattr(backend, "GPU_FLOPS", 0)
    monkeypatch.setattr(backend, "_has_gpu", lambda: True)


both = pytest.mark.parametrize("where", ["cpu", "gpu"])
kinds = pytest.mark.parametrize("kind", ["spd", "general"])


@both
@kinds
def test_copies_are_independent(device, where, kind):
    a = grid_system(kind, "f8")
    factor = frontal.factorize(a, kind=kind, backend=where)
    before = factor.solve(B)
    twins = factor.copy(), copy.copy(factor), copy.deepcopy(factor), factor.to_cpu()
    twins += (pickle.loads(pickle.dumps(factor)),)
    factor.refactorize(2 * a)
    assert [twin.info["backend"] for twin in twins] == [where, where, "cpu", "cpu", "cpu"]
    for twin in twins:
        np.testing.assert_allclose(twin.solve(B, refine=0), before, rtol=1e-9)
        twin.refactorize(4 * a)
        np.testing.assert_allclose(twin.solve(B, refine=0), before / 4, rtol=1e-9)
    np.testing.assert_allclose(factor.solve(B), before / 2, rtol=1e-9)


@kinds
def test_freed_memory_is_free_at_once(kind):
    """It waits for no collection of cycles."""
    factor = frontal.factorize(grid_system(kind, "f8"), kind=kind, backend="gpu")
    factor.solve(B, refine=0)
    panels = weakref.ref(factor._numbers.factor.storage.panels)
    gc.disable()
    try:
        factor.free()
        assert panels() is None
    finally:
        gc.enable()


@kinds
def test_the_host_has_what_came_from_the_device(device, kind):
    a = grid_system(kind, "c8")
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    factor.refactorize(put(device, 3 * a.data))
    for twin in (factor.to_cpu(), pickle.loads(pickle.dumps(factor))):
        np.testing.assert_array_equal(twin.A.toarray(), 3 * a.toarray())
        x, info = twin.solve(B, return_info=True)
        np.testing.assert_allclose(3 * a @ x, B, rtol=1e-4, atol=1e-4)
        assert info.backend == "cpu"
    assert factor.to_cpu().analysis.backend == "cpu"


@both
def test_a_freed_factor_says_so(device, where):
    a = grid_system("spd", "f8")
    factor = frontal.factorize(a, backend=where)
    twin = factor.copy()
    storage = factor._numbers.factor
    factor.free()
    factor.free()
    if where == "gpu":
        assert storage.storage.panels.size == 0
    assert repr(factor).endswith("freed>")
    assert factor.shape == (81, 81)
    uses = {
        "solve": lambda: factor.solve(B),
        "solve there": lambda: factor.solve(put(device, B)),
        "refactorize": lambda: factor.refactorize(a),
        "values": lambda: factor.refactorize(a.data),
        "logdet": factor.logdet,
        "L": lambda: factor.L,
        "A": lambda: factor.A,
        "info": lambda: factor.info,
        "growth": lambda: factor.growth,
        "copy": factor.copy,
        "to_cpu": factor.to_cpu,
        "pickle": lambda: pickle.dumps(factor),
        "with": factor.__enter__,
    }
    for use in uses.values():
        with pytest.raises(errors.FactorFreedError, match="has been freed"):
            use()
    np.testing.assert_allclose(a @ twin.solve(B), B, atol=1e-12)


@both
def test_a_with_block_frees(where):
    a = grid_system("general", "f8")
    with frontal.factorize(a, backend=where) as factor:
        np.testing.assert_allclose(a @ factor.solve(B), B, atol=1e-8)
    with pytest.raises(ValueError, match="factorize again"):
        factor.solve(B)


def test_the_end_of_a_block_does_not_hide_an_error():
    with pytest.raises(KeyError), frontal.factorize(grid_system("spd", "f8")):
        raise KeyError


def test_freed_factors_name_their_error_in_another_process():
    twin = pickle.loads(pickle.dumps(errors.FactorFreedError()))
    assert isinstance(twin, frontal.FrontalError)
    assert "the analysis is still valid" in str(twin)


# --- memory ------------------------------------------------------------------------------------


def full(*_, **__):
    raise MemoryError("out of memory allocating 1 byte")


@kinds
def test_too_little_memory_goes_to_the_cpu(device, monkeypatch, automatic, kind):
    a = grid_system(kind, "f8")
    analysis = frontal.analyze(a, kind=kind)
    with monkeypatch.context() as patch:
        patch.setattr(device, "free_memory", lambda: 100)
        with pytest.warns(errors.PerformanceWarning, match="falling back to the CPU"):
            factor = analysis.factorize(a)
    assert factor.info["backend"] == "cpu"
    np.testing.assert_allclose(a @ factor.solve(B), B, atol=1e-8)
    own = frontal.analyze(a, kind=kind, backend="cpu")  # with fronts of its own, not the GPU's
    assert factor.analysis.plan.start.tolist() == own.plan.start.tolist()
    assert own.plan.start.tolist() != analysis.plan.start.tolist()
    assert analysis.factorize(a).info["backend"] == "gpu"


def test_a_device_that_fills_up(device, monkeypatch, automatic):
    a = grid_system("general", "f8")
    factor = frontal.factorize(a, kind="general")
    assert factor.info["backend"] == "gpu"
    monkeypatch.setattr(GpuFactor, "begin", lambda *_: None)
    monkeypatch.setattr(GpuBackend, "_compute", full)
    with pytest.warns(errors.PerformanceWarning):
        factor.refactorize(put(device, 2 * a.data))
    assert factor.info["backend"] == "cpu"
    np.testing.assert_allclose(2 * a @ factor.solve(B), B, atol=1e-8)
    np.testing.assert_array_equal(factor.A.toarray(), 2 * a.toarray())


@pytest.mark.parametrize("forced", [False, True])
def test_a_gpu_that_is_asked_for_raises(device, monkeypatch, automatic, forced):
    a = grid_system("spd", "f8")
    asked = "gpu"
    if forced:
        monkeypatch.setenv("FRONTAL_BACKEND", "gpu")
        asked = "auto"
    with monkeypatch.context() as patch:
        patch.setattr(GpuBackend, "_compute", full)
        with pytest.raises(frontal.FactorMemoryError, match="backend='cpu'") as caught:
            frontal.factorize(a, backend=asked)
    assert caught.value.required > 0
    assert caught.value.available == device.free_memory()
    monkeypatch.setattr(device, "free_memory", lambda: 100)
    with pytest.raises(frontal.FactorMemoryError):
        frontal.factorize(a, backend=asked)


# --- the choice of a backend -------------------------------------------------------------------


def test_small_problems_stay_on_the_cpu(monkeypatch, automatic):
    small, large = problems.poisson2d(5), problems.poisson2d(20)  # 3e3 and 1e5 flops
    monkeypatch.setattr(backend, "GPU_FLOPS", 1e4)
    found = [frontal.factorize(a).info["backend"] for a in (small, large)]
    assert found == ["cpu", "gpu"]
    monkeypatch.setattr(backend, "_has_gpu", lambda: False)
    assert frontal.factorize(large).info["backend"] == "cpu"
    monkeypatch.setenv("FRONTAL_BACKEND", "gpu")
    assert frontal.factorize(small).info["backend"] == "gpu"
    monkeypatch.setenv("FRONTAL_BACKEND", "cpu")
    assert frontal.factorize(large, backend="auto").info["backend"] == "cpu"


@pytest.mark.parametrize("name", ["cuda", ""])
def test_other_backends_are_unknown(monkeypatch, name):
    with pytest.raises(ValueError, match="choose 'auto', 'cpu' or 'gpu'"):
        backend.resolved(name, 0.0)
    monkeypatch.setenv("FRONTAL_BACKEND", name)
    with pytest.raises(ValueError, match="FRONTAL_BACKEND is"):
        backend.resolved("auto", 0.0)
    assert backend.resolved("cpu", 0.0) == "cpu"


def test_the_search_for_a_gpu_is_made_once(monkeypatch):
    asked = []
    monkeypatch.setattr(frontal.gpu, "available", lambda: asked.append(1) or True)
    backend._has_gpu.cache_clear()
    assert backend._has_gpu()
    assert backend._has_gpu()
    assert len(asked) == 1
    backend._has_gpu.cache_clear()


def test_arrays_of_a_device_and_a_factor_on_the_host(device):
    a = sp.csc_array(grid_system("spd", "f8"))

    class Values:
        ndim, size, dtype = 1, a.nnz, a.dtype

        def get(self):
            return 2 * a.data

    factor = frontal.factorize(a, backend="cpu").refactorize(Values())
    np.testing.assert_allclose(2 * a @ factor.solve(B), B, atol=1e-12)


def test_the_cpu_takes_over_where_the_pivots_of_the_gpu_do_not_do(monkeypatch):
    examine, judged = FactorSolver.examine, []

    def first_time(solver, before):
        judged.append(solver.factor.backend == "gpu")
        if judged == [True]:
            raise frontal.SingularMatrixError("tiny pivots")
        examine(solver, before)

    monkeypatch.setattr(FactorSolver, "examine", first_time)
    a = grid_system("general", "f8")
    with pytest.warns(errors.PerformanceWarning, match="refactorizing on the CPU"):
        factor = frontal.factorize(a, kind="general", backend="gpu")
    assert judged == [True, False]
    assert factor.info["backend"] == "cpu"
    np.testing.assert_allclose(a @ factor.solve(np.ones(81)), 1, rtol=1e-10)
