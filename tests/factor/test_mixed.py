"""Mixed precision: factors in single, solutions and verdicts as those of a factor in double."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal import errors, problems
from frontal.cpu.backend import CpuBackend
from frontal.factor.condition import ConditionEstimate
from frontal.factor.demands import demand_condition, require_condition
from frontal.factor.factor_condition import factor_condition
from frontal.factor.mixed import ImpreciseError, require_range, require_refinement

from ..matrices import tridiagonal

EPS = np.finfo(float).eps


@pytest.fixture
def made(monkeypatch):
    """Scalar types of the factorizations on the CPU, in their order."""
    types, real = [], CpuBackend.factorize

    def spied(self, values, *args, dtype=None, **more):
        types.append(str(values.dtype if dtype is None else dtype))
        return real(self, values, *args, dtype=dtype, **more)

    monkeypatch.setattr(CpuBackend, "factorize", spied)
    return types


def conditioned(condition, n=120, dtype="f8", positive=True):
    """Sparse, symmetric up to its complex scaling, of a given condition number."""
    rng = np.random.default_rng(1)
    size = np.logspace(0, -np.log10(condition), n)
    a = sp.diags_array(size if positive else size * rng.choice([-1, 1], n)).tocsc()
    for _ in range(4):
        i, t = rng.permutation(n).reshape(2, -1), rng.uniform(0, 6, n // 2)
        turns = np.r_[np.cos(t), np.sin(t), -np.sin(t), np.cos(t)]
        where = np.r_[i[0], i[0], i[1], i[1]], np.r_[i[0], i[1], i[0], i[1]]
        g = sp.csc_array((turns, where), shape=(n, n))
        a = g @ a @ g.T
    a = sp.csc_array((a + a.T) / 2)
    return a if dtype == "f8" else a * (1 + 0.5j)


def backward_error(a, x, b):
    return abs(b - a @ x).max() / (abs(a).sum(1).max() * abs(x).max() + abs(b).max())


FINE = {
    "grid": problems.poisson2d(20),
    "convection": problems.convdiff2d(20),
    "saddle": problems.stokes2d(8),
    "complex": problems.convdiff2d(12) * (1 + 1j),
    "1e4": conditioned(1e4),
    "1e5": conditioned(1e5, positive=False),  # takes five corrections and more
    "1e5 complex": conditioned(1e5, dtype="c16"),
}


@pytest.mark.usefixtures("with_fronts")
@pytest.mark.parametrize("name", FINE)
def test_a_factor_in_single_gives_double_solutions(name, made):
    a = sp.csc_array(FINE[name])
    factor = frontal.factorize(a, precision="mixed", backend="cpu")
    for trans, op in (("N", a), ("H", a.conj().T)):
        b = np.asarray(op @ np.ones(a.shape[0]))
        x, info = factor.solve(b, trans, return_info=True)
        assert x.dtype == a.dtype
        assert backward_error(op, x, b) <= 4 * EPS
        assert info.dtype == str(factor.dtype) == {"f": "float32", "c": "complex64"}[a.dtype.kind]
    assert set(made) == {info.dtype}
    full = frontal.factorize(a, backend="cpu")
    assert factor.info["memory"] <= 0.51 * full.info["memory"]
    _, wanted = full.solve(op @ np.ones(a.shape[0]), "H", return_info=True)
    assert wanted.condition / 30 <= info.condition <= 30 * wanted.condition


@pytest.mark.parametrize("condition", [1e9, 1e12, 1e15])
def test_ill_conditioned_ones_get_the_verdict_of_double(condition, made):
    a = conditioned(condition, positive=False)
    b, told = a @ np.ones(a.shape[0]), []
    for precision in ("full", "mixed"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            factor = frontal.factorize(a, precision=precision, backend="cpu")
            x = factor.solve(b)
            assert backward_error(a, x, b) <= 4 * EPS
            factor.solve(2 * b)
        told.append([w.category for w in caught])
    assert told[0] == told[1]
    assert bool(told[0]) == (condition > 1e14)
    assert made.count("float64") <= 2
    assert made.count("float32") == 1


def test_a_singular_matrix_is_refused_with_evidence_in_double(made):
    a = sp.csc_array(problems.convdiff2d(12))
    a = sp.csc_array(sp.vstack([a[:-1], a[:1] - 0.3 * a[5:6] + a[20:21] / 7]))
    found = []
    for precision in ("full", "mixed"):
        with pytest.raises(errors.SingularMatrixError) as caught:
            frontal.factorize(a, precision=precision, backend="cpu")
        found.append((caught.value.rank, list(caught.value.null_columns)))
    assert found[0] == found[1]
    assert found[0][0] == 143
    assert made[-1] == "float64"


def test_nearly_indefinite_is_not_called_definite():
    """Its single precision Cholesky factor exists or not; the sign is that of double."""
    n = 60
    a = tridiagonal(n, -1.0, 2.0, -1.0)
    least = 2 - 2 * np.cos(np.pi / (n + 1))
    a = sp.csc_array(a - (least + 1e-9) * sp.eye_array(n))
    factor = frontal.factorize(a, precision="mixed", backend="cpu")
    assert factor.inertia[:2] == (n - 1, 1)
    assert factor.slogdet()[0] == -1
    assert factor.dtype == np.float64


def test_new_values_and_copies_keep_the_precision(made):
    good, bad = conditioned(1e3), conditioned(1e10)
    factor = frontal.analyze(good, backend="cpu").factorize(good, precision="mixed")
    b = np.arange(120.0)
    for twin in (factor.copy(), pickle.loads(pickle.dumps(factor)), factor.to_cpu()):
        assert twin.dtype == np.float32
        assert backward_error(good, twin.solve(b), b) <= 4 * EPS
        with pytest.raises(ValueError, match="refine=0"):
            twin.solve(b, refine=0)
    made.clear()
    for a, last in ((2 * good, "float32"), (bad, "float64"), (good, "float64")):
        x = factor.refactorize(a).solve(b)
        assert backward_error(a, x, b) <= 4 * EPS
        assert factor.dtype == last
    assert made == ["float32", "float32", "float64", "float64"]


def test_what_only_a_solution_tells_is_remembered(made, monkeypatch):
    a = conditioned(1e6, positive=False)
    factor, b = frontal.factorize(a, precision="mixed", backend="cpu"), np.arange(120.0)
    monkeypatch.setattr("frontal.numeric.refinement.MAX_STEPS", 1)
    monkeypatch.setattr("frontal.factor.refine._GMRES_CYCLES", 0)
    for _ in range(2):
        assert backward_error(a, factor.solve(b), b) <= 4 * EPS
    assert made == ["float32", "float64"]
    assert factor.info["dtype"] == "float64"


def test_numbers_out_of_the_range_of_single(made):
    a, b = sp.csc_array(problems.poisson2d(12)), np.ones(144)
    for size in (1e-60, 1e60):
        x = frontal.solve(size * a, b, precision="mixed", backend="cpu")
        assert backward_error(size * a, x, b) <= 4 * EPS
        assert frontal.factorize(size * a, precision="mixed", kind="general").dtype == np.float32


def test_what_has_no_meaning_is_refused():
    a = sp.csc_array(problems.poisson2d(4))
    with pytest.raises(ValueError, match="already"):
        frontal.factorize(a.astype("f4"), precision="mixed")
    with pytest.raises(ValueError, match="'full' or 'mixed'"):
        frontal.factorize(a, precision="half")
    with pytest.raises(ValueError, match="already"):
        frontal.factorize(a.astype(int), precision="mixed").refactorize(a.astype("f4"))


@pytest.mark.parametrize("name", ["grid", "convection", "complex"])
def test_on_a_gpu(name, device, monkeypatch):
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
    a = sp.csc_array(FINE[name])
    factor = frontal.factorize(a, precision="mixed", backend="gpu")
    for trans, op in (("N", a), ("T", a.T)):
        b = np.asarray(op @ np.ones(a.shape[0]))
        x, info = factor.solve(b, trans, return_info=True)
        assert backward_error(op, x, b) <= 4 * EPS
        assert x.dtype == a.dtype
        assert info.backend == "gpu"
        assert info.dtype == ("complex64" if a.dtype.kind == "c" else "float32")
    assert factor.growth > 0
    assert factor.to_cpu().dtype == factor.dtype
    assert backward_error(2 * a, factor.refactorize(2 * a).solve(b), b) <= 4 * EPS


def test_factor_in_single_estimates_no_large_condition():
    """Up to 0.1 over its roundoff; what is larger is left to estimates of each solution."""
    for condition, known in ((1e4, True), (1e6, False)):
        factor = frontal.factorize(
            conditioned(condition, positive=False), precision="mixed", backend="cpu"
        )
        assert factor.dtype == np.float32
        found = factor_condition(factor._numbers.factor, "N", np.dtype("f8"), False)
        assert (found.value < 0.1 / np.finfo("f4").eps) == known
        assert (found.value == np.inf) != known


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (require_range, ([2.0**60, 2.0**-60],), ([2.0**61],)),
        (require_range, ([],), ([1.0, 2.0**-61],)),
        (
            require_condition,
            (ConditionEstimate(0.01 / EPS, ()), EPS),
            (ConditionEstimate(0.02 / EPS, ()), EPS),
        ),
        (
            require_condition,
            (ConditionEstimate(1.0, ()), EPS),
            (ConditionEstimate(np.nan, ()), EPS),
        ),
    ],
)
def test_limits_of_a_factor_in_single_are_kept(check, good, bad):
    check(*good)
    with pytest.raises(ImpreciseError):
        check(*bad)


def test_single_pivots_of_rounding_need_a_condition():
    """The factor of a matrix of condition 1e12, whose last pivot in single is noise."""
    A = conditioned(1e4, positive=False)
    factor = frontal.factorize(A, precision="mixed", backend="cpu")._numbers.factor
    demand_condition(factor, 1e-9)
    factor.matrix.data[:] = conditioned(1e13, positive=False).data
    demand_condition(factor, 1e-3)
    with pytest.raises(ImpreciseError):
        demand_condition(factor, 1e-9)


def test_steps_as_bool_are_refused():
    with pytest.raises(TypeError, match="refine is True, a bool"):
        require_refinement("full", True)
