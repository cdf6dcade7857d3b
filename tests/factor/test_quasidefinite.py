"""Tests of kind="quasidefinite": L D L^H with known signs, on the CPU."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import NotQuasidefiniteError

DTYPES = np.float32, np.float64, np.complex64, np.complex128


def random_vector(n, dtype=np.float64):
    """Return a random vector, complex for a complex type."""
    rng = np.random.default_rng(n)
    return (
        (
            rng.standard_normal(n) + 1j * rng.standard_normal(n) * (np.dtype(dtype).kind == "c")
        ).astype(dtype)
        if np.dtype(dtype).kind == "c"
        else rng.standard_normal(n).astype(dtype)
    )


def kkt(n, m, dtype=np.float64, density=0.1, seed=0, primal=0.1):
    """Return [H B^H; B -C] with positive definite H and C of orders n and m."""
    rng = np.random.default_rng(seed)
    options = {"density": density, "rng": rng}
    parts = [sp.random_array(shape, **options) for shape in ((n, n), (m, n))]
    if np.dtype(dtype).kind == "c":
        parts = [P + 1j * sp.random_array(P.shape, **options) for P in parts]
    H, B = parts[0] @ parts[0].conj().T, parts[1]
    H = H + primal * sp.eye_array(n)
    C = sp.diags_array(rng.uniform(0.1, 1, m))
    K = sp.block_array([[H, B.conj().T], [B, -C]]) if m else H
    return sp.csc_array(K).astype(dtype)


def backward_error(K, x, b):
    """Return the normwise backward error in roundings of the type of K."""
    size = abs(K).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
    return np.abs(K @ x - b).max() / size / np.finfo(K.dtype).eps


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("n", "m", "density"), [(1, 0, 1), (0, 1, 1), (3, 2, 0.9), (200, 150, 0.01), (120, 60, 0.5)]
)
def test_factors_and_inertia(dtype, n, m, density):
    K = kkt(n, m, dtype, density)
    factor = frontal.factorize(K, kind="quasidefinite")
    b = random_vector(n + m, dtype)
    assert backward_error(K, factor.solve(b, refine=0), b) <= 20
    assert factor.inertia == (n, m, 0)
    assert (factor.analysis.method, factor.analysis.kind) == ("signed_ldlh", "quasidefinite")
    L, D = factor.L, factor.D
    product = (L @ D @ L.conj().T).toarray()[np.ix_(factor.perm_c, factor.perm_c)]
    gap = np.abs(product - K.toarray()).max() / np.abs(K.toarray()).max()
    assert gap <= 100 * np.finfo(dtype).eps
    assert not sp.triu(L, 1).nnz
    assert (L.diagonal() == 1).all()
    sign, value = np.linalg.slogdet(K.toarray())
    ours = factor.slogdet()
    assert ours[0] == (-1) ** m
    assert abs(ours[0] - sign) < 0.01
    np.testing.assert_allclose(ours[1], value, atol=1e3 * (n + m) * np.finfo(dtype).eps)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_front_in_blocks_and_tiles(threads, monkeypatch):
    monkeypatch.setenv("FRONTAL_NUM_THREADS", str(threads))
    K = kkt(660, 100, density=0.05)
    factor = frontal.factorize(K, kind="quasidefinite")
    assert max(np.add(*factor.analysis.front_sizes())) >= 640  # more than one tile
    b = random_vector(760)
    x = factor.solve(b, refine=0)
    assert backward_error(K, x, b) <= 20
    np.testing.assert_allclose(x, np.linalg.solve(K.toarray(), b), rtol=1e-9, atol=1e-9)
    assert factor.inertia == (660, 100, 0)


def test_bits_equal_for_threads_and_repetitions(monkeypatch):
    K, b, solutions = kkt(660, 100, density=0.05), random_vector(760), []
    for threads in "12":
        monkeypatch.setenv("FRONTAL_NUM_THREADS", threads)
        factor = frontal.factorize(K, kind="quasidefinite")
        solutions.append(factor.solve(b))
        factor.refactorize(2 * K.data).refactorize(K.data)
        solutions.append(factor.solve(b))
    assert all(np.array_equal(x, solutions[0]) for x in solutions)


def test_refactorize_small_system_repeated_equals_first():
    K = kkt(30, 20)
    factor, b = frontal.factorize(K, kind="quasidefinite"), random_vector(50)
    first = factor.solve(b)
    for _ in range(8):  # the fast path of small systems begins after some calls
        factor.refactorize(K.data)
        assert np.array_equal(factor.solve(b), first)
        assert factor.inertia == (30, 20, 0)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 25), st.integers(0, 25), st.floats(0.02, 0.9), st.integers(0, 10**6))
def test_random_matrices_solved(n, m, density, seed):
    K = kkt(n, m, density=density, seed=seed)
    factor, b = frontal.factorize(K, kind="quasidefinite"), random_vector(n + m)
    assert backward_error(K, factor.solve(b), b) <= 4
    assert factor.inertia == (n, m, 0)


def test_signs_of_zero_diagonal_entries():
    n = 20
    B = sp.eye_array(n) + sp.random_array((n, n), density=0.1, rng=np.random.default_rng(3))
    K = sp.csc_array(sp.block_array([[None, B.T], [B, -0.1 * sp.eye_array(n)]]))
    signs, order = np.r_[np.ones(n), -np.ones(n)], np.arange(2 * n)
    with pytest.raises(NotQuasidefiniteError, match="signs="):
        frontal.factorize(K, kind="quasidefinite", ordering=order)
    factor = frontal.factorize(K, kind="quasidefinite", ordering=order, signs=signs)
    b = random_vector(2 * n)
    x, info = factor.solve(b, return_info=True)
    assert info.perturbed_pivots == n
    assert backward_error(K, x, b) <= 4
    last = frontal.factorize(K, kind="quasidefinite", ordering=order[::-1], signs=signs)
    assert last.inertia == (n, n, 0)


def test_regularized_pivots_are_counted_and_solution_refined():
    K = kkt(60, 40)
    signs = np.r_[np.ones(60), -np.ones(40)]
    signs[7] = -1  # a wrong sign: its pivot is replaced
    b = K @ np.ones(100)
    factor = frontal.factorize(K, kind="quasidefinite", signs=signs)
    x, info = factor.solve(b, return_info=True)
    assert info.perturbed_pivots >= 1
    assert backward_error(K, x, b) <= 4
    with pytest.raises(frontal.errors.InertiaUncertainError):
        _ = factor.inertia
    with pytest.raises(NotQuasidefiniteError, match="column 7") as caught:
        frontal.factorize(K, kind="quasidefinite", signs=signs, regularize=False)
    assert caught.value.column == 7


def test_indefinite_block_is_refused_with_its_column():
    K = kkt(30, 20).tolil()
    K[3, 3] = 1e-9  # an indefinite H with a positive diagonal
    with pytest.raises(NotQuasidefiniteError):
        frontal.factorize(sp.csc_array(K), kind="quasidefinite", regularize=False)


@pytest.mark.parametrize(
    ("signs", "reason"),
    [([1, 1], "shape"), (np.zeros(50), "is 0.0"), (np.full(50, np.nan), "is nan")],
)
def test_wrong_signs_raise(signs, reason):
    with pytest.raises(ValueError, match=reason):
        frontal.analyze(kkt(30, 20), kind="quasidefinite", signs=signs)
    with pytest.raises(ValueError, match="quasidefinite"):
        frontal.analyze(kkt(30, 20), kind="symmetric", signs=np.ones(50))


def test_unsymmetric_matrix_is_refused():
    with pytest.raises(ValueError, match="Hermitian"):
        frontal.factorize(sp.csc_array(sp.triu(kkt(30, 20))), kind="quasidefinite")


def test_new_values_may_exchange_signs():
    K, b = kkt(30, 30), random_vector(60)
    factor = frontal.factorize(K, kind="quasidefinite")
    factor.refactorize((-K).data)
    assert factor.inertia == (30, 30, 0)
    assert backward_error(-K, factor.solve(b), b) <= 4


@pytest.mark.parametrize("triangle", ["lower", "upper"])
def test_half_storage_batches_and_inverse(triangle):
    K, b = kkt(40, 25), random_vector(65)
    half = sp.csc_array((sp.tril if triangle == "lower" else sp.triu)(K))
    whole = frontal.factorize(K, kind="quasidefinite")
    factor = frontal.factorize(half, kind="quasidefinite", triangle=triangle)
    assert np.array_equal(factor.solve(b), whole.solve(b))
    np.testing.assert_allclose(factor.diag_inv(), np.diag(np.linalg.inv(K.toarray())), rtol=1e-9)
    batch = frontal.factorize_batch(K, np.stack([K.data, 3 * K.data]), kind="quasidefinite")
    np.testing.assert_allclose(batch.solve(b), [whole.solve(b), whole.solve(b) / 3], rtol=1e-9)
    copy = batch[1]
    assert copy.inertia == (40, 25, 0)


def test_parts_are_served_and_draws_refused():
    K, b = kkt(40, 25), random_vector(65)
    factor = frontal.factorize(K, kind="quasidefinite")
    x = factor.solve(b, system="P")
    for system in ("L", "D", "Lt", "Q"):
        x = factor.solve(x, system=system)
    np.testing.assert_allclose(x, factor.solve(b, refine=0), rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="signed_ldlh"):
        factor.sample()


def test_file_keeps_signs_and_their_order(tmp_path):
    K, signs = kkt(30, 20), np.r_[np.ones(30), -np.ones(20)]
    signs[4] = -1
    analysis = frontal.analyze(K, kind="quasidefinite", signs=signs, regularize=False)
    analysis.save(tmp_path / "kkt.analysis")
    loaded = frontal.Analysis.load(tmp_path / "kkt.analysis")
    assert np.array_equal(loaded.choices.signs, signs)
    assert not loaded.choices.regularize
    with pytest.raises(NotQuasidefiniteError, match="column 4"):
        loaded.factorize(K)


def test_growth_is_reported():
    small = sp.csc_array(np.array([[1e-9, 1.0], [1.0, -1.0]]))
    factor = frontal.factorize(small, kind="quasidefinite", ordering=np.array([0, 1]))
    assert factor.growth >= 1e8  # |L| |D| |L^H| over |A|
    assert factor.inertia == (1, 1, 0)
    b = np.array([1.0, 2.0])
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(small.toarray(), b), rtol=1e-12)


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0, 2.0], [2.0, 1.0]],  # pivots are replaced
        [[-1e-12, 0.3, 0.4], [0.3, -1e-9, 1.0], [0.4, 1.0, 1e-16]],  # signs by rounding alone
        [[-1e-11, -0.3], [-0.3, 1e-15]],  # quasidefinite, with large growth
    ],
)
def test_queries_without_refinement_refuse_inexact_factors(rows):
    factor = frontal.factorize(sp.csc_array(rows), kind="quasidefinite")
    for query in (factor.slogdet, factor.logdet, factor.diag_inv, factor.logdet_vjp):
        with pytest.raises(frontal.InverseInaccurateError, match=r"kind='symmetric'|replaced"):
            query()
    true = np.linalg.eigvalsh(np.array(rows))
    with contextlib.suppress(frontal.InertiaUncertainError):
        assert factor.inertia == ((true > 0).sum(), (true < 0).sum(), 0)


def test_inertia_does_not_depend_on_units():
    for unit in (1e-200, 1e-20, 1e20):
        K = sp.diags_array([1.0, -1.0, 2.0]).tocsc() * unit
        assert frontal.factorize(K, kind="quasidefinite").inertia == (2, 1, 0)


def test_wrong_matrix_is_not_called_singular():
    K, b = sp.csc_array([[1e-3, 2.0], [2.0, 1e-3]]), np.ones(2)
    with contextlib.suppress(NotQuasidefiniteError):
        x = frontal.factorize(K, kind="quasidefinite").solve(b)
        assert backward_error(K, x, b) <= 4
