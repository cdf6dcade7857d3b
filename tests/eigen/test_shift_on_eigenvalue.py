"""Eigenvalues closest to a sigma that is an eigenvalue up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError

import frontal
import frontal.eigen.ritz as ritz
from frontal.linalg import eigsh, eigvals_count

from .pencils import check_pairs, consistent_mass, dense_eigenvalues, grid


def check_closest(A, sigma, k, every=None, M=None):
    every = dense_eigenvalues(A, M) if every is None else every
    values, vectors = eigsh(A, k=k, sigma=float(sigma), M=M)
    size = abs(every).max()
    expected = np.sort(abs(every - sigma))[:k]
    np.testing.assert_allclose(np.sort(abs(values - sigma)), expected, rtol=0, atol=1e-13 * size)
    assert abs(values[:, None] - every).min(axis=1).max() < 1e-13 * size
    check_pairs(A, M, values, vectors)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 6, 8])
def test_sigma_at_each_eigenvalue_dense_returns_closest(k):
    A = grid(7)
    every = dense_eigenvalues(A)
    for sigma in every:
        check_closest(A, sigma, k, every)


def test_sigma_at_each_eigenvalue_by_arpack_returns_closest():
    A = grid(11)
    every = dense_eigenvalues(A)
    for sigma in [2.5857864376010475, *every[::9]]:
        check_closest(A, sigma, 8, every)


def test_sigma_at_eigenvalue_with_mass_returns_closest():
    A, M = grid(7), consistent_mass(49)
    for sigma in dense_eigenvalues(A, M)[::8]:
        check_closest(A, sigma, 5, M=M)


def test_sigma_at_integer_eigenvalue_returns_copies():
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    A = (Q * (np.arange(60) % 7 - 3.0)) @ Q.T
    check_closest(sp.csc_array((A + A.T) / 2), -2.0, 4)


def test_shift_is_moved_within_the_limit():
    small = 1e-6 * np.arange(40)
    A = sp.csc_array(sp.diags_array(np.concatenate([small, [1e6] * 3])))
    values, _, info = eigsh(A, k=3, sigma=0, complete=False, return_info=True)
    np.testing.assert_allclose(values, small[:3], atol=1e-12)
    assert 0 < abs(info.shifts[-1]) <= 0.01 * small[2]


def test_values_are_selected_around_sigma_not_the_shift():
    for near, far in ((-1.0, 1.0 + 5e-11), (1.0, -1.0 - 5e-11)):
        A = sp.csc_array(np.diag([0.0, near, far, 2.0]))
        values = eigsh(A, k=2, sigma=0, return_eigenvectors=False)
        np.testing.assert_allclose(values, sorted([0.0, near]), atol=1e-14)


def test_sigma_at_eigenvalue_with_semidefinite_mass_returns_closest():
    A, mass = grid(7), np.ones(49)
    mass[::4] = 0
    M = sp.csc_array(sp.diags_array(mass))
    massive, rest = np.flatnonzero(mass), np.flatnonzero(mass == 0)
    dense = A.toarray()
    inner = np.linalg.solve(dense[np.ix_(rest, rest)], dense[np.ix_(rest, massive)])
    every = np.linalg.eigvalsh(
        dense[np.ix_(massive, massive)] - dense[np.ix_(massive, rest)] @ inner
    )
    for sigma in every[::4]:
        check_closest(A, sigma, 4, every, M)


def test_sigma_in_dense_cluster_is_counted():
    rng = np.random.default_rng(2)
    B = rng.standard_normal((5, 5))
    clusters = sp.kron(sp.eye_array(25), B + B.T)
    A = sp.csc_array(clusters + sp.diags_array(1e-9 * rng.standard_normal(125)))
    every = dense_eigenvalues(A)
    check_closest(A, every[27], 5, every)


def test_sigma_beyond_rounding_of_a_returns_k_values():
    A = sp.csc_array(np.diag(np.arange(1.0, 9.0)))
    assert np.isin(eigsh(A, k=4, sigma=1e300)[0], np.arange(1.0, 9.0)).all()
    for scale in (1e150, 1e-150):
        values = eigsh(scale * A, k=3, sigma=2.2 * scale)[0]
        np.testing.assert_allclose(values / scale, [1, 2, 3])


def test_mass_with_small_indefinite_block_is_refused():
    M = np.diag([1, 1e-14, 1e-14])
    M[1, 2] = M[2, 1] = 2e-14
    A = sp.csc_array(sp.eye_array(3))
    with pytest.raises(ValueError, match="semidefinite"):
        eigvals_count(A, -1e20, 1e20, sp.csc_array(M))
    M[1, 2] = M[2, 1] = 1e-14  # semidefinite, with a null vector
    assert eigvals_count(A, -1e20, 1e20, sp.csc_array(M)) == 2
    M[1, 1] = 0
    with pytest.raises(ValueError, match="semidefinite"):
        eigvals_count(A, -1e20, 1e20, sp.csc_array(M))


def test_values_beyond_single_precision_raise():
    A = sp.csc_array(np.full((2, 2), 3e38, np.float32))
    with pytest.raises(frontal.SolutionOverflowError):
        eigsh(A, interval=(-np.inf, np.inf))


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e300, 1e-300])
def test_units_of_any_size_have_scaled_eigenvalues(scale):
    A, M, every = grid(5), 2.0 * sp.eye_array(25), dense_eigenvalues(grid(5))
    for units, mass in ((scale, None), (1.0, M / scale), (scale, M * scale)):
        factor = units if mass is None else units / mass.diagonal()[0]
        values, vectors, info = eigsh(units * A, M=mass, interval=(0, np.inf), return_info=True)
        np.testing.assert_allclose(values / factor, every, rtol=1e-12)
        norms = np.linalg.norm(vectors, axis=0) * (1 if mass is None else mass.diagonal()[0] ** 0.5)
        np.testing.assert_allclose(norms, 1, rtol=1e-12)
        assert abs(info.interval[0]) <= 1e-9 * factor
        assert eigvals_count(units * A, 0, 4.5 * factor, mass) == (every < 4.5).sum()
        values = eigsh(units * A, 3, mass, 2.2 * factor)[0]
        np.testing.assert_allclose(
            np.sort(abs(values / factor - 2.2)), np.sort(abs(every - 2.2))[:3]
        )


def test_interval_of_all_doubles_has_all_eigenvalues():
    for scale in (1.0, 1e200):
        A = sp.csc_array(scale * np.diag(np.arange(1.0, 9.0)))
        values = eigsh(A, interval=(-1.7e308, 1.7e308))[0]
        np.testing.assert_allclose(values / scale, np.arange(1.0, 9.0))


def test_failure_of_arpack_cuts_the_slice(monkeypatch):
    search, failures = ritz.arpack, []

    def failing(*arguments, **options):
        if not failures:
            failures.append(ArpackError(3))
            raise failures[0]
        return search(*arguments, **options)

    monkeypatch.setattr(ritz, "arpack", failing)
    A = grid(10)
    every = dense_eigenvalues(A)
    np.testing.assert_allclose(eigsh(A, interval=(0, 1))[0], every[every <= 1])
    assert failures
