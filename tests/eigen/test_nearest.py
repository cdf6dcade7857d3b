"""The k eigenvalues near a shift or at an end of the spectrum, as SciPy's eigsh returns them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as theirs
from scipy.sparse.linalg import ArpackNoConvergence

import frontal
import frontal.eigen.nearest as nearest
from frontal.linalg import eigsh, eigvals_count

from .pencils import check_pairs, consistent_mass, dense_eigenvalues, free_chain, grid, hermitian


def closest(every, sigma, k):
    return np.sort(every[np.argsort(abs(every - sigma), kind="stable")[:k]])


@pytest.mark.parametrize("sigma", [0.0, 0.3, 3.01, 9.0])
def test_values_at_a_shift_are_the_closest(sigma):
    A = grid(15)
    values, vectors = eigsh(A, k=9, sigma=sigma)
    every = dense_eigenvalues(A)
    expected = closest(every, sigma, 9)  # of equal distances any may be returned
    np.testing.assert_allclose(np.sort(abs(values - sigma)), np.sort(abs(expected - sigma)))
    assert abs(values[:, None] - every).min(axis=1).max() < 1e-12
    check_pairs(A, None, values, vectors)


@pytest.mark.parametrize("which", ["LM", "SM", "LA", "SA", "BE"])
@pytest.mark.parametrize("n", [7, 15])  # dense, and by ARPACK
def test_which_without_shift_is_as_in_scipy(which, n):
    A = sp.csc_array(grid(n) - 1.03 * sp.eye_array(n * n))
    values, vectors = eigsh(A, k=5, which=which)
    expected = theirs.eigsh(A, k=5, which=which, return_eigenvectors=False, maxiter=20000)
    np.testing.assert_allclose(values, np.sort(expected), atol=1e-10)
    check_pairs(A, None, values, vectors)


@pytest.mark.parametrize("which", ["LM", "LA", "SA", "BE"])
@pytest.mark.parametrize("n", [7, 15])
def test_which_at_a_shift_is_as_in_scipy(which, n):
    A, M = grid(n), consistent_mass(n * n)
    values, vectors = eigsh(A, k=4, M=M, sigma=2.71, which=which)
    expected = theirs.eigsh(A, k=4, M=M, sigma=2.71, which=which, return_eigenvectors=False)
    np.testing.assert_allclose(values, np.sort(expected), atol=1e-10)
    check_pairs(A, M, values, vectors)


@pytest.mark.parametrize("which", ["LM", "SA", "LA"])
def test_which_with_mass_is_as_in_scipy(which):
    A, M = grid(12), consistent_mass(144)
    values, vectors = eigsh(A, k=4, M=M, which=which)
    expected = dense_eigenvalues(A, M)
    np.testing.assert_allclose(values, expected[:4] if which == "SA" else expected[-4:])
    check_pairs(A, M, values, vectors)


def test_smallest_values_of_a_singular_matrix():
    A = free_chain(200)
    expected = dense_eigenvalues(A)[:4]
    for options in ({"which": "SA"}, {"which": "SM"}, {"sigma": 0.0}):
        values, vectors = eigsh(A, k=4, **options)
        np.testing.assert_allclose(values, expected, atol=1e-13)
        check_pairs(A, None, values, vectors)


def test_shift_on_a_multiple_eigenvalue_is_moved():
    A = grid(12)
    values, vectors, info = eigsh(A, k=12, sigma=4.0, return_info=True)
    np.testing.assert_allclose(values, 4.0, atol=1e-13)
    check_pairs(A, None, values, vectors)
    assert info.shifts[0] == 4.0
    assert 0 < abs(info.shifts[1] - 4.0) < 1e-6


def test_shift_on_an_eigenvalue_of_a_stiff_matrix_is_moved_little():
    stiff = sp.block_diag([free_chain(100) * 1e-4, sp.diags_array([1e6, 2e6, 3e6])])
    A = sp.csc_array(stiff)
    values, vectors = eigsh(A, k=5, sigma=0)
    np.testing.assert_allclose(values, dense_eigenvalues(free_chain(100) * 1e-4)[:5], atol=1e-9)
    check_pairs(A, None, values, vectors)


def test_hermitian_pairs_are_orthonormal():
    block = hermitian(60)
    A = sp.csc_array(sp.block_diag([block, block, block]))
    every = dense_eigenvalues(A)
    values, vectors = eigsh(A, k=9, sigma=0.1)
    assert np.iscomplexobj(vectors)
    assert values.dtype == float
    np.testing.assert_allclose(values, closest(every, 0.1, 9), atol=1e-12)
    check_pairs(A, None, values, vectors)


def test_missed_copies_are_searched(monkeypatch):
    search = nearest.near_shift

    def distinct(pencil, factor, shift, options, *, locked=None, **more):
        pairs = search(pencil, factor, shift, options, locked=locked, **more)
        if locked is None:
            pairs = search(pencil, factor, shift, options._replace(k=9), **more)
            pairs = pairs.chosen(np.flatnonzero(np.diff(pairs.values, prepend=-1) > 1e-9))
            pairs = pairs.chosen(np.arange(options.k))
        return pairs

    monkeypatch.setattr(nearest, "near_shift", distinct)
    A, every = grid(12), dense_eigenvalues(grid(12))
    np.testing.assert_allclose(eigsh(A, k=5, sigma=0)[0], every[:5])
    assert eigsh(A, k=5, sigma=0, complete=False)[0][2] > every[2] + 0.01


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_tiny_matrices_have_all_eigenvalues(n):
    A = sp.csc_array(np.diag(np.arange(1.0, n + 1)))
    for k in (n, n + 3):
        np.testing.assert_allclose(eigsh(A, k=k, return_eigenvectors=False), np.arange(1, n + 1))
    for matrix in (A, A.astype(complex)):
        values, vectors = eigsh(matrix, k=1, sigma=1)
        np.testing.assert_allclose(values, [1])
        check_pairs(matrix, None, values, vectors)


@pytest.mark.parametrize("mode", ["buckling", "cayley"])
def test_modes_are_as_in_scipy(mode):
    A = grid(12)
    M = sp.csc_array(sp.diags_array(np.where(np.arange(144) % 3 == 0, -1.0, 1.0)))
    M = M if mode == "buckling" else consistent_mass(144)
    options = {"k": 4, "M": M, "sigma": 1.3, "mode": mode}
    values, vectors = eigsh(A, **options)
    expected = theirs.eigsh(A, **options, return_eigenvectors=False)
    np.testing.assert_allclose(values, np.sort(expected), rtol=1e-9)
    assert vectors.shape == (144, 4)


def test_every_form_of_a_matrix_is_accepted():
    A = grid(10)
    expected = eigsh(A, k=3, sigma=0.5, return_eigenvectors=False)
    forms = A.tocsr(), A.tocoo(), A.toarray(), sp.csc_matrix(A), A.astype(np.int64)
    for form in forms:
        np.testing.assert_array_equal(
            eigsh(form, 3, None, 0.5, return_eigenvectors=False), expected
        )
    rounded = A.toarray() * (1 + 1e-16 * np.arange(100))
    np.testing.assert_allclose(eigsh(rounded, 3, sigma=0.5)[0], expected)


def test_first_vector_and_random_numbers():
    A = grid(10)
    first, second = (eigsh(A, 3, sigma=0.5, v0=np.arange(100.0) ** p)[0] for p in (1, 2))
    np.testing.assert_allclose(first, second)
    np.testing.assert_array_equal(eigsh(A, 3, sigma=0.5)[1], eigsh(A, 3, sigma=0.5)[1])
    np.testing.assert_allclose(eigsh(A, 3, sigma=0.5, rng=5)[0], first)


def test_no_convergence_raises_as_in_scipy():
    with pytest.raises(ArpackNoConvergence):
        eigsh(grid(20), k=8, which="SA", maxiter=1, sigma=None, M=sp.eye_array(400) * 1.0)


def test_large_backward_errors_warn(monkeypatch):
    monkeypatch.setattr(nearest, "near_shift", lambda *_, **__: _wrong)
    _wrong = nearest.Eigenpairs(np.array([0.5]), np.ones((100, 1)) / 10)
    with pytest.warns(frontal.IllConditionedWarning, match="backward errors up to"):
        eigsh(grid(10), k=1, sigma=0.5, complete=False)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"k": 0}, ValueError, "at least 1"),
        ({"which": "LR"}, ValueError, "which is"),
        ({"mode": "shift"}, ValueError, "mode is"),
        ({"sigma": 1j}, ValueError, "real and finite"),
        ({"mode": "buckling"}, ValueError, "needs a sigma"),
        ({"interval": (0, 1), "sigma": 0.0}, ValueError, "interval excludes"),
        ({"interval": (1, 0)}, ValueError, "must not exceed"),
        ({"interval": (np.nan, 0)}, ValueError, "must not exceed"),
        ({"v0": np.ones(3)}, ValueError, "v0 has shape"),
        ({"v0": 1j * np.ones(25)}, ValueError, "complex though A is real"),
        ({"k": 9, "M": sp.diags_array([1.0] * 5 + [0.0] * 20), "sigma": 0}, ValueError, "only 5"),
        ({"M": -sp.eye_array(25)}, ValueError, "positive definite or semidefinite"),
        ({"M": sp.csc_array((25, 25))}, ValueError, "positive definite or semidefinite"),
        ({"M": sp.eye_array(24)}, ValueError, "one shape"),
        ({"M": free_chain(25) - 0.1 * sp.eye_array(25), "sigma": 0.0}, ValueError, "semidefinite"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        eigsh(grid(5), **options)


def test_array_on_a_device_is_refused():
    class Array:
        __module__ = "cupyx.scipy.sparse"

    with pytest.raises(TypeError, match=r"A is on a GPU.*A\.get\(\)"):
        eigsh(Array())


def test_loose_tolerance_moves_no_shift():
    values, _, info = eigsh(grid(20), k=6, sigma=0.33, tol=1e-3, return_info=True)
    assert info.shifts[0] == 0.33
    assert len(info.shifts) <= 3
    expected = closest(dense_eigenvalues(grid(20)), 0.33, 6)
    np.testing.assert_allclose(values, expected, atol=1e-2)


def test_factors_on_a_device(gpu_backend, monkeypatch):
    monkeypatch.setenv("FRONTAL_BACKEND", "gpu")
    A = grid(9)
    np.testing.assert_allclose(eigsh(A, 3, sigma=2.1)[0], closest(dense_eigenvalues(A), 2.1, 3))
    assert eigvals_count(A, 0, 1) == (dense_eigenvalues(A) < 1).sum()


def test_bad_matrices_are_refused():
    upper = sp.triu(grid(5))
    with pytest.raises(ValueError, match="neither real symmetric nor Hermitian"):
        eigsh(upper)
    with pytest.raises(TypeError, match="no factor"):
        eigsh(theirs.aslinearoperator(grid(5)))
    with pytest.raises(ValueError, match="square"):
        eigsh(sp.csc_array((3, 4)))
    with pytest.raises(frontal.NonFiniteInputError):
        eigsh(grid(5) * np.nan)
    A = sp.csc_array(sp.block_diag([grid(4), np.zeros((1, 1))]))
    M = sp.csc_array(sp.diags_array([1.0] * 16 + [0.0]))
    with pytest.raises(frontal.SingularMatrixError):
        eigsh(A, 2, M, sigma=0.5)
