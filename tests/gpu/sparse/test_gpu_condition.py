"""Condition numbers that are estimated on the device: those of the host, and little moves."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal.factor import condition

from ...emulation.borders import DTYPES, eps, random
from .test_gpu_system import matrix


@pytest.fixture(autouse=True)
def chosen(device, monkeypatch):
    """Give `backend="gpu"` the device of the test."""
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)


@pytest.fixture
def only_there(monkeypatch):
    """The host estimates nothing."""
    monkeypatch.setattr(condition, "_scaled", None)


def on_host(factor, *solution):
    """The estimate that the host would have made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(condition, "_as_it_is", lambda *_: None)
        return condition.solution_condition(factor, *solution)


@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_estimates_are_those_of_the_host(device, kind, dtype):
    """Of one column and of several, one of them zero, and of a rough solution."""
    a, rng = matrix(kind, dtype), np.random.default_rng(7)
    factor = frontal.factorize(a, kind=kind, backend="gpu")._numbers.factor
    wide = np.dtype(dtype).char.replace("f", "d").replace("F", "D")
    for trans, k, work in [("N", 1, dtype), ("T", 3, dtype), ("H", 1, wide), ("N", 3, wide)]:
        system = factor.system(trans, np.dtype(work))
        b = random(rng, (81, k), work)
        b[:, 1:2] = 0
        B = factor.upload(np.asfortranarray(b))
        X = system.solve(B)
        errors = system.measure(X, B)[1]
        errors = replace(errors, residual=1e-3 * errors.norm * errors.solution)
        of = trans, X, B, errors
        wanted = on_host(factor, *of).condition
        found = condition._as_it_is(condition._Solution(factor, *of), 0.0)
        assert found is not None
        assert found[0] == pytest.approx(wanted, rel=1e4 * eps(dtype))


def test_columns_of_a_nearly_singular_matrix(device, only_there):
    """They are named in the user's numbering, by a vector that was found on the device."""
    rng, n = np.random.default_rng(0), 120
    a = sp.random_array((n, n), density=0.05, random_state=rng) + sp.diags_array(np.full(n, 4.0))
    a = sp.lil_array(a)
    a[:, [77]] = a[:, [31]]
    a[5, 77] += 1e-9
    a = sp.csc_array(sp.diags_array(2.0 ** rng.integers(-9, 9, n)) @ a)
    factor = frontal.factorize(a, kind="general", backend="gpu")
    estimate = condition.solution_condition
    numeric = factor._numbers.factor
    system = numeric.system("N", np.dtype("f8"))
    B = numeric.upload(np.asfortranarray(rng.standard_normal((n, 1))))
    X = system.solve(B)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(condition, "hides", lambda _: False)
        found = estimate(numeric, "N", X, B, system.measure(X, B)[1])
    assert set(found.columns) == {31, 77}
    assert found.condition > 1e8


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_signs_of_the_smallest_numbers(device, dtype):
    """Their moduli have no reciprocals."""
    factor = frontal.factorize(matrix("general", dtype), kind="general", backend="gpu")
    factor = factor._numbers.factor
    b = np.asfortranarray(np.ones((81, 1), dtype))
    system, B = factor.system("N", np.dtype(dtype)), factor.upload(b)
    probes = system.probes(B, B, np.ones(1), 1.0)
    weights = np.abs(factor.download(probes.signs(factor.upload(np.zeros((81, 2), dtype)))[1]))
    tiny = np.full((81, 2), 3e-310 + (4e-310j if dtype == "c16" else 0), order="F")
    S = factor.download(probes.signs(factor.upload(tiny))[1])
    np.testing.assert_allclose(np.abs(S), weights)


def test_a_first_solution_moves_numbers_of_blocks(device, only_there, monkeypatch):
    factor = frontal.factorize(matrix("spd", "f8", 40), kind="spd", backend="gpu")
    moved, download = [], device.download
    monkeypatch.setattr(device, "download", lambda a: (moved.append(a.size), download(a))[1])
    b = np.ones(1600)
    factor.solve(b)
    assert sum(moved) < 1.1 * b.size  # the solution is one of them
