"""What is found out about a factor on the device: pivots, growth, values that have no factor."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.gpu.runtime import modules

from ...conftest import all_is_over
from ...emulation.borders import DTYPES, eps
from ...emulation.traffic import put
from ...matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")


@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_health_and_growth_are_those_of_the_host(device, kind, dtype):
    a = grid_system(kind, dtype)
    there = frontal.factorize(a, kind=kind, backend="gpu")
    here = there.to_cpu()
    np.testing.assert_allclose(
        there._numbers.factor.diagonal(), here._numbers.factor.diagonal(), rtol=500 * eps(dtype)
    )
    np.testing.assert_allclose(
        there._numbers.factor.health().pivot_ratio,
        here._numbers.factor.health().pivot_ratio,
        rtol=500 * eps(dtype),
    )
    parts = [here.L] if kind == "spd" else [here._numbers.factor.panels]
    parts = [p.data if sp.issparse(p) else p for p in parts]
    largest = max(max(np.abs(p.real).max(), np.abs(p.imag).max()) for p in parts)
    norm = abs(a).sum(1).max() if kind == "spd" else 1
    np.testing.assert_allclose(there.growth, largest / norm, rtol=500 * eps(dtype))
    assert there.info["memory"] == there._numbers.factor.storage.nbytes
    assert there.info["backend"] == "gpu"
    assert there.info["device"] == device.name


def test_values_and_right_hand_sides_that_are_not_finite(device):
    for kind in ("spd", "general"):
        a = grid_system(kind, "f8")
        factor = frontal.factorize(a, kind=kind, backend="gpu")
        b = np.ones((81, 3))
        b[7, 1] = b[9, 1] = np.nan
        for given in (b, put(device, b)):
            with pytest.raises(frontal.NonFiniteInputError, match=r"b\[7, 1\] is nan"):
                factor.solve(given)
        with pytest.raises(frontal.NonFiniteInputError, match=r"b\[7\] is nan"):
            factor.solve(put(device, b[:, 1]))
        with pytest.raises(frontal.NonFiniteInputError, match=r"b\[80\] is nan"):
            factor.solve(put(device, np.append(b[:80, 0], np.nan)))
        data = a.data.copy()
        data[[100, 200]] = np.inf
        p = int(a.indices[100]), int(np.searchsorted(a.indptr, 100, "right") - 1)
        with pytest.raises(frontal.NonFiniteInputError) as caught:
            factor.refactorize(put(device, data))
        assert caught.value.index == p
        factor.refactorize(put(device, a.data))
        np.testing.assert_allclose(a @ factor.solve(np.ones(81)), 1, rtol=1e-9)


def test_wrong_shapes_and_types_on_the_device(device):
    a = grid_system("spd", "f8")
    factor = frontal.factorize(a, kind="spd", backend="gpu")
    for shape in ((80,), (81, 2, 1), ()):
        with pytest.raises(ValueError, match="b must be"):
            factor.solve(put(device, np.ones(shape)))
    with pytest.raises(ValueError, match="80 values given"):
        factor.refactorize(put(device, np.ones(80)))
    x = factor.solve(put(device, np.arange(81)))
    assert x.dtype == np.float64
    strided = put(device, np.ones((81, 6)))[:, ::2]
    np.testing.assert_allclose(a @ device.download(factor.solve(strided)), 1, rtol=1e-10)
    np.testing.assert_allclose(a @ device.download(factor.solve(strided[:, 0])), 1, rtol=1e-10)


def test_a_matrix_that_is_not_definite_any_more(device):
    a = grid_system("spd", "f8")
    bad = a.copy()
    bad.setdiag(np.where(np.arange(81) == 40, -4.0, 4.0))
    strict = frontal.factorize(a, kind="spd", backend="gpu")
    with pytest.raises(frontal.NotPositiveDefiniteError) as there:
        strict.refactorize(put(device, bad.data))
    with pytest.raises(frontal.NotPositiveDefiniteError) as here:
        frontal.factorize(bad, strict.analysis.on("cpu"))
    assert there.value.column == here.value.column
    with pytest.raises(frontal.FactorInvalidError, match="refactorize again"):
        strict.solve(np.ones(81))
    strict.refactorize(put(device, a.data))
    np.testing.assert_allclose(a @ strict.solve(np.ones(81)), 1, rtol=1e-10)
    loose = frontal.factorize(a, backend="gpu")
    loose.refactorize(put(device, bad.data))
    assert loose.info["method"] == "ldlt"
    assert loose.info["backend"] == "gpu"
    np.testing.assert_allclose(bad @ loose.solve(np.ones(81)), 1, rtol=1e-9)


def test_singular_matrices_are_refused(device):
    a = grid_system("general", "f8")
    factor = frontal.factorize(a, kind="general", backend="gpu")
    with pytest.raises(frontal.SingularMatrixError):
        factor.refactorize(put(device, a.data * (a.indices != 17)))
    neumann = problems.poisson2d(9).tolil()
    neumann.setdiag(0)
    neumann = sp.csc_array(neumann)
    neumann = sp.csc_array(neumann - sp.diags_array(neumann.sum(1)))
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(neumann, kind="general", backend="gpu")


def test_replaced_pivots_are_answered_for(device):
    rng = np.random.default_rng(3)
    n = 60
    a = sp.random_array((n, n), density=0.08, random_state=rng)
    a = sp.csc_array(sp.block_array([[None, a + sp.eye_array(n)], [a.T + sp.eye_array(n), None]]))
    factor = frontal.factorize(a, backend="gpu")
    x, info = factor.solve(put(device, a @ np.ones(2 * n)), return_info=True)
    assert info.backward_error <= 1e-15
    np.testing.assert_allclose(device.download(x), 1, rtol=1e-6, atol=1e-8)


def end_compilers():
    """Wait for the threads that compile kernels for a GPU; later kernels get new threads."""
    modules._compilers().end()
    modules._compilers.cache_clear()


@pytest.mark.parametrize("threaded", [True, False])
@pytest.mark.parametrize("late", ["tile_tasks", "solve_tasks"])
def test_no_room_for_a_list_is_told_and_no_thread_stays(device, monkeypatch, late, threaded):
    def full(*_, **__):
        raise MemoryError

    a = grid_system("spd", "f8", 20)
    with monkeypatch.context() as patch:
        patch.setattr(f"frontal.gpu.sparse.pattern.{late}", full)
        if threaded:
            patch.setattr("frontal.gpu.sparse.pattern._MIN_THREADED_ENTRIES", 0)
        with all_is_over():
            with pytest.raises(MemoryError):
                frontal.solve(a, np.ones(400), backend="gpu")
            end_compilers()
    np.testing.assert_allclose(a @ frontal.solve(a, np.ones(400), backend="gpu"), 1, rtol=1e-9)
