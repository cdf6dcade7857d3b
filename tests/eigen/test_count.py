"""Numbers of eigenvalues by inertia, compared with LAPACK's eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.linalg import eigsh, eigvals_count

from .pencils import dense_eigenvalues, free_chain, grid, hermitian


@st.composite
def pencils(draw):
    """A random pencil: small integers, so that eigenvalues are often multiple and at ends."""
    n = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.integers(-2, 3, (n, n)) * (rng.random((n, n)) < draw(st.sampled_from([0.2, 0.6])))
    A = (X + X.T).astype(float)
    if draw(st.booleans()):
        Y = rng.integers(-1, 2, (n, n)) * (rng.random((n, n)) < 0.3)
        A = A + 1j * (Y - Y.T)
    M = None
    if draw(st.booleans()):
        Z = np.tril(rng.integers(-1, 2, (n, n)), -1) * (rng.random((n, n)) < 0.3) + np.eye(n)
        M = sp.csc_array(Z @ Z.T)
    ends = sorted(draw(st.tuples(*[st.sampled_from([-4, -2, -1, -0.5, 0, 0.3, 1, 2, 3])] * 2)))
    return sp.csc_array(A), M, ends


@settings(max_examples=60, deadline=None)
@given(pencils())
def test_counts_and_intervals_of_random_pencils(pencil):
    A, M, (low, high) = pencil
    every = dense_eigenvalues(A, M)
    slack = 1e-9 * max(1, abs(every).max())
    expected = ((every >= low - slack) & (every <= high + slack)).sum()
    assert eigvals_count(A, low, high, M) == expected
    values, vectors = eigsh(A, M=M, interval=(low, high))
    np.testing.assert_allclose(
        values, every[(every >= low - slack) & (every <= high + slack)], atol=slack
    )
    assert vectors.shape == (A.shape[0], expected)


def test_count_of_a_matrix_by_which_no_vector_is_computed():
    A = frontal.problems.poisson3d(12)
    x = 2 - 2 * np.cos(np.arange(1, 13) * np.pi / 13)
    every = (x[:, None, None] + x[:, None] + x).ravel()
    for low, high in ((0, 1.03), (2.97, 3.12), (5.5, np.inf)):
        assert eigvals_count(A, low, high) == ((every >= low) & (every <= high)).sum()


def test_count_reports_moved_ends():
    count, info = eigvals_count(free_chain(50), 0, 0, return_info=True)
    assert count == info.count == 1
    low, high = info.interval
    assert -1e-10 < low < 0 < high < 1e-10
    assert eigvals_count(free_chain(50), -1, -1e-9) == 0
    assert eigvals_count(free_chain(50), 1e-9, 1e-8) == 0


def test_count_uses_two_factorizations():
    count, info = eigvals_count(hermitian(100), -1, 1, return_info=True)
    every = dense_eigenvalues(hermitian(100))
    assert count == (abs(every) <= 1).sum()
    assert info.shifts == (-1.0, 1.0)


def test_count_of_the_reciprocal_pencil_agrees():
    A, M = grid(8), sp.csc_array(grid(8) + 3 * sp.eye_array(64))
    assert eigvals_count(A, 0.2, 0.5, M) == eigvals_count(M, 2.0, 5.0, A)


def test_singular_pencil_is_refused():
    A = sp.csc_array(sp.block_diag([grid(4), np.zeros((1, 1))]))
    M = sp.csc_array(sp.diags_array([1.0] * 16 + [0.0]))
    with pytest.raises(frontal.SingularMatrixError, match="common null vector"):
        eigvals_count(A, 0.5, 1, M)
