"""Rows and columns of a factorized matrix replaced, in place."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems

from ..conftest import fronts_cost
from .test_updates import DTYPES, assert_same_factor, positive_definite


def replaced(A, i, column):
    a = A.toarray()
    a[:, i], a[i] = column, column.conj()
    return a


def new_column(A, i, seed):
    """Return a random column in the pattern of A that leaves it diagonally dominant."""
    rng = np.random.default_rng(seed)
    column = A[:, [i]].toarray()[:, 0] * rng.uniform(-1, 1, A.shape[0]).astype(A.dtype)
    column[i] = np.abs(A[:, [i]].toarray()).sum() * rng.uniform(1, 3)
    return column


@pytest.mark.parametrize("dtype", DTYPES)
def test_rowdel_and_rowadd_give_the_factor_of_the_new_matrix(dtype):
    A, _ = positive_definite(dtype, 50, 0.08, 0)
    factor = frontal.factorize(A, kind="spd")
    for step, i in enumerate([7, 49, 0, 23, 7]):
        unit = np.zeros(50, dtype)
        unit[i] = 1
        expected = replaced(factor.A, i, unit)
        assert factor.rowdel(i) is factor
        assert np.array_equal(factor.A.toarray(), expected)
        assert_same_factor(factor, factor.A)
        column = new_column(A, i, step)
        expected = replaced(factor.A, i, column)
        factor.rowadd(i, sp.csc_array(column.reshape(-1, 1)) if step % 2 else column)
        assert np.array_equal(factor.A.toarray(), expected)
        assert_same_factor(factor, factor.A)
    assert factor.version == 10


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 25),
    density=st.floats(0, 0.5),
    apart=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_of_random_matrices_are_replaced(n, density, apart, seed):
    A, _ = positive_definite("f8", n, density, seed)
    with fronts_cost(-1.0 if apart else 1.0):
        factor = frontal.factorize(A, kind="spd")
    rng = np.random.default_rng(seed)
    for step in range(4):
        i = int(rng.integers(n))
        factor.rowdel(i) if step % 2 else factor.rowadd(i, new_column(A, i, seed + step))
        assert_same_factor(factor, factor.A)
    assert factor._numbers.factor.updates is not None


@pytest.mark.parametrize("dtype", DTYPES)
def test_failed_rowadd_leaves_all_bits(dtype):
    A, _ = positive_definite(dtype, 50, 0.08, 0)
    factor = frontal.factorize(A, kind="spd")
    panels, values = factor._numbers.factor.panels.copy(), factor.A.copy()
    for i in (0, 7, 30):
        column = new_column(A, i, 0)
        neighbour = next(j for j in np.flatnonzero(column) if j != i)
        column[neighbour] = 2 * np.sqrt(np.abs(column[i] * A[neighbour, neighbour]))
        for bad in (column, -column):
            with pytest.raises(frontal.NotPositiveDefiniteError):
                factor.rowadd(i, bad if bad is column else np.where(np.arange(50) == i, bad, 0))
            assert np.array_equal(factor._numbers.factor.panels, panels)
            assert np.array_equal(factor.A.data, values.data)
    assert factor.version == 0


def test_bad_rows_are_refused():
    factor = frontal.factorize(problems.poisson2d(6))
    column = np.zeros(36)
    column[[3, 30]] = 4, 1
    with pytest.raises(ValueError, match=r"entry \(30, 3\)"):
        factor.rowadd(3, column)
    for i, error in ((36, IndexError), (-1, IndexError), (1.0, TypeError), (True, TypeError)):
        with pytest.raises(error):
            factor.rowadd(i, column)
        with pytest.raises(error):
            factor.rowdel(i)
    with pytest.raises(ValueError, match="has 2 columns"):
        factor.rowadd(3, np.ones((36, 2)))
    with pytest.raises(frontal.NonFiniteInputError):
        factor.rowadd(3, np.full(36, np.nan))
    with pytest.raises(ValueError, match="not real"):
        frontal.factorize(problems.poisson2d(6).astype("c16")).rowadd(3, 1j * column)
    assert factor.version == 0
    assert np.allclose(factor.A @ factor.solve(np.ones(36)), 1)
