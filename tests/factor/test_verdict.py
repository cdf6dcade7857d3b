"""What is said of solutions: estimates that hold, made when needed, and warnings that are right."""

from __future__ import annotations

import warnings
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.cpu.columns.substitution import ColumnSubstitution
from frontal.cpu.probes import HostProbes
from frontal.cpu.substitution import Substitution
from frontal.factor import diagnosis
from frontal.factor.condition import hides, sure
from frontal.factor.diagnosis import Diagnosis
from frontal.factor.factor_condition import factor_condition
from frontal.numeric.condition import ESTIMATED, Condition
from frontal.numeric.linear_system import BackwardErrors
from frontal.numeric.one_norm import one_norm

from ..matrices import conditioned_system, orthogonal, tridiagonal
from .test_pivots import told

EPS = float(np.finfo(np.float64).eps)


@pytest.mark.parametrize("seed", range(5))
def test_a_norm_that_one_column_decides(seed):
    """M is I + u eᵀ: the estimate finds the column by products with the adjoint."""
    rng, n = np.random.default_rng(seed), 100
    u, column = 1e6 * rng.standard_normal(n), int(rng.integers(n))
    M = np.eye(n)
    M[:, column] += u
    found, signs = one_norm(HostProbes(np.ones(n)), lambda X: M @ X, lambda X: M.T @ X)
    assert found == pytest.approx(np.abs(M).sum(axis=0).max(), rel=1e-12)
    np.testing.assert_array_equal(signs[:, 0], np.where(M[:, column] < 0, -1, 1))


def estimates(run):
    """The solutions by the factors that `run` takes."""
    solutions = []

    def counted(solve):
        return lambda *a: (solutions.append(1), solve(*a))[1]

    with pytest.MonkeyPatch.context() as patch:
        for name, way in product(("__call__", "measured"), (Substitution, ColumnSubstitution)):
            patch.setattr(way, name, counted(getattr(way, name)))
        run()
    return len(solutions)


def test_condition_is_estimated_once_for_each_factor():
    """A certificate costs a solution; later right-hand sides, whatever their size, cost none."""
    A, b = problems.convdiff2d(20), np.ones(400)
    factor = frontal.factorize(A, backend="cpu")
    for i in range(3):
        assert estimates(lambda: factor.solve(b)) == 2
        for other in (b, 1e9 * b, 0 * b, np.eye(400)[7]):
            assert estimates(lambda other=other: factor.solve(other)) == 1
        assert estimates(lambda: factor.solve(b, "H")) == 2
        assert estimates(lambda: factor.copy().solve(b)) == 1
        factor.refactorize((1 + 0.1 * i) * A)
    turned = tridiagonal(400, -2.0, 1.0, 2.0)
    factor = frontal.factorize(turned, kind="general", backend="cpu")
    for solves in 3, 2:  # no certificate, nor one that is tried again; a bound is enough
        assert estimates(lambda: factor.solve(b)) == solves
        factor.refactorize(1.5 * turned)


@pytest.mark.parametrize("seed", range(5))
def test_what_passes_for_a_bound_is_one(seed):
    """Two products with A^-H bound the condition number."""
    rng, n = np.random.default_rng(seed), 60
    D = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.1) + np.diag(
        10.0 ** rng.uniform(-3, 3, n)
    )
    D[:, rng.integers(n)] *= 10.0 ** rng.uniform(-3, 3)
    A = sp.csc_array(D + np.diag(np.full(n - 1, 1e-2), 1))
    factor = frontal.factorize(A, kind="general", backend="cpu")
    verdict = factor._numbers.solver.verdict
    verdict.certifies = False
    for trans, op in (("N", A.toarray()), ("T", A.toarray().T)):
        factor.solve(A @ np.ones(n), trans, refine=1)
        true = (np.abs(np.linalg.inv(op)) @ np.abs(op).sum(axis=1)).max()
        numeric = factor._numbers.factor
        known = verdict.condition_known(trans, np.dtype("f8")).value
        for value in known, numeric._small_solver(trans).condition(ESTIMATED)[0]:
            assert true <= value <= 3 * n * n * true


def test_transposed_systems_have_conditions_of_their_own():
    """Units of rows do no harm to A x = b, and those of unknowns to A^T x = b."""
    D = np.where(np.arange(100) % 3, 1.0, 2.0**-50)
    A = sp.csc_array(sp.diags_array(D) @ problems.convdiff2d(10))
    factor = frontal.factorize(A, kind="general", backend="cpu")
    assert not told(lambda: factor.solve(A @ np.ones(100)))[1]
    assert told(lambda: factor.solve(A.T @ np.ones(100), "T"))[1]
    assert not told(lambda: factor.solve(A @ np.ones(100)))[1]


def test_estimates_count_by_their_margin_and_bounds_do_not():
    for dtype, margin in ((np.dtype("f8"), 1000), (np.dtype("c16"), 1000), (np.dtype("c8"), 4)):
        estimate, bound = (
            Condition.from_estimate(100.0, certified, dtype) for certified in (False, True)
        )
        assert (estimate.counted, estimate.certified) == (100 * margin, False)
        assert (bound.counted, bound.certified) == (100, True)
        assert not estimate.is_silent(0.01 / (7 * 100 * margin))
        assert estimate.is_silent(0.01 / (9 * 100 * margin))
        assert not Condition.from_estimate(np.inf, False, dtype).certified


def test_no_refinement_no_verdict():
    A, x, b = conditioned_system(1e14, 0)
    factor = frontal.factorize(sp.csc_array(A), kind="general", backend="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimates(lambda: factor.solve(b, refine=0)) == 1
        y, info = factor.solve(b, refine=0, return_info=True)
    assert (info.refined, info.condition, info.forward_error) == (False, None, None)
    with pytest.warns(frontal.IllConditionedWarning, match=r"condition number.* columns? \d"):
        y, info = factor.solve(b, return_info=True)
    assert info.refined
    assert np.abs(y - x).max() <= info.forward_error * np.abs(x).max()
    assert 1e13 < info.condition < 1e17


@pytest.mark.parametrize("exponent", [12, 13, 14, 15])
@pytest.mark.parametrize("symmetric", [False, True])
def test_no_silent_error(exponent, symmetric):
    """And nothing is refused whose condition is below 1e15."""
    for seed in range(6):
        A, x, b = conditioned_system(10.0**exponent, seed)
        if symmetric:
            q = orthogonal(np.random.default_rng(seed), 30)
            A = q @ np.diag([*np.ones(29), 10.0**-exponent]) @ q.T
            b = (A.astype(np.longdouble) @ x.astype(np.longdouble)).astype(np.float64)
        y, warned = told(lambda A=A, b=b: frontal.solve(sp.csc_array(A), b))
        if not warned:
            assert exponent < 14
            assert np.abs(y - x).max() <= 0.1 * np.abs(x).max()
        if exponent < 15:
            assert y is not None


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_bad_scaling_is_not_bad_condition(kind):
    """Rows and columns of 1e-100 to 1e100; x is as accurate as that of the matrix without."""
    rng = np.random.default_rng(1)
    A = problems.poisson2d(12) if kind == "spd" else problems.convdiff2d(12)
    row, column = 10.0 ** rng.integers(-100, 100, (2, 144))
    if kind == "spd":
        column = row
    B, y = sp.csc_array(sp.diags_array(row) @ A @ sp.diags_array(column)), rng.standard_normal(144)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = frontal.solve(B, row * (A @ y), kind=kind, return_info=True)
    assert np.abs(x * column - y).max() <= 1e-11
    assert info.condition <= 1e5


def test_signs_of_the_smallest_numbers():
    """Their moduli have no reciprocals."""
    Y = np.array([[3e-310 + 4e-310j], [5e-324], [0], [-3 + 4j]])
    sums, S = HostProbes(np.full(4, 2.0)).signs(Y)
    assert sums[0] == 10
    np.testing.assert_allclose(np.abs(S), 2)


def test_no_small_pivot_and_a_huge_condition():
    A = sp.csc_array(sp.eye_array(60) - 2 * sp.eye_array(60, k=1))
    with pytest.warns(
        frontal.IllConditionedWarning,
        match=r"weights in columns 0, 1, 2 and 3\.",
    ):
        frontal.solve(A, A @ np.ones(60))
    assert not told(lambda: frontal.solve(A, np.eye(60)[0]))[1]  # x = b, whatever is in A


def test_reciprocal_condition():
    A, _, _ = conditioned_system(1e6, 0)
    wanted = 1 / np.linalg.cond(A, 1)
    scaled = A * 10.0 ** np.random.default_rng(0).integers(-9, 9, 30)
    for M in (A, scaled, 1e-200 * A, A[:3, :3]):
        wanted = 1 / np.linalg.cond(M, 1)
        found = frontal.factorize(sp.csc_array(M)).rcond()
        assert wanted * 0.999 <= found <= 3 * wanted
    assert frontal.factorize(sp.eye_array(5, format="csc")).rcond() == 1


def in_other_units(condition, dtype):
    """A dense matrix of a condition number, or any, with columns of other sizes."""
    rng = np.random.default_rng(0)
    M = rng.standard_normal((30, 30)) + (
        1j * rng.standard_normal((30, 30)) if dtype == "c16" else 0
    )
    if condition:
        u, _, v = np.linalg.svd(M)
        M = u @ np.diag([*np.ones(29), 1 / condition]) @ v
    return M * 2.0 ** rng.integers(-9, 9, 30)


@pytest.mark.filterwarnings("ignore::frontal.IllConditionedWarning")
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("condition", [0, 1e9])
def test_reported_condition_is_that_of_its_definition(condition, dtype):
    """|| |op(A)^-1| (|op(A)||x| + |b| + |r| / error) || / |x|_max: residuals are up to |A||x|."""
    M = in_other_units(condition, dtype)
    factor, x = frontal.factorize(sp.csc_array(M), kind="general", backend="cpu"), np.ones(30)
    x = x * (1 + 0.5j) if dtype == "c16" else x
    for trans, op in (("N", M), ("T", M.T), ("H", M.conj().T)):
        b = op @ x
        _, info = factor.solve(b, trans, return_info=True)
        w = np.abs(op) @ np.abs(x) + np.abs(b)
        exact = (np.abs(np.linalg.inv(op)) @ w).max() / np.abs(x).max()
        assert 0.4 * exact <= info.condition <= 2.1 * exact


def beside_a_nearly_singular_pair():
    """Unknowns of their own, and two that differ by 2^-46; how much of these makes it doubtful."""
    pair = np.array([[1.0, 1.0], [1.0, 1 + 2.0**-46]])
    A = sp.csc_array(sp.block_diag([problems.convdiff2d(6), pair]))
    harmless, doubtful = (np.r_[np.ones(A.shape[0] - 2), s, s] for s in (2.0**-20, 1.0))
    return A, harmless, doubtful


def is_doubted(factor, b, trans="N"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        factor.solve(b, trans)
    return any(issubclass(w.category, frontal.IllConditionedWarning) for w in caught)


@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("order", ["HDHD", "DHDH"])
def test_weights_of_one_solution_say_nothing_of_others(order, trans):
    A, *solutions = beside_a_nearly_singular_pair()
    factor = frontal.factorize(A, backend="cpu")
    op = A if trans == "N" else A.T
    for kind in order:
        assert is_doubted(factor, op @ solutions["HD".index(kind)], trans) == (kind == "D")


def test_alike_solutions_need_one_estimate(monkeypatch):
    A, harmless, doubtful = beside_a_nearly_singular_pair()
    factor, asked, real = frontal.factorize(A, backend="cpu"), [], diagnosis.solution_condition
    monkeypatch.setattr(
        diagnosis, "solution_condition", lambda of, **more: asked.append(0) or real(of, **more)
    )
    for _ in range(2):
        for x, doubt in ((harmless, False), (doubtful, True)):
            asked.clear()
            assert is_doubted(factor, A @ x) == is_doubted(factor, A @ (3 * x)) == doubt
            assert len(asked) == 1


def doubling_chain(n=44):
    """A matrix of condition 2^(n + 1) without small pivots; a harmless solution, a doubtful one."""
    turning = np.resize([1.0, -1.0], n)
    turning[5:7] = 0
    A = sp.csc_array(sp.eye_array(n) - 2 * sp.eye_array(n, k=1))
    return A, 2.0 ** -np.arange(n), turning


def test_row_sums_silence_solutions_by_their_largest_weight(monkeypatch):
    """A certified condition number, 2^45: the largest weight is 2/3 of a row sum, or twice it."""
    A, *solutions = doubling_chain()
    factor, asked, real = frontal.factorize(A, backend="cpu"), [], diagnosis.solution_condition
    monkeypatch.setattr(
        diagnosis, "solution_condition", lambda of, **more: asked.append(0) or real(of, **more)
    )
    for x, doubt in zip(solutions, (False, True), strict=True):
        assert is_doubted(factor, A @ x) == bool(asked) == doubt
    [condition] = factor._numbers.solver.verdict.conditions.values()
    assert condition.certified


def test_a_warning_changes_only_which_estimate_comes_first():
    """After it the next values' first solution has its own; a harmless one ends that."""
    A, harmless, doubtful = doubling_chain()
    factor = frontal.factorize(A, backend="cpu")
    for x, doubt, of_factor in [
        (doubtful, True, True),
        (doubtful, True, False),
        (harmless, False, False),
        (harmless, False, True),
        (doubtful, True, True),
    ]:
        factor.refactorize(A.data)
        assert is_doubted(factor, A @ x) == doubt
        assert bool(factor._numbers.solver.verdict.conditions) == of_factor


def test_a_condition_between_small_and_doubtful_also_comes_first():
    """The factor's own would not be small enough, so that it would be estimated in vain."""
    A, harmless, doubtful = doubling_chain(36)
    factor = frontal.factorize(A, kind="general", backend="cpu")
    factor._numbers.solver.verdict.certifies = False  # nor for later values
    for x, of_factor in [(doubtful, True), (doubtful, False), (harmless, False), (harmless, True)]:
        factor.refactorize(A.data)
        assert not is_doubted(factor, A @ x)
        assert bool(factor._numbers.solver.verdict.conditions) == of_factor


@pytest.mark.parametrize("order", ["NT", "TN", "NH", "HN"])
@pytest.mark.parametrize("batch", [False, True])
def test_condition_of_one_side_silences_no_other(order, batch):
    """A column in units of 2^60 makes x_0 = 0 a large one; rows of the transpose hide nothing."""
    A = problems.convdiff2d(3).tocsc()
    A = sp.csc_array(A @ sp.diags_array([2.0**-60, *np.ones(8)]))
    x = np.arange(9.0)
    if batch:
        factor = frontal.factorize_batch(A, A.data[None], backend="cpu")
    else:
        factor = frontal.factorize(A, backend="cpu")
    for trans in order:
        op = A if trans == "N" else A.T
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            factor.solve(op @ x, trans)
        ill = any(issubclass(w.category, frontal.IllConditionedWarning) for w in caught)
        assert ill == (trans == "N")


def test_small_pivots_leave_no_estimate_below_one_over_eps():
    """Rounding has made more of a pivot of 42 roundings than the 1-norm of a certain change."""
    A, _, b = conditioned_system(1e15, 1)
    factor = frontal.factorize(sp.csc_array(A), kind="general", singular="allow", backend="cpu")
    _, info = factor.solve(b, return_info=True)
    assert 10 < factor._numbers.factor.health().pivot_ratio / EPS < 100
    assert not sure(factor._numbers.factor)
    assert info.condition >= 1 / EPS
    [condition] = factor._numbers.solver.verdict.conditions.values()
    assert condition.counted == np.inf


@pytest.mark.parametrize(
    ("ratio", "replaced", "nulls", "hidden"),
    [(1, 0, 0, False), (1e-9, 0, 0, True), (np.nan, 0, 0, True), (1, 1, 0, True), (1, 0, 1, True)],
)
def test_small_replaced_or_null_pivots_hide_a(ratio, replaced, nulls, hidden):
    health = SimpleNamespace(pivot_ratio=ratio)
    factor = SimpleNamespace(
        health=lambda: health, perturbed=replaced, nulls=np.arange(nulls), matrix_dtype=np.float64
    )
    assert hides(factor) == hidden


def test_allowed_singular_matrices_are_not_warned_of():
    A = sp.csc_array(sp.eye_array(60) - 2 * sp.eye_array(60, k=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frontal.factorize(A, kind="general", singular="allow").solve(A @ np.ones(60))


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_column_without_digits_is_refused_at_any_place(order):
    """A column whose normwise error is 1 beside an exact one."""
    factor = frontal.factorize(problems.poisson2d(3), backend="cpu")._numbers.factor
    error = np.array([0.0, np.inf])[order]
    errors = BackwardErrors(error, error, error, 0.0, error, error)
    with pytest.raises(frontal.SingularMatrixError, match="backward error stays at inf"):
        Diagnosis(factor).judge(errors, None, np.dtype("f8"), False)


@pytest.mark.parametrize("trans", ["N", "T"])
def test_condition_of_accurate_factors_with_a_small_pivot_needs_no_scaled_copy(monkeypatch, trans):
    """Refined solutions are accurate in each row, so that those of the factor's backend suffice."""
    rng, n = np.random.default_rng(0), 60
    A = rng.uniform(-1, 1, (n, n)) / n + np.diag(rng.choice([-1.0, 1.0], n))
    A[:2, 2:] = A[2:, :2] = 0
    A[:2, :2] = [[1, 1], [1, 1 + 2.0**-36]]
    monkeypatch.setattr("frontal.factor.condition.Scaled", None)
    factor = frontal.factorize(sp.csc_array(A), backend="cpu")._numbers.solver.factor
    assert hides(factor)
    found = factor_condition(factor, trans, np.dtype(float), certify=False).value
    op = A if trans == "N" else A.T
    exact = np.abs(np.linalg.inv(op)) @ np.abs(op)
    norm = exact.sum(axis=1).max()
    assert norm / 3 <= found <= 3 * n * 1.01 * norm
