"""Pivots of LU on the device: as sound as on the host, or told; columns that go up and stay."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import frontal
from frontal import problems
from frontal.gpu.sparse.backend import GpuBackend
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.numeric.method import LU

from ...conftest import fronts_cost
from ...emulation.borders import DTYPES
from ...factor.test_pivots import EPS, told
from ...matrices import bordered, conditioned_system, weak_pivots
from .test_gpu_fronts import check_solutions, factors, multipliers

pytestmark = pytest.mark.usefixtures("gpu_backend")


def on_device(a, **options):
    """A factor, if it stayed on the device."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", frontal.PerformanceWarning)
        return frontal.factorize(sp.csc_array(a), kind="general", backend="gpu", **options)


@pytest.mark.parametrize("n", [30, 100])  # a small front, and tiles
@pytest.mark.parametrize("exponent", [8, 12, 13, 14])
def test_prescribed_conditions(n, exponent):
    condition = 10.0**exponent
    for seed in range(5):
        a, x, b = conditioned_system(condition, seed, n)
        y, warned = told(lambda a=a, b=b: on_device(a).solve(b))
        assert not warned or exponent > 12
        if not warned:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
                lapack = np.abs(scipy.linalg.solve(a, b) - x).max()
            bound = max(10 * lapack, 10 * condition * EPS * np.abs(x).max())
            assert np.abs(y - x).max() <= bound, seed


@pytest.mark.parametrize("n", [30, 100])
def test_the_best_of_a_whole_column_stays(n):
    a, _, _ = conditioned_system(1e13, 0, n)
    assert on_device(a).info["perturbed_pivots"] == 0


def test_a_zero_pivot_of_a_root_is_replaced():
    a, _, _ = conditioned_system(10.0, 0, 20)
    a[-1] = a[0]
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(sp.csc_array(a), kind="general", backend="gpu")


@pytest.fixture
def attempts(monkeypatch):
    """Factors that a device has computed."""
    found, factorize = [], GpuBackend.factorize

    def told(*given, **more):
        found.append(factorize(*given, **more))
        return found[-1]

    monkeypatch.setattr(GpuBackend, "factorize", told)
    return found


@pytest.mark.parametrize("phase", [1.0, 1j])
def test_columns_go_up_once_and_stay_there(attempts, phase):
    """Each front has a column whose pivot is tiny, and which makes others in it look bad."""
    dtype, x = np.result_type(phase), np.cos(np.arange(300.0))
    given = {"kind": "general", "ordering": np.arange(300)}
    analysis = frontal.analyze(weak_pivots(1.0, dtype), backend="gpu", **given)
    factor = analysis.factorize(weak_pivots(1e-12 * phase, dtype))
    assert [len(attempt.unstable_pivots) for attempt in attempts] == [5, 0]
    for turn, size in enumerate((1e-12, -1e-11, 1e-9, 1e-12)):
        a = weak_pivots(size * phase, dtype)
        factor.refactorize(a)
        assert len(attempts) == 3 + turn
        assert factor.info["backend"] == "gpu"
        assert factor.info["perturbed_pivots"] == 0
        assert factor.analysis.amendments == 1
        assert factor.growth < 10
        y, info = factor.solve(a @ x, refine=0, return_info=True)
        assert info.backward_error <= 1e-15
        np.testing.assert_allclose(y, x, rtol=1e-9)


def test_columns_of_a_root_go_to_its_last_tile(attempts):
    """All rows are there, but none that is large in the tile where their turn is at first."""
    a = np.random.default_rng(3).uniform(-1, 1, (150, 150)) + 20 * np.eye(150)
    a[:100, [3, 5]] *= 1e-13
    factor = on_device(a)
    assert [len(attempt.unstable_pivots) for attempt in attempts] == [2, 0]
    assert factor.analysis.n_fronts == 1
    assert factor.growth < 10
    assert factor.solve(a @ np.ones(150), refine=0, return_info=True)[1].backward_error <= 1e-15


def test_rows_go_along(attempts):
    """The one that a column has its pivot in: the row of its own number is another one's."""
    a, own = weak_pivots(1e-12).toarray(), slice(40, 80)
    a[own, 47] *= 1e-9
    a[47, own] *= 1e-9
    a[[40, 47], 47] = 4.0, 1e-9
    a[[40, 47], 40] = 1e-14, 1e-12
    given = {"kind": "general", "ordering": np.arange(300), "backend": "gpu"}
    factor = frontal.analyze(weak_pivots(1.0), **given).factorize(sp.csc_array(a))
    assert [len(attempt.unstable_pivots) for attempt in attempts] == [5, 0]
    assert factor.growth < 100


@pytest.mark.usefixtures("merged_by_work")
def test_columns_of_symmetric_pivots_go_up_after_interchanges(attempts):
    """Positions after them are told; what moves are columns at positions before."""
    a = problems.stokes2d(14)
    with warnings.catch_warnings():
        warnings.simplefilter("error", frontal.PerformanceWarning)
        frontal.factorize(a, kind="symmetric", backend="gpu")
    assert len(attempts[0].unstable_pivots) > 10
    assert len(attempts) == 2
    assert not attempts[1].unstable_pivots.size


def test_fronts_of_the_host_take_over_on_the_device(attempts):
    """Columns that moving up does not help at once: the plan that the host has found."""
    a = problems.stokes2d(14)
    factor = on_device(a)
    assert not attempts[0].largest_multiplier < 1e12
    assert len(attempts) > 2
    assert not attempts[-1].unstable_pivots.size
    assert factor.growth < 1e3
    b = np.random.default_rng(0).standard_normal(a.shape[0])
    _, here = frontal.factorize(a, kind="general", backend="cpu").solve(
        b, refine=0, return_info=True
    )
    for _ in range(2):
        assert factor.solve(b, return_info=True)[1].backward_error <= 4 * EPS
        there = factor.solve(b, refine=0, return_info=True)[1].backward_error
        assert there <= max(100 * here.backward_error, 1e-13)
        before = len(attempts)
        factor.refactorize(a)
        assert len(attempts) == before + 1


def weak_columns(k, dtype):
    """A front whose later columns are small, but for ten of the 30 rows below it."""
    rng, n = np.random.default_rng(4), k + 30
    a = rng.uniform(-1, 1, (n, n)) + np.eye(n) * np.repeat([3.0, 8.0], [k, 30])
    a[k // 2 : k, : k // 2] *= 1e-4
    a[:k, k // 2 : k] *= 1e-4
    a[k + 10 :, :k] = a[:k, k + 10 :] = 0
    return sp.csc_array(a * np.exp(0.3j) if np.dtype(dtype).kind == "c" else a).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("k", "small"), [(20, 64), (20, 0), (100, 0)])
def test_columns_whose_large_entries_are_below(device, k, small, dtype):
    """Sound in their own block, but not for the rows below: the host hears which."""
    with fronts_cost(1e-12):
        analysis, _, factor = factors(
            device, weak_columns(k, dtype), "general", None, small, "natural"
        )
    assert analysis.plan.start[1] == k
    host = factor.to_host()
    assert np.isfinite(host.panels).all()
    order = k + analysis.plan.pointer[1]
    lower = np.tril(host.panels[: k * order].reshape(k, order).T, -1)
    lower = np.abs(lower.real) + np.abs(lower.imag)
    for tile in range(0, k, 64):
        lower[tile : tile + 64, tile : tile + 64][: k - tile] = 0
    far = lower.max(axis=0)
    assert (far[k // 2 :] > 100).sum() >= k // 2 - 2
    np.testing.assert_array_equal(factor.unstable_pivots, np.flatnonzero(far > 100))
    assert factor.largest_multiplier == pytest.approx(far.max(), rel=1e-6)
    assert factor.perturbed == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_interchanges_after_columns_that_others_follow(device, dtype):
    """In no diagonal tile but some, from their first, second, …, last 16 columns on."""
    a = (bordered("f8", "general").toarray() + 1000 * np.eye(520)).astype(dtype)
    a *= np.exp(0.3j) if np.dtype(dtype).kind == "c" else 1
    starts = [0, 170, 300, 520]
    # in tiles from 0, 64, 128; 170, 234, 298; 300, 364, 428, 492 on
    first = np.array([8, 152, 210, 286, 298, 317, 364, 489])
    order = frontal.analyze(sp.csc_array(a), kind="general", ordering="natural").perm
    a[order[first]], a[order[first + 1]] = a[order[first + 1]], a[order[first]]
    a = sp.csc_array(a)
    analysis, _, gpu = factors(device, a, "general", 1e-8, 0, "natural")
    np.testing.assert_array_equal(analysis.plan.start, starts)
    wanted = np.arange(520) - np.repeat(starts[:3], np.diff(starts))
    wanted[first] += 1
    np.testing.assert_array_equal(gpu.pivots, wanted)
    assert multipliers(gpu) <= 1
    check_solutions(analysis, a, gpu)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "small"), [(30, 64), (30, 0), (90, 0)])
def test_null_columns_are_replaced_and_told(device, n, small, dtype):
    a = np.random.default_rng(1).uniform(-1, 1, (n, n))
    null, tiny = [5, 20, n - 7], 16 * np.finfo(dtype).eps
    a[:, null] = 0
    pattern = sp.csc_array(np.ones((n, n), dtype))
    analysis = frontal.analyze(pattern, kind="general", ordering=np.arange(n))
    backend = GpuBackend(analysis.symbolic, device)
    backend.pattern = DevicePattern(device, analysis.plan, LU, small, 1)
    factor = backend.factorize(a.T.ravel().astype(dtype), None)
    assert factor.perturbed == 3
    assert factor.largest_multiplier == np.inf
    np.testing.assert_array_equal(factor.unstable_pivots, np.argsort(analysis.perm)[null])
    assert np.isfinite(factor.to_host().panels).all()
    np.testing.assert_allclose(np.abs(factor.diagonal()[factor.unstable_pivots]), tiny, rtol=1e-5)


@pytest.mark.parametrize(("n", "small"), [(30, 64), (30, 0), (90, 0)])
def test_small_pivots_are_no_replaced_ones(device, n, small):
    """Columns of any size, with the largest entries on the diagonal: nothing is done about them."""
    size = 10.0 ** -(np.arange(n) ** 0.5)
    a = sp.csc_array((np.random.default_rng(2).uniform(-0.1, 0.1, (n, n)) + np.eye(n)) * size)
    _, cpu, gpu = factors(device, a, "general", None, small, np.arange(n))
    assert gpu.perturbed == gpu.unstable_pivots.size == cpu.perturbed == 0
    np.testing.assert_allclose(gpu.diagonal(), cpu.diagonal(), rtol=1e-9)


def test_inverse_iteration_near_an_eigenvalue():
    a = problems.poisson2d(20)
    eigenvalue = 8 * np.sin(np.pi / 42) ** 2
    v = np.outer(*[np.sin(np.pi * np.arange(1, 21) / 21)] * 2).ravel()
    v /= np.linalg.norm(v)
    shifted = sp.csc_array(a - eigenvalue * (1 + 1e-10) * sp.eye_array(400))
    ours, theirs = on_device(shifted), splu(shifted)

    def error(y):
        y = y / np.linalg.norm(y)
        return np.linalg.norm(y - v * (v @ y))

    b = np.random.default_rng(0).standard_normal(400)
    y, _ = told(lambda: ours.solve(b))
    assert error(y) <= max(2 * error(theirs.solve(b)), 1e-12)
