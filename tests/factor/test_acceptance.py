"""Solutions are accepted, and values called symmetric, by rows of their own size."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.cpu.host_system import HostSystem
from frontal.numeric.acceptance import judge, limits_of
from frontal.numeric.condition import Condition
from frontal.numeric.linear_system import BackwardErrors
from frontal.numeric.thresholds import margin_of

EPS = float(np.finfo(float).eps)


def rowwise(A, x, b):
    """As Arioli, Demmel and Duff define it, for short rows and numbers away from underflow."""
    A, n = abs(A.toarray()), b.size
    r, scale = np.abs(b - A @ x), A @ np.abs(x) + np.abs(b)
    of_row = A.sum(axis=1) * np.abs(x).max()
    tiny = min(1000 * n * EPS, 1e-3) * (of_row + np.abs(b))
    return r / np.where(scale <= tiny, scale + of_row, scale)


@pytest.mark.parametrize("seed", range(6))
def test_rowwise_error_is_that_of_its_definition(seed):
    rng, n = np.random.default_rng(seed), 30
    A = sp.csc_array(rng.uniform(0.5, 1, (n, n)) * (rng.random((n, n)) < 0.3) + np.eye(n))
    x, b = (10.0 ** rng.uniform(-20, 0, n) for _ in range(2))
    x[rng.random(n) < 0.3] *= 1e-14
    for matrix, of in ((A, A), (sp.csr_array(A), A)):
        system = HostSystem.from_matrix(matrix, float(A.sum(axis=1).max()), lambda R: R)
        errors = system.measure(x[:, None], b[:, None])[1]
        np.testing.assert_allclose(errors.rowwise, rowwise(of, x, b).max(), rtol=1e-12)
        assert errors.componentwise >= errors.rowwise
    assert errors.accepted(limits_of(np.dtype("f8"), np.dtype("f8"))).shape == (1,)


@pytest.mark.parametrize("seed", range(6))
def test_rowwise_error_of_tiny_rows_is_by_the_largest_unknown(seed):
    rng, n = np.random.default_rng(seed), 60
    A = sp.csc_array((rng.random((n, n)) < 0.04) + 2 * np.eye(n))
    x = rng.uniform(1, 2, n) * np.where(rng.random(n) < 0.6, 1e-20, 1)
    b = (A @ x) * (1 + 1e-3 * rng.random(n)) + 1e-18
    errors = HostSystem.from_matrix(A, 99.0, lambda R: R).measure(x[:, None], b[:, None])[1]
    np.testing.assert_allclose(errors.rowwise, rowwise(A, x, b).max(), rtol=1e-9)
    assert errors.rowwise < 1e-3 < 0.1 < errors.componentwise


def test_rowwise_error_of_long_rows_is_by_the_root_of_their_length():
    n = 4 * 4096
    A = sp.lil_array(sp.eye_array(n))
    A[0] = 1.0
    x, b = np.ones((n, 1)), np.r_[0.99 * n, np.ones(n - 1)][:, None]
    errors = HostSystem.from_matrix(A.tocsr(), float(n), lambda R: R).measure(x, b)[1]
    np.testing.assert_allclose(errors.componentwise, 0.01 / 1.99, rtol=1e-9)
    np.testing.assert_allclose(errors.rowwise, 0.005 / 1.99, rtol=1e-9)


def with_penalty(A, penalty, *rows):
    A = sp.lil_array(A)
    for i in rows:
        A[i, i] = penalty
    return A.tocsc()


@pytest.mark.parametrize("penalty", 10.0 ** np.arange(6, 31, 6))
@pytest.mark.parametrize("grid", [problems.poisson2d, problems.convdiff2d])
def test_mixed_precision_beside_a_penalty_has_all_digits(penalty, grid):
    A = with_penalty(grid(12), penalty, 0, 77)
    b = np.ones(144)
    b[[0, 77]] = penalty, -penalty
    scale = np.where(np.isin(np.arange(144), (0, 77)), 1 / penalty, 1.0)
    exact = np.linalg.solve(A.toarray() * scale[:, None], b * scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = frontal.solve(A, b, precision="mixed", backend="cpu")
    assert np.abs(x - exact).max() <= 1e-12


@pytest.mark.parametrize("precision", ["full", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_units_of_rows_and_columns_lose_no_digit(precision, seed):
    rng, A = np.random.default_rng(seed), problems.convdiff2d(10)
    p, q = 2.0 ** rng.integers(-24, 25, (2, 100))
    A, x = sp.csc_array(p[:, None] * A.toarray() * q), rng.integers(1, 9, 100) / q
    found, info = frontal.solve(A, A @ x, precision=precision, backend="cpu", return_info=True)
    assert np.abs(found * q - x * q).max() <= 1e-11
    assert info.dtype == ("float32" if precision == "mixed" else "float64")


def test_long_rows_of_one_sign_pass_without_a_word():
    """Rounding of a sum of 90 000 terms is more than 16 roundings, and no fault of the solution."""
    A = problems.poisson2d(300)
    n = A.shape[0]
    border = sp.csc_array(np.random.default_rng(0).uniform(0.5, 1.5, (n, 1)))
    K = sp.csc_array(sp.block_array([[A, border], [border.T, None]]))
    x = np.ones(n + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = frontal.solve(K, K @ x, backend="cpu")
    assert np.abs(found - x).max() <= 1e-9


@pytest.mark.parametrize("scale", [1e-290, 1e-306, 1.0, 1e290])
def test_zeros_in_x_and_extreme_b_pass_without_a_word(scale):
    """A part that b does not meet, and rows whose terms cancel."""
    A = sp.csc_array(sp.block_diag([problems.convdiff2d(8), problems.poisson2d(6)]))
    x = np.r_[np.arange(64.0), np.zeros(36)] * 2.0 ** np.round(np.log2(scale))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = frontal.solve(A, A @ x, backend="cpu")
    np.testing.assert_allclose(found, x, rtol=1e-9, atol=1e-12 * scale)


@pytest.mark.parametrize("exponent", [-300, 140, 600])
def test_mixed_precision_tells_the_error_of_its_solution_for_any_b(exponent):
    A = problems.poisson2d(10)
    b = A @ np.arange(1.0, 101.0) ** 2 * 2.0**exponent
    x, info = frontal.solve(A, b, precision="mixed", backend="cpu", return_info=True)
    r = np.abs(b - A @ x)
    assert r.max() <= 4 * EPS * (8 * np.abs(x).max() + np.abs(b).max())
    assert info.componentwise_error == pytest.approx((r / (abs(A) @ x + np.abs(b))).max(), abs=EPS)


def chain_with_flow(penalty, flow, n=40):
    main = np.full(n, 2.0)
    main[0] = penalty
    return sp.diags_array(
        [main, np.full(n - 1, -1.0 + flow), np.full(n - 1, -1.0 - flow)], offsets=[0, 1, -1]
    ).tocsc()


WAYS = {
    "refactorize": lambda first, then, b: frontal.factorize(first).refactorize(then).solve(b),
    "analysis": lambda first, then, b: frontal.analyze(first).factorize(then).solve(b),
    "batch": lambda first, then, b: frontal.solve_batch(first, then.data[None], b[None])[0],
}


@pytest.mark.filterwarnings("ignore::frontal.PerformanceWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("dtype", "penalty", "flow"), [("f8", 1e11, 1e-3), ("f8", 1e30, 0.7), ("f4", 1e6, 0.5)]
)
def test_unsymmetric_values_beside_a_penalty_are_not_called_symmetric(way, dtype, penalty, flow):
    first, then = (chain_with_flow(penalty, f).astype(dtype) for f in (0.0, flow))
    b = np.r_[penalty, np.ones(39)].astype(dtype)
    scale = np.r_[1 / penalty, np.ones(39)]
    exact = np.linalg.solve(then.toarray().astype(float) * scale[:, None], b * scale)
    x = WAYS[way](first, then, b)
    assert np.abs(x - exact).max() <= (1e-12 if dtype == "f8" else 1e-4) * np.abs(exact).max()
    with pytest.raises(ValueError, match=r"kind='symmetric' requires"):
        frontal.solve(then, b, kind="symmetric")


@pytest.mark.filterwarnings("ignore::frontal.PerformanceWarning")
@pytest.mark.parametrize("way", WAYS)
def test_unsymmetric_entry_beside_a_penalty_is_not_called_symmetric(way):
    """Pairs of entries differ in the rows of huge ones alone."""
    n, held, penalty = 12, [2, 5, 8], 1e17
    D = np.diag(np.full(n, 4.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    D[held, held] = penalty
    first = sp.csc_array(D)
    for i in held:
        D[i - 1, i] = D[i + 1, i] = 0.25
    then, b = sp.csc_array(D), np.where(np.isin(np.arange(n), held), penalty, 1.0)
    exact = np.linalg.solve(D / np.abs(D).max(axis=1, keepdims=True), b / np.abs(D).max(axis=1))
    np.testing.assert_allclose(WAYS[way](first, then, b), exact, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match=r"kind='symmetric' requires"):
        frontal.solve(then, b, kind="symmetric")


@pytest.mark.parametrize("kind", ["symmetric", "spd"])
def test_rounding_of_each_row_stays_symmetric_in_any_units(kind):
    rng, n = np.random.default_rng(0), 40
    X = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.2) + np.eye(n)
    units = 2.0 ** rng.integers(-20, 20, n)
    D = np.abs(rng.standard_normal(n)) + 1
    A = units[:, None] * ((X * D) @ X.T + np.eye(n)) * units
    above = np.triu(rng.integers(-4, 5, (n, n)), 1) * np.triu(np.spacing(A) * (A != 0), 1)
    A = sp.csc_array(np.triu(A) + np.triu(A, 1).T + above)
    assert (A != A.T).nnz
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    assert factor.analysis.method in ("cholesky", "ldlt", "ldlh")
    factor.refactorize(2 * A)
    assert factor.analysis.method in ("cholesky", "ldlt", "ldlh")


def test_singular_block_with_a_regular_triangle_is_refused_beside_a_huge_entry():
    first = sp.csc_array(sp.block_diag([[[1e17]], [[1.0, 0.5], [0.5, 1.0]]]))
    then = sp.csc_array(sp.block_diag([[[1e17]], [[1.0, 0.5], [2.0, 1.0]]]))
    factor = frontal.factorize(first, backend="cpu")
    with pytest.raises(frontal.SingularMatrixError):
        factor.refactorize(then)


@pytest.mark.parametrize(("length", "forgiven"), [(4096, 1.0), (4097, 4097 / 4096), (9216, 2.25)])
@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array])
def test_long_row_is_forgiven_the_root_of_its_length(length, forgiven, form):
    """From 4096 entries on: a residual of 1 beside |A||x| + |b| of 2 m."""
    A = sp.diags_array(np.full(length, 2.0)).tolil()
    A[0, :] = 1.0
    system = HostSystem.from_matrix(form(A), float(length), lambda R: R)
    x, b = np.ones(length), np.r_[length + 1.0, np.full(length - 1, 2.0)]
    errors = system.measure(x[:, None], b[:, None])[1]
    np.testing.assert_allclose(errors.rowwise, 1 / (2 * length + 1) / forgiven**0.5, rtol=1e-12)


def test_limits_depend_on_the_precision_of_the_factor():
    f4, f8 = np.dtype("f4"), np.dtype("f8")
    np.testing.assert_array_equal(np.array(limits_of(f8, f8)[:4]) / EPS, [4, 1000, 1000, 16])
    np.testing.assert_array_equal(np.array(limits_of(f4, f8)[:4]) / EPS, [4, 1000, 16, 16])
    assert [margin_of(np.dtype(t)) for t in ("f4", "c8", "f8", "c16")] == [4, 4, 1000, 1000]


@pytest.mark.parametrize("certified", [False, True])
def test_an_estimate_silences_with_its_margin(certified):
    """Of 1000 in double; a bound needs none."""
    condition = Condition.from_estimate(1e6, certified, np.dtype("f8"))
    limit = 0.01 / 8 / (1e6 if certified else 1e9)
    assert condition.certified == certified
    assert condition.is_silent(0.999 * limit)
    assert not condition.is_silent(1.001 * limit)


def test_row_where_x_is_nearly_zero_is_judged_by_its_largest_entry():
    """A residual of 5e-15 beside |A||x| + |b| of 2.5e-14 and |A| |x|_max of 1."""
    A, x, b = sp.csc_array(np.eye(2)), np.array([1e-14, 1.0]), np.array([1.5e-14, 1.0])
    errors = HostSystem.from_matrix(A, 1.0, lambda R: R).measure(x[:, None], b[:, None])[1]
    np.testing.assert_allclose(errors.rowwise, 5e-15, rtol=1e-12)


@pytest.mark.parametrize("by_component", [False, True])
@np.errstate(all="ignore")
def test_judge_states_the_rule_of_backward_errors(by_component):
    rng, limits = np.random.default_rng(0), limits_of(np.dtype("f8"), np.dtype("f8"))
    sizes = 10.0 ** rng.choice([-310, -16, -13, 0, 2, 300], (5, 4000))
    sizes[:, rng.random(4000) < 0.1] = 0
    sizes[:3, rng.random(4000) < 0.05] = np.nan
    for norm in (1.0, 1e300):
        errors = BackwardErrors(*sizes[:3], norm, *sizes[3:], by_component)
        judged = [judge(column, norm, by_component, limits) for column in sizes.T.tolist()]
        normwise, merit, fine, inside = map(np.array, zip(*judged, strict=True))
        np.testing.assert_array_equal(normwise, errors.normwise)
        np.testing.assert_array_equal(merit, errors.merit(limits))
        np.testing.assert_array_equal(inside, ~errors.near_border(limits))
        np.testing.assert_array_equal(fine, (merit <= 1) & inside)
        assert 0 < fine.sum() < fine.size or norm > 1
