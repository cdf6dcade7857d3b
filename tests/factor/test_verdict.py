"""What is said of solutions: estimates that hold, made when needed, and warnings that are right."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.cpu.probes import HostProbes
from frontal.cpu.substitution import Substitution
from frontal.factor.one_norm import one_norm

from .test_pivots import of_condition, orthogonal, told

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
        for name in ("__call__", "measured"):
            patch.setattr(Substitution, name, counted(getattr(Substitution, name)))
        run()
    return len(solutions)


def test_a_loop_pays_once():
    """Ten refactorizations have one estimate; pivots that change tenfold give another."""
    A, b = problems.convdiff2d(20), np.ones(400)
    factor = frontal.factorize(A, backend="cpu")
    first = estimates(lambda: factor.solve(b))
    again = estimates(lambda: factor.solve(b))
    assert again < first <= again + 5
    for i in range(10):
        factor.refactorize((1 + 0.1 * i) * A)
        assert estimates(lambda: factor.solve(b)) == again
    assert estimates(lambda: factor.solve(b, "H")) > again
    assert estimates(lambda: factor.solve(0 * b)) > 1  # another |A||x|/|b|
    factor.refactorize(A - sp.eye_array(400))
    assert estimates(lambda: factor.solve(b)) >= first
    assert estimates(lambda: factor.copy().solve(b)) <= again + 1


def test_no_refinement_no_verdict():
    A, x, b = of_condition(1e14, 0)
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
        A, x, b = of_condition(10.0**exponent, seed)
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
    A, _, _ = of_condition(1e6, 0)
    wanted = 1 / np.linalg.cond(A, 1)
    scaled = A * 10.0 ** np.random.default_rng(0).integers(-9, 9, 30)
    for M in (A, scaled, 1e-200 * A, A[:3, :3]):
        wanted = 1 / np.linalg.cond(M, 1)
        found = frontal.factorize(sp.csc_array(M)).rcond()
        assert wanted * 0.999 <= found <= 3 * wanted
    assert frontal.factorize(sp.eye_array(5, format="csc")).rcond() == 1
