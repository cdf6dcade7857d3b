"""Updates and downdates of Cholesky factors: equal to new factors, undone after a failure."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems
from frontal.cpu.updates import record, update

from ..conftest import fronts_cost

DTYPES = ("f4", "f8", "c8", "c16")


def positive_definite(dtype, n, density, seed):
    """Return a random Hermitian matrix, and the pairs of its pattern below the diagonal."""
    rng = np.random.default_rng(seed)
    S = sp.random_array((n, n), density=density, rng=rng).toarray()
    if np.dtype(dtype).kind == "c":
        S = S * np.exp(2j * np.pi * rng.random((n, n)))
    S = np.tril(S, -1)
    a = S + S.conj().T
    a += np.diag(np.abs(a).sum(axis=1) + rng.uniform(0.5, 2, n))
    return sp.csc_array(a.astype(dtype)), np.argwhere(S)


def columns_in(pairs, n, k, dtype, seed):
    """Return k columns whose products lie in a pattern: on pairs, or on the diagonal alone."""
    rng, C = np.random.default_rng(seed), np.zeros((n, k), dtype)
    for t in range(k):
        rows = rng.choice(n, 1) if len(pairs) == 0 or t % 4 == 3 else pairs[rng.choice(len(pairs))]
        values = rng.standard_normal((2, len(rows)))
        C[rows, t] = values[0] + 1j * values[1] if C.dtype.kind == "c" else values[0]
    return C


def product(C):
    P = C @ C.conj().T
    np.fill_diagonal(P, P.diagonal().real)
    return P


def assert_same_factor(factor, A, growth=10.0):
    """The factor is that of A: L to some roundings times the condition number, and all queries."""
    fresh = frontal.factorize(A, kind="spd", ordering=factor.analysis.ordering.perm)
    L, a = factor.L.toarray(), A.toarray()
    eps, kappa = np.finfo(A.dtype).eps, np.linalg.cond(a.astype("c16"))
    P = np.empty_like(a)
    P[np.ix_(factor.perm_r, factor.perm_c)] = a
    assert np.abs(L @ L.conj().T - P).max() <= growth * eps * np.abs(a).max()
    reference = np.linalg.cholesky(P.astype(np.result_type(A.dtype, "f8")))
    assert np.abs(L - reference).max() <= growth * eps * kappa * np.abs(reference).max()
    assert abs(factor.logdet() - fresh.logdet()) <= growth * eps * a.shape[0] * kappa
    b = np.ones(a.shape[0], A.dtype)
    x, info = factor.solve(b, return_info=True)
    assert info.backward_error <= 4 * eps
    assert np.abs(a @ x - b).max() <= 16 * eps * (np.abs(a).sum(axis=1).max() * np.abs(x).max() + 1)
    assert factor.inertia == (a.shape[0], 0, 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", [1, 2, 5, 13])
def test_update_and_downdate_give_the_factor_of_the_new_matrix(dtype, k):
    A, pairs = positive_definite(dtype, 60, 0.05, k)
    factor = frontal.factorize(A, kind="spd")
    C = columns_in(pairs, 60, k, dtype, 1)
    added = sp.csc_array(A.toarray() + product(C))
    assert factor.update(C) is factor
    assert factor.version == 1
    assert np.abs((factor.A - added).toarray()).max() <= 4 * k * np.finfo(dtype).eps * 10
    assert_same_factor(factor, factor.A)
    factor.downdate(sp.csr_array(C))
    assert factor.version == 2
    assert_same_factor(factor, factor.A)
    assert np.abs((factor.A - A).toarray()).max() <= 40 * k * np.finfo(dtype).eps


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(1, 30),
    density=st.floats(0, 0.4),
    k=st.integers(0, 20),
    scale=st.sampled_from([1e-8, 0.5, 1e4]),
    apart=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_updates_of_random_matrices_are_undone(n, density, k, scale, apart, seed):
    """Forests, n = 1, diagonal matrices, single fronts, duplicate columns, none at all."""
    A, pairs = positive_definite("f8", n, density, seed)
    with fronts_cost(-1.0 if apart else 1.0):
        factor = frontal.factorize(A, kind="spd")
    C = scale * columns_in(pairs, n, k, "f8", seed)
    factor.update(C)
    assert_same_factor(factor, factor.A, growth=20.0 + 2 * k)
    before = factor.A.copy()
    factor.downdate(C)
    assert_same_factor(factor, factor.A, growth=20.0 + 2 * k)
    assert abs(factor.A - A).max() <= 4 * (k + 1) * np.finfo("f8").eps * abs(before).max()


def test_hundred_updates_and_downdates_return_to_the_matrix():
    A = sp.csc_array(problems.poisson3d(7))
    pairs = np.argwhere(np.tril(A.toarray(), -1))
    factor, rng = frontal.factorize(A), np.random.default_rng(0)
    changes = [columns_in(pairs, A.shape[0], 1, "f8", seed) for seed in range(100)]
    for C in changes:
        factor.update(C)
    for t in rng.permutation(100):
        factor.downdate(changes[t])
    assert factor.version == 200
    assert factor._numbers.factor.updates.errors.max() >= 200  # by rotations, not anew
    assert abs(factor.A - A).max() <= 1e-13
    fresh = frontal.factorize(A)
    assert abs(factor.L - fresh.L).max() <= 1e-13
    assert abs(factor.logdet() - fresh.logdet()) <= 1e-11


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("excess", ["roundings", 1e-3, 10.0])
def test_failed_downdate_leaves_all_bits(dtype, excess):
    """Slightly indefinite matrices, and one far from definite."""
    excess = 100 * np.finfo(dtype).eps if excess == "roundings" else excess
    A, pairs = positive_definite(dtype, 40, 0.08, 3)
    factor = frontal.factorize(A, kind="spd").update(columns_in(pairs, 40, 3, dtype, 5))
    i = int(factor.analysis.perm[20])
    c = np.zeros((40, 9), dtype)
    c[i, 8] = np.sqrt(1 / factor.diag_inv()[i].real) * (1 + excess)
    c[pairs[0], 0] = 0.1
    factor.update(c[:, :8]).downdate(c[:, :8])  # the values are now changed in place
    numeric = factor._numbers.factor
    panels, values = numeric.panels.copy(), numeric.matrix.data.copy()
    errors, b = factor._numbers.factor.updates.errors.copy(), np.ones(40, dtype)
    x = factor.solve(b)
    assert "A" not in vars(numeric.matrix)
    with pytest.raises(frontal.NotPositiveDefiniteError) as caught:
        factor.downdate(c)
    assert caught.value.column is not None
    assert np.array_equal(factor._numbers.factor.panels, panels)
    assert np.array_equal(factor._numbers.factor.matrix.data, values)
    assert np.array_equal(factor._numbers.factor.updates.errors, errors)
    assert factor.version == 3
    assert np.array_equal(factor.solve(b), x)
    factor.downdate(c[:, :8])
    assert_same_factor(factor, factor.A)


def test_failed_downdate_names_the_users_column():
    """The new matrix is exactly singular."""
    A = sp.csc_array(sp.diags_array(np.arange(1.0, 9) ** 2))
    for j in range(8):
        c = np.zeros(8)
        c[j] = j + 1
        with pytest.raises(frontal.NotPositiveDefiniteError) as caught:
            frontal.factorize(A).downdate(c)
        assert caught.value.column == j


def test_large_update_and_its_downdate_factorize_anew():
    """The errors of rotations are roundings of the large matrix, too large for the small one."""
    A = sp.csc_array(problems.poisson2d(8))
    factor, c = frontal.factorize(A), np.zeros(64)
    c[5] = 2.0**20
    factor.update(c)
    assert factor._numbers.factor.updates.errors.max() == 1
    factor.downdate(c)
    assert factor._numbers.factor.updates.errors.max() == 0
    assert_same_factor(factor, factor.A)
    assert abs(factor.A - A).max() <= 2.0**40 * np.finfo("f8").eps


def test_entry_without_digits_warns():
    factor, c = frontal.factorize(problems.poisson2d(8)), np.zeros(64)
    c[5] = 1e8
    factor.update(c)
    with pytest.warns(frontal.IllConditionedWarning, match="times smaller"):
        factor.downdate(c)
    assert_same_factor(factor, factor.A)


def test_members_of_a_batch_are_updated_alone():
    A = sp.csc_array(problems.poisson2d(6))
    batch = frontal.factorize_batch(A, np.stack([A.data, 2 * A.data, 3 * A.data]))
    b, c = np.ones((3, 36)), np.zeros(36)
    c[[3, 4]] = 1, -2
    X = batch.solve(b)
    factor = batch[1].update(c)
    assert np.allclose(2 * A @ factor.solve(b[1]) + c * (c @ factor.solve(b[1])), b[1])
    assert np.array_equal(batch.solve(b), X)


def test_many_rotations_factorize_anew(monkeypatch):
    monkeypatch.setattr(update, "MAX_ROTATIONS", 5)
    A, pairs = positive_definite("f8", 30, 0.1, 0)
    factor = frontal.factorize(A, kind="spd")
    for step in range(8):
        factor.update(columns_in(pairs, 30, 1, "f8", step))
    assert factor._numbers.factor.updates.errors.max() <= 5
    assert factor.version == 8
    assert_same_factor(factor, factor.A)


def test_many_columns_factorize_anew():
    A = sp.csc_array(problems.poisson2d(20))
    pairs = np.argwhere(np.tril(A.toarray(), -1))
    factor = frontal.factorize(A)
    C = columns_in(pairs, 400, 500, "f8", 0)
    expected = sp.csc_array(A.toarray() + product(C))
    factor.update(C)
    assert factor._numbers.factor.updates.errors.max() == 0  # a new factor
    assert abs(factor.A - expected).max() <= 1e-13 * abs(expected).max()
    assert_same_factor(factor, factor.A)
    panels = factor._numbers.factor.panels
    bits = panels.copy()
    with pytest.raises(frontal.NotPositiveDefiniteError):
        factor.downdate(3 * C)
    assert factor._numbers.factor.panels is panels
    assert np.array_equal(panels, bits)


def test_modelled_times_grow_with_columns_and_fronts():
    small, large = (frontal.factorize(problems.poisson2d(n))._numbers.factor for n in (10, 40))
    seconds = [record.refactorization_seconds(x.symbolic.plan) for x in (small, large)]
    assert 5 < seconds[1] / seconds[0] < 100
    assert record.rotation_seconds(1000, 9) > record.rotation_seconds(1000, 8)


def test_copies_share_no_values():
    """Updates change values in place, unless the user or a copy of the factor has them."""
    A, pairs = positive_definite("f8", 40, 0.1, 0)
    factor = frontal.factorize(A, kind="spd")
    C, stored = columns_in(pairs, 40, 2, "f8", 0), factor.A
    added = factor.updated(C)
    assert (factor.version, added.version) == (0, 1)
    view = added.A
    values = view.data.copy()
    added.update(C)
    assert np.array_equal(view.data, values)
    assert np.array_equal(stored.data, A.data)
    twin, pickled = added.copy(), pickle.loads(pickle.dumps(added))
    added.update(C)
    twin.downdate(C)
    pickled.downdate(C)
    assert abs(added.A - A - 3 * sp.csc_array(product(C))).max() <= 1e-14
    assert abs(twin.A - view).max() <= 1e-14
    assert np.array_equal(pickled.A.data, twin.A.data)
    for one in (factor, added, twin, pickled):
        assert_same_factor(one, one.A)


def test_queries_after_an_update_are_those_of_the_new_matrix():
    A = sp.csc_array(problems.poisson2d(9))
    n = A.shape[0]
    factor, b = frontal.factorize(A), np.ones(n)
    factor.solve(b), factor.rcond(), factor.diag_inv(), factor.growth
    c = np.zeros(n)
    c[[10, 11]] = 30.0, -20.0
    factor.update(c)
    new = A.toarray() + np.outer(c, c)
    inverse = np.linalg.inv(new)
    assert np.allclose(factor.diag_inv(), inverse.diagonal(), rtol=1e-12)
    x, info = factor.solve(b, return_info=True)
    assert np.allclose(x, inverse @ b, rtol=1e-12)
    weights = np.abs(new) @ np.abs(x) + np.abs(b)
    condition = (np.abs(inverse) @ weights).max() / np.abs(x).max()
    assert condition <= info.condition <= 3 * condition  # with the residual in the weights
    assert np.isclose(1 / factor.rcond(), np.linalg.cond(new, 1), rtol=0.3)
    assert np.isclose(factor.growth, np.abs(factor.L).max() / np.abs(new).sum(axis=1).max())
    values_bar, b_bar = factor.solve_vjp(x, b)
    row, column = A.tocoo().coords
    assert np.allclose(b_bar, inverse @ b)
    assert np.allclose(values_bar, -(b_bar[row] * x[column] + b_bar[column] * x[row]) / 2)
    with pytest.raises(frontal.errors.StaleFactorError):
        factor.solve_vjp(x, b, version=0)
    assert np.allclose(factor.logdet_vjp(), inverse[row, column])
    factor.refactorize(A.data)
    assert_same_factor(factor, A)


@pytest.mark.parametrize("triangle", ["lower", "upper"])
def test_half_storage_is_updated_in_both_triangles(triangle):
    A, pairs = positive_definite("c16", 40, 0.1, 0)
    half = sp.tril(A) if triangle == "lower" else sp.triu(A)
    factor = frontal.factorize(half.tocsc(), kind="spd", triangle=triangle)
    factor.update(columns_in(pairs, 40, 3, "c16", 1))
    assert abs(factor.A - factor.A.conj().T).max() == 0
    assert_same_factor(factor, factor.A)
    factor.refactorize(2 * half.tocsc().data)
    assert_same_factor(factor, 2 * A)


def test_small_solves_follow_updates():
    """The fast path of small systems reads the new values and panels, before and after others."""
    A = sp.csc_array(problems.poisson2d(6))
    factor, b, c = frontal.factorize(A), np.ones(36), np.zeros(36)
    c[[3, 4]] = 1, -2
    for step in range(40):
        factor.refactorize(A.data)
        assert np.allclose(A @ factor.solve(b), b)
        factor.update(c)
        for _ in range(3):
            x = factor.solve(b)
            assert np.allclose(A @ x + c * (c @ x), b), step
        factor.downdate(c)
        assert np.allclose(A @ factor.solve(b), b)


@pytest.mark.parametrize("refactorized", [False, True])
def test_losses_of_many_downdates_add_up(refactorized, monkeypatch):
    """No downdate loses more than two digits; all together lose all of them."""
    if refactorized:  # the values of a new factor are those that were changed
        monkeypatch.setattr(update, "MAX_ROTATIONS", 0)
    A = sp.csc_array([[3.0, 1.0], [1.0, 2.0]])
    factor = frontal.factorize(A, kind="spd").update([1e8, 0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for power in range(14, -2, -2):
            factor.downdate([np.sqrt(factor.A[0, 0] - 3 - 10.0**power), 0])
    assert caught
    assert all("this and earlier changes" in str(one.message) for one in caught)
    factor.update([1.0, 0])  # no loss: warnings are errors
    factor.refactorize(A).update([1e3, 0]).downdate([1e3, 0])
