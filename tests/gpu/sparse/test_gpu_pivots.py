"""Pivots of LU on the device: as sound as on the host."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import frontal
import frontal.gpu.runtime.device
from frontal import problems

from ...factor.test_pivots import EPS, of_condition, told, weak_pivots


@pytest.fixture(autouse=True)
def chosen(device, monkeypatch):
    """Give `backend="gpu"` the device of the test."""
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)


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
        a, x, b = of_condition(condition, seed, n)
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
    a, _, _ = of_condition(1e13, 0, n)
    assert on_device(a).info["perturbed_pivots"] == 0


def test_a_zero_pivot_of_a_root_is_replaced():
    a, _, _ = of_condition(10.0, 0, 20)
    a[-1] = a[0]
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(sp.csc_array(a), kind="general", backend="gpu")


@pytest.mark.parametrize("phase", [1.0, -1.0])
def test_pivots_that_are_tiny_for_their_column(phase):
    analysis = frontal.analyze(
        weak_pivots(1.0), kind="general", ordering=np.arange(300), backend="gpu"
    )
    a = weak_pivots(1e-12 * phase)
    factor = analysis.factorize(a)
    assert factor.info["backend"] == "gpu"
    assert factor.info["perturbed_pivots"] >= 5
    x = np.cos(np.arange(300.0))
    y, info = factor.solve(a @ x, return_info=True)
    assert info.backward_error <= 4 * EPS
    np.testing.assert_allclose(y, x, rtol=1e-10)


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
