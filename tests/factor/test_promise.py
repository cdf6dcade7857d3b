"""New values of a Cholesky analysis: it reads one triangle, so the other one is looked at."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.gpu.sparse.backend import GpuBackend
from frontal.gpu.sparse.factor import GpuFactor

from ..conftest import SCALARS
from ..emulation.traffic import Sparse, forget, put
from ..matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")

B = np.random.default_rng(0).standard_normal((81, 2))
both = pytest.mark.parametrize("where", ["cpu", "gpu"])


def unsymmetric(dtype, size=0.3):
    """A definite matrix with one triangle that is not the adjoint of the other."""
    a = grid_system("spd", dtype)
    upper = sp.csc_array(sp.triu(a, 1))
    upper.data *= 1 + size * np.random.default_rng(1).uniform(0, 1, upper.nnz).astype(a.real.dtype)
    return sp.csc_array(sp.tril(a) + upper).astype(dtype)


def forms(device, c, where):
    yield c
    yield c.data
    if where == "gpu":
        yield put(device, c.data)
        yield Sparse(device, c.tocsr())
    yield c.tocsr()


def check(factor, c):
    eps = float(np.finfo(c.dtype).eps)
    x, info = factor.solve(B.astype(c.dtype), return_info=True)
    assert np.abs(c @ x - B).max() <= 100 * eps * np.abs(c @ x).max()
    assert info.backward_error <= 4 * eps
    sign, size = np.linalg.slogdet(c.toarray().astype("c16"))
    found = factor.slogdet()
    np.testing.assert_allclose(found[0], sign, atol=1e4 * eps)
    np.testing.assert_allclose(found[1], size, rtol=1e4 * eps)


@both
@pytest.mark.parametrize("dtype", SCALARS)
def test_auto_goes_on_with_lu(device, where, dtype):
    s, c = grid_system("spd", dtype), unsymmetric(dtype)
    analysis = frontal.analyze(s, backend=where)
    for given in forms(device, c, where):
        factor = analysis.factorize(s)
        check(factor.refactorize(given), c)
        assert factor.info["method"] == "lu"
        assert factor.info["backend"] == where
    factor = analysis.factorize(c)
    check(factor, c)
    assert (analysis.method, factor.info["method"]) == ("cholesky", "lu")


@both
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_a_promise_that_is_broken_names_the_entries(device, where, dtype):
    s, c = grid_system("spd", dtype), unsymmetric(dtype, 1e-9)
    c[12, 3] = 0.25
    c[3, 12] = 0.75
    analysis = frontal.analyze(s, kind="spd", backend=where)
    told = r"kind='spd' requires.*A\[(12, 3|3, 12)\] = .*A\[(12, 3|3, 12)\] = "
    for given in forms(device, c, where):
        factor = analysis.factorize(s)
        with pytest.raises(ValueError, match=told):
            factor.refactorize(given)
        with pytest.raises(frontal.FactorInvalidError):
            factor.solve(B)
        check(factor.refactorize(2 * s), 2 * s)
    with pytest.raises(ValueError, match=told):
        analysis.factorize(c)
    indefinite = c - 9 * sp.eye_array(81)
    for given in forms(device, sp.csc_array(indefinite), where):
        with pytest.raises(ValueError, match=told):
            factor.refactorize(given)


@both
@pytest.mark.parametrize("dtype", SCALARS)
def test_rounding_is_forgiven(device, where, dtype):
    """And solutions are those of the matrix that was given."""
    eps = float(np.finfo(dtype).eps)
    s, c = grid_system("spd", dtype), unsymmetric(dtype, 20 * eps)
    assert abs(c - c.conj().T).max() > eps
    for kind in ("auto", "spd"):
        factor = frontal.factorize(s, kind=kind, backend=where)
        for given in forms(device, c, where):
            check(factor.refactorize(given), c)
            assert factor.info["method"] == "cholesky"


@both
def test_a_diagonal_that_is_not_real(device, where):
    s = grid_system("spd", "c16")
    c = sp.csc_array(s + 0.1j * sp.eye_array(81))
    for given in forms(device, c, where):
        factor = frontal.factorize(s, backend=where)
        check(factor.refactorize(given), c)
        assert factor.info["method"] == "lu"


def test_it_is_looked_at_where_the_factor_is(device, traffic):
    """No launch and no download of its own."""
    s = grid_system("spd", "f8")
    factor = frontal.factorize(s, backend="gpu")
    values = put(device, 2 * s.data)
    factor.refactorize(values)
    forget(traffic, factor)
    factor.refactorize(values)
    assert traffic["up"] == []
    assert traffic["down"] == [14] * (not device.cuda)
    launched = [name for name in traffic["kernels"] if name.startswith("system")]
    assert launched == ["system_health"] * (device.xp is np)  # elsewhere in the graph


def test_the_cpu_that_takes_over_looks_too(device, monkeypatch):
    """Values that were on the device are seen by the host for the first time."""
    s, c = grid_system("spd", "f8"), unsymmetric("f8")

    def full(*_, **__):
        raise MemoryError

    monkeypatch.delenv("FRONTAL_BACKEND", raising=False)
    monkeypatch.setattr(frontal.backend.choose, "GPU_FLOPS", 0)
    monkeypatch.setattr(frontal.backend.choose, "_has_gpu", lambda: True)
    nan = np.where(np.arange(s.nnz) == 5, np.nan, s.data)
    factors = [frontal.factorize(s) for _ in range(2)]
    monkeypatch.setattr(GpuFactor, "begin", lambda *_: None)
    monkeypatch.setattr(GpuBackend, "_compute", full)
    with pytest.warns(frontal.PerformanceWarning):
        check(factors[0].refactorize(put(device, c.data)), c)
    assert factors[0].info["backend"] == "cpu"
    with pytest.warns(frontal.PerformanceWarning), pytest.raises(frontal.NonFiniteInputError):
        factors[1].refactorize(put(device, nan))
