"""Scaling of rows and columns, and the condition number of what is scaled, against dense NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from frontal.factor.condition import scaled_condition, witnessed_condition
from frontal.symbolic.scaling import Scaling, equilibrate, scaled


def badly_scaled(n=60, seed=0, dtype=np.complex128):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.1) + np.eye(n)
    A = A * 10.0 ** rng.uniform(-30, 30, n) * 10.0 ** rng.uniform(-9, 9, (n, 1))
    return sp.csc_array((A * np.exp(1j * rng.uniform(-3, 3, (n, n)))).astype(dtype))


@pytest.mark.parametrize("start", [False, True])
def test_the_largest_entry_of_each_row_and_column_is_near_one(start):
    A = badly_scaled()
    rng = np.random.default_rng(1)
    begin = 10.0 ** rng.uniform(-20, 20, (2, 60)) if start else (None, None)
    row, column = equilibrate(A.indptr, A.indices, A.data, *begin)
    for scale in (row, column):
        assert np.array_equal(np.exp2(np.round(np.log2(scale))), scale)  # nothing is rounded
    dense = abs(A.toarray() * row[:, None] * column)
    for axis in (0, 1):
        largest = dense.max(axis=axis)
        assert largest.min() >= 2**-0.5
        assert largest.max() <= 2**0.5
    S = sp.csc_array((scaled(A.indptr, A.indices, A.data, row, column), A.indices, A.indptr))
    assert np.array_equal(S.toarray(), A.toarray() * row[:, None] * column)


def test_rows_without_entries_keep_their_scale():
    A = sp.csc_array(np.array([[0.0, 0.0], [8.0, 0.0]]))
    row, column = equilibrate(A.indptr, A.indices, A.data)
    assert (row.tolist(), column.tolist()) == ([1.0, 0.125], [1.0, 1.0])


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("own", [False, True])
def test_condition_of_the_scaled_matrix(n, own):
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n)) + 1j * rng.standard_normal((n, n))
    if own:  # the symmetric scaling to a unit diagonal
        A = (A @ A.conj().T + 0.01 * np.eye(n)) * np.outer(*2 * [10.0 ** rng.uniform(-9, 9, n)])
        row = column = 1 / np.sqrt(np.abs(np.diag(A)))
    else:
        A[:, 0] = A[:, 1] + 1e-3 * A[:, 0]
        row, column = 10.0 ** rng.uniform(-9, 9, (2, n))
        A = A / row[:, None] / column

    direct = A * row[:, None] * column

    def solve(B, trans, scaled=True):
        M = A if scaled else direct
        return np.linalg.solve(M if trans == "N" else M.conj().T, B)

    scaling = Scaling(row, column)
    found = scaled_condition(sp.csc_array(A), None if own else scaling, solve)
    wanted = np.linalg.cond(direct, 1)
    assert wanted / 3 <= found <= wanted * 1.001
    bound = witnessed_condition(sp.csc_array(A), scaling, solve)
    wanted = np.linalg.cond(direct, np.inf)
    assert wanted / 5 <= bound <= wanted * 1.001


@pytest.mark.parametrize("seed", range(5))
def test_a_condition_that_one_column_decides(seed):
    """The inverse is I + u eᵀ: the estimate finds the column by solutions with the adjoint."""
    rng, n = np.random.default_rng(seed), 100
    u, column = 1e6 * rng.standard_normal(n), int(rng.integers(n))
    u[column] = 0
    A = np.eye(n)
    A[:, column] -= u

    def solve(B, trans, scaled):
        return np.linalg.solve(A if trans == "N" else A.T, B)

    found = scaled_condition(sp.csc_array(A), Scaling(np.ones(n), np.ones(n)), solve)
    assert found == pytest.approx(np.linalg.cond(A, 1), rel=1e-6)
