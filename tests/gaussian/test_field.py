"""Gaussian fields: constraints, observations and intrinsic fields against dense formulas.

The dense density of a field with C x = e is that of its coordinates in an orthonormal basis of the
null space of C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.gaussian import GMRF

from ..factor.test_selected_inverse import random_matrix

N = 30
CASES = "proper", "walk", "two walks", "second order"


class Dense(NamedTuple):
    """Mean and covariance of a field, the basis of its subspace, its precision there."""

    mean: np.ndarray
    covariance: np.ndarray
    basis: np.ndarray
    precision: np.ndarray

    def logpdf(self, x):
        z = (x - self.mean) @ self.basis.conj()
        logdet, m = np.linalg.slogdet(self.precision)[1], self.basis.shape[1]
        square = np.einsum("ki,ij,kj->k", z.conj(), self.precision, z).real
        if np.iscomplexobj(self.precision):
            return logdet - m * np.log(np.pi) - square
        return 0.5 * (logdet - m * np.log(2 * np.pi) - square)


def dense(Q, b, C, e):
    k = len(C)
    V = np.linalg.svd(C)[2][k:].conj().T
    x0 = np.linalg.lstsq(C, e, rcond=None)[0]
    P = V.conj().T @ Q @ V
    mean = x0 + V @ np.linalg.solve(P, V.conj().T @ (b - Q @ x0))
    return Dense(mean, V @ np.linalg.inv(P) @ V.conj().T, V, P)


def case(name, dtype):
    """Return Q, b, C, e of a field of 30 variables."""
    rng = np.random.default_rng(CASES.index(name))

    def noise(*shape):
        values = rng.standard_normal(shape)
        return values + 1j * rng.standard_normal(shape) if dtype == "c16" else values

    if name == "proper":
        Q = random_matrix("spd", dtype, N, 0.1, 1).toarray()
        return Q, noise(N), noise(2, N), noise(2)
    D = np.diff(np.eye(N), 2 if name == "second order" else 1, axis=0)
    D = np.delete(D, 11, 0) if name == "two walks" else D
    C = np.ones((1, N)) + 0 * noise(1)
    if name == "second order":
        C = np.stack([np.ones(N), np.arange(N) + 0.3])
    if name == "two walks":  # a row for each, and one more
        C = np.stack([np.repeat([1, 0], [12, 18]), np.repeat([0, 1], [12, 18]), noise(N)])
    if dtype == "c16":
        phases = np.exp(1j * rng.standard_normal(N))
        D, C = D * phases, C * phases.conj()
    return D.conj().T @ D, noise(N), C, noise(len(C))


def close(found, wanted, accuracy=1e-9):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=accuracy * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("name", CASES)
def test_constrained_field_has_the_dense_distribution(name, dtype):
    Q, b, C, e = case(name, dtype)
    field, wanted = GMRF(sp.csc_array(Q), b, constraint=(C, e)), dense(Q, b, C, e)
    assert field.null_columns.size == {"proper": 0, "walk": 1}.get(name, 2)
    close(field.mean, wanted.mean)
    close(field.var(), wanted.covariance.diagonal().real)
    index = [3, 20, 7]
    mean, covariance = field.marginal(index)
    close(mean, wanted.mean[index])
    close(covariance, wanted.covariance[np.ix_(index, index)])
    x = field.sample((2, 2), rng=1)
    assert x.dtype == dtype
    close(x @ C.T, np.broadcast_to(e, (2, 2, len(e))))
    close(field.logpdf(x).ravel(), wanted.logpdf(x.reshape(4, N)))
    assert type(field.logpdf(x[0, 0])) is float
    assert field.logpdf(x[0, 0] + 1) == -np.inf


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("name", CASES)
def test_draws_of_constrained_field_have_its_covariance(name, dtype):
    Q, b, C, e = case(name, dtype)
    field, wanted = GMRF(sp.csc_array(Q), b, constraint=(C, e)), dense(Q, b, C, e)
    count = 20_000
    X = field.sample(count, rng=2) - wanted.mean
    d = wanted.covariance.diagonal().real
    sigma = np.sqrt((np.outer(d, d) + (dtype == "f8") * wanted.covariance**2).real / count)
    assert (np.abs(X.T @ X.conj() / count - wanted.covariance) < 5 * sigma + 1e-9).all()


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("name", CASES)
def test_observations_condition_as_dense_formulas(name, dtype):
    Q, b, C, e = case(name, dtype)
    M = sp.random_array((6, N), density=0.2, rng=np.random.default_rng(0), format="csr")
    if dtype == "c16":
        M = M * np.exp(1j * np.arange(N))[None]
    y, noise = np.arange(6.0), np.array([0.1, 2.0, 0.3, 1.0, 0.5, 4.0])
    field = GMRF(sp.csc_array(Q), b, constraint=(C, e)).condition(M, y, noise)
    W = M.toarray().conj().T / noise
    wanted = dense(Q + W @ M.toarray(), b + W @ y, C, e)
    close(field.mean, wanted.mean)
    close(field.var(), wanted.covariance.diagonal().real)


def test_proper_field_is_that_of_its_factor():
    Q = random_matrix("spd", "f8", N, 0.1, 1)
    b, Z = np.arange(float(N)), np.linalg.inv(Q.toarray())
    field, factor = GMRF(Q, b), frontal.factorize(Q, kind="spd")
    close(field.mean, Z @ b, 1e-12)
    close(field.var(), Z.diagonal(), 1e-12)
    np.testing.assert_array_equal(field.sample(3, rng=1), factor.sample(3, rng=1, mean_b=b))
    x = np.random.default_rng(0).standard_normal((2, N))
    close(field.logpdf(x), factor.logpdf(x, field.mean))
    assert GMRF(Q).mean.tolist() == [0.0] * N
    by_mean = GMRF(Q, mean=field.mean)
    np.testing.assert_array_equal(by_mean.mean, field.mean)
    y = [1.0]
    M = sp.csr_array(([1.0], ([0], [4])), shape=(1, N))
    close(by_mean.condition(M, y, 0.5).mean, field.condition(M, y, 0.5).mean, 1e-11)
    chosen = np.isin(np.arange(N), [2, 9])
    close(field.marginal(chosen).covariance, Z[np.ix_([2, 9], [2, 9])], 1e-12)


def test_mean_of_constrained_field_is_the_mean_before():
    for name in CASES:
        Q, _, C, e = case(name, "f8")
        m = np.random.default_rng(5).standard_normal(N)
        field = GMRF(sp.csc_array(Q), mean=m, constraint=(C, e))
        close(field.mean, dense(Q, Q @ m, C, e).mean, 1e-8)


@given(st.integers(2, 40), st.integers(1, 4), st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_intrinsic_fields_of_graphs_have_the_dense_variances(n, parts, seed):
    """Each part of a graph has a free constant, which a row of C fixes."""
    rng = np.random.default_rng(seed)
    part = np.sort(rng.integers(0, parts, n))
    W = np.zeros((n, n))
    for q in range(parts):
        nodes = rng.permutation(np.flatnonzero(part == q))
        W[nodes[1:], nodes[:-1]] = rng.uniform(0.5, 2, max(0, nodes.size - 1))
    W = W + W.T
    Q = np.diag(W.sum(axis=0)) - W
    C = np.stack([(part == q) * 1.0 for q in np.unique(part)])
    e = rng.standard_normal(len(C))
    if len(C) == n:
        return
    field, wanted = GMRF(sp.csc_array(Q), constraint=(C, e)), dense(Q, np.zeros(n), C, e)
    close(field.mean, wanted.mean)
    close(field.var(), wanted.covariance.diagonal())
    close(C @ field.sample(rng=1), e)


def test_forms_of_a_constraint_are_equal():
    Q, _, _, _ = case("walk", "f8")
    Q, ones = sp.csc_array(Q), np.ones(N)
    wanted = GMRF(Q, constraint="sum-to-zero").var()
    for form in (ones, ones[None], sp.csr_array(ones[None]), (ones, 0.0), (ones[None], [0.0])):
        np.testing.assert_allclose(GMRF(Q, constraint=form).var(), wanted, rtol=1e-12)
    C, e = GMRF(Q, constraint=(ones, 2.0)).constraint
    assert C.shape == (1, N)
    assert e.tolist() == [2.0]
    assert GMRF(sp.eye_array(3, format="csc")).constraint is None


def test_single_precision_field_stays_in_single():
    Q, b, C, e = case("walk", "f8")
    field = GMRF(sp.csc_array(Q).astype("f4"), b.astype("f4"), constraint=(C, e))
    wanted = dense(Q, b, C, e)
    close(field.mean, wanted.mean, 1e-3)
    close(field.var(), wanted.covariance.diagonal(), 1e-3)
    for values in (field.mean, field.var(), field.sample(rng=1), field.marginal([1]).covariance):
        assert values.dtype == np.float32


def test_seed_gives_the_same_draws_on_any_number_of_threads(monkeypatch):
    Q = frontal.problems.poisson3d(12)
    draws = []
    for threads in ("1", "2"):
        monkeypatch.setenv("FRONTAL_NUM_THREADS", threads)
        draws.append(GMRF(Q, constraint="sum-to-zero").sample(5, rng=5))
    np.testing.assert_array_equal(*draws)


def test_fields_without_a_distribution_are_refused():
    Q, _, C, _ = case("two walks", "f8")
    Q = sp.csc_array(Q)
    with pytest.raises(frontal.SingularMatrixError, match=r"its rank is 28 of 30.*2 free"):
        GMRF(Q)
    with pytest.raises(ValueError, match="null space of dimension 2"):
        GMRF(Q, constraint="sum-to-zero")
    with pytest.raises(ValueError, match="null space of dimension 2"):
        GMRF(Q, constraint=[C[0], 2 * C[0]])
    with pytest.raises(ValueError, match="linearly dependent"):
        GMRF(Q, constraint=[C[0], C[1], C[0] + C[1]])
    for indefinite in (-Q, sp.csc_array([[0.0, 1.0], [1.0, 1.0]])):
        with pytest.raises(frontal.NotPositiveDefiniteError):
            GMRF(indefinite, constraint=np.eye(indefinite.shape[0])[:2])
    nothing = GMRF(sp.csc_array((2, 2)), constraint=(np.eye(2), [1.0, 2.0]))
    assert nothing.mean.tolist() == [1.0, 2.0]
    with pytest.raises(frontal.NotPositiveDefiniteError):
        GMRF(sp.csc_array(frontal.problems.poisson2d(5) - 2.7 * sp.eye_array(25)))
    with pytest.raises(ValueError, match="dependent"):
        GMRF(sp.eye_array(3, format="csc"), constraint=np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"b": np.ones(3), "mean": np.ones(3)}, ValueError, "both b and mean"),
        ({"b": np.ones((3, 1))}, ValueError, "b has shape"),
        ({"mean": np.ones(2)}, ValueError, "mean has shape"),
        ({"b": [1.0, np.nan, 1.0]}, frontal.NonFiniteInputError, "b"),
        ({"b": 1j * np.ones(3)}, TypeError, "the matrix is real"),
        ({"constraint": "sum"}, ValueError, "choose 'sum-to-zero'"),
        ({"constraint": np.ones((1, 2))}, ValueError, "its last axis must have 3"),
        ({"constraint": np.ones((4, 3))}, ValueError, "k <= 3"),
        ({"constraint": (np.ones(3), [1.0, 2.0])}, ValueError, "constraint value"),
        ({"kind": "symmetric"}, TypeError, "kind is no option"),
    ],
)
def test_arguments_of_fields_are_checked(arguments, error, message):
    with pytest.raises(error, match=message):
        GMRF(sp.eye_array(3, format="csc"), **arguments)


def test_arguments_of_queries_are_checked():
    field, eye = GMRF(sp.eye_array(3, format="csc")), sp.eye_array(3, format="csr")
    for M, y, noise, message in (
        (eye[:, :2], np.ones(3), 1.0, "M has shape"),
        (eye, np.ones(2), 1.0, "y has shape|its last axis"),
        (eye, np.ones((1, 3)), 1.0, "y has shape"),
        (eye, np.ones(3), 0.0, "not positive"),
        (eye, np.ones(3), [1.0, 1.0, np.inf], "not positive and finite"),
        (eye, np.ones(3), np.eye(3), "noise is a matrix"),
    ):
        with pytest.raises(ValueError, match=message):
            field.condition(M, y, noise)
    for index, error in (
        ([0, 0], ValueError),
        ([3], IndexError),
        ([-1], IndexError),
        ([0.5], TypeError),
    ):
        with pytest.raises(error):
            field.marginal(index)
    with pytest.raises(ValueError, match="its last axis must have 3"):
        field.logpdf(np.ones(2))
    assert repr(GMRF(eye, constraint="sum-to-zero")) == "<GMRF of 3 variables, 1 constraint>"
