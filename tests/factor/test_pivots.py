"""Which pivots of LU are replaced, and that no answer is wrong without a word."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh, splu

import frontal
from frontal import problems

from ..matrices import WEAK_BLOCKS, conditioned_system, tridiagonal, weak_pivots

EPS = np.finfo(np.float64).eps


def told(run):
    """What `run` returns, and whether it said that this may be wrong."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = run()
        except frontal.SingularMatrixError:
            return None, True
    return found, any(issubclass(w.category, frontal.IllConditionedWarning) for w in caught)


@pytest.mark.parametrize("exponent", range(8, 16))
def test_prescribed_conditions_as_accurate_as_lapack_or_told(exponent):
    condition = 10.0**exponent
    for seed in range(30):
        A, x, b = conditioned_system(condition, seed)
        y, warned = told(lambda A=A, b=b: frontal.solve(sp.csc_array(A), b, kind="general"))
        if exponent <= 12:
            assert not warned, seed
        if not warned:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
                lapack = np.abs(scipy.linalg.solve(A, b) - x).max()
            error = np.abs(y - x).max()
            assert error <= max(10 * lapack, 10 * condition * EPS * np.abs(x).max()), seed


def test_sound_pivots_stay():
    """The last pivot of a front is the best of its column, however small."""
    A, _, b = conditioned_system(1e13, 0)
    _, info = frontal.solve(sp.csc_array(A), b, kind="general", return_info=True)
    assert info.perturbed_pivots == 0
    assert info.backward_error <= 4 * EPS


@pytest.mark.parametrize("shift", [1e-10, 1e-8])
def test_inverse_iteration_near_an_eigenvalue(shift):
    """One step from a random start, beside SuperLU's: the error against the eigenvector."""
    A = problems.poisson2d(40)
    eigenvalue = 8 * np.sin(np.pi / 82) ** 2
    v = np.outer(*[np.sin(np.pi * np.arange(1, 41) / 41)] * 2).ravel()
    v /= np.linalg.norm(v)
    B = sp.csc_array(A - eigenvalue * (1 + shift) * sp.eye_array(1600))
    ours, theirs = frontal.factorize(B), splu(B)

    def error(y):
        y = y / np.linalg.norm(y)
        return np.linalg.norm(y - v * (v @ y))

    for seed in range(6):
        b = np.random.default_rng(seed).standard_normal(1600)
        y, _ = told(lambda b=b: ours.solve(b))
        assert error(y) <= max(2 * error(theirs.solve(b)), 1e-12)


def test_eigsh_with_a_shift_near_an_eigenvalue():
    A = problems.poisson2d(40)
    shift = 8 * np.sin(np.pi / 82) ** 2 * (1 + 1e-10)
    inverse = frontal.factorize(sp.csc_array(A - shift * sp.eye_array(1600))).as_linear_operator()
    found = eigsh(A, 3, sigma=shift, OPinv=inverse, return_eigenvectors=False, v0=np.ones(1600))
    i, j = 4 * np.sin(np.pi * np.arange(1, 4) / 82) ** 2, 4 * np.sin(np.pi / 82) ** 2
    np.testing.assert_allclose(np.sort(found), np.sort([2 * j, i[1] + j, i[1] + j]), rtol=1e-10)


@pytest.mark.parametrize("phase", [1.0, -1.0, 1j])
def test_columns_whose_pivots_are_tiny_go_up(phase):
    """Each front has one, and its parent, which has the rows, eliminates it."""
    dtype = complex if phase == 1j else float
    first = weak_pivots(1.0, dtype)
    n = first.shape[0]
    analysis = frontal.analyze(first, kind="general", ordering=np.arange(n), backend="cpu")
    A = weak_pivots(1e-12 * phase, dtype)
    factor = analysis.factorize(A)
    alone = np.diff(analysis.plan.pointer) > 0  # the other fronts hold all rows of their columns
    assert alone.sum() >= WEAK_BLOCKS - 1
    pivots, moved = analysis.front_sizes()[0], factor.analysis.front_sizes()[0]
    assert pivots[alone].sum() - moved[:-1].sum() >= alone.sum()
    assert factor.info["perturbed_pivots"] == 0
    assert factor.growth < 1e3
    x = np.cos(np.arange(float(n)))
    for again in range(2):  # as they were, and where they belong from the beginning
        y, info = factor.solve(A @ x, refine=0, return_info=True)
        assert info.backward_error <= 1e-14
        np.testing.assert_allclose(y, x, rtol=1e-9)
        assert factor.analysis.amendments == 1, again
        factor.refactorize(A)


def test_small_columns_keep_their_pivots():
    """A pivot that is small, but not for its column, is sound."""
    n = 12
    A = tridiagonal(n, 1.0, 3.0, 1.0)
    d = np.where(np.arange(n) % 3, 1.0, 1e-12)
    A = sp.csc_array(A @ sp.diags_array(d))
    values = A.data
    plan = frontal.analyze(A, kind="general", ordering=np.arange(n))
    factor = plan.on("cpu").engine.factorize(values, None)
    assert factor.perturbed == 0


def test_growth_of_the_solution_is_looked_into():
    """All pivots are 1, and the inverse grows by 2 with each column.

    Another b would change x by 2^68 of its change; a random b has an x that is as large as that,
    and accurate.
    """
    n = 70
    A = sp.csc_array(np.eye(n) - np.triu(np.ones((n, n)), 1))
    factor = frontal.factorize(A, kind="general")
    b = np.random.default_rng(0).standard_normal(n)
    x, warned = told(lambda: factor.solve(b))
    assert not warned
    exact = np.zeros(n, np.longdouble)
    for j in reversed(range(n)):
        exact[j] = b[j] + exact[j + 1 :].sum()
    np.testing.assert_allclose(x, exact.astype(float), rtol=1e-14)
    assert told(lambda: factor.solve(A @ np.ones(n)))[1]
    assert not told(lambda: frontal.factorize(A[:20, :20], kind="general").solve(b[:20]))[1]
