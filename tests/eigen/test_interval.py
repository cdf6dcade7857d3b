"""All eigenvalues in an interval, compared with LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.eigen.interval as slicing
from frontal.linalg import eigsh, eigvals_count

from .pencils import check_pairs, consistent_mass, dense_eigenvalues, free_chain, grid, hermitian


def check_interval(A, interval, M=None, atol=1e-12):
    """Compare values and number with LAPACK; return the report."""
    values, vectors, info = eigsh(A, M=M, interval=interval, return_info=True)
    every = dense_eigenvalues(A, M)
    low, high = interval
    slack = atol * max(1.0, abs(every).max(initial=0))
    expected = every[(every >= low - slack) & (every <= high + slack)]
    assert values.size == expected.size == info.count
    np.testing.assert_allclose(values, expected, rtol=0, atol=slack)
    check_pairs(A, M, values, vectors)
    assert eigvals_count(A, low, high, M) == expected.size
    assert info.backward_error < 100 * 2.0**-52
    return info


@pytest.mark.parametrize("interval", [(0, 1), (3.9, 4.1), (7, 9), (1.5, 2.5)])
def test_interval_of_a_grid_with_multiple_eigenvalues(interval):
    check_interval(grid(20), interval)


def test_interval_with_ends_at_multiple_eigenvalues_includes_them():
    A = grid(12)
    info = check_interval(A, (4.0, 4.0))
    assert info.count == 12
    assert info.interval[0] < 4.0 < info.interval[1]


def test_whole_spectrum_has_every_eigenvalue():
    check_interval(grid(10), (-np.inf, np.inf))


def test_whole_spectrum_of_a_half_line():
    check_interval(grid(9), (4.5, np.inf))
    check_interval(grid(9), (-np.inf, 1.0))


def test_empty_interval_has_no_eigenvalue():
    A = grid(10)
    values, vectors = eigsh(A, interval=(-3, -1))
    assert values.shape == (0,)
    assert vectors.shape == (100, 0)
    assert eigvals_count(A, -3, -1) == 0


@pytest.mark.parametrize("lumped", [True, False])
def test_interval_of_a_free_chain_with_mass(lumped):
    M = consistent_mass(90)
    M = sp.csc_array(sp.diags_array(np.asarray(M.sum(axis=0)))) if lumped else M
    info = check_interval(free_chain(90), (0, 0.5), M)
    assert info.interval[0] < 0  # zero is an eigenvalue
    assert info.interval[0] > -1e-9


def test_interval_of_a_hermitian_pencil():
    A = hermitian(120)
    check_interval(A, (-1, 1))
    check_interval(A, (-0.5, 0.5), consistent_mass(120))


def test_interval_of_blocks_with_equal_eigenvalues():
    block = grid(9)
    A = sp.csc_array(sp.block_diag([block] * 5))
    info = check_interval(A, (0.5, 1.2))
    assert info.count % 5 == 0


def test_interval_of_the_identity_has_all_copies():
    A = sp.csc_array(2.0 * sp.eye_array(80))
    info = check_interval(A, (1, 3))
    assert info.count == 80


def test_interval_with_a_cluster_below_rounding_of_the_norm():
    rng = np.random.default_rng(1)
    diagonal = np.concatenate([1 + 1e-13 * rng.random(20), 10 * rng.random(200), [1e3]])
    A = sp.csc_array(sp.diags_array(diagonal))
    check_interval(A, (0.9, 1.1))


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_interval_of_a_tiny_matrix(n):
    A = sp.csc_array(np.diag(np.arange(1.0, n + 1)))
    values, vectors = eigsh(A, interval=(0.5, 2.0))
    np.testing.assert_allclose(values, np.arange(1.0, min(n, 2) + 1), rtol=1e-14)
    assert vectors.shape == (n, min(n, 2))
    assert eigvals_count(A, 0.5, 2.0) == min(n, 2)


def test_interval_with_semidefinite_mass_has_the_finite_eigenvalues():
    A, mass = grid(12), np.ones(144)
    mass[::3] = 0
    M = sp.csc_array(sp.diags_array(mass))
    massive = np.flatnonzero(mass)
    dense = A.toarray()
    rest = np.flatnonzero(mass == 0)
    inner = np.linalg.solve(dense[np.ix_(rest, rest)], dense[np.ix_(rest, massive)])
    every = np.linalg.eigvalsh(
        dense[np.ix_(massive, massive)] - dense[np.ix_(massive, rest)] @ inner
    )
    expected = every[(every > 0.2) & (every < 2)]
    values, vectors = eigsh(A, M=M, interval=(0.2, 2))
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    check_pairs(A, M, values, vectors)
    assert eigvals_count(A, 0.2, 2, M) == expected.size
    with pytest.raises(ValueError, match="finite ends"):
        eigsh(A, M=M, interval=(0, np.inf))


def test_single_precision_is_returned_in_single():
    A = grid(10).astype(np.float32)
    values, vectors = eigsh(A, interval=(0, 1))
    assert (values.dtype, vectors.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(values, dense_eigenvalues(grid(10))[: values.size], rtol=1e-6)
    values, vectors = eigsh(hermitian(30).astype(np.complex64), interval=(0, 1))
    assert (values.dtype, vectors.dtype) == (np.float32, np.complex64)


def test_missing_eigenvalues_raise(monkeypatch):
    search = slicing.near_shift

    def incomplete(*arguments, **options):
        pairs = search(*arguments, **options)
        return pairs.chosen(np.flatnonzero(np.abs(pairs.values - 0.75) > 0.1))

    A = grid(10)
    monkeypatch.setattr(slicing, "near_shift", incomplete)
    with pytest.raises(frontal.MissingEigenvaluesError) as error:
        eigsh(A, interval=(0, 1))
    every = dense_eigenvalues(A)
    absent = ((every > 0.65) & (every < 0.85)).sum()
    assert error.value.missing == absent > 0
    assert error.value.eigenvalues.size == error.value.eigenvectors.shape[1]
    assert f"{absent} of 6 eigenvalues" in str(error.value)


def test_dependent_vectors_are_no_proof(monkeypatch):
    search = slicing.near_shift

    def repeated(*arguments, **options):
        pairs = search(*arguments, **options)
        return pairs._replace(vectors=pairs.vectors[:, [0, *range(pairs.values.size - 1)]])

    monkeypatch.setattr(slicing, "near_shift", repeated)
    with pytest.raises(frontal.MissingEigenvaluesError):
        eigsh(grid(10), interval=(0, 1))


def test_inaccurate_pairs_are_no_proof(monkeypatch):
    search = slicing.near_shift

    def blurred(*arguments, **options):
        pairs = search(*arguments, **options)
        noise = 1e-8 * np.random.default_rng(0).standard_normal(pairs.vectors.shape)
        return pairs._replace(vectors=pairs.vectors + noise)

    monkeypatch.setattr(slicing, "near_shift", blurred)
    with pytest.raises(frontal.MissingEigenvaluesError):
        eigsh(grid(10), interval=(0.1, 0.5))


def test_copies_that_a_search_misses_are_found_by_the_next(monkeypatch):
    search, searches = slicing.near_shift, []

    def distinct(pencil, factor, shift, options, *, locked=None, **more):
        pairs = search(pencil, factor, shift, options, locked=locked, **more)
        searches.append(locked)
        if locked is None:  # as by exact arithmetic
            pairs = pairs.chosen(np.flatnonzero(np.diff(pairs.values, prepend=-1) > 1e-9))
        return pairs

    monkeypatch.setattr(slicing, "near_shift", distinct)
    check_interval(grid(10), (0, 1))
    assert len(searches) > 1
