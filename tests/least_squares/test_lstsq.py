"""Tests of least-squares solutions of full rank, and of damped ones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal

from .problems import (
    dense_solution,
    optimality,
    random_block,
    refined_solution,
    sparse_random,
    with_singular_values,
)

DTYPES = np.float32, np.float64, np.complex64, np.complex128


def solved(A, b, damp=0.0, **options):
    """Return x and its report without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return frontal.lstsq(A, b, damp, return_info=True, **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(40, 25), (25, 40), (30, 30), (1, 1), (1, 5), (5, 1)])
def test_lstsq_full_rank_equals_numpy(dtype, shape):
    A = with_singular_values(*shape, np.linspace(1, 9, min(shape)), dtype)
    b = random_block((shape[0], 3), dtype)
    x, info = solved(A, b)
    expected, rank = dense_solution(A, b)
    eps = np.finfo(dtype).eps
    assert (x.dtype, x.shape) == (dtype, (shape[1], 3))
    assert np.linalg.norm(x - expected) <= 50 * eps * np.linalg.norm(expected)
    assert info.rank == rank == min(shape)
    assert info.backward_error <= 4 * eps
    assert info.method == "signed_ldlh"
    assert info.condition >= 1
    if shape[0] >= shape[1]:
        assert info.norm_error is None
    else:
        assert info.norm_error <= 1e-13
    single = frontal.lstsq(A, b[:, 1])
    assert single.shape == (shape[1],)
    assert np.linalg.norm(single - x[:, 1]) <= 10 * eps * np.linalg.norm(single)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 25), st.integers(1, 25), st.floats(0.05, 1), st.integers(0, 10**6), st.booleans()
)
def test_lstsq_random_sparse_shapes_equal_numpy(m, n, density, seed, repeated):
    A = sparse_random(m, n, density=density, seed=seed)
    if repeated:  # rows and columns that depend on others
        A = sp.csc_array(sp.vstack([A, A[:1], 2 * A[-1:]]))
    b = random_block(A.shape[0], seed=seed)
    x, info = frontal.lstsq(A, b, singular="allow", return_info=True)
    expected, rank = dense_solution(A, b)
    values = np.linalg.svd(A.toarray(), compute_uv=False)
    smallest = values[rank - 1] if rank else 1
    condition = values[0] / smallest
    assert info.rank == rank
    assert np.linalg.norm(x - expected) <= 1e-14 * condition**2 * (
        np.linalg.norm(expected) + np.linalg.norm(b) / smallest
    )
    assert info.backward_error <= 1e-14


@pytest.mark.filterwarnings("ignore::frontal.IllConditionedWarning")
@pytest.mark.parametrize("kappa", [1e2, 1e5, 1e6, 1e7, 1e8, 1e10])
@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (40, 40)])
def test_lstsq_ill_conditioned_is_optimal(kappa, shape):
    A = with_singular_values(*shape, np.geomspace(1, 1 / kappa, 40))
    b = random_block(shape[0])
    x, info = frontal.lstsq(A, b, return_info=True)
    expected, _ = dense_solution(A, b)
    eps = np.finfo(float).eps
    assert info.rank == 40
    assert info.backward_error <= 10 * eps
    assert kappa / 100 <= info.condition <= 100 * kappa
    scale = np.linalg.norm(A @ x) + np.linalg.norm(b)
    assert np.linalg.norm(A @ (x - expected)) <= 100 * eps * kappa * scale
    assert np.linalg.norm(x) <= 1.01 * np.linalg.norm(expected) or kappa == 1e10
    if shape == (60, 40):
        size = np.linalg.norm(b - A @ x)
        rounding = 10 * np.linalg.norm(x) / size
        assert optimality(A, x, b) <= 10 + rounding


def test_lstsq_compatible_system_recovers_solution():
    A = with_singular_values(60, 40, np.geomspace(1, 1e-6, 40))
    exact = random_block(40)
    x, info = solved(A, A @ exact)
    assert np.linalg.norm(x - exact) <= 1e-9 * np.linalg.norm(exact)
    assert info.backward_error <= 1e-15
    assert info.residual_norm <= 1e-14
    assert info.method == "signed_ldlh"


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("damp", [1e-9, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(40, 25), (25, 40)])
def test_lstsq_damped_equals_dense_ridge(dtype, damp, shape):
    A = with_singular_values(*shape, np.geomspace(1, 1e-2, 25), dtype)
    b = random_block((shape[0], 2), dtype)
    x, info = solved(A, b, damp)
    expected = refined_solution(A, b, damp)
    assert np.linalg.norm(x - expected) <= 1e3 * np.finfo(dtype).eps * np.linalg.norm(expected)
    assert info.rank is None
    assert optimality(A, x[:, 0], b[:, 0], damp) <= 20 or shape[0] < shape[1]


def test_lstsq_damped_deficient_rank_equals_dense_ridge():
    A = sp.csc_array(sp.hstack([sparse_random(30, 8, seed=3)] * 2))
    b = random_block(30)
    x, info = solved(A, b, 0.1)
    expected = refined_solution(A, b, 0.1)
    np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-13)
    assert info.backward_error <= 1e-15


def test_lstsq_rows_of_very_different_weights_solved():
    A = with_singular_values(60, 20, np.linspace(1, 3, 20))
    weights = sp.diags_array(np.where(np.arange(60) % 3, 1.0, 1e6))
    weighted, noise = sp.csc_array(weights @ A), np.where(np.arange(60) % 3, 1.0, 0.0)
    b = weighted @ random_block(20) + noise * random_block(60)
    x, info = solved(weighted, b)
    expected = refined_solution(weighted, b)
    assert np.linalg.norm(x - expected) <= 1e-9 * np.linalg.norm(expected)
    assert info.backward_error <= 1e-15


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_lstsq_extreme_units_scaled(scale):
    A = with_singular_values(30, 20, np.linspace(1, 3, 20))
    b = random_block(30)
    x = frontal.lstsq(A, b)
    units = np.geomspace(1e-60, 1e60, 20)
    scaled = sp.csc_array(A @ sp.diags_array(units * scale))
    y, info = solved(scaled, b)
    np.testing.assert_allclose(y * units * scale, x, rtol=1e-12)
    assert info.rank == 20


def test_lstsq_complex_right_hand_side_of_real_matrix():
    A, b = with_singular_values(30, 20, np.linspace(1, 3, 20)), random_block(30, complex)
    x, _ = solved(A, b)
    expected, _ = dense_solution(A, b)
    np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-13)
    assert solved(A.astype(np.float32), b)[0].dtype == np.complex128


@pytest.mark.parametrize("convert", ["csr", "coo", "lil", "dok", "bsr", "dia"])
def test_lstsq_formats_equal_csc(convert):
    A, b = with_singular_values(12, 8, np.linspace(1, 3, 8)), random_block(12)
    stored = A.asformat(convert)
    copy = stored.copy()
    np.testing.assert_array_equal(frontal.lstsq(stored, b), frontal.lstsq(A, b))
    assert (stored != copy).nnz == 0


def test_lstsq_duplicates_zeros_and_integers():
    rows, columns = np.array([0, 0, 1, 2, 2, 1]), np.array([0, 0, 1, 0, 1, 0])
    values = np.array([100, 100, 1, 1, 1, 0], np.int8)
    A, b = sp.coo_array((values, (rows, columns)), shape=(3, 2)), [1, 2, 3]
    expected = np.linalg.lstsq(np.array([[200.0, 0], [0, 1], [1, 1]]), b, rcond=None)[0]
    for stored in (A, sp.csr_array((values, columns, [0, 2, 2, 6]), shape=(3, 2))):
        if stored is A:
            np.testing.assert_allclose(frontal.lstsq(stored, b), expected, rtol=1e-13)
    unsorted = sp.csr_array((values.astype(float), columns, [0, 2, 3, 6]), shape=(3, 2))
    dense = np.array([[200.0, 0], [0, 1], [1, 1]])
    np.testing.assert_allclose(frontal.lstsq(unsorted, b), dense_solution(unsorted, b)[0])
    with pytest.warns(sp.SparseEfficiencyWarning):
        np.testing.assert_allclose(frontal.lstsq(dense, b), expected, rtol=1e-13)


def test_lstsq_sparse_right_hand_sides_return_sparse():
    A, B = with_singular_values(12, 8, np.linspace(1, 3, 8)), sparse_random(12, 3)
    X = frontal.lstsq(A, B)
    assert sp.issparse(X)
    np.testing.assert_allclose(X.toarray(), dense_solution(A, B.toarray())[0], atol=1e-13)


def test_least_squares_solves_many_times_with_a_factor(monkeypatch):
    A = with_singular_values(30, 20, np.linspace(1, 3, 20))
    problem = frontal.LeastSquares(A)
    A.data[:] = 0  # later changes have no effect
    monkeypatch.setattr("frontal.least_squares.augmented.factorize", None)
    A = with_singular_values(30, 20, np.linspace(1, 3, 20))
    for seed in range(3):
        b = random_block(30, seed=seed)
        np.testing.assert_allclose(problem.solve(b), dense_solution(A, b)[0], rtol=1e-11)
    assert (problem.shape, problem.rank) == ((30, 20), 20)
