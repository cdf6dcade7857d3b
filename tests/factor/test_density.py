"""Draws and log densities of the Gaussian distribution whose precision is factorized."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal

import frontal

from .test_selected_inverse import random_matrix

COUNT = 100_000  # draws
DTYPES = "f4", "f8", "c8", "c16"


def system(dtype, n=30, seed=1):
    """Return a positive definite matrix, its factor, and its dense inverse."""
    A = random_matrix("spd", dtype, n, 0.1, seed)
    return A, frontal.factorize(A, kind="spd"), np.linalg.inv(A.toarray().astype("c16"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_covariance_of_draws_is_the_inverse(dtype):
    """Products of two entries have the variance z_ii z_jj, plus z_ij^2 if they are real."""
    _, factor, Z = system(dtype)
    X = factor.sample(COUNT, rng=3)
    assert X.shape == (COUNT, 30)
    assert X.dtype == dtype
    d, X = Z.diagonal().real, X.astype("c16" if X.dtype.kind == "c" else "f8")
    variance = np.outer(d, d) + (0 if X.dtype.kind == "c" else np.abs(Z) ** 2)
    sigma = np.sqrt(variance / COUNT)
    assert (np.abs(X.T @ X.conj() / COUNT - Z) < 5 * sigma).all()
    assert (np.abs(X.mean(axis=0)) < 5 * np.sqrt(d / COUNT)).all()
    if X.dtype.kind == "c":  # circular: no correlation without a conjugate
        assert (np.abs(X.T @ X / COUNT) < 5 * np.sqrt(2) * sigma).all()


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_draws_are_white_noise_after_multiplication_by_the_factor(dtype):
    _, factor, _ = system(dtype, 80, 5)
    x, rng = factor.sample(rng=7), np.random.default_rng(7)
    z = rng.standard_normal(80 if dtype == "f8" else 160)
    z = z if dtype == "f8" else z.view("c16") * np.sqrt(0.5)
    L = factor.L
    np.testing.assert_allclose(L.conj().T @ x[np.argsort(factor.perm_c)], z, atol=1e-12)


def test_shapes_are_those_of_multivariate_normal():
    _, factor, _ = system("f8")
    for size, shape in ((None, (30,)), (4, (4, 30)), ((2, 3), (2, 3, 30)), (0, (0, 30))):
        assert factor.sample(size, rng=0).shape == shape
    assert factor.sample((), rng=0).shape == (30,)
    assert factor.sample(np.int64(2), rng=0).shape == (2, 30)
    one, rng = factor.sample(3, rng=1), np.random.default_rng(1)
    np.testing.assert_allclose([factor.sample(rng=rng) for _ in range(3)], one, rtol=1e-12)
    assert (factor.sample() != factor.sample()).any()
    nothing = frontal.factorize(sp.csc_array((0, 0)), kind="spd")
    assert nothing.sample(2).shape == (2, 0)
    assert nothing.logpdf(np.empty((2, 0))).tolist() == [0.0, 0.0]
    for size, error in (
        (-1, ValueError),
        (1.5, TypeError),
        (True, TypeError),
        ((2, -1), ValueError),
    ):
        with pytest.raises(error, match="size is"):
            factor.sample(size)


def test_mean_is_the_refined_solution(device, gpu_backend):
    A, factor, _ = system("f8")
    b = np.arange(30.0)
    m = factor.solve(b)
    for draws in (None, 5):
        x = factor.sample(draws, rng=2, mean_b=b)
        np.testing.assert_allclose(x - factor.sample(draws, rng=2), m + 0 * x, atol=1e-12)
    for wrong in (np.ones((30, 1)), np.ones(29), 1.0):
        with pytest.raises(ValueError, match="mean_b has shape"):
            factor.sample(mean_b=wrong)
    with pytest.raises(TypeError, match="the matrix is real"):
        factor.sample(mean_b=1j * b)
    with pytest.raises(frontal.NonFiniteInputError, match="mean_b"):
        factor.sample(mean_b=b * np.nan)
    there = frontal.factorize(A, kind="spd", backend="gpu")
    y = there.sample(5, rng=2, mean_b=device.xp.asarray(b))
    assert type(y) is type(device.xp.asarray(b))
    x = there.to_cpu().sample(5, rng=2, mean_b=b)  # in the same order
    np.testing.assert_allclose(device.download(y), x, atol=1e-9)


def test_seed_gives_the_same_bits_on_any_number_of_threads(monkeypatch):
    A = frontal.problems.poisson3d(12)
    for size in (None, 40):
        draws = []
        for threads in ("1", "2"):
            monkeypatch.setenv("FRONTAL_NUM_THREADS", threads)
            draws.append(frontal.factorize(A, kind="spd").sample(size, rng=5))
        np.testing.assert_array_equal(*draws)


def test_density_is_that_of_scipy():
    rng = np.random.default_rng(0)
    for dtype, accuracy in (("f8", 1e-11), ("f4", 1e-3)):
        _, factor, Z = system(dtype)
        x, m = rng.standard_normal((2, 4, 30)).astype(dtype), rng.standard_normal(30).astype(dtype)
        wanted = multivariate_normal(m, Z.real, allow_singular=True).logpdf(x)
        np.testing.assert_allclose(factor.logpdf(x, m), wanted, rtol=accuracy)
        found = factor.logpdf(x[0, 1], m)
        assert type(found) is float
        assert abs(found / wanted[0, 1] - 1) < accuracy
    np.testing.assert_allclose(factor.logpdf(x), factor.logpdf(x, 0 * m))


def test_complex_density_is_that_of_its_real_and_imaginary_parts():
    A, factor, _ = system("c16", 12)
    Q = A.toarray()
    real = 2 * np.block([[Q.real, -Q.imag], [Q.imag, Q.real]])
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 12)) + 1j * rng.standard_normal((5, 12))
    wanted = multivariate_normal(cov=np.linalg.inv(real)).logpdf(np.hstack([x.real, x.imag]))
    np.testing.assert_allclose(factor.logpdf(x), wanted, rtol=1e-11)


def test_vectors_of_densities_are_checked():
    _, factor, _ = system("f8")
    for wrong in (np.ones(29), np.ones((30, 2)), 1.0):
        with pytest.raises(ValueError, match="its last axis must have 30"):
            factor.logpdf(wrong)
    with pytest.raises(ValueError, match="mean has shape"):
        factor.logpdf(np.ones(30), np.ones((2, 30)))
    with pytest.raises(TypeError, match="the matrix is real"):
        factor.logpdf(np.ones(30) + 1j)
    x = np.ones((2, 30))
    x[1, 4] = np.inf
    with pytest.raises(frontal.NonFiniteInputError, match=r"x\[1, 4\]"):
        factor.logpdf(x)
    with pytest.raises(TypeError, match="x is sparse"):
        factor.logpdf(sp.csr_array(x))


def test_matrices_without_a_density_are_refused():
    walk = sp.csc_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    shifted = frontal.problems.poisson2d(5) - 2.7 * sp.eye_array(25)
    for A, options, message in (
        (frontal.problems.convdiff2d(5), {}, "Try: kind='spd'"),
        (frontal.problems.convdiff2d(5), {"kind": "general"}, "Try: kind='spd'"),
        (frontal.problems.poisson2d(5), {"kind": "symmetric"}, "Try: kind='spd'"),
        (shifted, {}, "the matrix is not positive definite"),
        (walk, {"singular": "allow"}, "the matrix is singular"),
    ):
        factor = frontal.factorize(sp.csc_array(A), **options)
        refuses(factor, message)


def refuses(factor, message):
    for query in (factor.sample, lambda: factor.logpdf(np.ones(factor.shape[0]))):
        with pytest.raises(ValueError, match=message):
            query()


def test_singular_matrix_with_positive_pivots_is_refused():
    """Rounding leaves the last pivot of some singular matrices positive."""
    tried = 0
    for seed in range(12):
        graph = sp.random_array((40, 40), density=0.2, rng=np.random.default_rng(seed))
        graph = sp.csc_array(graph + graph.T)
        A = sp.csc_array(sp.diags_array(graph.sum(axis=0)) - graph)
        try:
            factor = frontal.factorize(A, kind="spd", singular="allow")
        except frontal.NotPositiveDefiniteError:
            continue
        refuses(factor, "the matrix is singular")
        tried += 1
    assert tried


def test_draws_of_nearly_singular_precision_warn():
    n = 40
    D = sp.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
    factor = frontal.factorize(sp.csc_array(D.T @ D + 1e-14 * sp.eye_array(n)), kind="spd")
    with pytest.warns(frontal.IllConditionedWarning, match="the covariance of draws"):
        factor.sample()


def test_mixed_precision_draws_in_double():
    A = frontal.problems.poisson2d(10)
    factor = frontal.factorize(A, kind="spd", precision="mixed")
    np.testing.assert_array_equal(
        factor.sample(rng=3), frontal.factorize(A, kind="spd").sample(rng=3)
    )


def test_draws_follow_new_values():
    A, factor, _ = system("f8")
    x = factor.sample(rng=1)
    np.testing.assert_allclose(factor.refactorize(4 * A).sample(rng=1), x / 2, rtol=1e-12)
    factor.free()
    with pytest.raises(frontal.FactorFreedError):
        factor.sample()
