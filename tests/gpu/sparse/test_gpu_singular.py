"""Singular matrices on the device: null vectors come of its factors, whose pivots were replaced."""

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import frontal
import frontal.gpu.runtime.device
from frontal.factor import nullspace

from ...matrices import path_laplacians


@pytest.fixture(autouse=True)
def chosen(device, monkeypatch):
    """Give `backend="gpu"` the device of the test."""
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
    with threadpool_limits(1):
        yield


@pytest.mark.parametrize("kind", ["symmetric", "general"])
@pytest.mark.parametrize(("count", "n"), [(1, 90), (3, 20)])
def test_null_spaces_and_solutions(device, monkeypatch, kind, count, n):
    """Of one body, and of more than are sought where no pivot says so."""
    monkeypatch.setattr(nullspace, "_MAX_NULL_VECTORS", 2)
    A, rng = path_laplacians(count, n), np.random.default_rng(0)
    with pytest.raises(frontal.SingularMatrixError) as caught:
        frontal.factorize(A, kind=kind, backend="gpu")
    assert caught.value.rank == count * (n - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        factor = frontal.factorize(A, kind=kind, backend="gpu", singular="allow")
        b = A @ rng.standard_normal(count * n)
        x, info = factor.solve(b, return_info=True)
    np.testing.assert_array_equal(factor.null_columns // n, np.arange(count))
    constant = np.kron(np.eye(count), np.ones((n, 1)))
    np.testing.assert_allclose(factor.null_space(), constant, atol=1e-12)
    assert (info.backend, info.null_pivots) == ("gpu", count)
    assert np.abs(A @ x - b).max() <= 1e-13
    assert not x[factor.null_columns].any()


@pytest.mark.parametrize(("n", "times"), [(60, 2), (30, 3), (33, 2)])
def test_columns_that_are_null_together(device, n, times):
    """Replaced pivots whose rows reach each other hide null vectors: all of them, or some."""
    A, order = frontal.problems.repeated_constraint(n, times), n + times
    with pytest.raises(frontal.SingularMatrixError) as caught:
        frontal.factorize(A, kind="general", backend="gpu")
    assert caught.value.rank == n
    factor = frontal.factorize(A, kind="general", backend="gpu", singular="allow")
    x, info = factor.solve(A @ np.ones(order), return_info=True)
    assert info.null_pivots == times
    assert np.abs(A @ x - A @ np.ones(order)).max() <= 1e-13
    assert np.abs(x).max() <= 10
