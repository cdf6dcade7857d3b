"""Tests of kind="quasidefinite" on a GPU, beside the CPU."""

import numpy as np
import pytest

import frontal
from frontal import NotQuasidefiniteError
from frontal.errors import PerformanceWarning

from ...factor.test_quasidefinite import DTYPES, backward_error, kkt, random_vector


@pytest.fixture(autouse=True)
def on_gpu(gpu_backend, monkeypatch):
    monkeypatch.setenv("FRONTAL_BACKEND", "gpu")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "m", "density"), [(30, 20, 0.1), (120, 60, 0.5)])
def test_factors_equal_those_of_cpu(dtype, n, m, density):
    K, b = kkt(n, m, dtype, density), random_vector(n + m, dtype)
    factor = frontal.factorize(K, kind="quasidefinite")
    host = factor.analysis.on("cpu").factorize(K)
    assert backward_error(K, factor.solve(b, refine=0), b) <= 20
    assert factor.inertia == (n, m, 0)
    close = {"rtol": 1e3 * np.finfo(dtype).eps, "atol": 1e3 * np.finfo(dtype).eps}
    np.testing.assert_allclose(factor.D.diagonal(), host.D.diagonal(), **close)
    np.testing.assert_allclose(factor.growth, host.growth, rtol=1e-4)
    np.testing.assert_allclose(factor.slogdet()[1], host.slogdet()[1], rtol=1e-4)
    factor.refactorize(3 * K.data)
    assert backward_error(3 * K, factor.solve(b), b) <= 4


@pytest.mark.parametrize("column", [3, 70])
@pytest.mark.parametrize(("n", "m", "density"), [(120, 60, 0.5), (100, 80, 0.02)])
def test_wrong_sign_is_refused_or_left_to_cpu(n, m, density, column):
    K, b = kkt(n, m, density=density), random_vector(n + m)
    signs = np.r_[np.ones(n), -np.ones(m)]
    signs[column] *= -1
    given = {"kind": "quasidefinite", "signs": signs}
    with pytest.raises(NotQuasidefiniteError, match=f"column {column} lacks"):
        frontal.factorize(K, regularize=False, **given)
    with pytest.warns(PerformanceWarning, match="on the CPU"):
        factor = frontal.factorize(K, **given)
    x, info = factor.solve(b, return_info=True)
    assert info.perturbed_pivots >= 1
    assert backward_error(K, x, b) <= 4


def test_signs_follow_new_values():
    K, b = kkt(40, 40), random_vector(80)
    factor = frontal.factorize(K, kind="quasidefinite")
    for values in (-K.data, 2 * K.data, -K.data):
        A = K.copy()
        A.data = values
        factor.refactorize(values)
        assert factor.inertia == (40, 40, 0)
        assert backward_error(A, factor.solve(b), b) <= 4


def test_batch_is_solved_on_the_host():
    K, b = kkt(30, 20), random_vector(50)
    batch = frontal.factorize_batch(K, np.stack([K.data, 2 * K.data]), kind="quasidefinite")
    x = batch.solve(b)
    assert backward_error(K, x[0], b) <= 4
    np.testing.assert_allclose(x[1], x[0] / 2, rtol=1e-10)


def test_zero_columns_and_streamed_panels():
    assert frontal.factorize(kkt(1, 0), kind="quasidefinite").inertia == (1, 0, 0)
    K, b = kkt(100, 80, density=0.02), random_vector(180)
    factor = frontal.factorize(K, kind="quasidefinite", memory="streamed")
    assert backward_error(K, factor.solve(b), b) <= 4
    assert factor.inertia == (100, 80, 0)
